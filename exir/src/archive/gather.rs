//! Elements of a storage in another order than they have there.
//!
//! Dimensions that follow each other in the storage are taken as one, and elements are moved in tiles: so many rows that
//! both sides of a tile stay in a cache. A storage that is not in memory is read in pieces, where the outermost dimension
//! lets it.
//!
//! Invariant: rows are as the dimensions say whatever the tiles are; an element outside of the storage is an error.

use std::io::{self, Write};

use edgepack_builder::content::{Content, Data};

/// The most bytes of a tile.
const TILE: usize = 64 << 10;

/// The most bytes of a piece of a storage, unless one index of the outermost dimension has more.
const PIECE: u64 = 256 << 10;

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

    fn move_all(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(bytes) = self.source.as_slice() {
            return self.write_any(bytes, &self.dims, self.offset, out);
        }
        let Some((place, each, reach)) = self.in_pieces() else {
            return self.write_any(&self.source.to_vec()?, &self.dims, self.offset, out);
        };
        let (mut bytes, mut dims) = (Vec::new(), self.dims.clone());
        let (size, stride) = self.dims.get(place).copied().ok_or_else(missing)?;
        let item = self.item as u64;
        for first in (0..size).step_by(each) {
            let count = each.min(size.saturating_sub(first));
            let start = first.checked_mul(stride).and_then(|start| start.checked_add(self.offset));
            let len = count.saturating_sub(1).checked_mul(stride).and_then(|len| len.checked_add(reach));
            let (start, len) = (start.ok_or_else(missing)? as u64, len.ok_or_else(missing)? as u64);
            bytes.clear();
            self.source.append_part(start.saturating_mul(item), len.saturating_mul(item), &mut bytes)?;
            if let Some(dim) = dims.get_mut(place) {
                dim.0 = count;
            }
            self.write_any(&bytes, &dims, 0, out)?;
        }
        Ok(())
    }

    /// Returns the place of the dimension along which the storage can be read in pieces, how many indices a piece has, and
    /// the elements that the others reach over. Indices follow each other in the storage, and nothing is outside of them.
    fn in_pieces(&self) -> Option<(usize, usize, usize)> {
        let outer = self.dims.len().checked_sub(2)?;
        let place = self.dims.iter().take(outer).position(|(size, _)| *size > 1)?;
        let (_, stride) = *self.dims.get(place)?;
        let mut reach = 1usize;
        for (size, stride) in self.dims.get(place.checked_add(1)?..)? {
            reach = reach.checked_add(size.checked_sub(1)?.checked_mul(*stride)?)?;
        }
        let bytes = (stride as u64).checked_mul(self.item as u64)?;
        let each = usize::try_from(PIECE.checked_div(bytes)?.max(1)).ok()?;
        (reach <= stride).then_some((place, each, reach))
    }

    fn write_any(&self, source: &[u8], dims: &[(usize, usize)], offset: usize, out: &mut dyn Write) -> io::Result<()> {
        match self.item {
            1 => write::<1>(source, dims, offset, out),
            2 => write::<2>(source, dims, offset, out),
            4 => write::<4>(source, dims, offset, out),
            8 => write::<8>(source, dims, offset, out),
            16 => write::<16>(source, dims, offset, out),
            item => Err(io::Error::new(io::ErrorKind::Unsupported, format!("elements of {item} bytes"))),
        }
    }
}

/// Writes elements of a storage, outermost dimension first.
fn write<const N: usize>(source: &[u8], dims: &[(usize, usize)], offset: usize, out: &mut dyn Write) -> io::Result<()> {
    let elements = source.as_chunks::<N>().0;
    let [outer @ .., rows, row] = dims else { return Err(missing()) };
    let most = TILE.checked_div(N).unwrap_or(1).max(1);
    let width = row.0.clamp(1, most);
    let height = most.checked_div(width).unwrap_or(1).clamp(1, rows.0.max(1));
    let mut tile = vec![[0u8; N]; width.saturating_mul(height)];
    let mut index = vec![0usize; outer.len()];
    let mut at = offset;
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
        self.move_all(out)
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

    /// Bytes that are not in memory, as far as anyone can see.
    struct Away(Vec<u8>);

    impl Content for Away {
        fn byte_len(&self) -> u64 {
            self.0.len() as u64
        }

        fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
            out.write_all(&self.0)
        }
    }

    #[test]
    fn tiles_are_what_single_elements_are() {
        let bytes: Vec<u8> = (0..500_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
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
                let want = plain(&bytes, dims, offset, item);
                assert_eq!(gather.to_vec().unwrap(), want, "{dims:?} of {item}");
                let away = Data::new(Away(bytes.clone()));
                let gather = Data::new(Gather::new(away, dims.iter().copied(), offset, item));
                assert_eq!(gather.to_vec().unwrap(), want, "{dims:?} of {item} in pieces");
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
