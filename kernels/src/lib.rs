//! The operator library: portable, prim and quantised operators of ExecuTorch.
//!
//! Operators come in families with one engine each; an operator is a row of its family's table, never a copy of its
//! neighbour. [`registry`] is the list of all.

pub mod broadcast;
pub mod check;
pub mod conv;
pub mod convert;
pub mod dims;
pub mod elementwise;
pub mod float;
pub mod gemm;
pub mod matmul;
pub mod movement;
pub mod norm;
pub mod numeric;
pub mod pool;
pub mod prim;
pub mod promote;
pub mod quantized;
#[cfg(test)]
mod random;
pub mod reduce;
pub mod softmax;
pub mod sort;
pub mod spatial;
pub mod upsample;
pub mod wide;

use edgepack_executor::kernel::{Kernel, Registry};

/// The families of this crate.
const FAMILIES: &[&[&Kernel]] = &[
    conv::KERNELS,
    matmul::KERNELS,
    norm::KERNELS,
    pool::KERNELS,
    reduce::KERNELS,
    softmax::KERNELS,
    sort::KERNELS,
    upsample::KERNELS,
];

/// Every operator of this crate.
pub fn registry() -> Registry {
    let tables =
        FAMILIES.iter().chain(elementwise::TABLES).chain(movement::TABLES).chain(prim::TABLES).chain(quantized::TABLES);
    tables.fold(Registry::new(), |registry, kernels| registry.with_kernels(kernels))
}
