//! Weights as the products of convolutions read them.
//!
//! Invariant: past the last channel of a group and the last input, weights are 0.

use bytemuck::Zeroable;

use super::{Error, Windows, expect};
use crate::error::room;
use crate::simd::dot::{CHANNELS, Group};

/// Weights of a convolution.
///
/// Tiles of `CHANNELS` channels follow each other, in blocks of a few; the last block of a group of channels may have fewer.
/// A block is groups of four inputs, for each of its tiles one, input after input.
pub(super) struct Packed {
    groups: Vec<Group>,
    /// Tiles of a block.
    pub block: usize,
    /// Groups of inputs of a tile.
    pub depth: usize,
    /// Groups of channels.
    pub channel_groups: usize,
    /// Channels of each.
    pub each: usize,
    /// Inputs of a channel.
    pub inner: usize,
}

impl Packed {
    /// Bytes that packed weights take.
    pub fn bytes([outputs, inner]: [usize; 2], groups: usize) -> usize {
        let tiles = groups.max(1) * (outputs / groups.max(1)).div_ceil(CHANNELS);
        tiles.saturating_mul(inner.div_ceil(4)).saturating_mul(size_of::<Group>())
    }

    /// Packs weights `[outputs, inner]`.
    pub fn new(weights: &[i8], [outputs, inner]: [usize; 2], windows: &Windows, block: usize) -> Result<Packed, Error> {
        windows.check()?;
        expect("weights", weights.len(), outputs.saturating_mul(inner))?;
        let channel_groups = windows.groups;
        expect("channels past groups", outputs % channel_groups, 0)?;
        let (each, depth) = (outputs / channel_groups, inner.div_ceil(4));
        let tiles = each.div_ceil(CHANNELS);
        let mut groups = room(channel_groups * tiles * depth)?;
        groups.resize(channel_groups * tiles * depth, Group::zeroed());
        let packed = Packed { groups: Vec::new(), block, depth, channel_groups, each, inner };
        for (output, weights) in weights.chunks_exact(inner.max(1)).enumerate() {
            let (group, channel) = (output / each, output % each);
            let tile = channel / CHANNELS;
            let (first, count) = packed.block_of(tile);
            let to = &mut groups[(group * tiles + first) * depth..][..count * depth];
            for (at, four) in weights.chunks(4).enumerate() {
                let to = &mut to[at * count + tile - first].0[channel % CHANNELS * 4..][..four.len()];
                to.iter_mut().zip(four).for_each(|(to, weight)| *to = *weight as u8);
            }
        }
        Ok(Packed { groups, ..packed })
    }

    /// Tiles of a group of channels.
    pub fn tiles(&self) -> usize {
        self.each.div_ceil(CHANNELS)
    }

    /// The first tile of the block that a tile is in, and how many there are.
    fn block_of(&self, tile: usize) -> (usize, usize) {
        let first = tile / self.block * self.block;
        (first, self.block.min(self.tiles() - first))
    }

    /// The groups of `count` tiles from the first of a block on.
    #[inline(always)]
    pub fn panel(&self, group: usize, first: usize, count: usize) -> &[Group] {
        &self.groups[(group * self.tiles() + first) * self.depth..][..count * self.depth]
    }
}

/// Sums of the weights of each channel, wrapped.
pub(super) fn sums(weights: &[i8], [outputs, inner]: [usize; 2]) -> Result<Vec<i32>, Error> {
    let mut sums = room(outputs)?;
    let rows = weights.chunks_exact(inner.max(1));
    sums.extend(rows.map(|row| row.iter().fold(0i32, |sum, &weight| sum.wrapping_add(weight.into()))));
    sums.resize(outputs, 0);
    Ok(sums)
}
