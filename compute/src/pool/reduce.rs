//! Results of windows over floats, vector by vector: the greatest elements, and averages.

use super::Average;
use crate::simd::floats::Floats;

/// A result of vectors of the elements that the taps of windows meet, one after the other.
pub(super) trait Reduce: Copy + Sync {
    /// The result of no elements, which padding does not change.
    const NOTHING: f32;
    /// True if the result is the same in whatever order and however often elements are met.
    const ANY_ORDER: bool;

    /// The result with one more element.
    fn add<F: Floats>(self, floats: F, so_far: F::V, x: F::V) -> F::V;
    /// The result of windows of which `inside` taps are in the input, of `padded` that are in the input or its padding.
    fn finish<F: Floats>(self, floats: F, all: F::V, inside: usize, padded: usize) -> F::V;
}

/// The greatest elements.
#[derive(Clone, Copy)]
pub(super) struct Greatest;

impl Reduce for Greatest {
    const NOTHING: f32 = f32::NEG_INFINITY;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn add<F: Floats>(self, floats: F, so_far: F::V, x: F::V) -> F::V {
        floats.greater(so_far, x)
    }

    #[inline(always)]
    fn finish<F: Floats>(self, _: F, all: F::V, _: usize, _: usize) -> F::V {
        all
    }
}

impl Reduce for Average {
    const NOTHING: f32 = 0.0;
    const ANY_ORDER: bool = false;

    #[inline(always)]
    fn add<F: Floats>(self, floats: F, so_far: F::V, x: F::V) -> F::V {
        floats.plus(so_far, x)
    }

    #[inline(always)]
    fn finish<F: Floats>(self, floats: F, all: F::V, inside: usize, padded: usize) -> F::V {
        // A quotient of doubles, rounded, is the quotient of the floats that they are.
        floats.over(all, floats.splat(self.divisor(inside, padded) as f32))
    }
}
