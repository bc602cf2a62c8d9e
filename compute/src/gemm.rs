//! Products of matrices: one trait, a fast implementation for `f32` and a plain one for every element type.
//!
//! Invariant: both compute `out = alpha * lhs * rhs + beta * out + bias` into dense rows; with `beta` 0 what was in `out`
//! does not matter. [`Plain`] is the oracle of [`Fast`], and what `Fast` itself uses where a product is too small to
//! repay packing.

use std::cell::{Cell, OnceCell};

use rten_gemm::{BiasVector, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, Im2Col, PackedAMatrix, PackedBMatrix};
use rten_tensor::NdTensorView;
use rten_tensor::storage::Alloc;

use crate::error::{Error, ErrorKind};
use crate::number::{Cast, Compute, Number};
use crate::simd::wide;
use crate::threads::{self, Cost, WriteAll, for_each_piece_at, try_for_each};

/// A matrix to read: element `(i, j)` is `data[i * row_stride + j * col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a, T> {
    data: &'a [T],
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a, T> Mat<'a, T> {
    /// A matrix over the start of a slice, or an error if it does not fit.
    pub fn new(data: &'a [T], [rows, cols]: [usize; 2], [row_stride, col_stride]: [usize; 2]) -> Result<Self, Error> {
        let last = rows.saturating_sub(1) * row_stride + cols.saturating_sub(1) * col_stride;
        if rows * cols != 0 && last >= data.len() {
            return Err(Error::new(
                ErrorKind::Geometry,
                format!("a {rows}x{cols} matrix reaches element {last} of {}", data.len()),
            ));
        }
        Ok(Mat { data, rows, cols, row_stride, col_stride })
    }

    /// The elements, and what lies behind them.
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// From row to row, and from column to column, in elements.
    pub fn strides(&self) -> [usize; 2] {
        [self.row_stride, self.col_stride]
    }

    /// Some of the rows; there are as many.
    fn rows(self, first: usize, rows: usize) -> Self {
        Mat { data: self.data.get(first * self.row_stride..).unwrap_or(&[]), rows, ..self }
    }

    /// Some of the columns; there are as many.
    fn columns(self, first: usize, cols: usize) -> Self {
        Mat { data: self.data.get(first * self.col_stride..).unwrap_or(&[]), cols, ..self }
    }

    /// Rows for columns, without moving anything.
    pub fn transposed(self) -> Self {
        let Mat { data, rows, cols, row_stride, col_stride } = self;
        Mat { data, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride }
    }
}

/// A matrix with what packing has made of it, if it was packed.
pub struct Operand<'a, T, P> {
    /// The matrix as it lies in memory.
    pub mat: Mat<'a, T>,
    /// The same, packed.
    pub packed: Option<&'a P>,
}

impl<'a, T, P> From<Mat<'a, T>> for Operand<'a, T, P> {
    fn from(mat: Mat<'a, T>) -> Self {
        Operand { mat, packed: None }
    }
}

/// What is added to every element of a product.
#[derive(Clone, Copy, Debug)]
pub enum Bias<'a, T> {
    /// Nothing.
    None,
    /// One number per column, the same in every row.
    Row(&'a [T]),
    /// One number per row, the same in every column.
    Column(&'a [T]),
}

/// The other terms of a product.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a, T: Number> {
    /// Factor of the product.
    pub alpha: T::Compute,
    /// Factor of what is in `out`; with 0 it is not read.
    pub beta: T::Compute,
    /// Added last, not scaled.
    pub bias: Bias<'a, T>,
}

impl<T: Number> Terms<'_, T> {
    /// Those of some of the rows.
    fn of_rows(self, first: usize, count: usize) -> Self {
        let bias = match self.bias {
            Bias::Column(bias) => Bias::Column(&bias[first..first + count]),
            other => other,
        };
        Terms { bias, ..self }
    }

    /// Those of some of the columns.
    fn of_columns(self, first: usize, count: usize) -> Self {
        let bias = match self.bias {
            Bias::Row(bias) => Bias::Row(&bias[first..first + count]),
            other => other,
        };
        Terms { bias, ..self }
    }
}

impl<T: Number> Default for Terms<'_, T> {
    fn default() -> Self {
        Terms { alpha: Compute::ONE, beta: Compute::ZERO, bias: Bias::None }
    }
}

/// A way to multiply matrices.
pub trait Gemm<T: Number>: Send + 'static {
    /// A left operand laid out for speed.
    type PackedLhs: Send;
    /// A right operand laid out for speed.
    type PackedRhs: Send + Sync;

    /// Packs a left operand that will be used often, if that helps. An error if there is no memory for it.
    fn pack_lhs(mat: Mat<'_, T>) -> Result<Option<Self::PackedLhs>, Error>;

    /// Packs a right operand that will be used often, if that helps. An error if there is no memory for it.
    fn pack_rhs(mat: Mat<'_, T>) -> Result<Option<Self::PackedRhs>, Error>;

    /// Returns how many bytes a packed right operand takes.
    fn packed_bytes(packed: &Self::PackedRhs) -> usize;

    /// `out = alpha * lhs * rhs + beta * out + bias`; `out` has dense rows.
    fn multiply(
        out: &mut [T],
        lhs: Operand<'_, T, Self::PackedLhs>,
        rhs: Operand<'_, T, Self::PackedRhs>,
        terms: Terms<'_, T>,
    ) -> Result<(), Error>;
}

/// Every element type, in plain loops.
pub struct Plain;

/// Nothing: plain loops pack nothing.
pub enum NeverPacked {}

impl<T: Number> Gemm<T> for Plain {
    type PackedLhs = NeverPacked;
    type PackedRhs = NeverPacked;

    fn pack_lhs(_: Mat<'_, T>) -> Result<Option<NeverPacked>, Error> {
        Ok(None)
    }

    fn pack_rhs(_: Mat<'_, T>) -> Result<Option<NeverPacked>, Error> {
        Ok(None)
    }

    fn packed_bytes(packed: &NeverPacked) -> usize {
        match *packed {}
    }

    fn multiply(
        out: &mut [T],
        lhs: Operand<'_, T, NeverPacked>,
        rhs: Operand<'_, T, NeverPacked>,
        terms: Terms<'_, T>,
    ) -> Result<(), Error> {
        wide(|| plain(out, lhs.mat, rhs.mat, terms));
        Ok(())
    }
}

/// Sums kept at once: several vector registers, and they fit the stack.
const LANES: usize = 32;

#[inline(always)]
fn plain<T: Number>(out: &mut [T], lhs: Mat<'_, T>, rhs: Mat<'_, T>, terms: Terms<'_, T>) {
    if rhs.cols == 0 {
        return;
    }
    let dots = rhs.col_stride != 1 && rhs.row_stride == 1 && lhs.col_stride == 1 && lhs.cols > 0;
    for (i, out) in out.chunks_exact_mut(rhs.cols).enumerate().take(lhs.rows) {
        let row = &lhs.data[(i * lhs.row_stride).min(lhs.data.len())..];
        for (block, out) in out.chunks_mut(LANES).enumerate() {
            let first = block * LANES;
            let mut sums = [T::Compute::ZERO; LANES];
            if dots {
                for (j, sum) in sums[..out.len()].iter_mut().enumerate() {
                    *sum = dot(&row[..lhs.cols], &rhs.data[(first + j) * rhs.col_stride..][..rhs.rows]);
                }
            } else {
                for k in 0..lhs.cols {
                    accumulate(&mut sums, row[k * lhs.col_stride], &rhs, k, first, out.len());
                }
            }
            finish(out, &sums, i, first, &terms);
        }
    }
}

/// Adds one product to each of the first `count` sums.
#[inline(always)]
fn accumulate<T: Number>(
    sums: &mut [T::Compute; LANES],
    factor: T,
    rhs: &Mat<'_, T>,
    k: usize,
    first: usize,
    count: usize,
) {
    let factor = factor.to_compute();
    let row = &rhs.data[k * rhs.row_stride + first * rhs.col_stride..];
    let add = |sum: &mut T::Compute, x: &T| *sum = sum.plus(factor.times(x.to_compute()));
    if rhs.col_stride != 1 {
        let row = row.iter().step_by(rhs.col_stride.max(1));
        sums[..count].iter_mut().zip(row).for_each(|(sum, x)| add(sum, x));
    } else if let (LANES, Some(row)) = (count, row.first_chunk::<LANES>()) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| add(sum, x));
    } else {
        sums[..count].iter_mut().zip(row).for_each(|(sum, x)| add(sum, x));
    }
}

/// The sum of products of two rows, in independent partial sums so that it vectorises.
#[inline(always)]
fn dot<T: Number>(a: &[T], b: &[T]) -> T::Compute {
    const PARTS: usize = 16;
    let mut parts = [T::Compute::ZERO; PARTS];
    let (a, a_rest) = a.as_chunks::<PARTS>();
    let (b, b_rest) = b.as_chunks::<PARTS>();
    for (a, b) in a.iter().zip(b) {
        for ((part, x), y) in parts.iter_mut().zip(a).zip(b) {
            *part = part.plus(x.to_compute().times(y.to_compute()));
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(x, y)| x.to_compute().times(y.to_compute()));
    parts.into_iter().chain(rest).fold(T::Compute::ZERO, T::Compute::plus)
}

#[inline(always)]
fn finish<T: Number>(out: &mut [T], sums: &[T::Compute], i: usize, first: usize, terms: &Terms<'_, T>) {
    let scaled = !terms.alpha.same(Compute::ONE);
    let keeps = !terms.beta.is_zero();
    for (j, (out, &sum)) in out.iter_mut().zip(sums).enumerate() {
        let mut value = if scaled { sum.times(terms.alpha) } else { sum };
        if keeps {
            value = value.plus(terms.beta.times(out.to_compute()));
        }
        value = match terms.bias {
            Bias::None => value,
            Bias::Row(bias) => value.plus(bias[first + j].to_compute()),
            Bias::Column(bias) => value.plus(bias[i].to_compute()),
        };
        *out = value.cast();
    }
}

/// `f32` with the vector units of the machine, several threads if the pool has them.
pub struct Fast;

thread_local! {
    // One per thread: the executor may not be sent to another.
    static EXECUTOR: OnceCell<GemmExecutor> = const { OnceCell::new() };
}

fn with_executor<R>(f: impl FnOnce(&GemmExecutor) -> R) -> R {
    EXECUTOR.with(|cell| f(cell.get_or_init(GemmExecutor::new)))
}

/// A packed matrix and how many bytes it takes.
pub struct Packed<M> {
    matrix: M,
    bytes: usize,
}

impl<M> Packed<M> {
    /// Returns how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Where packed matrices are allocated, and how many bytes that were.
#[derive(Default)]
struct Counted(Cell<usize>);

impl Alloc for &Counted {
    fn alloc<T>(&self, capacity: usize) -> Vec<T> {
        self.0.set(self.0.get() + capacity * size_of::<T>());
        Vec::with_capacity(capacity)
    }
    fn dealloc<T>(&self, buf: Vec<T>) {
        drop(buf);
    }
}

/// Returns how many bytes packing a matrix takes at most. Packing allocates them and cannot say that there are none, so
/// whoever packs asks before.
pub fn most_packed(mat: &Mat<'_, f32>) -> usize {
    most_packed_of(mat.rows, mat.cols)
}

/// [`most_packed`] of a matrix of so many rows and columns.
pub(crate) fn most_packed_of(rows: usize, cols: usize) -> usize {
    /// No machine's panels are taller or wider.
    const PANEL: usize = 64;
    let padded = |size: usize| size.saturating_add(PANEL - 1);
    padded(rows).saturating_mul(padded(cols)).saturating_mul(size_of::<f32>())
}

/// Up to this many multiplications plain loops are faster than packing and handing work to threads.
const SMALL: usize = 1 << 14;

impl Fast {
    /// Whether a product is so small that packing its operands gains nothing.
    pub fn is_small(rows: usize, inner: usize, cols: usize) -> bool {
        rows.saturating_mul(inner).saturating_mul(cols) <= SMALL
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Geometry, format!("a product of matrices: {error}"))
}

fn view<'a>(mat: &Mat<'a, f32>) -> Result<NdTensorView<'a, f32, 2>, Error> {
    NdTensorView::from_slice_with_strides([mat.rows, mat.cols], mat.data, [mat.row_stride, mat.col_stride])
        .map_err(|error| failed(format!("{error:?}")))
}

impl Bias<'_, f32> {
    fn vector(&self) -> Option<BiasVector<'_, f32>> {
        match self {
            Bias::None => None,
            Bias::Row(bias) => Some(BiasVector::Row(bias)),
            Bias::Column(bias) => Some(BiasVector::Column(bias)),
        }
    }
}

impl Gemm<f32> for Fast {
    type PackedLhs = Packed<PackedAMatrix<f32>>;
    type PackedRhs = Packed<PackedBMatrix<f32>>;

    fn pack_lhs(mat: Mat<'_, f32>) -> Result<Option<Packed<PackedAMatrix<f32>>>, Error> {
        if mat.rows == 0 || mat.cols == 0 {
            return Ok(None);
        }
        let counted = Counted::default();
        let matrix = view(&mat).ok().map(|mat| with_executor(|gemm| gemm.prepack_a_in(&counted, mat)));
        Ok(matrix.map(|matrix| Packed { matrix, bytes: counted.0.get() }))
    }

    fn pack_rhs(mat: Mat<'_, f32>) -> Result<Option<Packed<PackedBMatrix<f32>>>, Error> {
        if mat.rows == 0 || mat.cols == 0 {
            return Ok(None);
        }
        let counted = Counted::default();
        let matrix = view(&mat).ok().map(|mat| with_executor(|gemm| gemm.prepack_b_in(&counted, mat)));
        Ok(matrix.map(|matrix| Packed { matrix, bytes: counted.0.get() }))
    }

    fn packed_bytes(packed: &Self::PackedRhs) -> usize {
        packed.bytes()
    }

    fn multiply(
        out: &mut [f32],
        lhs: Operand<'_, f32, Packed<PackedAMatrix<f32>>>,
        rhs: Operand<'_, f32, Packed<PackedBMatrix<f32>>>,
        terms: Terms<'_, f32>,
    ) -> Result<(), Error> {
        let Mat { rows, cols: inner, .. } = lhs.mat;
        let columns = rhs.mat.cols;
        if Fast::is_small(rows, inner, columns) {
            wide(|| plain(out, lhs.mat, rhs.mat, terms));
            return Ok(());
        }
        if rows == 1 && rhs.mat.col_stride == 1 {
            row_times_rows(out, lhs.mat, rhs.mat, terms);
            return Ok(());
        }
        let pays = MULTIPLICATION.pays(rows.saturating_mul(inner).saturating_mul(columns));
        if !pays || lhs.packed.is_some() {
            return multiply_whole(pays, out, lhs, rhs, terms);
        }
        if rows == 1 {
            let [_, each] = BLOCK;
            return try_for_each(true, WriteAll(&mut out[..columns], each), |part, out| {
                let (rhs, terms) = (rhs.mat.columns(part * each, out.len()), terms.of_columns(part * each, out.len()));
                multiply_here(out, lhs.mat.into(), rhs.into(), terms)
            });
        }
        let each = rows_of_a_part(rows, threads::current());
        try_for_each(true, WriteAll(&mut out[..rows * columns], each * columns), |part, out| {
            let count = out.len() / columns;
            let rhs = Operand { mat: rhs.mat, packed: rhs.packed };
            multiply_here(out, lhs.mat.rows(part * each, count).into(), rhs, terms.of_rows(part * each, count))
        })
    }
}

/// One row times a matrix with dense rows. A column is summed in the order of the rows, whatever part it is in.
fn row_times_rows(out: &mut [f32], lhs: Mat<'_, f32>, rhs: Mat<'_, f32>, terms: Terms<'_, f32>) {
    /// Columns of a part: so many are read from a row at once.
    const COLUMNS: usize = 512;
    let column = Cost::nanoseconds(LOADED.as_nanoseconds() * rhs.rows as f64);
    for_each_piece_at(column, &mut out[..rhs.cols], COLUMNS, |first, out| {
        wide(|| add_rows(out, lhs, rhs, first, terms));
        match terms.bias {
            Bias::None => {}
            Bias::Row(bias) => out.iter_mut().zip(&bias[first..]).for_each(|(out, bias)| *out += bias),
            Bias::Column(bias) => out.iter_mut().for_each(|out| *out += bias[0]),
        }
    });
}

/// `out = alpha * lhs * rhs + beta * out`, from a column of `rhs` on.
#[inline(always)]
fn add_rows(out: &mut [f32], lhs: Mat<'_, f32>, rhs: Mat<'_, f32>, first: usize, terms: Terms<'_, f32>) {
    /// Rows that are added at once.
    const ROWS: usize = 8;
    let factor = |k: usize| terms.alpha * lhs.data[k * lhs.col_stride];
    let columns = out.len();
    let row = |k: usize| &rhs.data[k * rhs.row_stride + first..][..columns];
    match terms.beta {
        0.0 => out.fill(0.0),
        beta => out.iter_mut().for_each(|out| *out *= beta),
    }
    let whole = rhs.rows / ROWS * ROWS;
    for k in (0..whole).step_by(ROWS) {
        let factors: [f32; ROWS] = std::array::from_fn(|i| factor(k + i));
        let rows: [&[f32]; ROWS] = std::array::from_fn(|i| row(k + i));
        for (column, out) in out.iter_mut().enumerate() {
            *out = rows.iter().zip(factors).fold(*out, |sum, (row, factor)| sum + factor * row[column]);
        }
    }
    for k in whole..rhs.rows {
        let factor = factor(k);
        out.iter_mut().zip(row(k)).for_each(|(out, x)| *out += factor * x);
    }
}

/// A multiplication and an addition in a product of matrices: from 0.008 ns to 0.03 ns, by machine.
const MULTIPLICATION: Cost = Cost::nanoseconds(0.016);
/// The same where each number of the matrix is used once: 0.14 ns from a second level of cache.
const LOADED: Cost = Cost::nanoseconds(0.1);
/// Parts of many rows are multiples of what the inner loops of products take at once.
const ROWS: usize = 12;
/// Rows and columns that rten takes as one block, whatever the number of threads, on the thread it is called on. Where it
/// cuts longer rows depends on that number, and what is left of a row at the end of a part is summed in another order.
const BLOCK: [usize; 2] = [64, 128];

/// Whether rten takes a product as one block.
fn is_block(rows: usize, columns: usize) -> bool {
    rows <= BLOCK[0] && columns <= BLOCK[1]
}

/// The rows of a part. None has one row, which would be summed in another order.
fn rows_of_a_part(rows: usize, threads: usize) -> usize {
    let mut each = rows.div_ceil(threads).next_multiple_of(ROWS);
    while rows % each == 1 {
        each += ROWS;
    }
    each
}

/// A product in one piece, or in those that rten makes of it.
fn multiply_whole(
    pays: bool,
    out: &mut [f32],
    lhs: Operand<'_, f32, Packed<PackedAMatrix<f32>>>,
    rhs: Operand<'_, f32, Packed<PackedBMatrix<f32>>>,
    terms: Terms<'_, f32>,
) -> Result<(), Error> {
    if is_block(lhs.mat.rows, rhs.mat.cols) {
        return multiply_here(out, lhs, rhs, terms);
    }
    threads::cut_by_rayon(pays, || multiply_here(out, lhs, rhs, terms))
}

/// A product on this thread.
fn multiply_here(
    out: &mut [f32],
    lhs: Operand<'_, f32, Packed<PackedAMatrix<f32>>>,
    rhs: Operand<'_, f32, Packed<PackedBMatrix<f32>>>,
    terms: Terms<'_, f32>,
) -> Result<(), Error> {
    let a = match lhs.packed {
        Some(packed) => GemmInputA::Packed(&packed.matrix),
        None => GemmInputA::Unpacked(view(&lhs.mat)?),
    };
    let b = match rhs.packed {
        // One row goes through the matrix as it lies: reading it once is all the work.
        Some(packed) if lhs.mat.rows > 1 => GemmInputB::Packed(&packed.matrix),
        _ => GemmInputB::Unpacked(view(&rhs.mat)?),
    };
    let options =
        GemmOptions { alpha: terms.alpha, beta: terms.beta, bias: terms.bias.vector(), ..GemmOptions::default() };
    with_executor(|gemm| gemm.gemm(out, a, b, options)).map_err(failed)
}

impl Fast {
    /// A product with the patches of an image as columns.
    pub fn multiply_patches(
        out: &mut [f32],
        lhs: Operand<'_, f32, Packed<PackedAMatrix<f32>>>,
        patches: &Im2Col<'_, f32>,
        bias: Bias<'_, f32>,
    ) -> Result<(), Error> {
        let a = match lhs.packed {
            Some(packed) => GemmInputA::Packed(&packed.matrix),
            None => GemmInputA::Unpacked(view(&lhs.mat)?),
        };
        let pays = MULTIPLICATION.pays(lhs.mat.rows.saturating_mul(lhs.mat.cols).saturating_mul(patches.cols()));
        let options = GemmOptions { bias: bias.vector(), ..GemmOptions::default() };
        let product = || with_executor(|gemm| gemm.gemm(out, a, GemmInputB::Im2Col(patches), options)).map_err(failed);
        if is_block(lhs.mat.rows, patches.cols()) { product() } else { threads::cut_by_rayon(pays, product) }
    }

    /// The multiples that the numbers of columns and rows of patches are padded to.
    pub fn patch_steps() -> [usize; 2] {
        with_executor(|gemm| [gemm.im2col_col_count_step(), gemm.im2col_row_count_step()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, rounding};

    /// The definition, one element at a time, in f64: each sum, and the sum of what its terms amount to.
    fn naive(out: &[f32], a: &Mat<'_, f32>, b: &Mat<'_, f32>, terms: &Terms<'_, f32>) -> Vec<(f64, f64)> {
        let mut result = Vec::new();
        for i in 0..a.rows {
            for j in 0..b.cols {
                let mut all = Vec::new();
                for k in 0..a.cols {
                    let x = a.data[i * a.row_stride + k * a.col_stride];
                    let product = f64::from(x) * f64::from(b.data[k * b.row_stride + j * b.col_stride]);
                    all.push(product * f64::from(terms.alpha));
                }
                if terms.beta != 0.0 {
                    all.push(f64::from(terms.beta) * f64::from(out[i * b.cols + j]));
                }
                all.push(match terms.bias {
                    Bias::None => 0.0,
                    Bias::Row(bias) => f64::from(bias[j]),
                    Bias::Column(bias) => f64::from(bias[i]),
                });
                result.push((all.iter().sum(), all.iter().map(|term| term.abs()).sum()));
            }
        }
        result
    }

    #[test]
    fn shared_products_are_those_of_one_thread() {
        let mut random = Random::new(5);
        let pools = [1, 2, 3, 8].map(|count| threads::Threads::new(count).unwrap());
        for [rows, inner, cols] in [[1, 2100, 1031], [130, 150, 170], [25, 500, 300], [97, 310, 257]] {
            let (a, b) = (random.floats(rows * inner), random.floats(inner * cols));
            let (by_row, by_column) = (random.floats(rows), random.floats(cols));
            let start = random.floats(rows * cols);
            let lhs = Mat::new(&a, [rows, inner], [inner, 1]).unwrap();
            let packed_lhs = Fast::pack_lhs(lhs).unwrap();
            for round in 0..12 {
                let bias = [Bias::None, Bias::Row(&by_column[..]), Bias::Column(&by_row[..])][round % 3];
                let rhs = match round % 2 {
                    0 => Mat::new(&b, [inner, cols], [cols, 1]).unwrap(),
                    _ => Mat::new(&b, [cols, inner], [inner, 1]).unwrap().transposed(),
                };
                let packed_rhs = Fast::pack_rhs(rhs).unwrap().filter(|_| round / 3 % 2 == 1);
                let product = || {
                    let mut out = start.clone();
                    let lhs = Operand { mat: lhs, packed: packed_lhs.as_ref().filter(|_| round / 6 == 1) };
                    let rhs = Operand { mat: rhs, packed: packed_rhs.as_ref() };
                    Fast::multiply(&mut out, lhs, rhs, Terms { alpha: 0.5, beta: 2.0, bias }).unwrap();
                    out
                };
                let first = product();
                for pool in &pools {
                    assert!(pool.run(product) == first, "{rows} x {inner} x {cols}, {round}, on {pool:?}");
                }
            }
        }
    }

    /// One suite for every implementation.
    fn agrees_with_the_definition<G: Gemm<f32>>() {
        let mut random = Random::new(1);
        for round in 0..60 {
            let [m, k, n] = [random.below(40) + 1, random.below(70), random.below(80) + 1];
            let (a, b) = (random.floats(m * k), random.floats(k * n));
            let (row, column) = (random.floats(n), random.floats(m));
            let mut lhs = Mat::new(&a, [m, k], [k, 1]).unwrap();
            let mut rhs = Mat::new(&b, [k, n], [n, 1]).unwrap();
            if round % 2 == 1 {
                lhs = Mat::new(&a, [k, m], [m, 1]).unwrap().transposed();
            }
            if round % 4 > 1 {
                rhs = Mat::new(&b, [n, k], [k, 1]).unwrap().transposed();
            }
            let terms = Terms {
                alpha: [1.0, -0.5][round % 2],
                beta: [0.0, 1.0, 2.0][round % 3],
                bias: [Bias::None, Bias::Row(&row), Bias::Column(&column)][round / 3 % 3],
            };
            let start = if terms.beta == 0.0 { vec![f32::NAN; m * n] } else { random.floats(m * n) };
            let want = naive(&start, &lhs, &rhs, &terms);
            let (packed_lhs, packed_rhs) = (G::pack_lhs(lhs).unwrap(), G::pack_rhs(rhs).unwrap());
            for packed in [false, true] {
                let mut out = start.clone();
                let lhs = Operand { mat: lhs, packed: packed_lhs.as_ref().filter(|_| packed) };
                let rhs = Operand { mat: rhs, packed: packed_rhs.as_ref().filter(|_| packed) };
                G::multiply(&mut out, lhs, rhs, terms).unwrap();
                // Whatever the order: a rounding per product and addition, `alpha`, `beta` and the bias.
                for (have, (want, terms)) in out.iter().zip(&want) {
                    let most = rounding(k + 4) * terms;
                    assert!((f64::from(*have) - want).abs() <= most, "{m}x{k}x{n}: {have} is not {want} within {most}");
                }
            }
        }
    }

    #[test]
    fn plain_agrees_with_the_definition() {
        agrees_with_the_definition::<Plain>();
    }

    #[test]
    fn fast_agrees_with_the_definition() {
        agrees_with_the_definition::<Fast>();
    }

    #[test]
    fn integers_wrap() {
        let mut out = [0i8];
        let mat = |data| Mat::new(data, [1, 1], [1, 1]).unwrap();
        Plain::multiply(&mut out, mat(&[100]).into(), mat(&[3]).into(), Terms::default()).unwrap();
        assert_eq!(out, [44]);
    }

    #[test]
    fn a_matrix_must_fit_its_data() {
        assert!(Mat::new(&[0.0; 5], [2, 3], [3, 1]).is_err());
        assert!(Mat::new(&[0.0; 0], [0, 3], [3, 1]).is_ok());
    }
}
