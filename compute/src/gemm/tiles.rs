//! The inner loops of products: tiles of rows and of vectors of columns, whose sums stay in registers.
//!
//! Invariant: an element of the output is a sum over the rows of the right operand, in their order and from what is added
//! to the product on, whatever tile, part or thread it is in, and whether the operand is packed or not. Where the product
//! is scaled, it is the sum over [`DEPTH`] rows at a time that is scaled and added.

use std::ops::Range;

use arrayvec::ArrayVec;

use super::blocks::{Blocks, Columns as Rhs, DEPTH, Panel};
use super::{Bias, Mat, Terms};
use crate::simd::apart::{Apart, each_row};
use crate::simd::floats::{Floats, HALF, LANES, Line, Vectors, WithFloats};
use crate::simd::products::{Ahead, add_products};
use crate::threads::Columns;

/// Rows that meet a packed block once, in one tile: such blocks are read one after the other from begin to end, as memory is
/// read fastest.
const ONCE: usize = 6;
/// The most rows of a tile.
const MOST_ROWS: usize = 12;
/// The most numbers of a left operand with scattered rows that are copied for all blocks.
const GATHERED: usize = 64 * DEPTH;
/// The most columns of a tile.
pub(crate) const MOST_COLUMNS: usize = 4 * LANES;

/// Some rows of a product, and some blocks of its columns.
pub(super) struct Part<'a, 'o, R> {
    pub(super) lhs: Mat<'a, f32>,
    pub(super) rhs: &'a R,
    /// Blocks of the right operand; their columns are those of the output.
    pub(super) blocks: Range<usize>,
    pub(super) terms: Terms<'a, f32>,
    pub(super) out: Columns<'o, f32>,
}

/// Terms that the sums over some rows of the right operand are added with.
#[derive(Clone, Copy)]
struct Step<'a> {
    alpha: f32,
    beta: f32,
    bias: Bias<'a, f32>,
}

impl<R: Rhs> WithFloats for Part<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(mut self, floats: F) {
        let blocks = self.rhs.blocks();
        let depths = (0..blocks.depth).step_by(DEPTH).map(|start| start..(start + DEPTH).min(blocks.depth));
        let mut gathered = ArrayVec::<f32, GATHERED>::new();
        if R::PACKED && self.lhs.rows <= ONCE && self.lhs.col_stride == 1 {
            for block in self.blocks.clone() {
                for range in depths.clone() {
                    let lhs = columns(self.lhs, range.clone(), &mut gathered);
                    self.tiles(floats, lhs, range, (&blocks, block));
                }
            }
            return;
        }
        for range in depths {
            let lhs = columns(self.lhs, range.clone(), &mut gathered);
            for block in self.blocks.clone() {
                self.tiles(floats, lhs, range.clone(), (&blocks, block));
            }
        }
    }
}

/// Some columns of a left operand: where they are, or with dense rows if all blocks of the product read such a copy.
fn columns<'m>(lhs: Mat<'m, f32>, range: Range<usize>, gathered: &'m mut ArrayVec<f32, GATHERED>) -> Mat<'m, f32> {
    let Mat { data, rows, row_stride, col_stride, .. } = lhs;
    let data = &data[range.start * col_stride..];
    if col_stride == 1 || rows * range.len() > GATHERED {
        return Mat { data, cols: range.len(), ..lhs };
    }
    gathered.clear();
    (0..rows).for_each(|row| gather(&data[row * row_stride..], col_stride, range.len(), gathered));
    Mat { data: gathered, rows, cols: range.len(), row_stride: range.len(), col_stride: 1 }
}

/// Adds so many numbers of a row to a list.
fn gather<const N: usize>(row: &[f32], stride: usize, count: usize, list: &mut ArrayVec<f32, N>) {
    list.extend(row.iter().step_by(stride.max(1)).take(count).copied());
}

impl<R: Rhs> Part<'_, '_, R> {
    /// [`Part::block`] with tiles as large as this block and the machine take.
    #[inline(always)]
    fn tiles<F: Floats>(
        &mut self,
        floats: F,
        lhs: Mat<'_, f32>,
        range: Range<usize>,
        (blocks, block): (&Blocks, usize),
    ) {
        if const { F::HALVES } && blocks.columns(block).len() <= HALF {
            return self.block::<F::Half, 12, 9, 6, 1>(floats.half(), lhs, range, (blocks, block));
        }
        match (F::ROWS, blocks.tiles(block)) {
            (2, _) => self.block::<F, 2, 2, 2, 1>(floats, lhs, range, (blocks, block)),
            (6, _) => self.block::<F, 6, 5, 3, 1>(floats, lhs, range, (blocks, block)),
            (_, 4) => self.block::<F, 6, 5, 3, 4>(floats, lhs, range, (blocks, block)),
            (_, 3) => self.block::<F, 8, 7, 4, 3>(floats, lhs, range, (blocks, block)),
            (_, 2) => self.block::<F, 10, 8, 5, 2>(floats, lhs, range, (blocks, block)),
            _ => self.block::<F, 12, 9, 6, 1>(floats, lhs, range, (blocks, block)),
        }
    }

    /// All rows of a block, in tiles of `ROWS`, or of `LESS`, `HALF` and one where that is enough; of the sums, those over
    /// the columns that `lhs` has, which meet these rows of the right operand.
    #[inline(always)]
    fn block<F: Vectors, const ROWS: usize, const LESS: usize, const HALF: usize, const TILES: usize>(
        &mut self,
        floats: F,
        lhs: Mat<'_, f32>,
        range: Range<usize>,
        (blocks, block): (&Blocks, usize),
    ) {
        let first = self.blocks.start * blocks.width();
        let columns = blocks.columns(block);
        let places = columns.start - first..columns.end - first;
        let step = Step {
            alpha: self.terms.alpha,
            beta: if range.start == 0 { self.terms.beta } else { 1.0 },
            bias: if range.start == 0 { self.terms.bias } else { Bias::None },
        };
        let mut panel = Panel::<TILES>::new();
        let weights = self.rhs.rows::<TILES>(blocks, block, range, &mut panel);
        let mut tile = Tile { lhs, step, columns: &columns, places: &places, out: &mut self.out };
        let tiles = if R::PACKED && block + 1 < blocks.count() { lhs.rows.div_ceil(ROWS) } else { 0 };
        let mut row = 0;
        while row < lhs.rows {
            // As even as they can be: of few rows weights are read slower than registers take them.
            let left = lhs.rows - row;
            let count = left.div_ceil(left.div_ceil(ROWS));
            let weights = (weights, Ahead::of(weights, blocks.depth, [row.div_ceil(ROWS), tiles]));
            match count {
                1 => tile.rows::<F, 1, TILES>(floats, weights, [row, 1]),
                _ if count <= HALF => tile.rows::<F, HALF, TILES>(floats, weights, [row, count]),
                _ if count <= LESS => tile.rows::<F, LESS, TILES>(floats, weights, [row, count]),
                _ => tile.rows::<F, ROWS, TILES>(floats, weights, [row, count]),
            }
            row += count;
        }
    }
}

/// A block of columns of the output, and the left operand that is multiplied.
struct Tile<'t, 'o> {
    lhs: Mat<'t, f32>,
    step: Step<'t>,
    /// The columns of the block, and their places in the output.
    columns: &'t Range<usize>,
    places: &'t Range<usize>,
    out: &'t mut Columns<'o, f32>,
}

impl Tile<'_, '_> {
    /// Some rows, up to `ROWS`.
    #[inline(always)]
    fn rows<F: Vectors, const ROWS: usize, const TILES: usize>(
        &mut self,
        floats: F,
        weights: (&[[Line; TILES]], Ahead),
        [first, count]: [usize; 2],
    ) {
        let Mat { data, cols: len, row_stride, col_stride, .. } = self.lhs;
        let mut gathered = ArrayVec::<f32, { MOST_ROWS * DEPTH }>::new();
        let row = |row: usize| &data[(first + row.min(count - 1)) * row_stride..];
        let rows: [&[f32]; ROWS] = if col_stride == 1 {
            std::array::from_fn(|at| &row(at)[..len])
        } else {
            (0..ROWS).for_each(|at| gather(row(at), col_stride, len, &mut gathered));
            std::array::from_fn(|at| &gathered[at * len..][..len])
        };
        floats.apart(Rows { tile: self, rows: &rows, weights, first, count });
    }

    /// Number that is added to the products of a row.
    #[inline(always)]
    fn start<F: Vectors, const TILES: usize>(&mut self, floats: F, row: usize) -> [F::V; TILES] {
        let mut start = match self.step.bias {
            Bias::None => [floats.splat(0.0); TILES],
            Bias::Row(bias) => load(floats, &bias[self.columns.clone()]),
            Bias::Column(bias) => [floats.splat(bias[row]); TILES],
        };
        if self.step.beta != 0.0 {
            let old = load::<F, TILES>(floats, &self.out.row(row)[self.places.clone()]);
            let beta = floats.splat(self.step.beta);
            for tile in 0..TILES {
                start[tile] = floats.fma(beta, old[tile], start[tile]);
            }
        }
        start
    }

    /// Writes the results of a row.
    #[inline(always)]
    fn write<F: Vectors, const TILES: usize>(&mut self, floats: F, row: usize, results: [F::V; TILES]) {
        store::<F, TILES>(floats, results, &mut self.out.row(row)[self.places.clone()]);
    }
}

/// Up to `ROWS` rows of a tile, from numbers to results in memory: a function of its own, so that sums stay in registers.
struct Rows<'a, 't, 'o, const ROWS: usize, const TILES: usize> {
    tile: &'a mut Tile<'t, 'o>,
    rows: &'a [&'a [f32]; ROWS],
    weights: (&'a [[Line; TILES]], Ahead),
    /// The first row, and the number of rows.
    first: usize,
    count: usize,
}

impl<F: Vectors, const ROWS: usize, const TILES: usize> Apart<F> for Rows<'_, '_, '_, ROWS, TILES> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Rows { tile, rows, weights: (weights, ahead), first, count } = self;
        let mut sums = [[floats.splat(0.0); TILES]; ROWS];
        if tile.step.alpha == 1.0 {
            each_row!(row < ROWS => {
                if row < count {
                    sums[row] = tile.start::<F, TILES>(floats, first + row);
                }
            });
            add_products(floats, *rows, weights, ahead, &mut sums);
            each_row!(row < ROWS => {
                if row < count {
                    tile.write::<F, TILES>(floats, first + row, sums[row]);
                }
            });
            return;
        }
        add_products(floats, *rows, weights, ahead, &mut sums);
        let alpha = floats.splat(tile.step.alpha);
        each_row!(row < ROWS => {
            if row < count {
                let mut scaled = tile.start::<F, TILES>(floats, first + row);
                for (scaled, sum) in scaled.iter_mut().zip(sums[row]) {
                    *scaled = floats.fma(alpha, sum, *scaled);
                }
                tile.write::<F, TILES>(floats, first + row, scaled);
            }
        });
    }
}

/// The vectors of a row, and zeros behind its end.
#[inline(always)]
pub(crate) fn load<F: Vectors, const TILES: usize>(floats: F, row: &[f32]) -> [F::V; TILES] {
    let (whole, rest) = row.as_chunks::<LANES>();
    let mut vectors = [floats.splat(0.0); TILES];
    if let Ok(whole) = <&[[f32; LANES]; TILES]>::try_from(whole) {
        for (vector, numbers) in vectors.iter_mut().zip(whole) {
            *vector = floats.load(numbers);
        }
        return vectors;
    }
    for (tile, vector) in vectors.iter_mut().enumerate() {
        if let Some(numbers) = whole.get(tile) {
            *vector = floats.load(numbers);
        } else if tile == whole.len() {
            *vector = floats.load_some(rest, 0.0);
        }
    }
    vectors
}

/// Writes vectors into a row, up to its end.
#[inline(always)]
pub(crate) fn store<F: Vectors, const TILES: usize>(floats: F, vectors: [F::V; TILES], row: &mut [f32]) {
    let (whole, rest) = row.as_chunks_mut::<LANES>();
    if let Ok(whole) = <&mut [[f32; LANES]; TILES]>::try_from(&mut *whole) {
        // Nearly always.
        for (vector, row) in vectors.into_iter().zip(whole) {
            floats.store(vector, row);
        }
        return;
    }
    for (tile, vector) in vectors.into_iter().enumerate() {
        if let Some(row) = whole.get_mut(tile) {
            floats.store(vector, row);
        } else if tile == whole.len() {
            floats.store_some(vector, rest);
        }
    }
}
