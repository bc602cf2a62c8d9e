//! The implementation of [`Bytes`] that needs no instructions.

use super::{Bytes, ColumnLine, DepthwiseScales, LANES, Lanes, store};
use crate::simd::dot::{CHANNELS, Group};

/// One number after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plain;

impl Bytes for Plain {
    type Sums = [i32; CHANNELS];
    type Weights = [[i8; 4]; CHANNELS];
    type Input = i8;
    type Mask = ();
    columns_of_taps!();
    bytes_as_they_are!();

    const TILES: usize = 1;
    const ROWS: usize = 1;
    const ONE_BY_ONE: bool = true;

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [0; CHANNELS]
    }

    #[inline(always)]
    fn start(self, numbers: &[i32; CHANNELS]) -> Self::Sums {
        *numbers
    }

    #[inline(always)]
    fn weights(self, group: &Group) -> Self::Weights {
        bytemuck::cast(group.0)
    }

    #[inline(always)]
    fn mask(self) {}

    #[inline(always)]
    fn add(self, (): (), mut sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        for (sum, weights) in sums.iter_mut().zip(weights) {
            for (weight, input) in weights.into_iter().zip(inputs) {
                *sum = sum.wrapping_add(i32::from(weight).wrapping_mul(i32::from(input)));
            }
        }
        sums
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        sums
    }
}

/// The loop that [`Bytes::depthwise`] is, for the vector units of whatever it is inlined into.
#[inline(always)]
pub(super) fn plain_depthwise(
    taps: &[[&Lanes<i8>; 4]],
    weights: &[[Lanes<i8>; 4]],
    scales: &DepthwiseScales,
) -> Lanes<i8> {
    let mut sums = scales.starts;
    for (taps, weights) in taps.iter().zip(weights) {
        for (seen, weights) in taps.iter().zip(weights) {
            for lane in 0..LANES {
                let product = i32::from(seen[lane]).wrapping_mul(i32::from(weights[lane]));
                sums[lane] = sums[lane].wrapping_add(product);
            }
        }
    }
    let mut results = [0; LANES];
    for lane in 0..LANES {
        results[lane] = scales.range.result(sums[lane], scales.factors[lane]);
    }
    results
}
