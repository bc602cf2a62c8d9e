//! Operators that the stock ExecuTorch kernels compute otherwise than PyTorch.
//!
//! The library follows PyTorch. To reproduce what the stock kernels give, these rows replace its own.

use super::schema::{BINARY, WITH_NUMBER};
use super::spec::Input::{Scalar, Tensor};
use super::{kernels, specs};
use edgepack_compute::pointwise::arithmetic::remainder_by_kind;

specs! {
    REMAINDER: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, remainder_by_kind, divisor 1;
    REMAINDER_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, remainder_by_kind, divisor 1;
}

kernels! {
    "aten::remainder.Tensor_out" => REMAINDER,
    "aten::remainder.Scalar_out" => REMAINDER_NUMBER;
}
