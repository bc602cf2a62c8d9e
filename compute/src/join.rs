//! Matrices next to each other: each row of the result is a row of every matrix.

use crate::simd::{Loop, run_wide};
use crate::threads::{Cost, for_each_piece_at};

/// A byte that is read and written.
const BYTE: Cost = Cost::nanoseconds(0.06);

/// The most matrices that are joined at once.
pub const MOST: usize = 32;

/// Dense rows of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows<'a> {
    /// All rows.
    pub bytes: &'a [u8],
    /// Bytes of one.
    pub len: usize,
}

/// Writes the rows of some matrices next to each other; all have as many rows as the output.
///
/// ```
/// use edgepack_compute::join::{Rows, join};
///
/// let mut out = [0; 6];
/// join(&[Rows { bytes: &[1, 2, 3, 4], len: 2 }, Rows { bytes: &[5, 6], len: 1 }], &mut out);
/// assert_eq!(out, [1, 2, 5, 3, 4, 6]);
/// ```
///
/// # Panics
///
/// If a matrix has fewer rows than the output.
pub fn join(all: &[Rows<'_>], out: &mut [u8]) {
    let row = all.iter().map(|rows| rows.len).sum::<usize>();
    if row == 0 {
        return;
    }
    for_each_piece_at(BYTE, out, row, |start, out| {
        let each = all.first().map_or(0, |rows| rows.len);
        if all.iter().all(|rows| rows.len == each) {
            let short = Short { all, first: start / row, out: &mut *out };
            match each {
                1 => return run_wide(Elements::<1>(short)),
                2 => return run_wide(Elements::<2>(short)),
                4 => return run_wide(Elements::<4>(short)),
                8 => return run_wide(Elements::<8>(short)),
                _ => {}
            }
        }
        for (index, mut out) in (start / row..).zip(out.chunks_exact_mut(row)) {
            for Rows { bytes, len } in all {
                let (place, rest) = out.split_at_mut(*len);
                place.copy_from_slice(&bytes[index * len..][..*len]);
                out = rest;
            }
        }
    });
}

/// Rows of one element each, which are written one matrix after the other.
struct Short<'a> {
    all: &'a [Rows<'a>],
    /// The first row to be written.
    first: usize,
    out: &'a mut [u8],
}

/// Rows of elements of so many bytes.
struct Elements<'a, const LEN: usize>(Short<'a>);

impl<const LEN: usize> Loop for Elements<'_, LEN> {
    #[inline(always)]
    fn run(self) {
        /// Rows that stay in the cache until the last matrix is done.
        const BLOCK: usize = 1024;
        let Short { all, first, out } = self.0;
        let out = out.as_chunks_mut::<LEN>().0;
        if let [a, b] = all {
            let (a, b) = (a.bytes.as_chunks::<LEN>().0, b.bytes.as_chunks::<LEN>().0);
            let count = out.len() / 2;
            let sources = a[first..][..count].iter().zip(&b[first..][..count]);
            for (to, (a, b)) in out.as_chunks_mut::<2>().0.iter_mut().zip(sources) {
                *to = [*a, *b];
            }
            return;
        }
        for (block, out) in out.chunks_mut(BLOCK * all.len()).enumerate() {
            for (place, rows) in all.iter().enumerate() {
                let from = &rows.bytes.as_chunks::<LEN>().0[first + block * BLOCK..];
                for (to, from) in out[place..].iter_mut().step_by(all.len()).zip(from) {
                    *to = *from;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Threads;

    #[test]
    fn short_rows_are_where_they_belong() {
        let count = 20_011;
        for len in [1, 2, 3, 4, 8] {
            for matrices in [1, 2, 3, 7] {
                let bytes: Vec<Vec<u8>> =
                    (0..matrices).map(|at| (0..count * len).map(|i| (i * 7 + at * 31) as u8).collect()).collect();
                let rows: Vec<Rows<'_>> = bytes.iter().map(|bytes| Rows { bytes, len }).collect();
                let want: Vec<u8> = (0..count)
                    .flat_map(|row| rows.iter().flat_map(move |rows| &rows.bytes[row * len..][..len]))
                    .copied()
                    .collect();
                for threads in [1, 3] {
                    let mut out = vec![0; want.len()];
                    Threads::new(threads).unwrap().run(|| join(&rows, &mut out));
                    assert!(out == want, "{matrices} matrices, rows of {len}, {threads} threads");
                }
            }
        }
    }

    #[test]
    fn rows_are_where_they_belong_whatever_thread_writes_them() {
        let count = 4000;
        let matrices: Vec<Vec<u8>> = [64, 3, 0, 130]
            .iter()
            .enumerate()
            .map(|(at, len)| (0..count * len).map(|i| (i * 7 + at * 31) as u8).collect())
            .collect();
        let rows: Vec<Rows<'_>> = matrices.iter().map(|bytes| Rows { bytes, len: bytes.len() / count }).collect();
        let want: Vec<u8> = (0..count)
            .flat_map(|row| rows.iter().flat_map(move |rows| rows.bytes[row * rows.len..][..rows.len].to_vec()))
            .collect();
        for threads in [1, 2, 3] {
            let mut out = vec![0; want.len()];
            Threads::new(threads).unwrap().run(|| join(&rows, &mut out));
            assert!(out == want, "{threads} threads");
        }
    }
}
