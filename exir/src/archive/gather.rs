//! Elements of a storage in another order than they have there.
//!
//! Dimensions that follow each other in the storage are taken as one, and elements are moved in tiles: so many rows that
//! both sides of a tile stay in a cache.
//!
//! Invariant: rows are as the dimensions say whatever the tiles are; an element outside of the storage is an error.

use std::io::{self, Write};

use edgepack_builder::content::{Content, Data};

/// The most bytes of a tile.
const TILE: usize = 64 << 10;

/// Elements of a row that are moved before the next row of a tile has its turn: each may be in a line of its own.
const RUN: usize = 64;

/// Elements picked out of a storage. Numbers are in elements, dimensions outermost first.
pub(super) struct Gather<'a> {
    source: Data<'a>,
    /// Sizes and distances; the last two are those of a tile.
    dims: Vec<(usize, usize)>,
    offset: usize,
    item: usize,
    bytes: u64,
}

impl<'a> Gather<'a> {
    /// Elements of so many bytes of this storage, in dimensions of these sizes and distances.
    pub(super) fn new(
        source: Data<'a>,
        dims: impl Iterator<Item = (usize, usize)>,
        offset: usize,
        item: usize,
    ) -> Self {
        let mut joined: Vec<(usize, usize)> = vec![(1, 0), (1, 0)];
        let mut bytes = item as u64;
        for (size, stride) in dims {
            bytes = bytes.saturating_mul(size as u64);
            match joined.last_mut() {
                _ if size == 1 => {}
                Some((outer, far)) if *outer > 1 && Some(*far) == stride.checked_mul(size) => {
                    (*outer, *far) = (outer.saturating_mul(size), stride);
                }
                _ => joined.push((size, stride)),
            }
        }
        Gather { source, dims: joined, offset, item, bytes }
    }

    fn write<const N: usize>(&self, source: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let elements = source.as_chunks::<N>().0;
        let [outer @ .., rows, row] = self.dims.as_slice() else { return Err(missing()) };
        let width = row.0.clamp(1, TILE / N.max(1));
        let height = (TILE / N.max(1)).checked_div(width).unwrap_or(1).clamp(1, rows.0.max(1));
        let mut tile = vec![[0u8; N]; width.saturating_mul(height)];
        let mut index = vec![0usize; outer.len()];
        let mut at = self.offset;
        loop {
            for first in (0..rows.0).step_by(height) {
                // Rows that do not fit are written in pieces, one row at a time.
                let height = height.min(rows.0.saturating_sub(first));
                for from in (0..row.0).step_by(width) {
                    let width = width.min(row.0.saturating_sub(from));
                    let start = first.checked_mul(rows.1).and_then(|rows| rows.checked_add(from.checked_mul(row.1)?));
                    let start = start.and_then(|start| start.checked_add(at)).ok_or_else(missing)?;
                    let tile = tile.get_mut(..width.saturating_mul(height)).ok_or_else(missing)?;
                    fill(elements, tile, width, start, rows.1, row.1)?;
                    out.write_all(tile.as_flattened())?;
                }
            }
            // The next index, innermost dimension first.
            let mut done = true;
            for (index, (size, stride)) in index.iter_mut().zip(outer).rev() {
                *index = index.saturating_add(1);
                at = at.wrapping_add(*stride);
                if *index < *size {
                    done = false;
                    break;
                }
                at = at.wrapping_sub(stride.wrapping_mul(*size));
                *index = 0;
            }
            if done {
                return Ok(());
            }
        }
    }
}

/// Fills a tile with rows of elements.
fn fill<const N: usize>(
    elements: &[[u8; N]],
    tile: &mut [[u8; N]],
    width: usize,
    start: usize,
    between_rows: usize,
    between: usize,
) -> io::Result<()> {
    let run = if between == 1 { width.max(1) } else { RUN };
    for from in (0..width).step_by(run) {
        let mut at = from.checked_mul(between).and_then(|from| from.checked_add(start)).ok_or_else(missing)?;
        for row in tile.chunks_mut(width.max(1)) {
            let end = from.saturating_add(run).min(row.len());
            let row = row.get_mut(from..end).ok_or_else(missing)?;
            let source = elements.get(at..).ok_or_else(missing)?;
            match between {
                1 => row.copy_from_slice(source.get(..row.len()).ok_or_else(missing)?),
                _ => spread(source, row, between)?,
            }
            at = at.checked_add(between_rows).ok_or_else(missing)?;
        }
    }
    Ok(())
}

/// Copies elements that are so far from each other.
fn spread<const N: usize>(source: &[[u8; N]], row: &mut [[u8; N]], between: usize) -> io::Result<()> {
    if between == 0 {
        row.fill(*source.first().ok_or_else(missing)?);
        return Ok(());
    }
    let mut found = source.chunks(between);
    for element in row {
        *element = *found.next().and_then(<[_]>::first).ok_or_else(missing)?;
    }
    Ok(())
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the storage is shorter than its view")
}

impl Content for Gather<'_> {
    fn byte_len(&self) -> u64 {
        self.bytes
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let owned;
        let source = match self.source.as_slice() {
            Some(bytes) => bytes,
            None => {
                owned = self.source.to_vec()?;
                &owned
            }
        };
        match self.item {
            1 => self.write::<1>(source, out),
            2 => self.write::<2>(source, out),
            4 => self.write::<4>(source, out),
            8 => self.write::<8>(source, out),
            16 => self.write::<16>(source, out),
            item => Err(io::Error::new(io::ErrorKind::Unsupported, format!("elements of {item} bytes"))),
        }
    }

    fn is_computed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements in order, one at a time.
    fn plain(source: &[u8], dims: &[(usize, usize)], offset: usize, item: usize) -> Vec<u8> {
        let Some(((size, stride), rest)) = dims.split_first() else {
            return source[offset * item..][..item].to_vec();
        };
        (0..*size).flat_map(|index| plain(source, rest, offset + index * stride, item)).collect()
    }

    #[test]
    fn tiles_are_what_single_elements_are() {
        let bytes: Vec<u8> = (0..400_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let cases: [(&[(usize, usize)], usize); 12] = [
            (&[], 3),
            (&[(5, 1)], 2),
            (&[(5, 0)], 2),
            (&[(7, 3), (2, 1)], 1),
            (&[(100, 1), (90, 100)], 0),
            (&[(16, 576), (3, 3), (3, 1), (64, 9)], 5),
            (&[(3, 0), (1, 77), (4, 2), (5, 9)], 0),
            (&[(2, 10_000), (100, 100), (100, 1)], 0),
            (&[(0, 4), (4, 1)], 0),
            (&[(2, 1), (20_000, 1)], 0),
            (&[(2, 1), (10_000, 2)], 3),
            (&[(130, 1), (2, 20_000), (70, 140)], 9),
        ];
        for (dims, offset) in cases {
            for item in [1, 2, 4, 8, 16] {
                let source = Data::from(bytes.as_slice());
                let gather = Data::new(Gather::new(source, dims.iter().copied(), offset, item));
                assert_eq!(gather.to_vec().unwrap(), plain(&bytes, dims, offset, item), "{dims:?} of {item}");
            }
        }
    }

    #[test]
    fn views_beyond_the_storage_are_errors() {
        for dims in [&[(9, 1)][..], &[(2, 1), (8, 1)], &[(2, usize::MAX)], &[(3, 4), (1, 1)]] {
            let gather = Gather::new(Data::from(&[0u8; 8]), dims.iter().copied(), 0, 1);
            assert_eq!(gather.write_to(&mut Vec::new()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{dims:?}");
        }
    }
}
