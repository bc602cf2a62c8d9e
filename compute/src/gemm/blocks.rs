//! Columns of a right operand in blocks, as wide as sums that registers hold: packed once, or filled while a product runs.
//!
//! Invariant: a block of `t` vectors has, for each row of the operand, `t` lines next to each other; columns that there are
//! not are 0.

use std::ops::Range;

use arrayvec::ArrayVec;

use super::Mat;
use crate::error::{Error, ErrorKind};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, Line, WithFloats};
use crate::threads::{Cost, WriteAll, for_each_at};
use crate::zeroed::Zeroed;

/// Rows of the right operand whose products are summed before the sums are added to the output.
pub(crate) const DEPTH: usize = 256;

/// Copying a number into a block.
const COPY: Cost = Cost::nanoseconds(0.3);

/// Rows of a block of an operand that is not packed.
pub(crate) type Panel<const TILES: usize> = ArrayVec<[Line; TILES], DEPTH>;

/// Sizes of a matrix whose columns are in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocks {
    /// Rows of the matrix: products of an element of the output.
    pub(crate) depth: usize,
    /// Columns, and vectors of them.
    pub(crate) columns: usize,
    pub(crate) vectors: usize,
    /// Vectors of a block; the last block may have fewer.
    tiles: usize,
}

impl Blocks {
    /// Of a matrix of so many rows and columns, on this machine.
    pub(crate) fn new(depth: usize, columns: usize) -> Blocks {
        Self::of_vectors(depth, columns, usize::MAX)
    }

    /// Of a matrix of so many rows and columns, on this machine, in blocks of so many vectors at most.
    pub(crate) fn of_vectors(depth: usize, columns: usize, most: usize) -> Blocks {
        let vectors = columns.div_ceil(LANES);
        let blocks = vectors.div_ceil(FloatPath::best().tiles().min(most)).max(1);
        Blocks { depth, columns, vectors, tiles: vectors.div_ceil(blocks).max(1) }
    }

    /// Lines of all blocks.
    pub(crate) fn lines(&self) -> usize {
        self.vectors.saturating_mul(self.depth)
    }

    /// Bytes of all blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.lines().saturating_mul(size_of::<Line>())
    }

    /// Number of blocks.
    pub(crate) fn count(&self) -> usize {
        self.vectors.div_ceil(self.tiles)
    }

    /// Share of the time of so many threads that is used if each computes whole blocks in turn.
    pub(crate) fn balance(&self, threads: usize) -> f64 {
        let rounds = self.count().div_ceil(threads);
        let last = if self.count() == (rounds - 1) * threads + 1 { self.tiles(self.count() - 1) } else { self.tiles };
        self.vectors as f64 / (((rounds - 1) * self.tiles + last) * threads) as f64
    }

    /// Columns of a block; the last one may have fewer.
    pub(crate) fn width(&self) -> usize {
        self.tiles * LANES
    }

    /// Vectors of a block.
    pub(crate) fn tiles(&self, block: usize) -> usize {
        self.tiles.min(self.vectors - block * self.tiles)
    }

    /// Columns of a block.
    pub(crate) fn columns(&self, block: usize) -> Range<usize> {
        let first = block * self.width();
        first..(first + self.width()).min(self.columns)
    }

    /// The lines of a block among all lines.
    pub(crate) fn block<'l>(&self, lines: &'l [Line], block: usize) -> &'l [Line] {
        &lines[block * self.tiles * self.depth..][..self.tiles(block) * self.depth]
    }

    /// Lines of all blocks for several matrices of these sizes, each of which `fill` writes whole: rows of a block of a matrix.
    /// They are in the memory of older lines if those are as many.
    pub(crate) fn pack(
        &self,
        old: Zeroed<Line>,
        matrices: usize,
        fill: impl Fn(usize, Range<usize>, Range<usize>, &mut [Line]) + Sync + Send,
    ) -> Result<Zeroed<Line>, Error> {
        let count = self.lines().saturating_mul(matrices);
        let mut packed = old;
        if packed.all().len() != count {
            packed = Zeroed::overwritten(count)?;
        }
        for (matrix, lines) in packed.all_mut().chunks_exact_mut(self.lines().max(1)).enumerate() {
            let each = self.tiles * self.depth;
            let cost = Cost::nanoseconds(COPY.as_nanoseconds() * (each * LANES) as f64);
            for_each_at(cost, WriteAll(lines, each), |block, lines| {
                fill(matrix, 0..self.depth, self.columns(block), lines);
            });
        }
        Ok(packed)
    }
}

/// A right operand whose columns come in blocks.
pub(crate) trait Columns: Sync {
    /// True if the blocks are there; false if it costs time to fill them.
    const PACKED: bool;

    /// Sizes of the operand, and of the blocks that its columns come in.
    fn blocks(&self) -> Blocks;

    /// Rows of a block, of `TILES` vectors: those that are packed, or the panel, filled with them. There are no more rows than
    /// a panel has. `blocks` are its sizes.
    fn rows<'p, const TILES: usize>(
        &'p self,
        blocks: &Blocks,
        block: usize,
        rows: Range<usize>,
        panel: &'p mut Panel<TILES>,
    ) -> &'p [[Line; TILES]];
}

/// A right operand whose blocks are filled while a product runs.
pub(crate) trait Fill: Sync {
    /// Rows and columns.
    fn sizes(&self) -> [usize; 2];

    /// Writes rows of some columns into lines of zeros, as many a row as the columns fill.
    fn fill(&self, rows: Range<usize>, columns: Range<usize>, lines: &mut [Line]);
}

impl<S: Fill> Columns for S {
    const PACKED: bool = false;

    fn blocks(&self) -> Blocks {
        let [rows, columns] = self.sizes();
        Blocks::new(rows, columns)
    }

    #[inline(always)]
    fn rows<'p, const TILES: usize>(
        &'p self,
        blocks: &Blocks,
        block: usize,
        rows: Range<usize>,
        panel: &'p mut Panel<TILES>,
    ) -> &'p [[Line; TILES]] {
        panel.clear();
        panel.extend(std::iter::repeat_n([Line::ZERO; TILES], rows.len()));
        self.fill(rows, blocks.columns(block), panel.as_flattened_mut());
        panel
    }
}

/// Writes rows of some columns of a matrix with these strides into lines, as many a row as the columns fill; zeros follow the
/// last column.
pub(crate) fn fill(
    data: &[f32],
    [row_stride, col_stride]: [usize; 2],
    rows: Range<usize>,
    columns: Range<usize>,
    lines: &mut [Line],
) {
    if col_stride != 1 {
        let first = rows.start;
        return fill_at(data, [row_stride, col_stride], rows, columns, lines, |row| row - first, None);
    }
    let tiles = columns.len().div_ceil(LANES).max(1);
    for (row, lines) in rows.zip(lines.chunks_exact_mut(tiles)) {
        let row = &data[row * row_stride + columns.start..][..columns.len()];
        let (whole, rest) = row.as_chunks::<LANES>();
        lines.iter_mut().zip(whole).for_each(|(line, numbers)| line.0 = *numbers);
        if let Some(line) = lines.get_mut(whole.len()) {
            *line = Line::ZERO;
            line.0[..rest.len()].copy_from_slice(rest);
        }
    }
}

/// Returns a number of a weight times the factor of its output channel.
#[inline(always)]
pub fn scaled(number: f32, factor: f64) -> f32 {
    (f64::from(number) * factor) as f32
}

/// Writes rows as [`fill`] does, each at the place among the lines that `place` gives it, and each column [`scaled`] by its
/// factor, if there are factors.
pub(crate) fn fill_at(
    data: &[f32],
    strides: [usize; 2],
    rows: Range<usize>,
    columns: Range<usize>,
    lines: &mut [Line],
    place: impl Fn(usize) -> usize,
    factors: Option<&[f64]>,
) {
    FloatPath::best().run(Transpose { data, strides, rows, columns, lines, place, factors });
}

/// Vectors of a run that are asked for before they are read.
const AHEAD: usize = 4;

/// [`fill_at`] from a matrix whose columns are not next to each other.
struct Transpose<'d, 'l, P> {
    data: &'d [f32],
    strides: [usize; 2],
    rows: Range<usize>,
    columns: Range<usize>,
    lines: &'l mut [Line],
    place: P,
    factors: Option<&'d [f64]>,
}

impl<P: Fn(usize) -> usize> WithFloats for Transpose<'_, '_, P> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Transpose { data, strides: [row_stride, col_stride], rows, columns, lines, place, factors } = self;
        let (tiles, start, all) = (columns.len().div_ceil(LANES).max(1), rows.start, rows.len());
        if rows.is_empty() {
            return;
        }
        let places = |first: usize| std::array::from_fn::<usize, LANES, _>(|row| place(first + row) * tiles);
        // Tiles whose runs are read together.
        let together = if F::ASKS { tiles } else { 1 };
        for tile in (0..tiles).step_by(together) {
            let some = tile..tiles.min(tile + together);
            let mut next = places(start);
            for first in rows.clone().step_by(LANES) {
                // As many rows at once as a line has lanes: of the last ones, some for a second time.
                let first = first.min(rows.end.saturating_sub(LANES).max(start));
                let rows = first..(first + LANES).min(rows.end);
                let here = if (first - start).is_multiple_of(LANES) { next } else { places(first) };
                next = places(first + LANES);
                // Near the end of runs that are read whole, where those of the next block begin. It is no more than a hint.
                let ahead = match first - start + AHEAD * LANES < all || all < col_stride {
                    true => AHEAD * LANES,
                    false => columns.len().wrapping_mul(col_stride).wrapping_add(AHEAD * LANES).wrapping_sub(all),
                };
                // What is next to each other is written one after the other.
                for tile in some.clone() {
                    let column = columns.start + tile * LANES;
                    let count = columns.end.saturating_sub(column).min(LANES);
                    let factors = factors.map(|factors| {
                        let factors = &factors[tile * LANES..][..count];
                        factors.as_array().copied().unwrap_or_else(|| {
                            let mut of_tile = [0.0; LANES];
                            of_tile[..count].copy_from_slice(factors);
                            of_tile
                        })
                    });
                    if row_stride == 1 && rows.len() == LANES {
                        let mut numbers = [floats.splat(0.0); LANES];
                        for lane in 0..LANES {
                            if lane < count {
                                let run = &data[(column + lane) * col_stride + first..][..LANES];
                                floats.prefetch_far(run.as_ptr().wrapping_add(ahead).cast());
                                numbers[lane] = floats.load(&run.as_chunks().0[0]);
                            }
                        }
                        let numbers = floats.transposed(numbers);
                        for row in 0..LANES {
                            // Writing waits for lines, too.
                            floats.prefetch_far(lines.as_ptr().wrapping_add(next[row] + tile));
                            let line = &mut lines[here[row] + tile].0;
                            floats.store(numbers[row], line);
                            if let Some(factors) = &factors {
                                for lane in 0..LANES {
                                    line[lane] = scaled(line[lane], factors[lane]);
                                }
                            }
                        }
                        continue;
                    }
                    for (row, place) in rows.clone().zip(here).take_while(|_| count > 0) {
                        let (line, rest) = lines[place + tile].0.split_at_mut(count);
                        rest.fill(0.0);
                        let numbers = data[row * row_stride + column * col_stride..].iter().step_by(col_stride.max(1));
                        line.iter_mut().zip(numbers).for_each(|(to, x)| *to = *x);
                        if let Some(factors) = &factors {
                            line.iter_mut().zip(factors).for_each(|(to, factor)| *to = scaled(*to, *factor));
                        }
                    }
                }
            }
        }
    }
}

impl Fill for Mat<'_, f32> {
    fn sizes(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    fn fill(&self, rows: Range<usize>, columns: Range<usize>, lines: &mut [Line]) {
        fill(self.data, self.strides(), rows, columns, lines);
    }
}

/// A right operand with its columns in blocks.
pub struct Packed {
    blocks: Blocks,
    lines: Zeroed<Line>,
}

impl Packed {
    /// Name of the layout on this machine.
    pub fn layout() -> String {
        format!("blocks of {} vectors", FloatPath::best().tiles())
    }

    /// Packs a matrix. An error if there is no memory.
    pub fn new(mat: &Mat<'_, f32>) -> Result<Packed, Error> {
        let blocks = Blocks::new(mat.rows, mat.cols);
        let lines = blocks.pack(Zeroed::default(), 1, |_, rows, columns, lines| mat.fill(rows, columns, lines))?;
        Ok(Packed { blocks, lines })
    }

    /// Returns how many bytes a matrix of so many rows and columns takes when it is packed.
    pub fn packed_len([rows, cols]: [usize; 2]) -> usize {
        Blocks::new(rows, cols).bytes()
    }

    /// Refuses to be used as a matrix of other sizes.
    pub(super) fn expect(&self, mat: &Mat<'_, f32>) -> Result<(), Error> {
        let [have, want] = [[self.blocks.depth, self.blocks.columns], [mat.rows, mat.cols]];
        if have == want {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Geometry, format!("a matrix of {want:?} was packed as one of {have:?}")))
    }
}

impl Columns for Packed {
    const PACKED: bool = true;

    fn blocks(&self) -> Blocks {
        self.blocks
    }

    #[inline(always)]
    fn rows<'p, const TILES: usize>(
        &'p self,
        blocks: &Blocks,
        block: usize,
        rows: Range<usize>,
        _: &'p mut Panel<TILES>,
    ) -> &'p [[Line; TILES]] {
        let (lines, _) = blocks.block(self.lines.all(), block).as_chunks::<TILES>();
        &lines[rows]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn lines_hold_each_column_and_zeros_behind_the_last_whatever_was_in_them() {
        let mut random = Random::new(71);
        for (depth, columns) in [(1, 1), (5, 7), (16, 16), (17, 24), (27, 32), (40, 100), (300, 33)] {
            let (data, factors) = (random.floats(depth * columns), random.floats(columns));
            let factors: Vec<f64> = factors.iter().copied().map(f64::from).collect();
            for ([row_stride, col_stride], factors) in
                [([columns, 1], None), ([1, depth], None), ([1, depth], Some(&factors[..]))]
            {
                let blocks = Blocks::new(depth, columns);
                let mut old = Zeroed::<Line>::new(blocks.lines()).unwrap();
                old.all_mut().fill(Line([f32::NAN; LANES]));
                let packed = blocks
                    .pack(old, 1, |_, rows, columns, lines| match factors {
                        None => fill(&data, [row_stride, col_stride], rows, columns, lines),
                        Some(factors) => {
                            let factors = Some(&factors[columns.clone()]);
                            fill_at(&data, [row_stride, col_stride], rows, columns, lines, |row| row, factors);
                        }
                    })
                    .unwrap();
                for block in 0..blocks.count() {
                    let (tiles, first) = (blocks.tiles(block), blocks.columns(block).start);
                    let lines: &[f32] = bytemuck::cast_slice(blocks.block(packed.all(), block));
                    for (index, have) in lines.iter().enumerate() {
                        let (row, column) = (index / (tiles * LANES), first + index % (tiles * LANES));
                        let want = if column < columns { data[row * row_stride + column * col_stride] } else { 0.0 };
                        let want =
                            factors.filter(|_| column < columns).map_or(want, |factors| scaled(want, factors[column]));
                        assert_eq!(*have, want, "{depth} x {columns}, row {row}, column {column}");
                    }
                }
            }
        }
    }
}
