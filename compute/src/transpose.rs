//! Matrices that are read by columns.

use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, WithFloats, read};
use crate::simd::{Loop, run_wide};

/// Rows and columns that are read and written together: few enough that their lines of memory stay in the cache.
pub(crate) const TILE: usize = 16;

/// The columns of a matrix, of `rows` elements each, to write one after the other. Rows begin `stride` elements apart.
pub(crate) struct Transpose<'a, T> {
    pub from: &'a [T],
    pub stride: usize,
    pub to: &'a mut [T],
    pub rows: usize,
}

impl<T: bytemuck::Pod> Transpose<'_, T> {
    /// Writes all columns.
    ///
    /// # Panics
    ///
    /// If the matrix is not within `from`, or `to` is not a whole number of columns.
    pub fn run(mut self) {
        let columns = self.to.len() / self.rows.max(1);
        assert!(columns * self.rows == self.to.len(), "whole columns");
        if columns > 0 {
            let end = (self.rows - 1).saturating_mul(self.stride).saturating_add(columns);
            assert!(end <= self.from.len(), "the matrix is within its memory");
        }
        if self.rows > FEW && columns > FEW {
            if let Some(bytes) = self.cast::<u8>() {
                return FloatPath::best().run(bytes);
            }
            if let Some(words) = self.cast::<f32>() {
                return FloatPath::best().run(words);
            }
        }
        run_wide(self);
    }

    /// The same matrix as elements of another type; `None` if those have another size or alignment.
    fn cast<E: bytemuck::Pod>(&mut self) -> Option<Transpose<'_, E>> {
        let from = bytemuck::try_cast_slice(self.from).ok().filter(|_| size_of::<T>() == size_of::<E>())?;
        let to = bytemuck::try_cast_slice_mut(self.to).ok()?;
        Some(Transpose { from, stride: self.stride, to, rows: self.rows })
    }
}

impl<T: bytemuck::Pod> Loop for Transpose<'_, T> {
    #[inline(always)]
    fn run(self) {
        let columns = self.to.len() / self.rows.max(1);
        match (self.rows, columns) {
            (0, _) | (_, 0) => {}
            (2, _) => self.few_rows::<2>(),
            (3, _) => self.few_rows::<3>(),
            (4, _) => self.few_rows::<4>(),
            (_, 2) => self.few_columns::<2>(),
            (_, 3) => self.few_columns::<3>(),
            (_, 4) => self.few_columns::<4>(),
            _ => self.tiles(Halves),
        }
    }
}

impl WithFloats for Transpose<'_, u8> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        self.tiles(Registers(floats));
    }
}

/// Numbers of four bytes, as floats, whose bits alone matter.
impl WithFloats for Transpose<'_, f32> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Transpose { from, stride, to, rows } = self;
        let columns = to.len() / rows;
        // Along the shorter side first: what is read or written next is near.
        let (outer, inner) = if rows < columns { (columns, rows) } else { (rows, columns) };
        for outer in (0..outer).step_by(LANES) {
            for inner in (0..inner).step_by(LANES) {
                let (top, first) = if rows < columns { (inner, outer) } else { (outer, inner) };
                // The last rows begin early enough to be as many.
                let (top, wide) = (top.min(rows.saturating_sub(LANES)), LANES.min(columns - first));
                let to = &mut to[first * rows..][..wide * rows];
                let from = &from[top * stride + first..];
                match wide == LANES && rows >= LANES {
                    true => square::<F, true>(floats, from, stride, to, [rows, top]),
                    false => square::<F, false>(floats, from, stride, to, [rows, top]),
                }
            }
        }
    }
}

/// Writes columns of `rows` elements each from the row `top` on, which come of as many rows as a square has, `stride` elements
/// apart. Of a square that is not `WHOLE` there may be fewer columns, or rows.
#[inline(always)]
fn square<F: Floats, const WHOLE: bool>(
    floats: F,
    from: &[f32],
    stride: usize,
    to: &mut [f32],
    [rows, top]: [usize; 2],
) {
    let tall = if WHOLE { LANES } else { LANES.min(rows - top) };
    let mut square = [floats.splat(0.0); LANES];
    for row in 0..LANES {
        if !WHOLE && row >= tall {
            break;
        }
        // Behind the last columns there are elements of the next row, or none.
        square[row] = read(floats, &from[row * stride..], 0.0);
    }
    for (column, numbers) in floats.transposed(square).into_iter().enumerate() {
        let to = match to.get_mut(column * rows + top..) {
            Some(to) if WHOLE || !to.is_empty() => to,
            _ => break,
        };
        match to[..tall].first_chunk_mut() {
            Some(to) => floats.store(numbers, to),
            None => floats.store_some(numbers, &mut to[..tall]),
        }
    }
}

/// Rows or columns that are read and written without tiles, at most.
const FEW: usize = 4;

/// A way to turn a tile of [`TILE`] rows.
trait Turn<T, const COLUMNS: usize>: Copy {
    /// Gives each of the first `wide` columns to `write`, the first one first, and may give it others behind them.
    fn turn(self, rows: [&[T; COLUMNS]; TILE], wide: usize, write: impl FnMut(&[T; TILE]));
}

/// Interleaving the halves of a list of 2ⁿ · 2ⁿ elements n times turns them.
#[derive(Clone, Copy)]
struct Halves;

impl<T: bytemuck::Pod> Turn<T, TILE> for Halves {
    #[inline(always)]
    fn turn(self, rows: [&[T; TILE]; TILE], _: usize, write: impl FnMut(&[T; TILE])) {
        const HALF: usize = TILE * TILE / 2;
        let mut tile = [T::zeroed(); 2 * HALF];
        for (row, tile) in rows.iter().zip(tile.as_chunks_mut::<TILE>().0) {
            *tile = **row;
        }
        for _ in 0..TILE.ilog2() {
            let halves = tile;
            let (low, high) = halves.split_at(HALF);
            for ((to, low), high) in tile.as_chunks_mut::<2>().0.iter_mut().zip(low).zip(high) {
                *to = [*low, *high];
            }
        }
        tile.as_chunks().0.iter().for_each(write);
    }
}

/// Squares of four bytes each that stay in registers.
#[derive(Clone, Copy)]
struct Registers<F>(F);

/// Bytes of a row of floats.
const BYTES: usize = LANES * size_of::<f32>();

impl<F: Floats> Turn<u8, BYTES> for Registers<F> {
    #[inline(always)]
    fn turn(self, rows: [&[u8; BYTES]; LANES], wide: usize, mut write: impl FnMut(&[u8; LANES])) {
        let columns = self.0.transposed(rows.map(|row| self.0.load(&bytemuck::cast(*row))));
        for numbers in columns.into_iter().take(wide.div_ceil(size_of::<f32>())) {
            let mut line = [0.0; LANES];
            self.0.store(numbers, &mut line);
            let units: [[u8; size_of::<f32>()]; LANES] = bytemuck::cast(line);
            let words = units.map(u32::from_le_bytes);
            for byte in 0..size_of::<f32>() {
                write(&words.map(|word| (word >> (8 * byte)) as u8));
            }
        }
    }
}

/// Copies less than a whole column. A call of its own: both copies as one would be a call for each column.
#[cold]
#[inline(never)]
fn copy_end<T: Copy>(to: &mut [T], numbers: &[T]) {
    to.copy_from_slice(&numbers[..to.len()]);
}

impl<T: bytemuck::Pod> Transpose<'_, T> {
    /// Tiles of whole rows and columns: elements behind the rows of a tile are read where there are any, and not written;
    /// what is written behind its columns is overwritten by those that follow.
    #[inline(always)]
    fn tiles<const COLUMNS: usize>(self, turn: impl Turn<T, COLUMNS>) {
        let Transpose { from, stride, to, rows } = self;
        let columns = to.len() / rows;
        let mut spare = [[T::zeroed(); COLUMNS]; TILE];
        // The last rows begin early enough to be as many.
        for top in (0..rows).step_by(TILE).map(|top| top.min(rows.saturating_sub(TILE))) {
            for first in (0..columns).step_by(COLUMNS) {
                let wide = COLUMNS.min(columns - first);
                let to = &mut to[first * rows..][..wide * rows];
                let (tall, from) = (TILE.min(rows - top), &from[top * stride + first..]);
                let line = |row: usize| &from[row.wrapping_mul(stride)..];
                // At the end of the memory there may be nothing behind a row.
                if line(tall - 1).len() < COLUMNS {
                    for row in (0..tall).filter(|&row| line(row).len() < COLUMNS) {
                        spare[row][..wide].copy_from_slice(&line(row)[..wide]);
                    }
                }
                let row = |row: usize| match row < tall {
                    true => line(row).first_chunk().unwrap_or(&spare[row]),
                    false => &spare[row],
                };
                let mut to = Some(&mut to[top..]);
                turn.turn(std::array::from_fn(row), wide, |numbers| {
                    if let Some(column) = to.take() {
                        match column.first_chunk_mut() {
                            Some(column) => *column = *numbers,
                            None => copy_end(&mut column[..tall], numbers),
                        }
                        to = column.get_mut(rows..).filter(|column| !column.is_empty());
                    }
                });
            }
        }
    }

    /// Columns of few rows: the channels of an image, or pixels of several planes.
    #[inline(always)]
    fn few_rows<const ROWS: usize>(self) {
        let to = self.to.as_chunks_mut::<ROWS>().0;
        let mut rows = [self.from; ROWS];
        for (row, line) in rows.iter_mut().enumerate() {
            *line = &self.from[row * self.stride..][..to.len()];
        }
        for (column, to) in to.iter_mut().enumerate() {
            for row in 0..ROWS {
                to[row] = rows[row][column];
            }
        }
    }

    /// Few columns: the channels of pixels that become planes.
    #[inline(always)]
    fn few_columns<const COLUMNS: usize>(self) {
        let Transpose { from, stride, to, rows } = self;
        if stride == COLUMNS {
            let from = &from.as_chunks::<COLUMNS>().0[..rows];
            for (column, to) in to.chunks_exact_mut(rows).enumerate() {
                to.iter_mut().zip(from).for_each(|(to, row)| *to = row[column]);
            }
        } else {
            for (column, to) in to.chunks_exact_mut(rows).enumerate() {
                to.iter_mut().zip(from[column..].iter().step_by(stride)).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned<T: bytemuck::Pod + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> T) {
        for rows in [1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 40, 100] {
            for columns in [1, 2, 3, 4, 5, 12, 15, 16, 17, 33, 64] {
                for gap in [0, 1, 20] {
                    let stride = columns + gap;
                    // Nothing is behind the last element.
                    let from: Vec<T> = (0..(rows - 1) * stride + columns).map(&number).collect();
                    let mut to = vec![T::zeroed(); rows * columns];
                    Transpose { from: &from, stride, to: &mut to, rows }.run();
                    let wanted = (0..columns).flat_map(|column| (0..rows).map(move |row| row * stride + column));
                    let wanted: Vec<T> = wanted.map(|at| from[at]).collect();
                    assert_eq!(to, wanted, "{rows} rows of {columns}, {stride} apart");
                }
            }
        }
    }

    #[test]
    fn matrices_of_every_size_are_turned() {
        turned(|at| (at % 251) as u8);
        turned(|at| at as u16);
        turned(|at| at as u32);
        turned(|at| at as u64);
        turned(|at| (at as u128).to_le_bytes());
    }

    #[test]
    #[should_panic(expected = "the matrix is within its memory")]
    fn a_matrix_that_leaves_its_memory_is_refused() {
        Transpose { from: &[0u8; 9], stride: 5, to: &mut [0; 10], rows: 2 }.run();
    }
}
