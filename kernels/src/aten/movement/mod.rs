//! Operators that move elements without computing on them: views as copies, joins, splits, indexing, conversions.
//!
//! Everything is a walk: of an input in the order an output is stored in memory, or of an output in the order its input
//! is read. Elements are moved by their width; only conversions look at their type.

use edgepack_executor::kernel::{Alias, Kernel, KernelError, Prepare, Run};

use crate::schema::kernel;

pub mod copy;
pub mod filter;
pub mod index;
pub mod join;
pub mod meet;
pub mod pick;
pub mod reinterpret;
pub mod shape;
pub mod shift;
pub mod shuffle;
pub mod split;
#[cfg(test)]
mod tests;
pub mod transfer;
pub mod view;

/// The tables of this family.
pub const TABLES: &[&[&Kernel]] = &[
    copy::KERNELS,
    filter::KERNELS,
    index::KERNELS,
    join::KERNELS,
    meet::KERNELS,
    pick::KERNELS,
    reinterpret::KERNELS,
    shape::KERNELS,
    shift::KERNELS,
    split::KERNELS,
];

/// A row of an operator table.
pub(crate) const fn row(name: &'static str, prepare: fn(&Prepare<'_>) -> Result<Box<dyn Run>, KernelError>) -> Kernel {
    kernel(name, Alias::Disjoint, prepare)
}
