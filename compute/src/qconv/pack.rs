//! Weights as the products of convolutions read them.
//!
//! Invariant: past the last channel of a group and the last input, weights are 0.

use std::sync::LazyLock;

use super::order::Order;
use super::{Error, Windows, expect};
use crate::error::ErrorKind;
use crate::interleave::{Block, GROUP, Groups, interleave};
use crate::simd::bytes::BytesPath;
use crate::simd::dot::{CHANNELS, Group};
use crate::simd::{Loop, run_wide};
use crate::threads::{Cost, WriteAll, for_each_at};

/// Tiles of a block where there are many accumulators.
pub(super) const TILES: usize = 4;

/// Packed weights of a convolution, and the sums of the weights of each channel.
///
/// Tiles of `CHANNELS` channels follow each other, in blocks of a few; the last block of a group of channels may have fewer.
/// A block is groups of four inputs, for each of its tiles one, input after input. A group of sums for each tile follows.
pub struct Packed {
    groups: Groups,
    /// Groups of weights; those of sums follow.
    weights: usize,
    /// Tiles of a block.
    pub(super) block: usize,
    /// Groups of inputs of a tile.
    depth: usize,
    /// The order of the inputs.
    pub(super) order: Order,
}

/// Groups of weights in an order, and of their sums; `None` if they cannot be counted.
fn counts(order: &Order) -> Option<[usize; 2]> {
    let tiles = order.groups.checked_mul(order.tiles())?;
    Some([tiles.checked_mul(order.depth()?)?, tiles])
}

impl Packed {
    /// The layout of packed weights on this machine, by name: another name where they would be packed in another order.
    pub fn layout() -> &'static str {
        static LAYOUT: LazyLock<String> = LazyLock::new(|| {
            let path = BytesPath::best();
            let unit = if path.has_pairs() { "twice 2" } else { "4" };
            format!("blocks of {} tiles of {CHANNELS} channels, {unit} bytes each, in spans, then sums", block(path))
        });
        &LAYOUT
    }

    /// Bytes that packed weights `[outputs, inner]` for these windows take; `None` if there are no such weights, or they
    /// cannot be counted.
    pub fn packed_len(sizes: [usize; 2], windows: &Windows) -> Option<usize> {
        let [weights, sums] = counts(&Order::of(sizes, windows).ok()?)?;
        weights.checked_add(sums)?.checked_mul(size_of::<Group>())
    }

    /// Packs weights `[outputs, inner]` of a convolution with these windows, `inner` being `[kh, kw, inputs of a group]`, on
    /// all threads if that is worth it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if there are more or fewer weights, or outputs are not in groups; [`ErrorKind::Memory`].
    pub fn new(weights: &[i8], sizes: [usize; 2], windows: &Windows) -> Result<Packed, Error> {
        Self::on(BytesPath::best(), weights, sizes, windows)
    }

    pub(super) fn on(
        path: BytesPath,
        weights: &[i8],
        sizes @ [outputs, inner]: [usize; 2],
        windows: &Windows,
    ) -> Result<Packed, Error> {
        expect("weights", weights.len(), outputs.saturating_mul(inner))?;
        if weights.is_empty() {
            return Packed::of(path, sizes, windows, Groups::new);
        }
        let mut packed = Packed::of(path, sizes, windows, Groups::overwritten)?;
        let Packed { block, depth, order, .. } = packed;
        let arranged = order.arranged(weights)?;
        let (tiles, row) = (order.tiles(), arranged.len() / outputs);
        let (groups, sums) = packed.groups.all_mut().split_at_mut(packed.weights);
        let of_groups = groups.chunks_exact_mut(tiles * depth).zip(sums.chunks_exact_mut(tiles));
        let bytes: &[u8] = bytemuck::cast_slice(&arranged);
        let cost = Cost::nanoseconds(GROUP.as_nanoseconds() * (block * depth) as f64);
        for ((groups, sums), rows) in of_groups.zip(bytes.chunks(order.each * row)) {
            let pieces = (WriteAll(groups, block * depth), WriteAll(sums, block));
            for_each_at(cost, pieces, |index, (groups, sums): (&mut [Group], &mut [Group])| {
                let (tiles, first) = (sums.len(), index * block * CHANNELS * row);
                let rows = &rows[first..rows.len().min(first + tiles * CHANNELS * row)];
                interleave(Block { rows, row, to: groups, tiles, convert: |unit| unit });
                run_wide(SumTiles { groups, sums });
                if path.has_pairs() {
                    run_wide(Pairs(groups));
                }
            });
        }
        Ok(packed)
    }

    /// Packed weights of bytes that `fill` writes, [`Packed::packed_len`] of them; any bytes are some weights. `None` if
    /// it says that there are none.
    pub fn of_packed(
        sizes: [usize; 2],
        windows: &Windows,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Result<Option<Packed>, Error> {
        let mut packed = Packed::of(BytesPath::best(), sizes, windows, Groups::overwritten)?;
        let filled = fill(bytemuck::cast_slice_mut(packed.groups.all_mut()));
        Ok(filled.then_some(packed))
    }

    /// Packed weights in groups that `groups` gives.
    fn of(
        path: BytesPath,
        sizes: [usize; 2],
        windows: &Windows,
        groups: impl FnOnce(usize) -> Result<Groups, Error>,
    ) -> Result<Packed, Error> {
        let order = Order::of(sizes, windows)?;
        let [weights, sums] =
            counts(&order).ok_or_else(|| Error::new(ErrorKind::Geometry, "weights that cannot be counted"))?;
        let groups = groups(weights.saturating_add(sums))?;
        Ok(Packed { groups, weights, block: block(path), depth: order.depth().unwrap_or(0), order })
    }

    /// Outputs, and weights of each.
    pub fn sizes(&self) -> [usize; 2] {
        [self.order.outputs, self.order.inner]
    }

    /// The packed weights as bytes.
    pub fn packed(&self) -> &[u8] {
        bytemuck::cast_slice(self.groups.all())
    }

    /// Refuses windows that see inputs in another order, and another path than what the weights were packed for.
    pub(super) fn check(&self, path: BytesPath, windows: &Windows) -> Result<(), Error> {
        expect("tiles of a block", self.block, block(path))?;
        match Order::of(self.sizes(), windows)? == self.order {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Geometry, format!("weights in another order than {windows:?}"))),
        }
    }

    /// The sums of the channels of each tile, wrapped.
    #[inline(always)]
    pub(super) fn sums(&self) -> &[[i32; CHANNELS]] {
        bytemuck::cast_slice(&self.groups.all()[self.weights..])
    }

    /// The groups of `count` tiles from the first of a block on.
    #[inline(always)]
    pub(super) fn panel(&self, group: usize, first: usize, count: usize) -> &[Group] {
        &self.groups.all()[(group * self.order.tiles() + first) * self.depth..][..count * self.depth]
    }
}

/// Sums of the weights of each channel of a block, wrapped: of its groups, which are those of its tiles in turn, before they are
/// in [`Pairs`].
struct SumTiles<'a> {
    groups: &'a [Group],
    sums: &'a mut [Group],
}

/// Groups of which half of a word has room for the sum: two bytes of each.
const HALF: usize = (u16::MAX / (2 * u8::MAX as u16)) as usize;

impl Loop for SumTiles<'_> {
    #[inline(always)]
    fn run(self) {
        let (tiles, SumTiles { groups, sums }) = (self.sums.len(), self);
        for (tile, to) in sums.iter_mut().enumerate() {
            let mut sums = [0i32; CHANNELS];
            for groups in groups.chunks(HALF * tiles) {
                // Every other byte of a channel in the same half, from 0 on.
                let (mut halves, mut offset) = ([0u32; CHANNELS], 0);
                for group in groups.iter().skip(tile).step_by(tiles) {
                    let units: [u32; CHANNELS] = bytemuck::cast(group.0);
                    for (half, unit) in halves.iter_mut().zip(units) {
                        let unit = unit ^ 0x8080_8080;
                        *half = half.wrapping_add((unit & 0x00ff_00ff) + (unit >> 8 & 0x00ff_00ff));
                    }
                    offset += 4 * 128;
                }
                for (sum, half) in sums.iter_mut().zip(halves) {
                    *sum = sum.wrapping_add((half & 0xffff) as i32 + (half >> 16) as i32 - offset);
                }
            }
            to.0 = bytemuck::cast(sums);
        }
    }
}

/// Groups in which the first two bytes of all channels come together, and then the other two.
struct Pairs<'a>(&'a mut [Group]);

impl Loop for Pairs<'_> {
    #[inline(always)]
    fn run(self) {
        for group in self.0 {
            let units: [[[u8; 2]; 2]; CHANNELS] = bytemuck::cast(group.0);
            let mut pairs = [[[0; 2]; CHANNELS]; 2];
            for (channel, [first, second]) in units.into_iter().enumerate() {
                (pairs[0][channel], pairs[1][channel]) = (first, second);
            }
            group.0 = bytemuck::cast(pairs);
        }
    }
}

/// Tiles of a block for a path.
fn block(path: BytesPath) -> usize {
    match path.is_large() {
        true => TILES,
        false => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_of_extremes_are_summed() {
        for inner in [4, 4 * HALF, 4 * HALF + 4, 12 * HALF + 1] {
            let weights: Vec<i8> = [i8::MIN, i8::MAX, -1].iter().flat_map(|weight| vec![*weight; inner]).collect();
            let packed = Packed::new(&weights, [3, inner], &Windows::ONE).unwrap();
            assert_eq!(packed.sums()[0][..3], [-128, 127, -1].map(|weight| weight * inner as i32), "{inner} weights");
        }
    }
}
