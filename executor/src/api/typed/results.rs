//! Result types that a function can have for the returns of its operator.

use super::kind;
use crate::api::error::KernelError;
use crate::api::kernel::KernelContext;
use crate::api::tensor::Scalar;

/// A value that a kernel can return where its schema says `K`, where `K` is one of [`kind`].
#[diagnostic::on_unimplemented(
    message = "a function that returns `{Self}` cannot be this operator: it returns {K}",
    label = "another type is needed here"
)]
pub trait Returned<K> {
    /// Writes the result to its place in the call.
    fn write(self, cx: &mut KernelContext<'_>, arg: usize) -> Result<(), KernelError>;
}

/// Return value of a function: a plain value, or a `Result`.
pub trait Given {
    /// Plain value, which is written to the place of the result.
    type Value;
    /// The value, or why there is none.
    fn given(self) -> Result<Self::Value, KernelError>;
}

impl<T> Given for Result<T, KernelError> {
    type Value = T;
    fn given(self) -> Result<T, KernelError> {
        self
    }
}

macro_rules! values {
    ($($ty:ty),*) => {
        $(impl Given for $ty {
            type Value = $ty;
            fn given(self) -> Result<$ty, KernelError> {
                Ok(self)
            }
        })*
    };
}

values!((), i64, f64, bool, Scalar);

impl Returned<kind::Nothing> for () {
    fn write(self, _: &mut KernelContext<'_>, _: usize) -> Result<(), KernelError> {
        Ok(())
    }
}

impl Returned<kind::Int> for i64 {
    fn write(self, cx: &mut KernelContext<'_>, arg: usize) -> Result<(), KernelError> {
        cx.set_int(arg, self)
    }
}

impl Returned<kind::Float> for f64 {
    fn write(self, cx: &mut KernelContext<'_>, arg: usize) -> Result<(), KernelError> {
        cx.set_double(arg, self)
    }
}

impl Returned<kind::Bool> for bool {
    fn write(self, cx: &mut KernelContext<'_>, arg: usize) -> Result<(), KernelError> {
        cx.set_bool(arg, self)
    }
}

impl Returned<kind::Scalar> for Scalar {
    fn write(self, cx: &mut KernelContext<'_>, arg: usize) -> Result<(), KernelError> {
        match self {
            Scalar::Int(value) => cx.set_int(arg, value),
            Scalar::Double(value) => cx.set_double(arg, value),
            Scalar::Bool(value) => cx.set_bool(arg, value),
        }
    }
}
