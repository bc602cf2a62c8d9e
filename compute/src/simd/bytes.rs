//! Sums of products of signed weights with bytes of inputs, for sixteen channels at once, and for neighbouring channels
//! of images.
//!
//! Invariant: all implementations of [`Bytes`] give the same integers, wrapped; [`Plain`] is the oracle. A token of an
//! implementation exists only where its instructions do.

/// Defines columns that are their taps, for what has no better form of them.
macro_rules! columns_of_taps {
    () => {
        type Column<'a> = [&'a Lanes<i8>; 4];

        #[inline(always)]
        fn column<'a>(self, taps: [&'a Lanes<i8>; 4]) -> Self::Column<'a> {
            taps
        }

        #[inline(always)]
        fn depthwise_columns(
            self,
            columns: &[Self::Column<'_>],
            weights: &[[Lanes<i8>; 4]],
            scales: &DepthwiseScales,
        ) -> Lanes<i8> {
            self.depthwise(columns, weights, scales)
        }
    };
}

mod path;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use path::BytesPath;

use super::dot::{CHANNELS, Group};

/// Neighbouring channels of an image that are computed together.
pub(crate) const LANES: usize = 64;

/// Sums, or factors, of neighbouring channels.
pub(crate) type Lanes<T> = [T; LANES];

/// Instructions that multiply signed weights with inputs, and sum the products by channel.
pub(crate) trait Bytes: Copy {
    /// A sum per channel of a tile.
    type Sums: Copy;
    /// Four weights per channel of a tile.
    type Weights: Copy;
    /// Bytes of four taps of neighbouring channels.
    type Column<'a>: Copy;

    /// Tiles whose sums fit the registers next to the weights and the inputs: 4 with 24 sums in all, or 1.
    const TILES: usize;
    /// Rows of inputs for one tile, where one tile is all that fits.
    const ROWS: usize;
    /// Flipped bits of each input: 0x80 where inputs are multiplied as numbers from 0 on, each 128 more than its value.
    const FLIP: u8;
    /// Sums of nothing.
    fn zero(self) -> Self::Sums;
    /// Weights of a tile.
    fn weights(self, group: &Group) -> Self::Weights;
    /// Adds the products of four inputs with the weights of each channel, wrapping.
    fn add(self, sums: Self::Sums, weights: Self::Weights, inputs: [u8; 4]) -> Self::Sums;
    /// Sum of each channel of a tile, in order.
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS];

    /// Adds the products of rows of inputs, four together, with the groups of `C` tiles.
    #[inline(always)]
    fn accumulate<const C: usize, const R: usize, const LEN: usize>(
        self,
        sums: &mut [[Self::Sums; C]; R],
        rows: &[[[u8; 4]; LEN]; R],
        panel: &[[Group; C]],
    ) {
        let mut all = *sums;
        for index in 0..panel.len().min(LEN) {
            let mut weights = [self.weights(&panel[index][0]); C];
            for (weights, group) in weights.iter_mut().zip(&panel[index]) {
                *weights = self.weights(group);
            }
            for (sums, row) in all.iter_mut().zip(rows) {
                for (sums, weights) in sums.iter_mut().zip(&weights) {
                    *sums = self.add(*sums, *weights, row[index]);
                }
            }
        }
        *sums = all;
    }

    /// Results of the sums of neighbouring tiles.
    #[inline(always)]
    fn requantise<const C: usize>(self, sums: &[Self::Sums; C], scales: &TileScales<'_, C>) -> [[i8; CHANNELS]; C] {
        let mut results = [[0; CHANNELS]; C];
        for tile in 0..C {
            let (sums, starts, factors) = (self.sums(sums[tile]), &scales.starts[tile], &scales.factors[tile]);
            for channel in 0..CHANNELS {
                let sum = sums[channel].wrapping_add(starts[channel]);
                results[tile][channel] = requantised(sum, factors[channel], scales.limits, scales.zero);
            }
        }
        results
    }

    /// Results of neighbouring channels, of which each has a weight for each tap; taps come in groups of four. Weights
    /// and scales are in the order of [`BytesPath::depthwise_order`].
    #[inline(always)]
    fn depthwise(self, taps: &[[&Lanes<i8>; 4]], weights: &[[Lanes<i8>; 4]], scales: &DepthwiseScales) -> Lanes<i8> {
        plain_depthwise(taps, weights, scales)
    }

    /// Taps for [`Bytes::depthwise_columns`], which several results may use.
    fn column<'a>(self, taps: [&'a Lanes<i8>; 4]) -> Self::Column<'a>;

    /// Results as those of [`Bytes::depthwise`].
    fn depthwise_columns(
        self,
        columns: &[Self::Column<'_>],
        weights: &[[Lanes<i8>; 4]],
        scales: &DepthwiseScales,
    ) -> Lanes<i8>;
}

/// From sums of `C` tiles to results, as [`DepthwiseScales`] are.
pub(crate) struct TileScales<'a, const C: usize> {
    pub starts: &'a [[i32; CHANNELS]; C],
    pub factors: &'a [[f32; CHANNELS]; C],
    pub limits: [f32; 2],
    pub zero: i32,
}

/// From sums of neighbouring channels to results: `starts` are added, as floats they are multiplied, limited, rounded to
/// even, and `zero` is added.
#[derive(Clone, Debug)]
pub(crate) struct DepthwiseScales {
    pub starts: Lanes<i32>,
    pub factors: Lanes<f32>,
    pub limits: [f32; 2],
    pub zero: i32,
}

/// A computation that runs with the instructions of a path; `run` must be inlined, and so must what it calls.
pub(crate) trait WithBytes {
    type Output;

    fn run<B: Bytes>(self, bytes: B) -> Self::Output;
}

/// One number after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plain;

impl Bytes for Plain {
    type Sums = [i32; CHANNELS];
    type Weights = [[i8; 4]; CHANNELS];
    columns_of_taps!();

    const TILES: usize = 1;
    const ROWS: usize = 1;
    const FLIP: u8 = 0;

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [0; CHANNELS]
    }

    #[inline(always)]
    fn weights(self, group: &Group) -> Self::Weights {
        bytemuck::cast(group.0)
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, weights: Self::Weights, inputs: [u8; 4]) -> Self::Sums {
        for (sum, weights) in sums.iter_mut().zip(weights) {
            for (weight, input) in weights.into_iter().zip(inputs) {
                *sum = sum.wrapping_add(i32::from(weight).wrapping_mul(i32::from(input as i8)));
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
        results[lane] = requantised(sums[lane], scales.factors[lane], scales.limits, scales.zero);
    }
    results
}

/// Returns a sum as a quantised number: `rne(limit(f32(sum) · factor)) + zero`; limits are within 255 of 0.
#[inline(always)]
pub fn requantised(sum: i32, factor: f32, [low, high]: [f32; 2], zero: i32) -> i8 {
    /// 1.5 · 2²³: a float near it has no fraction, so adding it to a small one rounds that, ties to even, into its bits.
    const ROUND: f32 = 12_582_912.0;
    let scaled = sum as f32 * factor;
    let scaled = if scaled < low { low } else { scaled };
    let scaled = if scaled > high { high } else { scaled };
    let rounded = (scaled + ROUND).to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    rounded.wrapping_add(zero) as i8
}
