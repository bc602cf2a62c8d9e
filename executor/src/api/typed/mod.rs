//! Kernels as typed functions: what `#[kernel]` generates code for.
//!
//! [`kernel`](macro@kernel) turns a function into a [`Kernel`](crate::api::kernel::Kernel) constant. Its schema is read when
//! the program is compiled: the function must have one parameter for each argument, of a type that such an argument can
//! be, and return what the operator returns. What the schema cannot say is decided when a method is loaded: that each
//! tensor has the element type its parameter asks for. Running then only unpacks.
//!
//! ```
//! use edgepack_executor::call::{Arg, call};
//! use edgepack_executor::{Registry, kernel::KernelError};
//! use edgepack_executor::typed::{Tensor, TensorMut, kernel};
//! use edgepack_format::scalar::ScalarType;
//!
//! /// Every element times a number.
//! #[kernel("my::scale.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)", like = "self", dtypes(f32, f64))]
//! fn scale<T>(input: &Tensor<T>, by: f64, out: &mut TensorMut<T>) -> Result<(), KernelError>
//! where
//!     T: Copy + From<f32> + std::ops::Mul<Output = T>,
//! {
//!     let by = T::from(by as f32);
//!     for (out, x) in out.as_mut_slice().iter_mut().zip(input.as_slice()) {
//!         *out = *x * by;
//!     }
//!     Ok(())
//! }
//!
//! let registry = Registry::new().with_kernels(&[&SCALE]);
//! assert_eq!(registry.names(), ["my::scale.out"]);
//! let args = [Arg::tensor(&[2], &[1.0f32, 2.0]), Arg::double(1.5), Arg::out(ScalarType::FLOAT, &[2])];
//! let outs = call(&SCALE, &args)?;
//! assert_eq!(outs[0].as_slice::<f32>().unwrap(), [1.5, 3.0]);
//! # Ok::<(), KernelError>(())
//! ```
//!
//! | in the schema | parameter |
//! |---|---|
//! | `Tensor` | [`Tensor<T>`] or [`TensorRef`](crate::api::tensor::TensorRef) (any element type), or a reference to one |
//! | `Tensor(a!)` | [`TensorMut<T>`] or [`tensor::TensorMut`](crate::api::tensor::TensorMut), or `&mut` of one |
//! | `Tensor[]`, `Tensor?[]` | [`TensorList<T>`] |
//! | `int`, `SymInt`, `MemoryFormat`, `Layout` | `i64` |
//! | `ScalarType` | [`ScalarType`] |
//! | `float` | `f64` |
//! | `bool` | `bool` |
//! | `Scalar` | [`Scalar`](crate::api::tensor::Scalar) |
//! | `str` | `&str` |
//! | `int[]`, `float[]`, `bool[]` | [`Ints`](crate::api::kernel::Ints), `&[f64]`, `&[bool]` |
//! | `?` after any of these | `Option` of the parameter |
//! | returns a number | `i64`, `f64`, `bool` or `Scalar`, or a `Result` of one |
//! | returns outs, or nothing | `()` or `Result<(), KernelError>` |

mod arguments;
mod results;
mod tensors;

pub use arguments::{Argument, Call};
pub use edgepack_macros::kernel;
pub use results::{Given, Returned};
pub use tensors::{Tensor, TensorList, TensorMut};

use edgepack_format::scalar::{Element, ScalarType};

use crate::api::error::KernelError;
use crate::api::kernel::{KernelContext, Prepare};

/// Kinds of arguments that a schema can state, as types.
pub mod kind {
    /// A tensor that is read.
    pub struct Tensor;
    /// A tensor that is written.
    pub struct Out;
    /// A list of tensors that are read.
    pub struct TensorList;
    /// Schema types `int` and `SymInt`, and memory formats and layouts by their codes.
    pub struct Int;
    /// Element type, which programs hold as an integer.
    pub struct Dtype;
    /// Schema type `float`; calls may give an integer for it.
    pub struct Float;
    /// Schema type `bool`.
    pub struct Bool;
    /// Schema type `Scalar`: an integer, a floating point number or a bool.
    pub struct Scalar;
    /// Schema type `str`.
    pub struct Text;
    /// A list of integers.
    pub struct Ints;
    /// A list of floating point numbers.
    pub struct Floats;
    /// A list of bools.
    pub struct Bools;
    /// Any of these, or `None`.
    pub struct Optional<K>(core::marker::PhantomData<K>);
    /// Nothing but what was written to outs.
    pub struct Nothing;
}

#[doc(hidden)]
pub use crate::api::tensor::storage_type;

/// The number of an element type, for generated code.
#[doc(hidden)]
pub const fn scalar_type_of<T: Element>() -> ScalarType {
    T::SCALAR_TYPE
}

/// Refuses a tensor whose element type is not `T`, for generated code.
#[doc(hidden)]
pub fn expect_dtype<T: Element>(place: &str, found: ScalarType) -> Result<(), KernelError> {
    if found == T::SCALAR_TYPE || storage_type(found) == T::SCALAR_TYPE {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{place}` is a tensor of {found}, the kernel takes {}", T::SCALAR_TYPE)))
}

/// Refuses an element type that a kernel has no instance for, for generated code.
#[doc(hidden)]
pub fn no_instance(place: &str, found: ScalarType, instances: &[ScalarType]) -> KernelError {
    let names: Vec<String> = instances.iter().map(ScalarType::to_string).collect();
    KernelError::unsupported(format!("`{place}` is a tensor of {found}, the kernel takes {}", names.join(", ")))
}

/// Refuses an out whose sizes change while the kernel does not say how, for generated code.
#[doc(hidden)]
pub fn expect_static(args: &Prepare<'_>, arg: usize, place: &str) -> Result<(), KernelError> {
    if args.tensor(arg)?.dynamic {
        let message = format!("`{place}` has sizes that change, and the kernel does not say to what");
        return Err(KernelError::unsupported(message));
    }
    Ok(())
}

/// Gives an out the sizes of another tensor, for generated code.
#[doc(hidden)]
pub fn resize_like(cx: &mut KernelContext<'_>, out: usize, like: usize) -> Result<(), KernelError> {
    let sizes = edgepack_format::tensor::Dims::from_slice(cx.meta(like)?.sizes).unwrap_or_default();
    cx.resize(out, &sizes)
}
