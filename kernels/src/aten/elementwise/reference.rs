//! Operators that the stock ExecuTorch kernels compute otherwise than PyTorch.
//!
//! The library follows PyTorch. To reproduce what the stock kernels give, these rows replace its own.

use super::lanes::loops;
use super::{kernels, specs};
use edgepack_compute::number::Compute;

loops! {
    // Floats get the sign of the divisor, as in PyTorch; integers keep that of the dividend.
    remainder: real<C: Compute> -> C, |p; a, b| if C::FLOATING { a.rem_floor(b) } else { a.rem_trunc(b) };
}

specs! {
    REMAINDER: "aten::remainder.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, remainder, divisor 1;
    REMAINDER_NUMBER: "aten::remainder.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, remainder, divisor 1;
}

kernels! {
    "aten::remainder.Tensor_out" => REMAINDER,
    "aten::remainder.Scalar_out" => REMAINDER_NUMBER;
}
