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
        fn depthwise_columns<const W: usize, const D: usize, const S: usize>(
            self,
            line: &ColumnLine<'_, [Self::Column<'_>; D]>,
            scales: &DepthwiseScales,
            out: &mut [i8],
        ) {
            for (columns, out) in line.windows::<W, S>().zip(out.chunks_mut(line.out_step)) {
                let results = self.depthwise(columns.as_flattened(), 4 * W * D, line.weights, scales);
                store(&results, &mut out[..line.out_len]);
            }
        }
    };
}

/// Defines inputs that are the bytes of images.
macro_rules! bytes_as_they_are {
    () => {
        #[inline(always)]
        fn input(byte: i8) -> i8 {
            byte
        }

        #[inline(always)]
        fn as_inputs(bytes: &[i8]) -> Option<&[[i8; 4]]> {
            Some(bytes.as_chunks().0)
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx_vnni;
mod offsets;
mod path;
mod plain;
mod store;
#[cfg(target_arch = "x86_64")]
mod vnni;
#[cfg(target_arch = "x86_64")]
mod vnni_store;

pub(crate) use offsets::Offsets;
pub(crate) use path::{BytesPath, DepthwiseOrder};
pub(crate) use plain::Plain;
use plain::plain_depthwise;
pub(crate) use store::{store, store_tiles};

use bytemuck::Pod;

use super::apart::{Apart, each_row};
use super::dot::{CHANNELS, Group};
use crate::threads::Columns;

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
    /// An input as products take it.
    type Input: Pod;
    /// Vector that turns inputs into the numbers that are multiplied.
    type Mask: Copy;
    /// Bytes of four taps of neighbouring channels.
    type Column<'a>: Copy;

    /// Tiles whose sums fit the registers next to the weights and the inputs: 4 with 24 sums in all, or 1.
    const TILES: usize;
    /// Rows of inputs whose sums for one tile fit the registers.
    const ROWS: usize;
    /// True if sums may come from registers that hold matrices: inputs are bytes, of which those that are ready are from 0 on.
    const MATRICES: bool = false;
    /// True if a few groups of inputs are faster found one by one than span by span.
    const ONE_BY_ONE: bool = false;
    /// Runs a part of a computation in a function of its own, where that is faster.
    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        with.run(self);
    }
    /// An input as memory has it.
    fn input(byte: i8) -> Self::Input;
    /// An input as [`Bytes::add_ready`] takes it.
    #[inline(always)]
    fn ready(byte: i8) -> Self::Input {
        Self::input(byte)
    }
    /// Bytes of an image in groups of four, if they are what products take.
    #[inline(always)]
    fn as_inputs(_bytes: &[i8]) -> Option<&[[Self::Input; 4]]> {
        None
    }
    /// Sums of nothing.
    fn zero(self) -> Self::Sums;
    /// Sums that begin with a number for each channel of a tile.
    fn start(self, numbers: &[i32; CHANNELS]) -> Self::Sums;
    /// Weights of a tile.
    fn weights(self, group: &Group) -> Self::Weights;
    /// The mask of a loop.
    fn mask(self) -> Self::Mask;
    /// Adds the products of four inputs with the weights of each channel, wrapping. Where inputs are multiplied as numbers
    /// from 0 on, each is 128 more than its value.
    fn add(self, mask: Self::Mask, sums: Self::Sums, weights: Self::Weights, inputs: [Self::Input; 4]) -> Self::Sums;
    /// Adds products as [`Bytes::add`] does, of inputs that are [`Bytes::ready`].
    #[inline(always)]
    fn add_ready(self, sums: Self::Sums, weights: Self::Weights, inputs: [Self::Input; 4]) -> Self::Sums {
        self.add(self.mask(), sums, weights, inputs)
    }
    /// Sum of each channel of a tile, in order.
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS];

    /// Adds the products of rows of inputs, four together, with the groups of `C` tiles. Rows are as long as the panel, and
    /// their inputs may be `READY`.
    #[inline(always)]
    fn accumulate<const C: usize, const R: usize, const READY: bool>(
        self,
        sums: &mut [[Self::Sums; C]; R],
        rows: [&[[Self::Input; 4]]; R],
        panel: &[[Group; C]],
    ) {
        add_products::<Self, C, R, READY>(self, sums, rows, panel);
    }

    /// Adds products as [`Bytes::accumulate`] does, of inputs that are [`Bytes::ready`] and where `offsets` says: of as many groups as
    /// the panel has, in windows that reach as far.
    #[inline(always)]
    fn accumulate_at<const C: usize, const R: usize>(
        self,
        sums: &mut [[Self::Sums; C]; R],
        windows: [&[Self::Input]; R],
        offsets: &Offsets,
        panel: &[[Group; C]],
    ) {
        for (groups, place) in panel.iter().zip(offsets.places()) {
            let mut rows: [&[[Self::Input; 4]]; R] = [&[]; R];
            for (row, window) in rows.iter_mut().zip(windows) {
                *row = window[*place as usize..][..4].as_chunks().0;
            }
            self.accumulate::<C, R, true>(sums, rows, std::slice::from_ref(groups));
        }
    }

    /// Writes results of the sums of neighbouring tiles, as many as there is room for.
    #[inline(always)]
    fn requantise<const C: usize>(self, sums: &[Self::Sums; C], scales: &TileScales<'_, C>, to: &mut [i8]) {
        let mut results = [[0; CHANNELS]; C];
        for tile in 0..C {
            let (sums, factors) = (self.sums(sums[tile]), &scales.factors[tile]);
            for channel in 0..CHANNELS {
                results[tile][channel] = scales.range.result(sums[channel], factors[channel]);
            }
        }
        store_tiles(&results, to);
    }

    /// Writes results of the sums of neighbouring tiles for `N` rows.
    #[inline(always)]
    fn requantise_rows<const C: usize, const N: usize>(
        self,
        sums: [&[Self::Sums; C]; N],
        scales: &TileScales<'_, C>,
        to: &mut Columns<'_, i8>,
    ) {
        each_row!(row < N => {
            self.requantise(sums[row], scales, to.row(row));
        });
    }

    /// Floats of the sums of neighbouring tiles for a row.
    #[inline(always)]
    fn scale<const C: usize>(
        self,
        sums: &[Self::Sums; C],
        scales: &FloatScales<'_, C>,
        row: &RowScales,
    ) -> [[f32; CHANNELS]; C] {
        let mut results = [[0.0; CHANNELS]; C];
        for (tile, results) in results.iter_mut().enumerate() {
            *results = scaled(&self.sums(sums[tile]), scales, tile, row);
        }
        results
    }

    /// Results of neighbouring channels, of which each has a weight for each of `count` taps; taps come in groups of four.
    /// Weights and scales are in the order of [`BytesPath::depthwise_order`].
    #[inline(always)]
    fn depthwise(
        self,
        taps: &[[&Lanes<i8>; 4]],
        _count: usize,
        weights: &[[Lanes<i8>; 4]],
        scales: &DepthwiseScales,
    ) -> Lanes<i8> {
        plain_depthwise(taps, weights, scales)
    }

    /// Results of windows of a line, each as that of [`Bytes::depthwise`]; `out` has the first of them at its begin.
    #[inline(always)]
    fn depthwise_line(self, line: &DepthwiseLine<'_>, scales: &DepthwiseScales, out: &mut [i8]) {
        depthwise_windows(self, line, scales, out);
    }

    /// Taps for [`Bytes::depthwise_columns`], which several results may use.
    fn column<'a>(self, taps: [&'a Lanes<i8>; 4]) -> Self::Column<'a>;

    /// Columns of `D` groups of taps, next to each other, of which each of the rows has one; the taps after the last row see
    /// `padding`.
    #[inline(always)]
    fn fill_columns<'a, const D: usize>(
        self,
        rows: &[Tap<'a>],
        padding: &'a Lanes<i8>,
        columns: &mut [[Self::Column<'a>; D]],
    ) {
        for (column, to) in columns.iter_mut().enumerate() {
            let mut taps = [[padding; 4]; D];
            for (row, seen) in rows.iter().enumerate() {
                taps[row / 4][row % 4] = seen.lanes(column);
            }
            for (to, taps) in to.iter_mut().zip(taps) {
                *to = self.column(taps);
            }
        }
    }

    /// Results of windows of a line, of `W` columns each and `S` columns apart, each as that of [`Bytes::depthwise`]; `out` has
    /// the first of them at its begin.
    fn depthwise_columns<const W: usize, const D: usize, const S: usize>(
        self,
        line: &ColumnLine<'_, [Self::Column<'_>; D]>,
        scales: &DepthwiseScales,
        out: &mut [i8],
    );
}

/// [`Bytes::accumulate`].
#[inline(always)]
fn add_products<B: Bytes, const C: usize, const R: usize, const READY: bool>(
    bytes: B,
    sums: &mut [[B::Sums; C]; R],
    mut rows: [&[[B::Input; 4]]; R],
    panel: &[[Group; C]],
) {
    for row in &mut rows {
        *row = &row[..panel.len()];
    }
    let (mask, mut all) = (bytes.mask(), *sums);
    for (index, groups) in panel.iter().enumerate() {
        let mut weights = [bytes.weights(&groups[0]); C];
        for (weights, group) in weights.iter_mut().zip(groups) {
            *weights = bytes.weights(group);
        }
        for (sums, row) in all.iter_mut().zip(rows) {
            for (sums, weights) in sums.iter_mut().zip(&weights) {
                *sums = match READY {
                    true => bytes.add_ready(*sums, *weights, row[index]),
                    false => bytes.add(mask, *sums, *weights, row[index]),
                };
            }
        }
    }
    *sums = all;
}

/// [`Bytes::depthwise_line`].
#[inline(always)]
fn depthwise_windows<B: Bytes>(bytes: B, line: &DepthwiseLine<'_>, scales: &DepthwiseScales, out: &mut [i8]) {
    const GROUPS: usize = DepthwiseLine::TAPS / 4;
    let DepthwiseLine { taps, windows, weights, out_step, out_len } = *line;
    let depth = weights.len().min(GROUPS);
    // Taps past the last have weights of 0.
    let mut seen = [[taps[0].lanes(0); 4]; GROUPS];
    for window in 0..windows {
        for (seen, tap) in seen.as_flattened_mut().iter_mut().zip(taps) {
            *seen = tap.lanes(window);
        }
        let results = bytes.depthwise(&seen[..depth], taps.len(), weights, scales);
        store(&results, &mut out[window * out_step..][..out_len]);
    }
}

/// From sums of `C` tiles, which begin with starts, to results, as [`DepthwiseScales`] are.
#[derive(Clone, Copy)]
pub(crate) struct TileScales<'a, const C: usize> {
    pub starts: &'a [[i32; CHANNELS]; C],
    pub factors: &'a [[f32; CHANNELS]; C],
    pub range: ResultRange,
}

/// From sums of `C` tiles to floats: the row's zero point times `weights`, the sums of the weights, is subtracted; what is left
/// is multiplied, as a float, with the row's scale, then with `factors`, onto `bias` and rounded once, and limited. What is
/// no number becomes the lower limit.
pub(crate) struct FloatScales<'a, const C: usize> {
    pub weights: &'a [[i32; CHANNELS]; C],
    pub factors: &'a [[f32; CHANNELS]; C],
    pub bias: &'a [[f32; CHANNELS]; C],
    pub limits: [f32; 2],
}

/// Scale and zero point of a row of inputs.
#[derive(Clone, Copy, Default)]
pub(crate) struct RowScales {
    pub scale: f32,
    pub zero: i32,
}

/// Floats of the sums of a tile.
#[inline(always)]
fn scaled<const C: usize>(
    sums: &[i32; CHANNELS],
    scales: &FloatScales<'_, C>,
    tile: usize,
    row: &RowScales,
) -> [f32; CHANNELS] {
    let ([low, high], mut results) = (scales.limits, [0.0; CHANNELS]);
    for channel in 0..CHANNELS {
        let sum = sums[channel].wrapping_sub(row.zero.wrapping_mul(scales.weights[tile][channel]));
        let y = (sum as f32 * row.scale).mul_add(scales.factors[tile][channel], scales.bias[tile][channel]);
        let y = if y > low { y } else { low };
        results[channel] = if y < high { y } else { high };
    }
    results
}

/// From sums of neighbouring channels to results: `starts` are added, as floats they are multiplied, limited, rounded to
/// even, and `zero` is added.
#[derive(Clone, Debug)]
pub(crate) struct DepthwiseScales {
    pub starts: Lanes<i32>,
    pub factors: Lanes<f32>,
    pub range: ResultRange,
}

/// The results there are: from `least` on, which is the lower limit with the zero point added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultRange {
    /// Limits before the zero point is added: integers within 255 of 0.
    limits: [f32; 2],
    zero: i32,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "vectors of bytes are limited as bytes"))]
    least: i32,
}

impl ResultRange {
    /// Limits before the zero point is added, and the zero point.
    pub fn new(limits: [f32; 2], zero: i32) -> ResultRange {
        ResultRange { limits, zero, least: limits[0] as i32 + zero }
    }

    /// Returns a sum times a factor as a result.
    #[inline(always)]
    pub fn result(self, sum: i32, factor: f32) -> i8 {
        requantised(sum, factor, self.limits, self.zero)
    }
}

/// Neighbouring channels as a tap sees them, from window to window.
#[derive(Clone, Copy)]
pub(crate) struct Tap<'a> {
    /// Bytes from what the first window sees on.
    pub seen: &'a [i8],
    /// Bytes from one window to the next.
    pub step: usize,
}

impl<'a> Tap<'a> {
    /// Bytes that a window sees.
    #[inline(always)]
    pub fn lanes(self, window: usize) -> &'a Lanes<i8> {
        let lanes = self.seen.get(window * self.step..).and_then(<[i8]>::first_chunk);
        lanes.expect("a window that sees the image")
    }
}

/// Windows of a line: all see the image with the same taps.
#[derive(Clone, Copy)]
pub(crate) struct DepthwiseLine<'a> {
    /// One or more, up to [`Self::TAPS`].
    pub taps: &'a [Tap<'a>],
    /// Number of windows.
    pub windows: usize,
    /// Groups of four taps.
    pub weights: &'a [[Lanes<i8>; 4]],
    /// Results from one window to the next, and how many of them are its own.
    pub out_step: usize,
    pub out_len: usize,
}

/// Windows of a line, each some neighbouring columns.
#[derive(Clone, Copy)]
pub(crate) struct ColumnLine<'a, C> {
    /// The columns of all windows.
    pub columns: &'a [C],
    /// The groups of four taps of the columns of a window.
    pub weights: &'a [[Lanes<i8>; 4]],
    /// Results from one window to the next, and how many of them are its own.
    pub out_step: usize,
    pub out_len: usize,
}

impl<'a, C> ColumnLine<'a, C> {
    /// The columns of each window.
    #[inline(always)]
    fn windows<const W: usize, const S: usize>(&self) -> impl Iterator<Item = &'a [C]> + use<'a, C, W, S> {
        self.columns.windows(W).step_by(S)
    }
}

impl DepthwiseLine<'_> {
    /// Taps of a window, at most.
    pub(crate) const TAPS: usize = 64;
}

/// A computation that runs with the instructions of a path; `run` must be inlined, and so must what it calls.
pub(crate) trait WithBytes {
    type Output;

    fn run<B: Bytes>(self, bytes: B) -> Self::Output;
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
