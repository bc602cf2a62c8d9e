//! Programs inside the executable: what `include_program!` generates code for.
//!
//! [`include_program`] verifies a file when the program is compiled, puts it into the executable, and makes a module of
//! it: `BYTES`, `program()`, and a struct per method whose `run` takes and returns arrays of the right type and length.
//! Errors in the file, and an operator outside a given list, are compile errors.
//!
//! ```
//! # mod example {
//! use edgepack_executor::embed::include_program;
//!
//! include_program!(
//!     "../tests/data/corpus/models/mlp_portable.pte",
//!     operators = ["aten::permute_copy.out", "aten::addmm.out", "aten::relu.out", "aten::tanh.out"]
//! );
//! # }
//! # use example::mlp_portable;
//!
//! use edgepack_executor::{Options, Registry};
//! # fn demo(registry: &Registry) -> Result<(), Box<dyn std::error::Error>> {
//! let mut forward = mlp_portable::Forward::load(registry, &Options::default())?;
//! let scores: &[f32; 12] = forward.run(&[0.5; 24])?;
//! # Ok(())
//! # }
//! assert_eq!((mlp_portable::Forward::NAME, mlp_portable::Forward::INPUT_COUNT), ("forward", 1));
//! assert!(demo(&Registry::new()).unwrap_err().to_string().contains("aten::addmm.out"));
//! ```
//!
//! A tensor whose sizes change is a [`TensorView`] when it goes in and a [`Tensor`] when it comes out. Numbers and texts
//! that a program was traced with are constants of it: `run` passes them itself.

pub use edgepack_macros::include_program;

// Generated code finds everything here; people find it where it belongs.
#[doc(hidden)]
pub use edgepack_format::scalar::{Bool, ScalarType};
#[doc(hidden)]
pub use edgepack_format::tensor::TensorView;
#[doc(hidden)]
pub use edgepack_loader::{Error as OpenError, Program};
#[doc(hidden)]
pub use half::{bf16, f16};

#[doc(hidden)]
pub use crate::api::tensor::TensorRef;
#[doc(hidden)]
pub use crate::pte::error::{LoadError, RunError};
#[doc(hidden)]
pub use crate::pte::input::{Input, ToInput};
#[doc(hidden)]
pub use crate::pte::method::Method;
#[doc(hidden)]
pub use crate::pte::options::Options;
#[doc(hidden)]
pub use crate::pte::registry::Registry;

use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::TensorLayout;

use crate::api::error::KernelError;
use crate::api::tensor::PodElement;
use crate::api::typed::Tensor;
use crate::pte::input::Output;
use crate::pte::outputs::Outputs;

/// A file whose first byte is at a multiple of 64, as its segments expect.
#[repr(C, align(64))]
pub struct Aligned<B: ?Sized>(
    /// Bytes of the file.
    pub B,
);

/// An output whose sizes change, for generated code.
#[doc(hidden)]
pub type OutputTensor<'m, T> = Tensor<'m, T>;

/// An input or output of a method of an included program.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum ValueSpec {
    /// `None`.
    Null,
    /// An integer, with the value it was traced with.
    Int(i64),
    /// A bool, with the value it was traced with.
    Bool(bool),
    /// A double, with the value it was traced with.
    Double(f64),
    /// Text, with the value it was traced with.
    Text(&'static str),
    /// Tensor; its sizes are upper bounds where it is dynamic.
    Tensor {
        /// Element type.
        scalar_type: ScalarType,
        /// Elements along each dimension; upper bounds if it is dynamic.
        sizes: &'static [usize],
        /// Dimensions from outermost to innermost in memory.
        dim_order: &'static [u8],
        /// True if its sizes may be smaller.
        dynamic: bool,
    },
}

/// A tensor as an input, for generated code: an array is as long as the spec says.
#[doc(hidden)]
pub fn input<'a, T: bytemuck::Pod, const N: usize>(spec: &ValueSpec, elements: &'a [T; N]) -> Input<'a> {
    match *spec {
        ValueSpec::Tensor { scalar_type, sizes, dim_order, .. } => {
            let layout = TensorLayout::new(scalar_type, sizes, dim_order);
            let view = layout.and_then(|layout| TensorView::new(layout, bytemuck::cast_slice(elements)));
            view.map_or(Input::Null, Input::Tensor)
        }
        _ => constant(spec),
    }
}

/// Returns the value that a method was traced with, as an input, for generated code.
#[doc(hidden)]
pub fn constant(spec: &ValueSpec) -> Input<'static> {
    match *spec {
        ValueSpec::Int(value) => Input::Int(value),
        ValueSpec::Bool(value) => Input::Bool(value),
        ValueSpec::Double(value) => Input::Double(value),
        ValueSpec::Text(value) => Input::Text(value),
        ValueSpec::Null | ValueSpec::Tensor { .. } => Input::Null,
    }
}

fn wrong(index: usize, message: String) -> RunError {
    RunError::Output { index, code: ErrorCode::InvalidType, message }
}

fn refused(index: usize) -> impl Fn(KernelError) -> RunError {
    move |error| RunError::Output { index, code: error.code, message: error.message.into_owned() }
}

macro_rules! outputs {
    ($($function:ident $variant:ident $ty:ty;)*) => {
        $(#[doc(hidden)]
        pub fn $function<'m>(outputs: &Outputs<'m>, index: usize) -> Result<$ty, RunError> {
            match outputs.get(index) {
                Some(Output::$variant(value)) => Ok(value),
                other => Err(wrong(index, format!("{other:?}, the program declares a {}", stringify!($variant)))),
            }
        })*
    };
}

outputs! {
    int Int i64;
    bool Bool bool;
    double Double f64;
    text Text &'m str;
    tensor Tensor TensorRef<'m>;
}

/// A tensor whose sizes change, for generated code.
#[doc(hidden)]
pub fn typed<'m, T: PodElement>(outputs: &Outputs<'m>, index: usize) -> Result<Tensor<'m, T>, RunError> {
    Tensor::new(tensor(outputs, index)?).map_err(refused(index))
}

/// A tensor as an array of its elements, for generated code.
#[doc(hidden)]
pub fn array<'m, T: PodElement, const N: usize>(outputs: &Outputs<'m>, index: usize) -> Result<&'m [T; N], RunError> {
    let elements = tensor(outputs, index)?.as_slice::<T>().map_err(refused(index))?;
    elements.try_into().map_err(|_| wrong(index, format!("{} elements, the program declares {N}", elements.len())))
}

/// A tensor as an array of its bytes, for generated code.
#[doc(hidden)]
pub fn bytes<'m, const N: usize>(outputs: &Outputs<'m>, index: usize) -> Result<&'m [u8; N], RunError> {
    let bytes = tensor(outputs, index)?.bytes();
    bytes.try_into().map_err(|_| wrong(index, format!("{} bytes, the program declares {N}", bytes.len())))
}
