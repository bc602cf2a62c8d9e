//! Floating types that are computed with as `f32`, a slice at a time: the machine has instructions for that.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::number::Number;

/// A floating type that is computed with as `f32`.
pub trait Narrow: Number {
    /// Converts to `f32`, as many as there are in both.
    fn widen(from: &[Self], to: &mut [f32]);

    /// Converts from `f32`, rounded to the nearest.
    fn narrow(from: &[f32], to: &mut [Self]);
}

macro_rules! halves {
    ($($half:ty)*) => {$(
        impl Narrow for $half {
            fn widen(from: &[Self], to: &mut [f32]) {
                let len = from.len().min(to.len());
                from[..len].convert_to_f32_slice(&mut to[..len]);
            }
            fn narrow(from: &[f32], to: &mut [Self]) {
                let len = from.len().min(to.len());
                to[..len].convert_from_f32_slice(&from[..len]);
            }
        }
    )*};
}

halves!(f16 bf16);

impl Narrow for f32 {
    fn widen(from: &[Self], to: &mut [f32]) {
        let len = from.len().min(to.len());
        to[..len].copy_from_slice(&from[..len]);
    }
    fn narrow(from: &[f32], to: &mut [Self]) {
        let len = from.len().min(to.len());
        to[..len].copy_from_slice(&from[..len]);
    }
}
