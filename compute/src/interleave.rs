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

/// Writes one tile of rows: every group goes through `convert`, word by word, and is stored at a distance from the one
/// before it.
pub(crate) struct Tile<'a, F> {
    /// The rows of the tile, of which there are at most 16, one after the other.
    pub rows: &'a [u8],
    /// Bytes of a row.
    pub row: usize,
    /// The groups from the first of the tile on.
    pub to: &'a mut [Group],
    /// Distance of groups.
    pub distance: usize,
    /// Conversion of the four bytes of a channel.
    pub convert: F,
}

/// Squares of units are turned, as many units of each row as a vector has lanes. They go as floats, whose bits alone matter.
impl<F: Fn(u32) -> u32> WithFloats for Tile<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<V: Floats>(self, floats: V) {
        let Tile { rows, row, to, distance, convert } = self;
        // Rows that there are not stay zeros.
        let mut lines = [[0; LANES * UNIT]; CHANNELS];
        for start in (0..row).step_by(LANES * UNIT) {
            for (line, row) in lines.iter_mut().zip(rows.chunks_exact(row)) {
                match row[start..].first_chunk() {
                    Some(bytes) => *line = *bytes,
                    None => {
                        *line = [0; LANES * UNIT];
                        line[..row.len() - start].copy_from_slice(&row[start..]);
                    }
                }
            }
            let mut square = [floats.splat(0.0); LANES];
            for (row, line) in square.iter_mut().zip(&lines) {
                let mut units: [[u8; UNIT]; LANES] = bytemuck::cast(*line);
                units.iter_mut().for_each(|unit| *unit = convert(u32::from_le_bytes(*unit)).to_le_bytes());
                *row = floats.load(&bytemuck::cast(units));
            }
            let square = floats.transposed(square);
            let count = LANES.min((row - start).div_ceil(UNIT));
            let groups = to[start / UNIT * distance..].iter_mut().step_by(distance).take(count);
            for (group, units) in groups.zip(&square) {
                floats.store(*units, bytemuck::cast_mut(&mut group.0));
            }
        }
    }
}

/// Interleaves one tile.
pub(crate) fn interleave(tile: Tile<'_, impl Fn(u32) -> u32>) {
    if tile.row > 0 {
        FloatPath::best().run(tile);
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
        for (channels, row) in [(16usize, 64usize), (3, 5), (16, 131), (1, 4), (7, 1)] {
            let rows: Vec<u8> = (0..channels * row).map(|byte| (byte % 251) as u8).collect();
            for distance in [1, 3] {
                let mut groups = Groups::new(row.div_ceil(UNIT) * distance).unwrap();
                let to = groups.all_mut();
                interleave(Tile { rows: &rows, row, to, distance, convert: |unit| unit });
                for (at, group) in groups.all().iter().enumerate() {
                    for (place, byte) in group.0.iter().enumerate() {
                        let (channel, column) = (place / UNIT, at / distance * UNIT + place % UNIT);
                        let is_weight = at % distance == 0 && channel < channels && column < row;
                        let want = if is_weight { rows[channel * row + column] } else { 0 };
                        assert_eq!(*byte, want, "{channels} rows of {row}: group {at}, byte {place}");
                    }
                }
            }
        }
    }
}
