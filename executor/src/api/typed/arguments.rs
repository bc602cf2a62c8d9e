//! Parameter types that an argument of each kind can have, and how they are unpacked.

use edgepack_format::scalar::ScalarType;

use super::{TensorList, TensorMut, expect_dtype, kind};
use crate::api::error::KernelError;
use crate::api::kernel::{Ints, KernelContext, Prepare, Views};
use crate::api::tensor::{self, PodElement, Scalar, TensorRef};

/// One call of a kernel: its arguments, their shapes fixed.
#[derive(Clone, Copy)]
pub struct Call<'v> {
    views: &'v Views<'v>,
}

impl<'v> Call<'v> {
    /// Makes the call of views, for generated code.
    #[doc(hidden)]
    pub fn new(views: &'v Views<'v>) -> Self {
        Call { views }
    }

    fn context(&self) -> &'v KernelContext<'v> {
        self.views.context()
    }
}

/// A parameter that can take an argument of kind `K`, where `K` is one of [`kind`].
#[diagnostic::on_unimplemented(
    message = "a parameter of type `{Self}` cannot take what the schema says: {K}",
    label = "another type is needed here",
    note = "`edgepack_executor::typed` lists which parameter goes with which argument"
)]
pub trait Argument<'v, K>: Sized {
    /// Refuses, when a method is loaded, an argument that the parameter cannot take.
    fn check(args: &Prepare<'_>, arg: usize, name: &str) -> Result<(), KernelError> {
        let _ = (args, arg, name);
        Ok(())
    }

    /// Unpacks the argument.
    fn unpack(call: Call<'v>, arg: usize) -> Result<Self, KernelError>;
}

impl<'v, T: PodElement> Argument<'v, kind::Tensor> for super::Tensor<'v, T> {
    fn check(args: &Prepare<'_>, arg: usize, name: &str) -> Result<(), KernelError> {
        expect_dtype::<T>(name, args.tensor(arg)?.meta.dtype)
    }
    #[inline]
    fn unpack(call: Call<'v>, arg: usize) -> Result<Self, KernelError> {
        super::Tensor::new(call.views.tensor(arg)?)
    }
}

impl<'v> Argument<'v, kind::Tensor> for TensorRef<'v> {
    #[inline]
    fn unpack(call: Call<'v>, arg: usize) -> Result<Self, KernelError> {
        call.views.tensor(arg)
    }
}

impl<'v, T: PodElement> Argument<'v, kind::Out> for TensorMut<'v, T> {
    fn check(args: &Prepare<'_>, arg: usize, name: &str) -> Result<(), KernelError> {
        expect_dtype::<T>(name, args.tensor(arg)?.meta.dtype)
    }
    #[inline]
    fn unpack(call: Call<'v>, arg: usize) -> Result<Self, KernelError> {
        TensorMut::new(call.views.out(arg)?)
    }
}

impl<'v> Argument<'v, kind::Out> for tensor::TensorMut<'v> {
    #[inline]
    fn unpack(call: Call<'v>, arg: usize) -> Result<Self, KernelError> {
        call.views.out(arg)
    }
}

impl<'v, T: PodElement> Argument<'v, kind::TensorList> for TensorList<'v, T> {
    fn check(args: &Prepare<'_>, arg: usize, name: &str) -> Result<(), KernelError> {
        for item in 0..args.list_len(arg)? {
            if let Some(tensor) = args.item(arg, item)? {
                expect_dtype::<T>(&format!("{name}[{item}]"), tensor.meta.dtype)?;
            }
        }
        Ok(())
    }
    fn unpack(call: Call<'v>, arg: usize) -> Result<Self, KernelError> {
        TensorList::new(call.views, arg)
    }
}

impl<'v, K, T: Argument<'v, K>> Argument<'v, kind::Optional<K>> for Option<T> {
    fn check(args: &Prepare<'_>, arg: usize, name: &str) -> Result<(), KernelError> {
        if args.is_none(arg) { Ok(()) } else { T::check(args, arg, name) }
    }
    #[inline]
    fn unpack(call: Call<'v>, arg: usize) -> Result<Self, KernelError> {
        if call.context().is_none(arg) { Ok(None) } else { T::unpack(call, arg).map(Some) }
    }
}

macro_rules! plain {
    ($($kind:ident => $ty:ty, $read:ident;)*) => {
        $(impl<'v> Argument<'v, kind::$kind> for $ty {
            #[inline]
            fn unpack(call: Call<'v>, arg: usize) -> Result<Self, KernelError> {
                call.context().$read(arg)
            }
        })*
    };
}

plain! {
    Int => i64, int;
    Float => f64, double;
    Bool => bool, bool;
    Scalar => Scalar, scalar;
    Text => &'v str, text;
    Ints => Ints<'v>, ints;
    Floats => &'v [f64], doubles;
    Bools => &'v [bool], bools;
}

impl<'v> Argument<'v, kind::Dtype> for ScalarType {
    fn unpack(call: Call<'v>, arg: usize) -> Result<Self, KernelError> {
        let number = call.context().int(arg)?;
        let found = i8::try_from(number).map(ScalarType).ok().filter(|found| found.is_valid());
        found.ok_or_else(|| KernelError::argument(format!("argument {arg}: {number} is not an element type")))
    }
}
