//! Read, write, verify, load and run on-device model packages, with no Python and no C++ toolchain.
//!
//! This crate is the front door: it re-exports the layers ([`format`](mod@format), [`builder`], [`loader`], [`executor`],
//! [`kernels`]) and a [`prelude`] with what most programs need.
//!
//! ```
//! use edgepack::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/models/mlp_portable.pte");
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
#![forbid(unsafe_code)]

pub use edgepack_builder as builder;
pub use edgepack_format as format;
pub use edgepack_loader as loader;

#[cfg(feature = "kernels")]
pub use edgepack_executor as executor;
#[cfg(feature = "kernels")]
pub use edgepack_kernels as kernels;

/// What most programs need.
pub mod prelude {
    pub use crate::builder::args;
    pub use crate::builder::pte::{ProgramBuilder, TensorSpec};
    pub use crate::format::scalar::ScalarType;
    pub use crate::format::tensor::{TensorLayout, TensorView};
    pub use crate::loader::{MethodMeta, NamedDataMap, Program, ValueMeta};

    #[cfg(feature = "kernels")]
    pub use crate::executor::{Input, LoadMethod, Method, Options, Output, Outputs};
    #[cfg(feature = "kernels")]
    pub use crate::kernels;
}
