//! Sums of products of bytes, for sixteen channels at once.
//!
//! Invariant: all implementations of [`Dot`] give the same integers, wrapped, and the same floats, bit for bit; [`Scalar`]
//! is the oracle. A token of an implementation exists only where its instructions do.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

/// Channels of a tile of weights.
pub(crate) const CHANNELS: usize = 16;

/// Four bytes, or eight half bytes, of each channel of a tile.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Group(pub(crate) [u8; 4 * CHANNELS]);

/// Eight inputs of a row. Fours are read from memory one by one: as a whole they would be taken apart in registers.
pub(crate) type Eight = [[i8; 4]; 2];

/// Instructions that multiply unsigned bytes (weights) and signed ones (inputs), and sum the products by channel.
pub(crate) trait Dot: Copy {
    /// A sum per channel.
    type Sums: Copy;
    /// Four bytes per channel.
    type Weights: Copy;
    /// A float per channel.
    type Floats: Copy;

    /// Rows of inputs whose sums fit the registers next to the weights: 4, or fewer.
    const ROWS: usize;
    /// Tiles whose sums fit the registers: 4, or fewer.
    const TILES: usize;
    /// Number that [`Dot::bytes`] adds to stored weights: 128, or 0 where it makes signed bytes of them.
    const OFFSET: i32 = 128;

    /// Returns sums that start with `value` in every channel.
    fn start(self, value: i32) -> Self::Sums;
    /// Bytes of weights.
    fn bytes(self, group: &Group) -> Self::Weights;
    /// The low halves of bytes, and the high ones.
    fn halves(self, group: &Group) -> [Self::Weights; 2];
    /// Adds the products of four inputs with the weights of each channel, wrapping.
    fn add(self, sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums;
    /// Starts sums of rows, each from a number. Sums of several rows may be interleaved until [`Dot::settle`].
    #[inline(always)]
    fn start_rows<const R: usize>(self, starts: [i32; R]) -> [Self::Sums; R] {
        let mut sums = [self.start(0); R];
        for (sums, start) in sums.iter_mut().zip(starts) {
            *sums = self.start(start);
        }
        sums
    }
    /// Adds the products of eight inputs of each row with the weights of each channel, wrapping.
    #[inline(always)]
    fn add_rows<const R: usize>(self, sums: &mut [Self::Sums; R], weights: [Self::Weights; 2], inputs: [&Eight; R]) {
        for (sums, inputs) in sums.iter_mut().zip(inputs) {
            *sums = self.add(*sums, weights[0], inputs[0]);
            *sums = self.add(*sums, weights[1], inputs[1]);
        }
    }
    /// Adds the products of eights of inputs of each row with weights of a byte: two groups have those of an eight. Past an
    /// odd number of groups there are no inputs either.
    #[inline(always)]
    fn add_bytes<const R: usize, const C: usize>(
        self,
        sums: &mut [[Self::Sums; R]; C],
        tiles: [&[Group]; C],
        inputs: [&[Eight]; R],
    ) {
        add_bytes(self, sums, tiles, inputs);
    }
    /// Adds the products of eights of inputs of each row with weights of half a byte: a group has those of an eight.
    #[inline(always)]
    fn add_halves<const R: usize, const C: usize>(
        self,
        sums: &mut [[Self::Sums; R]; C],
        tiles: [&[Group]; C],
        inputs: [&[Eight]; R],
    ) {
        add_halves(self, sums, tiles, inputs);
    }
    /// The sums of each row, of those that [`Dot::start_rows`] made.
    #[inline(always)]
    fn settle<const R: usize>(self, sums: [Self::Sums; R]) -> [Self::Sums; R] {
        sums
    }
    /// Sum of each channel of a tile, in order.
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS];
    /// Floats to sum up.
    fn floats(self, start: [f32; CHANNELS]) -> Self::Floats;
    /// Adds sums, each rounded to `f32`, times scales, the upper halves of `f32`; rounded once.
    fn add_scaled(self, floats: Self::Floats, sums: Self::Sums, scales: &[u16; CHANNELS]) -> Self::Floats;
    /// Adds the products of blocks of inputs with weights of half a byte, each block with its scales.
    #[inline(always)]
    fn add_blocks<const R: usize, const C: usize>(
        self,
        floats: &mut [[Self::Floats; C]; R],
        blocks: &ScaledBlocks<'_, R, C>,
    ) {
        add_blocks(self, floats, blocks);
    }
    /// Float of each channel of a tile, in order.
    fn to_array(self, floats: Self::Floats) -> [f32; CHANNELS];
    /// Asks for a line to be brought to the cache, if the machine wants to know. The line may be anywhere.
    #[inline(always)]
    fn prefetch(self, _line: *const Group) {}
}

/// Blocks of the inputs of rows, and of the weights of tiles.
pub(crate) struct ScaledBlocks<'a, const R: usize, const C: usize> {
    pub inputs: [&'a [Eight]; R],
    /// Sums of the inputs of each block.
    pub row_sums: [&'a [i32]; R],
    pub tiles: [&'a [Group]; C],
    /// Scales of each block, the upper halves of `f32`.
    pub scales: [&'a [[u16; CHANNELS]]; C],
    /// Groups, and eights of inputs, of a block.
    pub groups: usize,
    /// Number that is added to each weight.
    pub offset: i32,
    /// True if these are the first rows that the weights are read for: they come from memory.
    pub first: bool,
}

impl<'a, const R: usize, const C: usize> ScaledBlocks<'a, R, C> {
    /// Number of blocks.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.row_sums[0].len()
    }

    /// Returns what the sums of each row begin with in a block.
    #[inline(always)]
    pub(super) fn starts(&self, block: usize) -> [i32; R] {
        let mut starts = [0; R];
        for (start, sums) in starts.iter_mut().zip(self.row_sums) {
            *start = sums[block].wrapping_mul(-self.offset);
        }
        starts
    }

    /// Asks for weights some way behind those of a block, of this tile or of those that lie behind it, if they come from memory:
    /// a machine foresees less of them than it may read at once.
    #[inline(always)]
    pub(super) fn prefetch<D: Dot>(&self, dot: D, block: usize) {
        /// Lines ahead: as many as the first level of cache has room for beside what is in use.
        const AHEAD: usize = 128;
        if !self.first {
            return;
        }
        for tile in self.tiles {
            let ahead = tile.as_ptr().wrapping_add(block * self.groups + AHEAD);
            for group in 0..self.groups {
                dot.prefetch(ahead.wrapping_add(group));
            }
        }
    }

    /// Weights and inputs of a block.
    #[inline(always)]
    pub(super) fn at(&self, block: usize) -> ([&'a [Group]; C], [&'a [Eight]; R]) {
        let groups = block * self.groups..(block + 1) * self.groups;
        (cut(self.tiles, groups.clone()), cut(self.inputs, groups))
    }
}

/// A range of each list.
#[inline(always)]
pub(crate) fn cut<T, const N: usize>(lists: [&[T]; N], range: Range<usize>) -> [&[T]; N] {
    let mut parts: [&[T]; N] = [&[]; N];
    for (part, list) in parts.iter_mut().zip(lists) {
        *part = &list[range.clone()];
    }
    parts
}

/// [`Dot::add_bytes`].
#[inline(always)]
pub(super) fn add_bytes<D: Dot, const R: usize, const C: usize>(
    dot: D,
    sums: &mut [[D::Sums; R]; C],
    tiles: [&[Group]; C],
    inputs: [&[Eight]; R],
) {
    for eight in 0..inputs[0].len() {
        let (first, second) = (2 * eight, 2 * eight + 1);
        let mut weights = [[dot.bytes(&tiles[0][first]); 2]; C];
        for (weights, tile) in weights.iter_mut().zip(tiles) {
            *weights = [dot.bytes(&tile[first]), dot.bytes(&tile[second.min(tile.len() - 1)])];
        }
        add_eight(dot, sums, weights, inputs, eight);
    }
}

/// [`Dot::add_halves`].
#[inline(always)]
pub(super) fn add_halves<D: Dot, const R: usize, const C: usize>(
    dot: D,
    sums: &mut [[D::Sums; R]; C],
    tiles: [&[Group]; C],
    inputs: [&[Eight]; R],
) {
    for eight in 0..inputs[0].len() {
        let mut weights = [dot.halves(&tiles[0][eight]); C];
        for (weights, tile) in weights.iter_mut().zip(tiles) {
            *weights = dot.halves(&tile[eight]);
        }
        add_eight(dot, sums, weights, inputs, eight);
    }
}

/// [`Dot::add_blocks`].
#[inline(always)]
pub(super) fn add_blocks<D: Dot, const R: usize, const C: usize>(
    dot: D,
    floats: &mut [[D::Floats; C]; R],
    blocks: &ScaledBlocks<'_, R, C>,
) {
    for block in 0..blocks.count() {
        blocks.prefetch(dot, block);
        let mut sums = [dot.start_rows(blocks.starts(block)); C];
        let (tiles, inputs) = blocks.at(block);
        add_halves(dot, &mut sums, tiles, inputs);
        for ((tile, sums), scales) in sums.iter().enumerate().zip(blocks.scales) {
            for (floats, sums) in floats.iter_mut().zip(dot.settle(*sums)) {
                floats[tile] = dot.add_scaled(floats[tile], sums, &scales[block]);
            }
        }
    }
}

/// Adds the products of eight inputs of each row.
#[inline(always)]
fn add_eight<D: Dot, const R: usize, const C: usize>(
    dot: D,
    sums: &mut [[D::Sums; R]; C],
    weights: [[D::Weights; 2]; C],
    inputs: [&[Eight]; R],
    eight: usize,
) {
    let mut of_rows = [&[[0; 4]; 2]; R];
    for (of_row, row) in of_rows.iter_mut().zip(inputs) {
        *of_row = &row[eight];
    }
    for (sums, weights) in sums.iter_mut().zip(weights) {
        dot.add_rows(sums, weights, of_rows);
    }
}

/// A computation that runs with the instructions of a path; `run` must be inlined, and so must what it calls.
pub(crate) trait WithDot {
    type Output;
    fn run<D: Dot>(self, dot: D) -> Self::Output;
}

/// One number after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar;

impl Dot for Scalar {
    type Sums = [i32; CHANNELS];
    type Weights = [[u8; 4]; CHANNELS];
    type Floats = [f32; CHANNELS];

    const ROWS: usize = 1;
    const TILES: usize = 1;

    #[inline(always)]
    fn start(self, value: i32) -> Self::Sums {
        [value; CHANNELS]
    }

    #[inline(always)]
    fn bytes(self, group: &Group) -> Self::Weights {
        bytemuck::cast(group.0)
    }

    #[inline(always)]
    fn halves(self, group: &Group) -> [Self::Weights; 2] {
        [group.0.map(|byte| byte & 15), group.0.map(|byte| byte >> 4)].map(bytemuck::cast)
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        for (sum, weights) in sums.iter_mut().zip(weights) {
            for (weight, input) in weights.into_iter().zip(inputs) {
                *sum = sum.wrapping_add(i32::from(weight) * i32::from(input));
            }
        }
        sums
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        sums
    }

    #[inline(always)]
    fn floats(self, start: [f32; CHANNELS]) -> Self::Floats {
        start
    }

    #[inline(always)]
    fn add_scaled(self, mut floats: Self::Floats, sums: Self::Sums, scales: &[u16; CHANNELS]) -> Self::Floats {
        for ((float, sum), &scale) in floats.iter_mut().zip(sums).zip(scales) {
            *float = (sum as f32).mul_add(f32::from_bits(u32::from(scale) << 16), *float);
        }
        floats
    }

    #[inline(always)]
    fn to_array(self, floats: Self::Floats) -> [f32; CHANNELS] {
        floats
    }
}
