//! Operators that the stock ExecuTorch kernels compute otherwise than PyTorch.
//!
//! The library follows PyTorch. To reproduce what the stock kernels give, these rows replace its own.

use super::{kernels, specs};
use edgepack_compute::pointwise::arithmetic::remainder_by_kind;

specs! {
    REMAINDER: "aten::remainder.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, remainder_by_kind, divisor 1;
    REMAINDER_NUMBER: "aten::remainder.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, remainder_by_kind, divisor 1;
}

kernels! {
    "aten::remainder.Tensor_out" => REMAINDER,
    "aten::remainder.Scalar_out" => REMAINDER_NUMBER;
}
