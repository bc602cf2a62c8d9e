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
    for_each_piece_at(BYTE, out, row, |start, out| join_from(all, start / row, out));
}

/// Joins rows from one on, on this thread; the output is not empty.
pub(crate) fn join_from(all: &[Rows<'_>], first: usize, out: &mut [u8]) {
    let row = all.iter().map(|rows| rows.len).sum();
    if let [a, b] = all
        && a.len == b.len
    {
        let pairs = Pairs { a, b, first, out };
        match a.len {
            1 => return run_wide(Chunks::<_, 1>(pairs)),
            2 => return run_wide(Chunks::<_, 2>(pairs)),
            4 => return run_wide(Chunks::<_, 4>(pairs)),
            8 => return run_wide(Chunks::<_, 8>(pairs)),
            16 => return run_wide(Chunks::<_, 16>(pairs)),
            _ => return each(all, row, first, pairs.out),
        }
    }
    each(all, row, first, out);
}

/// Writes rows one matrix after the other, in blocks that stay in the cache until the last matrix is done.
fn each(all: &[Rows<'_>], row: usize, first: usize, out: &mut [u8]) {
    /// Bytes of a block.
    const BLOCK: usize = 1 << 14;
    let count = (BLOCK / row).max(1);
    for (block, out) in out.chunks_mut(count * row).enumerate() {
        let mut place = 0;
        for &Rows { bytes, len } in all {
            let from = &bytes[(first + block * count) * len..][..out.len() / row * len];
            let column = Column { from, out: &mut out[place..], row };
            match len {
                0 => {}
                1 => run_wide(Chunks::<_, 1>(column)),
                2 => run_wide(Chunks::<_, 2>(column)),
                4 => run_wide(Chunks::<_, 4>(column)),
                8 => run_wide(Chunks::<_, 8>(column)),
                16 => run_wide(Chunks::<_, 16>(column)),
                32 => run_wide(Chunks::<_, 32>(column)),
                48 => run_wide(Chunks::<_, 48>(column)),
                64 => run_wide(Chunks::<_, 64>(column)),
                128 => run_wide(Chunks::<_, 128>(column)),
                _ => {
                    for (to, from) in column.out.chunks_mut(row).zip(from.chunks_exact(len)) {
                        to[..len].copy_from_slice(from);
                    }
                }
            }
            place += len;
        }
    }
}

/// Rows that are as long as a number known to the compiler.
struct Chunks<R, const LEN: usize>(R);

/// Rows of two matrices by turns.
struct Pairs<'a, 'o> {
    a: &'a Rows<'a>,
    b: &'a Rows<'a>,
    /// The first row to be written.
    first: usize,
    out: &'o mut [u8],
}

impl<const LEN: usize> Loop for Chunks<Pairs<'_, '_>, LEN> {
    #[inline(always)]
    fn run(self) {
        let Pairs { a, b, first, out } = self.0;
        let (a, b) = (a.bytes.as_chunks::<LEN>().0, b.bytes.as_chunks::<LEN>().0);
        let out = out.as_chunks_mut::<LEN>().0.as_chunks_mut::<2>().0;
        let sources = a[first..][..out.len()].iter().zip(&b[first..][..out.len()]);
        for (to, (a, b)) in out.iter_mut().zip(sources) {
            *to = [*a, *b];
        }
    }
}

/// Rows of one matrix, each to the beginning of a row of the output.
struct Column<'a, 'o> {
    from: &'a [u8],
    out: &'o mut [u8],
    row: usize,
}

impl<const LEN: usize> Loop for Chunks<Column<'_, '_>, LEN> {
    #[inline(always)]
    fn run(self) {
        let Column { from, out, row } = self.0;
        for (to, from) in out.chunks_mut(row).zip(from.as_chunks::<LEN>().0) {
            if let Some(to) = to.first_chunk_mut() {
                *to = *from;
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
        for len in [1, 2, 3, 4, 8, 16, 32, 40] {
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
        let matrices: Vec<Vec<u8>> = [64, 3, 0, 130, 16, 48, 1, 128]
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
