//! The operators of the runtime itself: on numbers, on sizes, and the two that move tensors for control flow.
//!
//! They have no output argument; the result is written to the last value of the call.

use edgepack_executor::kernel::Kernel;

pub mod numbers;
pub mod tensors;
#[cfg(test)]
mod tests;

/// The tables of this family.
pub const TABLES: &[&[&Kernel]] = &[numbers::KERNELS, tensors::KERNELS];
