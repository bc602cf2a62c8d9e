//! The operator library: portable, prim and quantised operators of ExecuTorch.
//!
//! Operators come in families with one engine each; an operator is a row of its family's table, never a copy of its
//! neighbour. [`registry`] is the list of all.

pub mod broadcast;
pub mod convert;
pub mod dims;
pub mod float;
pub mod numeric;
pub mod promote;

use edgepack_executor::kernel::{Kernel, Registry};

/// The families of this crate.
const FAMILIES: &[&[&Kernel]] = &[];

/// Every operator of this crate.
pub fn registry() -> Registry {
    FAMILIES.iter().fold(Registry::new(), |registry, kernels| registry.with_kernels(kernels))
}
