//! Products whose weights of four bits have a scale a block of inputs, with dynamic inputs.

use super::channels::{check_bits, check_rows, limited};
use super::pack::{Bits, check};
use super::tile;
use super::{Inputs, Limits, Place, Product, RowScale, Weights, bias_by_tile, by_tile, check_scales, multiply, store};
use crate::error::{Error, ErrorKind, room};
use crate::simd::dot::{CHANNELS, Dot};
use crate::simd::path::Path;
use crate::threads::Columns;

/// A product of dynamically quantised rows with weights in blocks, each of which has a scale:
///
/// ```text
/// y   = −(Σ over blocks: f32(Σ w) · scale) · f32(zero_point[r])      each operation rounded
/// y   = f32(Σ x · w) · scale + y                                     block after block, rounded once
/// out = limit(y · scale[r] + bias[c], lo, hi)                        each operation rounded
/// ```
pub struct DynamicBlocks {
    weights: Weights,
    /// Inputs of a block.
    block: usize,
    /// Scales by tile, then by block: the upper halves of `f32`.
    scales: Vec<[u16; CHANNELS]>,
    /// `Σ f32(Σ w) · scale`.
    sums: Vec<[f32; CHANNELS]>,
    bias: Vec<[f32; CHANNELS]>,
    limits: Limits,
    pub(super) path: Path,
}

impl DynamicBlocks {
    /// A product with these weights, of four bits, in blocks of so many inputs, a multiple of 8 that the inputs are one of.
    /// Scales, one a block, are the upper halves of `f32` (bfloat16), block by block of each channel.
    pub fn new(
        weights: Weights,
        block: usize,
        scales: &[u16],
        bias: Option<&[f32]>,
        limits: Limits,
    ) -> Result<DynamicBlocks, Error> {
        let [channels, inner] = weights.sizes();
        check_bits(&weights, Bits::Four)?;
        if block == 0 || !block.is_multiple_of(8) || !inner.is_multiple_of(block) {
            let message = format!("{inner} inputs in blocks of {block}: blocks are multiples of 8, and all alike");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let blocks = inner / block;
        check("scales", scales.len(), [channels, blocks])?;
        check_scales(scales.iter().map(|&scale| real(scale)))?;
        let mut by_block = room(channels.div_ceil(CHANNELS) * blocks)?;
        for tile in 0..channels.div_ceil(CHANNELS) {
            let scale = |channel: usize, block: usize| scales.get((tile * CHANNELS + channel) * blocks + block);
            let of_block = |block| std::array::from_fn(|channel| scale(channel, block).copied().unwrap_or(0));
            by_block.extend((0..blocks).map(of_block));
        }
        let mut sums = room(channels)?;
        let of_weights = weights.sums(block)?;
        for channel in 0..channels {
            let of_channel = channel * blocks..(channel + 1) * blocks;
            let pairs = of_weights[of_channel.clone()].iter().zip(&scales[of_channel]);
            sums.push(pairs.fold(0.0, |sum, (&weights, &scale)| sum + weights as f32 * real(scale)));
        }
        Ok(DynamicBlocks {
            block,
            scales: by_block,
            sums: by_tile(&sums)?,
            bias: bias_by_tile(bias, channels)?,
            limits,
            weights,
            path: Path::best(),
        })
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        let [scales, sums, bias] = [size_of_val(&*self.scales), size_of_val(&*self.sums), size_of_val(&*self.bias)];
        self.weights.bytes() + scales + sums + bias
    }

    /// Computes a row of results, a number per channel, for each row of inputs, of which each has a scale. The inputs are
    /// cut into blocks as the weights are.
    pub fn multiply(&self, inputs: &Inputs<'_>, rows: &[RowScale], out: &mut [f32]) -> Result<(), Error> {
        inputs.check(&self.weights, self.blocks().max(1))?;
        check_rows(rows, inputs)?;
        multiply(&BlockRows { product: self, inputs, rows }, self.path, inputs.rows(), out)
    }

    fn blocks(&self) -> usize {
        self.weights.sizes()[1] / self.block
    }
}

/// The `f32` whose upper half this is.
fn real(scale: u16) -> f32 {
    f32::from_bits(u32::from(scale) << 16)
}

struct BlockRows<'a> {
    product: &'a DynamicBlocks,
    inputs: &'a Inputs<'a>,
    rows: &'a [RowScale],
}

impl Product for BlockRows<'_> {
    type Out = f32;
    const MANY_TILES: bool = false;

    fn weights(&self) -> &Weights {
        &self.product.weights
    }

    #[inline(always)]
    fn block<D: Dot, const R: usize, const C: usize>(&self, dot: D, at: Place, to: &mut Columns<'_, f32>) {
        let BlockRows { product, inputs, rows } = self;
        let blocks = product.blocks();
        let rows = &rows[at.row..][..R];
        let bytes = inputs.some_rows::<R>(at.row).map(|row| row.as_chunks::<8>().0);
        let row_sums: [&[i32]; R] = std::array::from_fn(|row| inputs.row_sums(at.row + row));
        let tiles: [_; C] = std::array::from_fn(|tile| product.weights.tile(at.tile + tile));
        let scales: [_; C] = std::array::from_fn(|tile| &product.scales[(at.tile + tile) * blocks..][..blocks]);
        let groups = product.block / Bits::Four.inputs();
        let mut floats = [[dot.floats([0.0; CHANNELS]); C]; R];
        for (floats, row) in floats.iter_mut().zip(rows) {
            for (floats, sums) in floats.iter_mut().zip(&product.sums[at.tile..]) {
                let mut start = *sums;
                start.iter_mut().for_each(|sum| *sum = -*sum * row.zero_point as f32);
                *floats = dot.floats(start);
            }
        }
        for block in 0..blocks {
            let starts = row_sums.map(|sums| sums[block].wrapping_mul(-Bits::Four.offset()));
            let inputs = bytes.map(|bytes| &bytes[block * groups..][..groups]);
            let sums = tile::block(dot, inputs, starts, tiles.map(|tile| &tile[block * groups..][..groups]));
            for ((tile, sums), scales) in sums.iter().enumerate().zip(scales) {
                for (floats, sums) in floats.iter_mut().zip(sums) {
                    floats[tile] = dot.add_scaled(floats[tile], *sums, &scales[block]);
                }
            }
        }
        for (row, floats) in floats.iter().enumerate() {
            let to = &mut to.row(at.to_row + row)[at.to_column..];
            for ((tile, floats), to) in floats.iter().enumerate().zip(to.chunks_mut(CHANNELS)) {
                store(product.finish(at.tile + tile, dot.to_array(*floats), rows[row].scale), to);
            }
        }
    }
}

impl DynamicBlocks {
    #[inline(always)]
    fn finish(&self, tile: usize, floats: [f32; CHANNELS], scale: f32) -> [f32; CHANNELS] {
        let bias = &self.bias[tile];
        let [low, high] = self.limits;
        std::array::from_fn(|channel| limited(floats[channel] * scale + bias[channel], low, high))
    }
}
