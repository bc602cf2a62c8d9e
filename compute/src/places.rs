//! Copies of runs of bytes from a list of places, which repeats at several bases.
//!
//! Places that follow each other, such as all but the first and last ones of a padding, are one copy.

use std::ops::Range;

use crate::threads::{Cost, for_each_piece_at};

/// A byte that is read and written.
const BYTE: Cost = Cost::nanoseconds(0.06);

/// Runs of bytes that are neighbours in memory, at so many elements from a base.
pub(crate) struct Places<'a> {
    /// Distances from a base.
    pub offsets: &'a [u64],
    /// Bytes of a run.
    pub run: usize,
    /// Bytes of an element.
    pub width: usize,
}

impl Places<'_> {
    /// Copies the runs at every base, which has a number and is the first element at offset 0, until the output is full.
    ///
    /// # Panics
    ///
    /// If a run leaves `from`.
    pub fn gather(&self, base: impl Fn(usize) -> usize + Sync, from: &[u8], to: &mut [u8]) {
        let Places { offsets, run, width } = *self;
        if offsets.is_empty() || run == 0 {
            return;
        }
        let stretch = self.longest_stretch();
        // Runs of one base stay together if there are many bases.
        let unit = if to.len() / run > offsets.len() { run * offsets.len() } else { run };
        for_each_piece_at(BYTE, to, unit, |start, mut to| {
            let (mut number, mut first) = (start / run / offsets.len(), start / run % offsets.len());
            while to.len() >= run {
                let count = (offsets.len() - first).min(to.len() / run);
                let (now, rest) = to.split_at_mut(count * run);
                self.copy(first..first + count, &stretch, &from[base(number) * width..], now);
                (to, number, first) = (rest, number + 1, 0);
            }
        });
    }

    /// Returns the most places that follow each other in memory.
    fn longest_stretch(&self) -> Range<usize> {
        let next = (self.run / self.width) as u64;
        let (mut longest, mut start) = (0..0, 0);
        for at in 1..=self.offsets.len() {
            let follows = at < self.offsets.len() && self.offsets[at].checked_sub(self.offsets[at - 1]) == Some(next);
            if !follows {
                if at - start > longest.len() {
                    longest = start..at;
                }
                start = at;
            }
        }
        longest
    }

    /// Copies the runs of some places.
    fn copy(&self, places: Range<usize>, stretch: &Range<usize>, from: &[u8], to: &mut [u8]) {
        let (start, end) = (stretch.start.clamp(places.start, places.end), stretch.end.clamp(places.start, places.end));
        let (before, rest) = to.split_at_mut((start - places.start) * self.run);
        let (middle, after) = rest.split_at_mut((end - start) * self.run);
        self.copy_each(&self.offsets[places.start..start], from, before);
        if start < end {
            middle.copy_from_slice(&from[self.offsets[start] as usize * self.width..][..middle.len()]);
        }
        self.copy_each(&self.offsets[end..places.end], from, after);
    }

    /// Copies runs one by one.
    fn copy_each(&self, offsets: &[u64], from: &[u8], to: &mut [u8]) {
        match (self.run, self.width) {
            (1, 1) => elements::<1>(offsets, from, to),
            (2, 2) => elements::<2>(offsets, from, to),
            (4, 4) => elements::<4>(offsets, from, to),
            (8, 8) => elements::<8>(offsets, from, to),
            _ => {
                for (to, &offset) in to.chunks_exact_mut(self.run).zip(offsets) {
                    to.copy_from_slice(&from[offset as usize * self.width..][..self.run]);
                }
            }
        }
    }
}

/// Copies elements of so many bytes.
fn elements<const WIDTH: usize>(offsets: &[u64], from: &[u8], to: &mut [u8]) {
    let from = from.as_chunks::<WIDTH>().0;
    for (to, &offset) in to.as_chunks_mut::<WIDTH>().0.iter_mut().zip(offsets) {
        *to = from[offset as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Threads;

    #[test]
    fn runs_are_where_their_offsets_say() {
        let from: Vec<u8> = (0..400_000usize).map(|at| (at * at / 7) as u8).collect();
        let lists: [Vec<u64>; 6] = [
            vec![3],
            vec![5, 5, 5],
            (0..50).map(|at: u64| at.abs_diff(2) * 4).collect(),
            (0..70).map(|at: u64| at.saturating_sub(3).min(60)).collect(),
            (0..33).map(|at: u64| at * 37 % 61).collect(),
            (0..20).rev().collect(),
        ];
        for (width, count) in [(1, 1), (1, 4), (2, 1), (4, 1), (8, 1), (16, 1), (4, 4), (2, 5), (1, 61)] {
            for offsets in &lists {
                for bases in [1, 2, 900] {
                    let run = width * count;
                    let base = |number: usize| number * 3 % 4001;
                    let all = (0..bases).flat_map(|number| offsets.iter().map(move |at| base(number) + *at as usize));
                    let want: Vec<u8> = all.flat_map(|at| from[at * width..][..run].to_vec()).collect();
                    for threads in 1..4 {
                        let mut have = vec![0; want.len()];
                        let run = || Places { offsets, run, width }.gather(base, &from, &mut have);
                        Threads::new(threads).unwrap().run(run);
                        assert!(have == want, "{width} x {count} at {offsets:?}, {bases} bases");
                    }
                }
            }
        }
    }
}
