//! Convolution over one, two or three spatial dimensions, forward and transposed.
//!
//! [`direct`] is the definition in loops, for every element type and layout, and the oracle of the rest. [`Convolution`] is
//! for `f32`: products of matrices for images of up to two dimensions, own loops where channels are innermost or have a kernel
//! each, fewer products where windows are 3 by 3, and products whose results are added up for transposed ones. [`lines`]
//! computes two at once. [`HalfConvolution`] brings 16-bit floats there, and [`gradient`] has the gradients of weight and bias.

mod algorithm;
mod blocked;
mod convolution;
mod depthwise;
pub mod direct;
mod few_channels;
mod few_outputs;
mod geometry;
pub mod gradient;
mod half_precision;
mod im2col;
pub mod lines;
mod pixels;
mod transposed;
mod turned;
mod weight;
mod winograd;

pub use crate::gemm::blocks::scaled;
pub use convolution::Convolution;
pub use geometry::{Geometry, Operands};
pub use half_precision::HalfConvolution;
pub use turned::Bounds;
pub use weight::PackedWeight;

#[cfg(test)]
mod tests;
