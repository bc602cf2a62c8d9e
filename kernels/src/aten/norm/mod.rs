//! Normalisation: over rows (layer and group norm) and per channel (batch norm).
//!
//! Statistics are taken in double precision from sums in the element's own; what is scaled is computed in the element's
//! own precision, in `f32` for 16-bit floats.

pub mod batch;
mod rows;

use edgepack_executor::kernel::Kernel;

/// The operators of this family.
pub static KERNELS: &[&Kernel] =
    &[&rows::LAYER_NORM, &rows::GROUP_NORM, &batch::NO_TRAINING, &batch::LEGIT, &batch::NO_STATS];

#[cfg(test)]
mod tests;
