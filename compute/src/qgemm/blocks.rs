//! Products whose weights of four bits have a scale a block of inputs, with dynamic inputs.

use std::sync::Arc;

use super::channels::{check_bits, check_rows, limited};
use super::pack::Bits;
use super::tile;
use super::{Inputs, Limits, Place, Product, RowScale, Weights, bias_by_tile, multiply, store};
use crate::error::{Error, ErrorKind};
use crate::simd::dot::{CHANNELS, Dot, Eight, ScaledBlocks};
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
        let (mut bytes, mut row_sums): ([&[Eight]; R], [&[i32]; R]) = ([&[]; R], [&[]; R]);
        for (row, (bytes, whole)) in bytes.iter_mut().zip(inputs.some_rows::<R>(at.row)).enumerate() {
            *bytes = tile::whole_eights(whole).0;
            row_sums[row] = &inputs.row_sums(at.row + row)[..blocks];
        }
        let tiles = product.weights.tiles::<C>(at.tile);
        let mut scales: [&[[u16; CHANNELS]]; C] = [&[]; C];
        for (tile, scales) in scales.iter_mut().enumerate() {
            *scales = &product.weights.scales(at.tile + tile)[..blocks];
        }
        let groups = product.block / Bits::Four.inputs();
        let mut floats = [[dot.floats([0.0; CHANNELS]); C]; R];
        for (floats, row) in floats.iter_mut().zip(rows) {
            for (tile, floats) in floats.iter_mut().enumerate() {
                let mut start: [f32; CHANNELS] = product.weights.sums(at.tile + tile);
                for sum in &mut start {
                    *sum = -*sum * row.zero_point as f32;
                }
                *floats = dot.floats(start);
            }
        }
        let offset = Bits::Four.offset();
        let first = at.to_row == 0;
        dot.add_blocks(&mut floats, &ScaledBlocks { inputs: bytes, row_sums, tiles, scales, groups, offset, first });
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
        let mut results = floats;
        for (result, bias) in results.iter_mut().zip(bias) {
            *result = limited(*result * scale + bias, low, high);
        }
        results
    }
}
