//! Operators on quantised tensors: integers that represent `(q - zero_point) * scale`.
//!
//! Scale and zero point are those of the whole tensor, of a slice along an axis, or of a token. All arithmetic is in
//! `f32`, rounding is to the nearest even integer, and results are clamped to the range given with the call.

use edgepack_executor::kernel::Kernel;

pub mod add;
pub mod affine;
pub mod embedding;
pub mod mixed;
pub mod operators;
pub mod ranges;
#[cfg(test)]
mod tests;

/// The tables of this family.
pub const TABLES: &[&[&Kernel]] =
    &[add::KERNELS, embedding::KERNELS, mixed::KERNELS, operators::KERNELS, ranges::KERNELS];
