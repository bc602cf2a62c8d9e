//! Comparisons, logic, operators on bits, and choices.

use super::{kernels, specs};
use edgepack_compute::pointwise::logic::*;

specs! {
    EQ: "aten::eq.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, eq;
    NE: "aten::ne.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, ne;
    LT: "aten::lt.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, lt;
    LE: "aten::le.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, le;
    GT: "aten::gt.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, gt;
    GE: "aten::ge.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, ge;
    EQ_NUMBER: "aten::eq.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, eq;
    NE_NUMBER: "aten::ne.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, ne;
    LT_NUMBER: "aten::lt.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, lt;
    LE_NUMBER: "aten::le.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, le;
    GT_NUMBER: "aten::gt.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, gt;
    GE_NUMBER: "aten::ge.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, ge;
    LOGICAL_AND: "aten::logical_and.out", [Tensor("self"), Tensor("other")], [], Bools, and;
    LOGICAL_OR: "aten::logical_or.out", [Tensor("self"), Tensor("other")], [], Bools, or;
    LOGICAL_XOR: "aten::logical_xor.out", [Tensor("self"), Tensor("other")], [], Bools, xor;
    LOGICAL_NOT: "aten::logical_not.out", [Tensor("self")], [], Bools, not;
    AND: "aten::bitwise_and.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, and;
    OR: "aten::bitwise_or.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, or;
    XOR: "aten::bitwise_xor.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, xor;
    AND_NUMBER: "aten::bitwise_and.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, and;
    OR_NUMBER: "aten::bitwise_or.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, or;
    XOR_NUMBER: "aten::bitwise_xor.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, xor;
    NOT: "aten::bitwise_not.out", [Tensor("self")], [], Promote, not;
    LEFT: "aten::bitwise_left_shift.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, left;
    LEFT_NUMBER: "aten::bitwise_left_shift.Tensor_Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, left;
    RIGHT: "aten::bitwise_right_shift.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, right;
    RIGHT_NUMBER: "aten::bitwise_right_shift.Tensor_Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, right;
    WHERE: "aten::where.self_out", [Mask("condition"), Tensor("self"), Tensor("other")], [], Promote, choose;
    MASKED_FILL: "aten::masked_fill.Scalar_out", [Tensor("self"), Mask("mask"), Scalar("value")], [], First, masked;
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
