//! Rows of weights as tiles of 16 channels, four bytes of each next to each other: what products of bytes read.
//!
//! Invariant: groups are aligned to their size, and what is past the last channel and the last byte of a row is 0.

use crate::simd::Loop;
use crate::simd::dot::{CHANNELS, Group};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, WithFloats};
use crate::threads::Cost;
use crate::zeroed::Zeroed;

/// Four bytes of a channel.
pub(crate) const UNIT: usize = 4;

/// Nanoseconds of a group: 64 bytes are read, moved and written.
pub(crate) const GROUP: Cost = Cost::nanoseconds(12.0);

/// A list of groups.
pub(crate) type Groups = Zeroed<Group>;

/// Writes the rows of a block of tiles: every group goes through `convert`, word by word, as zeros do in the place of rows
/// that there are not. Groups of the same four bytes of a row, one for each tile, are next to each other.
pub(crate) struct Block<'a, F> {
    /// The rows of the block, one after the other, 16 of each tile; the last one may have fewer.
    pub rows: &'a [u8],
    /// Bytes of a row.
    pub row: usize,
    /// The groups of the block.
    pub to: &'a mut [Group],
    /// Number of tiles.
    pub tiles: usize,
    /// Conversion of the four bytes of a channel.
    pub convert: F,
}

/// Bytes of a row that are turned at once, as many units as a vector has lanes.
const SPAN: usize = LANES * UNIT;

/// Squares of units are turned. They go as floats, whose bits alone matter.
impl<F: Fn(u32) -> u32> WithFloats for Block<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<V: Floats>(self, floats: V) {
        let Block { rows, row, to, tiles, convert } = self;
        // The rows of the next block, which come from memory.
        let mut ahead = rows.as_ptr_range().end;
        let missing = floats.load(&bytemuck::cast([convert(0); LANES]));
        // Tiles whose rows are read together.
        let together = if V::ASKS { tiles } else { 1 };
        for some in (0..tiles).step_by(together) {
            for (start, to) in (0..row).step_by(SPAN).zip(to.chunks_mut(LANES * tiles)) {
                let len = SPAN.min(row - start);
                // Units are read whole, what is behind a row with them where that does not tell.
                let is_whole = len % UNIT == 0;
                for (tile, rows) in rows.chunks(CHANNELS * row).enumerate().skip(some).take(together) {
                    let mut square = [missing; LANES];
                    for (vector, at) in square.iter_mut().zip((start..rows.len()).step_by(row)) {
                        floats.prefetch_far(ahead.cast());
                        ahead = ahead.wrapping_add(SPAN);
                        let mut units: [[u8; UNIT]; LANES] = match rows[at..].first_chunk::<SPAN>() {
                            Some(bytes) if is_whole => bytemuck::cast(*bytes),
                            _ => {
                                let mut units = [0; SPAN];
                                units[..len].copy_from_slice(&rows[at..][..len]);
                                bytemuck::cast(units)
                            }
                        };
                        units.iter_mut().for_each(|unit| *unit = convert(u32::from_le_bytes(*unit)).to_le_bytes());
                        *vector = floats.load(&bytemuck::cast(units));
                    }
                    let square = floats.transposed(square);
                    for (groups, units) in to.chunks_exact_mut(tiles).zip(&square) {
                        floats.prefetch_far(groups.as_ptr().wrapping_add(LANES * tiles + tile).cast());
                        floats.store(*units, bytemuck::cast_mut(&mut groups[tile].0));
                    }
                }
            }
        }
    }
}

/// Interleaves the rows of a block.
pub(crate) fn interleave(block: Block<'_, impl Fn(u32) -> u32>) {
    if block.row > 0 && block.tiles > 0 {
        FloatPath::best().run(block);
    }
}

/// Sums of rows, each of so many bytes, by what `number` reads of a byte; wrapped.
pub(crate) struct Sums<'a, F> {
    pub rows: &'a [u8],
    pub row: usize,
    pub sums: &'a mut [i32],
    pub number: F,
}

impl<F: Fn(u8) -> i32> Loop for Sums<'_, F> {
    #[inline(always)]
    fn run(self) {
        for (row, sum) in self.rows.chunks_exact(self.row.max(1)).zip(self.sums) {
            *sum = row.iter().fold(0i32, |sum, &byte| sum.wrapping_add((self.number)(byte)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_aligned_zeros() {
        for count in [0, 1, 5, 4000, 100_000] {
            let groups = Groups::new(count).unwrap();
            assert!(groups.all().len() == count && groups.all().iter().all(|group| group.0 == [0; 64]));
        }
        assert!(Groups::new(usize::MAX / 64).is_err() && Groups::new(usize::MAX / 8).is_err());
    }

    #[test]
    fn rows_are_interleaved() {
        for (channels, row) in [(16usize, 64usize), (3, 5), (16, 131), (1, 4), (7, 1), (33, 68), (48, 16), (40, 130)] {
            let rows: Vec<u8> = (0..channels * row).map(|byte| (byte % 251) as u8 + 1).collect();
            let tiles = channels.div_ceil(CHANNELS);
            let mut groups = Groups::new(row.div_ceil(UNIT) * tiles).unwrap();
            // What is there before is overwritten.
            groups.all_mut().iter_mut().for_each(|group| group.0 = [7; 64]);
            interleave(Block { rows: &rows, row, to: groups.all_mut(), tiles, convert: |unit| unit ^ 0x0101_0101 });
            for (at, group) in groups.all().iter().enumerate() {
                for (place, byte) in group.0.iter().enumerate() {
                    let channel = at % tiles * CHANNELS + place / UNIT;
                    let column = at / tiles * UNIT + place % UNIT;
                    let is_weight = channel < channels && column < row;
                    let want = 1 ^ if is_weight { rows[channel * row + column] } else { 0 };
                    assert_eq!(*byte, want, "{channels} rows of {row}: group {at}, byte {place}");
                }
            }
        }
    }
}
