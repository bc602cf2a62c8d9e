//! Read, write, verify, load and run on-device model packages, with no Python and no C++ toolchain.
//!
//! This crate is the front door: it re-exports the layers ([`format`](mod@format), [`builder`], [`loader`], [`executor`],
//! [`kernels`]) and a [`prelude`] with what most programs need. [`edit`] is where reading and writing meet: files are
//! taken apart, changed and written again.
//!
//! ```
//! use edgepack::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/models/mlp_portable.pte");
//! let program = Program::open(path)?; // verified; segments are read on demand
//! let mut forward = program.method("forward")?.load(&kernels::registry(), &Options::default())?;
//!
//! let layout = program.method("forward")?.meta()?.inputs[0].tensor().unwrap().layout.clone();
//! let zeros = vec![0; layout.byte_len()];
//! let x = TensorView::new(layout, &zeros)?;
//! let outputs = forward.run(&[x])?;
//! println!("{:?}", outputs.get(0).unwrap().tensor().unwrap().sizes);
//! # Ok(())
//! # }
//! ```
//!
//! A program of one's own takes no more:
//!
//! ```
//! use edgepack::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let ones: Vec<u8> = 1f32.to_le_bytes().repeat(4);
//! let mut program = ProgramBuilder::new();
//! let w = program.constant("w", &TensorView::of::<f32>(&[2, 2], &ones)?)?;
//! let mut forward = program.method("forward");
//! let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [2, 2]))?;
//! let y = forward.call("aten::add.out", args![x, w, 1i64], TensorSpec::like(x))?;
//! forward.output(y)?;
//! let program = Program::from_bytes(program.finish()?.to_bytes()?)?;
//!
//! let mut forward = program.method("forward")?.load(&kernels::registry(), &Options::default())?;
//! let outputs = forward.run(&[TensorView::of::<f32>(&[2, 2], &ones)?])?;
//! assert_eq!(outputs.get(0).unwrap().tensor().unwrap().as_slice::<f32>()?, [2.0; 4]);
//! # Ok(())
//! # }
//! ```
//!
//! Structs of weights and options, typed kernels, and programs inside the executable:
//!
//! ```
//! # mod example {
//! use edgepack::prelude::*;
//!
//! /// Weights: stored as named data, loaded back without a copy.
//! #[derive(NamedData)]
//! struct Linear<'a> {
//!     weight: TensorView<'a, f32>,
//!     #[named(rename = "b", align = 64)]
//!     bias: &'a [f32],
//! }
//!
//! /// Options of a backend: compile specs and back.
//! #[derive(CompileSpecs, PartialEq, Debug)]
//! struct Packing {
//!     #[spec(key = "max_value")]
//!     max: u32,
//!     #[spec(default = "true")]
//!     fused: bool,
//! }
//!
//! /// A kernel: its schema is checked against the function when this is compiled.
//! #[kernel("my::scale.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)", like = "self")]
//! fn scale(input: &Tensor<f32>, by: f64, out: &mut TensorMut<f32>) -> Result<(), KernelError> {
//!     out.as_mut_slice().iter_mut().zip(input.as_slice()).for_each(|(out, x)| *out = x * by as f32);
//!     Ok(())
//! }
//!
//! // A program, verified when this is compiled: a module with a struct for each method.
//! include_program!("tests/data/corpus/models/mlp_portable.pte");
//!
//! # pub
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let linear = Linear { weight: TensorView::from_slice(&[2, 1], &[1.0, 2.0])?, bias: &[0.5, 0.25] };
//!     let mut store = NamedDataStore::new();
//!     linear.store_at("head", &mut store)?;
//!     assert!(store.get("head.b").is_some_and(|entry| entry.alignment == 64));
//!
//!     let packing = Packing { max: 7, fused: false };
//!     assert_eq!(Packing::from_specs(&packing.to_specs())?, packing);
//!
//!     let registry = kernels::registry().with_kernels(&[&SCALE]);
//!     let mut forward = mlp_portable::Forward::load(&registry, &Options::default())?;
//!     let scores: &[f32; 12] = forward.run(&[0.5; 24])?;
//!     assert!(scores.iter().all(|score| score.is_finite()));
//!     Ok(())
//! }
//! # }
//! # example::main().unwrap();
//! ```
#![forbid(unsafe_code)]

pub use edgepack_builder as builder;
#[cfg(feature = "exir")]
pub use edgepack_exir as exir;
pub use edgepack_format as format;
pub use edgepack_loader as loader;

#[cfg(all(feature = "exir", feature = "kernels"))]
pub mod eager;
pub mod edit;
mod payloads;
pub mod text;

pub use payloads::payloads;

#[cfg(feature = "kernels")]
pub use edgepack_compute as compute;
#[cfg(feature = "kernels")]
pub use edgepack_executor as executor;
#[cfg(feature = "kernels")]
pub use edgepack_kernels as kernels;
#[cfg(feature = "xnnpack")]
pub use edgepack_xnnpack as xnnpack;

/// Returns the backends of this crate: those that run what programs were lowered to.
#[cfg(feature = "kernels")]
pub fn backends() -> executor::delegate::Backends {
    let backends = executor::delegate::Backends::new();
    #[cfg(feature = "xnnpack")]
    let backends = backends.with(xnnpack::Xnnpack);
    backends
}
#[cfg(feature = "native")]
pub use edgepack_native as native;

/// The examples of the page, as tests.
#[cfg(all(doctest, feature = "xnnpack"))]
#[doc = include_str!("../docs/library.md")]
struct LibraryPage;

/// Names that most programs need.
pub mod prelude {
    pub use crate::builder::NamedDataStore;
    pub use crate::builder::pte::{ProgramBuilder, TensorSpec};
    pub use crate::builder::{args, tensors};
    pub use crate::format::named::NamedData;
    pub use crate::format::scalar::ScalarType;
    pub use crate::format::spec::CompileSpecs;
    pub use crate::format::tensor::{TensorLayout, TensorView};
    pub use crate::loader::{DataFile, HeldData, MethodMeta, NamedDataMap, Program, ValueMeta};

    #[cfg(feature = "kernels")]
    pub use crate::executor::embed::include_program;
    #[cfg(feature = "kernels")]
    pub use crate::executor::kernel::KernelError;
    #[cfg(feature = "kernels")]
    pub use crate::executor::typed::{Tensor, TensorMut, kernel};
    #[cfg(feature = "kernels")]
    pub use crate::executor::{Input, LoadMethod, Method, Options, Output, Outputs};
    #[cfg(feature = "kernels")]
    pub use crate::kernels;
}
