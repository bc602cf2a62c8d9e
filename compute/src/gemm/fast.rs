//! Products of `f32` matrices with the vector units of the machine and several threads.
//!
//! Invariant: a product is cut by its sizes and computed in parts as it would be by itself, so results do not depend on the
//! number of threads.

use std::cell::{Cell, OnceCell};

use rten_gemm::{BiasVector, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, Im2Col, PackedAMatrix, PackedBMatrix};
use rten_tensor::NdTensorView;
use rten_tensor::storage::Alloc;

use super::plain::plain;
use super::{Bias, Gemm, Mat, Operand, Terms};
use crate::error::{Error, ErrorKind};
use crate::simd::wide;
use crate::threads::{self, Cost, WriteAll, for_each_piece_at, try_for_each};

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

/// Allocator of packed matrices that counts the bytes it was asked for.
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

/// Returns how many bytes packing a matrix takes at most; an empty one is not packed. Packing allocates them and cannot say that there are none, so
/// callers that pack ask before.
pub fn most_packed(mat: &Mat<'_, f32>) -> usize {
    most_packed_of(mat.rows, mat.cols)
}

/// [`most_packed`] of a matrix of so many rows and columns.
pub(crate) fn most_packed_of(rows: usize, cols: usize) -> usize {
    /// No machine's panels are taller or wider.
    const PANEL: usize = 64;
    if rows == 0 || cols == 0 {
        return 0;
    }
    let padded = |size: usize| size.saturating_add(PANEL - 1);
    padded(rows).saturating_mul(padded(cols)).saturating_mul(size_of::<f32>())
}

/// Up to this many multiplications plain loops are faster than packing and handing work to threads.
const SMALL: usize = 1 << 14;

impl Fast {
    /// Returns whether a product is so small that packing its operands gains nothing.
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
/// A multiplication and an addition where each number of the matrix is used once: 0.14 ns from a second level of cache.
const LOADED: Cost = Cost::nanoseconds(0.1);
/// Parts of many rows are multiples of what the inner loops of products take at once.
const ROWS: usize = 12;
/// Rows and columns that rten takes as one block, whatever the number of threads, on the thread it is called on. Where it
/// cuts longer rows depends on that number, and what is left of a row at the end of a part is summed in another order.
const BLOCK: [usize; 2] = [64, 128];

/// Returns whether rten computes a product as one block.
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
        // One row is multiplied with the matrix as it is stored: reading it once is all the work.
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
