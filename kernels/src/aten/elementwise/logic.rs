//! Comparisons, logic, operators on bits, and choices.

use super::schema::{BINARY, UNARY, WITH_NUMBER};
use super::spec::Input::{Mask, Scalar, Tensor};
use super::{kernels, specs};
use edgepack_compute::pointwise::logic::*;

specs! {
    EQ: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, eq;
    NE: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, ne;
    LT: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, lt;
    LE: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, le;
    GT: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, gt;
    GE: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, ge;
    EQ_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, eq;
    NE_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, ne;
    LT_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, lt;
    LE_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, le;
    GT_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, gt;
    GE_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, ge;
    LOGICAL_AND: BINARY, [Tensor(0), Tensor(1)], [], 2, Bools, and;
    LOGICAL_OR: BINARY, [Tensor(0), Tensor(1)], [], 2, Bools, or;
    LOGICAL_XOR: BINARY, [Tensor(0), Tensor(1)], [], 2, Bools, xor;
    LOGICAL_NOT: UNARY, [Tensor(0)], [], 1, Bools, not;
    AND: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, and;
    OR: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, or;
    XOR: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, xor;
    AND_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, and;
    OR_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, or;
    XOR_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, xor;
    NOT: UNARY, [Tensor(0)], [], 1, Promote, not;
    LEFT: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, left;
    LEFT_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, left;
    RIGHT: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, right;
    RIGHT_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, right;
    WHERE: "(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        [Mask(0), Tensor(1), Tensor(2)], [], 3, Promote, choose;
    MASKED_FILL: "(Tensor self, Tensor mask, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), Mask(1), Scalar(2)], [], 3, First, masked;
}

kernels! {
    "aten::eq.Tensor_out" => EQ,
    "aten::ne.Tensor_out" => NE,
    "aten::lt.Tensor_out" => LT,
    "aten::le.Tensor_out" => LE,
    "aten::gt.Tensor_out" => GT,
    "aten::ge.Tensor_out" => GE,
    "aten::eq.Scalar_out" => EQ_NUMBER,
    "aten::ne.Scalar_out" => NE_NUMBER,
    "aten::lt.Scalar_out" => LT_NUMBER,
    "aten::le.Scalar_out" => LE_NUMBER,
    "aten::gt.Scalar_out" => GT_NUMBER,
    "aten::ge.Scalar_out" => GE_NUMBER,
    "aten::logical_and.out" => LOGICAL_AND,
    "aten::logical_or.out" => LOGICAL_OR,
    "aten::logical_xor.out" => LOGICAL_XOR,
    "aten::logical_not.out" => LOGICAL_NOT,
    "aten::bitwise_and.Tensor_out" => AND,
    "aten::bitwise_or.Tensor_out" => OR,
    "aten::bitwise_xor.Tensor_out" => XOR,
    "aten::bitwise_and.Scalar_out" => AND_NUMBER,
    "aten::bitwise_or.Scalar_out" => OR_NUMBER,
    "aten::bitwise_xor.Scalar_out" => XOR_NUMBER,
    "aten::bitwise_not.out" => NOT,
    "aten::bitwise_left_shift.Tensor_out" => LEFT,
    "aten::bitwise_left_shift.Tensor_Scalar_out" => LEFT_NUMBER,
    "aten::bitwise_right_shift.Tensor_out" => RIGHT,
    "aten::bitwise_right_shift.Tensor_Scalar_out" => RIGHT_NUMBER,
    "aten::where.self_out" => WHERE,
    "aten::masked_fill.Scalar_out" => MASKED_FILL;
}
