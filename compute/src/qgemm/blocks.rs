//! Products whose weights of four bits have a scale a block of inputs, with dynamic inputs.

use std::sync::Arc;

use super::channels::{check_bits, check_rows, limited};
use super::pack::Bits;
use super::tile;
use super::{Inputs, Limits, Place, Product, RowScale, Weights, bias_by_tile, multiply, store};
use crate::error::{Error, ErrorKind};
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
    weights: Arc<Weights>,
    /// Inputs of a block.
    block: usize,
    bias: Vec<[f32; CHANNELS]>,
    limits: Limits,
    pub(super) path: Path,
}

impl DynamicBlocks {
    /// A product with these weights, of four bits and in blocks.
    pub fn new(weights: impl Into<Arc<Weights>>, bias: Option<&[f32]>, limits: Limits) -> Result<DynamicBlocks, Error> {
        let weights = weights.into();
        let [channels, _] = weights.sizes();
        check_bits(&weights, Bits::Four)?;
        let block = weights.block().ok_or_else(|| Error::new(ErrorKind::Unsupported, "weights without blocks"))?;
        let path = Path::best();
        Ok(DynamicBlocks { block, bias: bias_by_tile(bias, channels)?, limits, weights, path })
    }

    /// Bytes that a product of so many channels takes besides its weights.
    pub fn bytes(channels: usize) -> usize {
        channels.div_ceil(CHANNELS).saturating_mul(size_of::<[f32; CHANNELS]>())
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
        let scales: [_; C] = std::array::from_fn(|tile| product.weights.scales(at.tile + tile));
        let groups = product.block / Bits::Four.inputs();
        let mut floats = [[dot.floats([0.0; CHANNELS]); C]; R];
        for (floats, row) in floats.iter_mut().zip(rows) {
            for (tile, floats) in floats.iter_mut().enumerate() {
                let mut start: [f32; CHANNELS] = product.weights.sums(at.tile + tile);
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
