//! Channels of several groups by turns: the first of every group, then the second of every group.

use crate::simd::{Loop, run_wide};
use crate::threads::{Cost, for_each_piece_at};

/// A byte that is read and written.
const BYTE: Cost = Cost::nanoseconds(0.03);

/// The most groups that are interleaved at once.
pub const MOST: usize = 32;

/// Neighbouring channels of dense rows: each row has them from the same byte on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Channels<'a> {
    /// All rows.
    pub bytes: &'a [u8],
    /// Bytes of one.
    pub row: usize,
    /// Bytes of a row before the channels.
    pub start: usize,
}

/// Writes channels of so many bytes by turns: one of each group, until a row of the output is full.
///
/// ```
/// use edgepack_compute::shuffle::{Channels, shuffle};
///
/// let mut out = [0; 8];
/// let bytes = &[1, 2, 3, 4, 5, 6, 7, 8];
/// let groups = [0, 2].map(|start| Channels { bytes, row: 4, start });
/// shuffle(&groups, 1, 4, &mut out);
/// assert_eq!(out, [1, 3, 2, 4, 5, 7, 6, 8]);
/// ```
///
/// # Panics
///
/// If a row of the output is not made of as many channels of every group, or a group has fewer rows or channels than that.
pub fn shuffle(groups: &[Channels<'_>], channel: usize, row: usize, out: &mut [u8]) {
    if channel == 0 || row == 0 || groups.is_empty() {
        return;
    }
    assert!(row.is_multiple_of(channel * groups.len()), "rows of {row} bytes, {} groups", groups.len());
    // Long channels are copied one by one, whatever row they are in; rows of short ones stay together.
    let unit = if is_short(channel) { row } else { channel };
    for_each_piece_at(BYTE, out, unit, |start, out| match (channel, groups) {
        (1, &[a, b]) => run_wide(Turns::<1, 2> { groups: [a, b], row, first: start / row, out }),
        (2, &[a, b]) => run_wide(Turns::<2, 2> { groups: [a, b], row, first: start / row, out }),
        (4, &[a, b]) => run_wide(Turns::<4, 2> { groups: [a, b], row, first: start / row, out }),
        (4, &[a, b, c]) => run_wide(Turns::<4, 3> { groups: [a, b, c], row, first: start / row, out }),
        (4, &[a, b, c, d]) => run_wide(Turns::<4, 4> { groups: [a, b, c, d], row, first: start / row, out }),
        (1, _) => each::<1>(groups, row, start / row, out),
        (2, _) => each::<2>(groups, row, start / row, out),
        (4, _) => each::<4>(groups, row, start / row, out),
        (8, _) => each::<8>(groups, row, start / row, out),
        _ => copy(groups, channel, row, start, out),
    });
}

/// Returns whether channels have a length known to the compiler.
fn is_short(channel: usize) -> bool {
    matches!(channel, 1 | 2 | 4 | 8)
}

/// Rows of so many groups of channels of so many bytes, from one on.
struct Turns<'a, 'o, const CHANNEL: usize, const GROUPS: usize> {
    groups: [Channels<'a>; GROUPS],
    row: usize,
    first: usize,
    out: &'o mut [u8],
}

impl<const CHANNEL: usize, const GROUPS: usize> Loop for Turns<'_, '_, CHANNEL, GROUPS> {
    #[inline(always)]
    fn run(self) {
        let count = self.row / (CHANNEL * GROUPS);
        for (row, to) in (self.first..).zip(self.out.chunks_exact_mut(self.row)) {
            let mut from = [&[][..]; GROUPS];
            for (from, group) in from.iter_mut().zip(&self.groups) {
                let bytes = &group.bytes[row * group.row + group.start..];
                *from = &bytes.as_chunks::<CHANNEL>().0[..count];
            }
            let to = &mut to.as_chunks_mut::<CHANNEL>().0.as_chunks_mut::<GROUPS>().0[..count];
            for place in 0..count {
                for group in 0..GROUPS {
                    to[place][group] = from[group][place];
                }
            }
        }
    }
}

/// Rows of any number of groups of channels of so many bytes, from one on.
fn each<const CHANNEL: usize>(groups: &[Channels<'_>], row: usize, first: usize, out: &mut [u8]) {
    for (row, to) in (first..).zip(out.chunks_exact_mut(row)) {
        let to = to.as_chunks_mut::<CHANNEL>().0;
        for (number, group) in groups.iter().enumerate() {
            let from = group.bytes[row * group.row + group.start..].as_chunks::<CHANNEL>().0;
            let to = to[number..].iter_mut().step_by(groups.len());
            for (to, from) in to.zip(from) {
                *to = *from;
            }
        }
    }
}

/// Channels of any length, from the one that starts at a byte of the output on.
fn copy(groups: &[Channels<'_>], channel: usize, row: usize, start: usize, out: &mut [u8]) {
    for (number, to) in (start / channel..).zip(out.chunks_exact_mut(channel)) {
        let (row, place) = (number / (row / channel), number % (row / channel));
        let group = &groups[place % groups.len()];
        let from = row * group.row + group.start + place / groups.len() * channel;
        to.copy_from_slice(&group.bytes[from..][..channel]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Threads;

    #[test]
    fn channels_are_where_they_belong_whatever_thread_writes_them() {
        for (channel, rows) in [(1, 9001), (2, 301), (4, 4001), (8, 700), (12, 3), (64, 200), (40_000, 1)] {
            for groups in [1, 2, 3, 4, 5, 7] {
                for count in [1, 2, 7, 29] {
                    is_shuffled(channel, rows.min(2_000_000 / (channel * groups * count)).max(1), groups, count);
                }
            }
        }
    }

    /// Groups whose rows have some channels more, before and behind those that are read.
    fn is_shuffled(channel: usize, rows: usize, groups: usize, count: usize) {
        let bytes: Vec<Vec<u8>> = (0..groups)
            .map(|group| {
                (0..rows * channel * (count + group + 1)).map(|at| (at * 7 + at / 251 + group) as u8).collect()
            })
            .collect();
        let sources: Vec<Channels<'_>> = (bytes.iter().enumerate())
            .map(|(group, bytes)| Channels { bytes, row: channel * (count + group + 1), start: group * channel })
            .collect();
        let mut want = Vec::new();
        for row in 0..rows {
            for place in 0..count {
                for group in &sources {
                    want.extend_from_slice(&group.bytes[row * group.row + group.start + place * channel..][..channel]);
                }
            }
        }
        for threads in [1, 3] {
            let mut out = vec![0; want.len()];
            let run = || shuffle(&sources, channel, channel * groups * count, &mut out);
            Threads::new(threads).unwrap().run(run);
            assert!(out == want, "{groups} groups of {count} channels of {channel} bytes, {threads} threads");
        }
    }
}
