//! Products of few rows, bounded by the time to read the right operand once: it is read as it is stored.

use super::tiles::{load, store};
use super::{Bias, Mat, Terms};
use crate::simd::apart::{Apart, each_row};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, Line, WithFloats};
use crate::threads::{Cost, for_each_piece_at};

/// A multiplication and an addition where each number of the matrix is used once: 0.14 ns from a second level of cache.
pub(crate) const LOADED: Cost = Cost::nanoseconds(0.1);

/// One row times a matrix with dense rows. A column is summed in the order of the rows, from what is added to it on and
/// with each product fused into the sum, whatever part it is in.
pub(super) fn times_rows(out: &mut [f32], lhs: Mat<'_, f32>, rhs: Mat<'_, f32>, terms: Terms<'_, f32>) {
    /// Columns of a part: so many are read from a row at once.
    const COLUMNS: usize = 512;
    let column = Cost::nanoseconds(LOADED.as_nanoseconds() * rhs.rows as f64);
    let path = FloatPath::best();
    for_each_piece_at(column, &mut out[..rhs.cols], COLUMNS, |first, out| {
        path.run(Rows { lhs, rhs, first, terms, out });
    });
}

/// Rows, each times a number of the left operand, added to columns from `first` on.
struct Rows<'a, 'o> {
    lhs: Mat<'a, f32>,
    rhs: Mat<'a, f32>,
    first: usize,
    terms: Terms<'a, f32>,
    out: &'o mut [f32],
}

impl WithFloats for Rows<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        /// Rows that are added at once.
        const ROWS: usize = 8;
        let Rows { lhs, rhs, first, terms: Terms { alpha, beta, bias }, out } = self;
        match beta {
            0.0 => out.fill(0.0),
            beta => out.iter_mut().for_each(|out| *out *= beta),
        }
        match bias {
            Bias::None => {}
            Bias::Row(bias) => out.iter_mut().zip(&bias[first..]).for_each(|(out, bias)| *out += bias),
            Bias::Column(bias) => out.iter_mut().for_each(|out| *out += bias[0]),
        }
        let columns = out.len();
        let row = |k: usize| &rhs.data[k * rhs.row_stride + first..][..columns];
        let factor = |k: usize| alpha * lhs.data[k * lhs.col_stride];
        let whole = rhs.rows / ROWS * ROWS;
        for k in (0..whole).step_by(ROWS) {
            let mut rows = [row(k); ROWS];
            let mut factors = [0.0; ROWS];
            for at in 0..ROWS {
                (rows[at], factors[at]) = (row(k + at), factor(k + at));
            }
            add_rows(floats, rows, factors, out);
        }
        for k in whole..rhs.rows {
            add_rows(floats, [row(k)], [factor(k)], out);
        }
    }
}

/// Adds rows, each times its factor, to the output, one after the other.
#[inline(always)]
pub(crate) fn add_rows<F: Floats, const ROWS: usize>(
    floats: F,
    rows: [&[f32]; ROWS],
    factors: [f32; ROWS],
    out: &mut [f32],
) {
    let (vectors, rest) = out.as_chunks_mut::<LANES>();
    let last = vectors.len() * LANES;
    let rows = rows.map(|row| (&row.as_chunks::<LANES>().0[..vectors.len()], &row[last..][..rest.len()]));
    let mut splats = [floats.splat(0.0); ROWS];
    for at in 0..ROWS {
        splats[at] = floats.splat(factors[at]);
    }
    for (index, out) in vectors.iter_mut().enumerate() {
        let mut sum = floats.load(out);
        for at in 0..ROWS {
            sum = floats.fma(splats[at], floats.load(&rows[at].0[index]), sum);
        }
        floats.store(sum, out);
    }
    if !rest.is_empty() {
        let [mut sum] = load::<F, 1>(floats, rest);
        for at in 0..ROWS {
            let [row] = load::<F, 1>(floats, rows[at].1);
            sum = floats.fma(splats[at], row, sum);
        }
        store::<F, 1>(floats, [sum], rest);
    }
}

/// The most rows whose sums of several vectors of columns stay in registers.
pub(super) const MOST_ROWS: usize = 4;
/// The most rows whose sums of a vector of columns do.
const NARROW_ROWS: usize = 8;
/// Columns that are read at once, or sums of one column: as many as hide how long an addition takes.
const COLUMNS: usize = 4;
/// Vectors of a row whose sums stay in registers.
const VECTORS: usize = 4;

/// A few rows times a matrix with dense rows, on this thread: the sums of neighbouring columns stay in registers, and the matrix is
/// read again after [`MOST_ROWS`] rows, or [`NARROW_ROWS`]. A column is summed as that of [`times_rows`].
pub(super) fn few_times_rows(out: &mut [f32], lhs: Mat<'_, f32>, rhs: Mat<'_, f32>, terms: Terms<'_, f32>) {
    FloatPath::best().run(FewRows { lhs, rhs, terms, out });
}

/// Some rows times a matrix with dense rows.
struct FewRows<'a, 'o> {
    lhs: Mat<'a, f32>,
    rhs: Mat<'a, f32>,
    terms: Terms<'a, f32>,
    out: &'o mut [f32],
}

impl WithFloats for FewRows<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(mut self, floats: F) {
        match F::TILES {
            VECTORS => self.vectors::<F, VECTORS>(floats),
            _ => self.vectors::<F, 1>(floats),
        }
    }
}

impl FewRows<'_, '_> {
    /// All rows, so many vectors of each at a time.
    #[inline(always)]
    fn vectors<F: Floats, const TILES: usize>(&mut self, floats: F) {
        let is_narrow = self.rhs.cols < TILES * LANES;
        let mut row = 0;
        while row < self.lhs.rows {
            row += match self.lhs.rows - row {
                1 => self.rows::<F, 1, TILES>(floats, row),
                2 => self.rows::<F, 2, TILES>(floats, row),
                3 => self.rows::<F, 3, TILES>(floats, row),
                NARROW_ROWS.. if const { TILES > 1 } && is_narrow => self.rows::<F, NARROW_ROWS, 1>(floats, row),
                _ => self.rows::<F, MOST_ROWS, TILES>(floats, row),
            };
        }
    }

    /// All columns of `ROWS` rows from one on, so many vectors of them at a time, and the last ones a vector at a time. Returns how
    /// many rows those are.
    #[inline(always)]
    fn rows<F: Floats, const ROWS: usize, const TILES: usize>(&mut self, floats: F, row: usize) -> usize {
        let columns = self.rhs.cols;
        let whole = columns - columns % (TILES * LANES);
        for first in (0..whole).step_by(TILES * LANES) {
            floats.apart(Sums::<ROWS, TILES> { rows: &mut *self, row, first });
        }
        for first in (whole..columns).step_by(LANES) {
            floats.apart(Sums::<ROWS, 1> { rows: &mut *self, row, first });
        }
        ROWS
    }
}

/// Vectors of columns from `first` on of `ROWS` rows from `row` on: a function of its own, so that sums stay in registers.
struct Sums<'b, 'a, 'o, const ROWS: usize, const TILES: usize> {
    rows: &'b mut FewRows<'a, 'o>,
    row: usize,
    first: usize,
}

impl<F: Floats, const ROWS: usize, const TILES: usize> Apart<F> for Sums<'_, '_, '_, ROWS, TILES> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Sums { rows: FewRows { lhs, rhs, terms: Terms { alpha, beta, bias }, out }, row: from, first } = self;
        let columns = rhs.cols;
        let width = (TILES * LANES).min(columns - first);
        let mut sums = [[floats.splat(0.0); TILES]; ROWS];
        each_row!(row < ROWS => {
            if *beta != 0.0 {
                let old = load::<F, TILES>(floats, &out[(from + row) * columns + first..][..width]);
                for (sum, old) in sums[row].iter_mut().zip(old) {
                    *sum = floats.fma(floats.splat(*beta), old, *sum);
                }
            }
            let bias = match bias {
                Bias::None => None,
                Bias::Row(bias) => Some(load::<F, TILES>(floats, &bias[first..][..width])),
                Bias::Column(bias) => Some([floats.splat(bias[from + row]); TILES]),
            };
            for (sum, bias) in sums[row].iter_mut().zip(bias.into_iter().flatten()) {
                *sum = floats.fma(floats.splat(1.0), bias, *sum);
            }
        });
        for k in 0..rhs.rows {
            let weights = load::<F, TILES>(floats, &rhs.data[k * rhs.row_stride + first..][..width]);
            let factors = &lhs.data[from * lhs.row_stride + k * lhs.col_stride..];
            each_row!(row < ROWS => {
                let factor = floats.splat(*alpha * factors[row * lhs.row_stride]);
                for (sum, weights) in sums[row].iter_mut().zip(weights) {
                    *sum = floats.fma(factor, weights, *sum);
                }
            });
        }
        each_row!(row < ROWS => {
            store::<F, TILES>(floats, sums[row], &mut out[(from + row) * columns + first..][..width]);
        });
    }
}

/// Dense rows, up to [`MOST_ROWS`], times a matrix with dense columns: dot products.
pub(super) fn times_columns(out: &mut [f32], lhs: Mat<'_, f32>, rhs: Mat<'_, f32>, terms: Terms<'_, f32>) {
    let path = FloatPath::best();
    for (index, out) in out.chunks_exact_mut(rhs.cols).enumerate().take(lhs.rows) {
        let column = Cost::nanoseconds(LOADED.as_nanoseconds() * rhs.rows as f64);
        let (row, terms) = (lhs.rows(index, 1), terms.of_rows(index, 1));
        for_each_piece_at(column, out, COLUMNS, |first, out| path.run(Dots { row, rhs, first, terms, out }));
    }
}

/// Dot products of a row with columns from `first` on.
struct Dots<'a, 'o> {
    row: Mat<'a, f32>,
    rhs: Mat<'a, f32>,
    first: usize,
    terms: Terms<'a, f32>,
    out: &'o mut [f32],
}

impl WithFloats for Dots<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        /// Numbers of a matrix that a second level of cache does not keep. It is read as one stream: the machine foresees
        /// that better than several.
        const LARGE: usize = 1 << 18;
        if self.rhs.rows * self.rhs.cols < LARGE {
            self.columns::<F, COLUMNS>(floats);
        } else {
            self.columns::<F, 1>(floats);
        }
    }
}

impl Dots<'_, '_> {
    /// All columns, so many at once, or one after the other as a stream.
    #[inline(always)]
    fn columns<F: Floats, const COLUMNS: usize>(self, floats: F) {
        let Dots { row, rhs, first, terms: Terms { alpha, beta, bias }, out } = self;
        let row = &row.data[..rhs.rows];
        for (group, out) in out.chunks_mut(COLUMNS).enumerate() {
            let first = first + group * COLUMNS;
            let last = out.len() - 1;
            let columns: [&[f32]; COLUMNS] =
                std::array::from_fn(|at| &rhs.data[(first + at.min(last)) * rhs.col_stride..][..rhs.rows]);
            let sums = match COLUMNS {
                1 => [streamed(floats, row, columns[0]); COLUMNS],
                _ => dots::<F, COLUMNS, 1>(floats, row, columns),
            };
            for (at, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
                let old = if beta == 0.0 { 0.0 } else { beta * *out };
                *out = match bias {
                    Bias::None => alpha * sum + old,
                    Bias::Row(bias) => alpha * sum + old + bias[first + at],
                    Bias::Column(bias) => alpha * sum + old + bias[0],
                };
            }
        }
    }
}

/// The sums of products of a row with each column. So many sums of each take turns: additions do not wait for each other.
#[inline(always)]
fn dots<F: Floats, const COLUMNS: usize, const SUMS: usize>(
    floats: F,
    row: &[f32],
    columns: [&[f32]; COLUMNS],
) -> [f32; COLUMNS] {
    let (whole, rest) = row.as_chunks::<LANES>();
    let vectors = columns.map(|column| &column.as_chunks::<LANES>().0[..whole.len()]);
    let mut sums = [[floats.splat(0.0); COLUMNS]; SUMS];
    let (turns, last) = whole.as_chunks::<SUMS>();
    for (turn, xs) in turns.iter().enumerate() {
        for (k, x) in xs.iter().enumerate() {
            let x = floats.load(x);
            for at in 0..COLUMNS {
                sums[k][at] = floats.fma(x, floats.load(&vectors[at][turn * SUMS + k]), sums[k][at]);
            }
        }
    }
    for (k, x) in last.iter().enumerate() {
        let x = floats.load(x);
        for at in 0..COLUMNS {
            sums[k][at] = floats.fma(x, floats.load(&vectors[at][turns.len() * SUMS + k]), sums[k][at]);
        }
    }
    let mut totals = [0.0; COLUMNS];
    for at in 0..COLUMNS {
        let mut of_column = [floats.splat(0.0); SUMS];
        for (sum, sums) in of_column.iter_mut().zip(&sums) {
            *sum = sums[at];
        }
        totals[at] = total(floats, of_column, rest, &columns[at][whole.len() * LANES..]);
    }
    totals
}

/// The sum of sums that took turns, and of the products behind them.
#[inline(always)]
fn total<F: Floats, const SUMS: usize>(floats: F, sums: [F::V; SUMS], row: &[f32], column: &[f32]) -> f32 {
    let all = sums.iter().skip(1).fold(sums[0], |all, &sum| floats.fma(floats.splat(1.0), sum, all));
    row.iter().zip(column).fold(floats.total(all), |sum, (x, y)| sum + x * y)
}

/// As [`dots`] of one column that takes turns with four sums, to the bit, for a column that comes from far: it is read in
/// whole lines of the cache. Where they do not begin with the column, numbers are in other lanes of the sums than there,
/// each as many places on, and the lanes of all sums are moved back at the end.
#[inline(always)]
fn streamed<F: Floats>(floats: F, row: &[f32], column: &[f32]) -> f32 {
    /// Sums that take turns.
    const SUMS: usize = 4;
    /// Lines that are asked for before they are read.
    const AHEAD: usize = 48;
    let whole = row.len() - row.len() % LANES;
    // Numbers of the line that the column begins in which are before it.
    let before = column.as_ptr().addr() % size_of::<Line>() / size_of::<f32>();
    if before == 0 || whole == 0 {
        let [total] = dots::<F, 1, SUMS>(floats, row, [column]);
        return total;
    }
    let ((row, row_rest), (column, column_rest)) = (row.split_at(whole), column.split_at(whole));
    let ((x_first, xs), (y_first, ys)) = (row.split_at(LANES - before), column.split_at(LANES - before));
    let ((xs, x_last), (ys, y_last)) = (xs.as_chunks::<LANES>(), ys.as_chunks::<LANES>());
    let mut sums = [floats.splat(0.0); SUMS];
    // Zeros, where a line has numbers that are not the column's, change no sum.
    let (zero, empty) = (floats.splat(0.0), LANES - before);
    let x = floats.moved(zero, floats.load_some(x_first, 0.0), empty);
    let y = floats.moved(zero, floats.load_some(y_first, 0.0), empty);
    sums[0] = floats.fma(x, y, zero);
    let ((x_turns, x_behind), (y_turns, y_behind)) = (xs.as_chunks::<SUMS>(), ys.as_chunks::<SUMS>());
    for (x, y) in x_turns.iter().zip(y_turns) {
        for k in 0..SUMS {
            floats.prefetch(y[k].as_ptr().wrapping_add(AHEAD * LANES).cast());
            let sum = &mut sums[(k + 1) % SUMS];
            *sum = floats.fma(floats.load(&x[k]), floats.load(&y[k]), *sum);
        }
    }
    for k in 0..SUMS {
        let sum = &mut sums[(k + 1) % SUMS];
        if k < y_behind.len() {
            *sum = floats.fma(floats.load(&x_behind[k]), floats.load(&y_behind[k]), *sum);
        } else if k == y_behind.len() {
            *sum = floats.fma(floats.load_some(x_last, 0.0), floats.load_some(y_last, 0.0), *sum);
        }
    }
    let mut moved = sums;
    for k in 0..SUMS {
        moved[k] = floats.moved(sums[k], sums[(k + 1) % SUMS], before);
    }
    total(floats, moved, row_rest, column_rest)
}
