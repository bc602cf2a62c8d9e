//! Products of `f32` matrices with the vector units of the machine and several threads.
//!
//! Invariant: which loops compute a product follows from its sizes and strides, and parts of it are computed as they would
//! be by themselves, so results do not depend on the number of threads.

use super::blocks::{Columns, Packed};
use super::plain::Product;
use super::tiles::Part;
use super::{Gemm, Mat, Operand, Terms, single};
use crate::error::Error;
use crate::simd::float_path::FloatPath;
use crate::simd::floats::LANES;
use crate::simd::run_wide;
use crate::threads::{self, Cost, WriteAll, WriteColumns, even, for_each};

/// `f32` with the vector units of the machine, several threads if the pool has them.
pub struct Fast;

/// Up to this many multiplications filling panels and handing work to threads takes longer than it saves.
const SMALL: usize = 1 << 12;
/// Up to this many results of a small product are faster as dot products than by the rows of panels.
const DOTS: usize = 1 << 7;
/// A multiplication and an addition in a product of matrices: from 0.008 ns to 0.03 ns, by machine.
const MULTIPLICATION: Cost = Cost::nanoseconds(0.016);
/// Bytes of a packed operand that are read once for each part of the rows without costing time: they stay in a cache.
const CACHE: usize = 1 << 18;
/// Rows of a part, at least, where there are many.
const ROWS: usize = 24;
/// Rows that take as long as reading the blocks of a part.
const READ: usize = 8;
/// Parts that a thread gets, so that all end at about the same time.
const PARTS: usize = 4;

impl Fast {
    /// Returns whether a product is so small that packing its operands gains nothing.
    pub fn is_small(rows: usize, inner: usize, cols: usize) -> bool {
        rows.saturating_mul(inner).saturating_mul(cols) <= SMALL
    }
}

/// Returns whether a small product with a matrix whose rows are not dense is left to the loops of larger ones.
fn pays_beyond(lhs: Mat<'_, f32>, rhs: Mat<'_, f32>) -> bool {
    let is_long = lhs.rows <= single::MOST_ROWS && lhs.col_stride == 1 && rhs.rows >= LANES;
    // Sums of nothing have no panels.
    rhs.row_stride == 1 && rhs.rows > 0 && (is_long || lhs.rows * rhs.cols > DOTS)
}

impl Gemm<f32> for Fast {
    type Packed = Packed;

    fn pack(mat: Mat<'_, f32>) -> Result<Option<Packed>, Error> {
        if mat.rows == 0 || mat.cols == 0 {
            return Ok(None);
        }
        Packed::new(&mat).map(Some)
    }

    fn multiply(
        out: &mut [f32],
        lhs: Mat<'_, f32>,
        rhs: Operand<'_, f32, Packed>,
        terms: Terms<'_, f32>,
    ) -> Result<(), Error> {
        let Operand { mat, packed } = rhs;
        let out = &mut out[..lhs.rows * mat.cols];
        if let Some(packed) = packed {
            packed.expect(&mat)?;
            multiply_blocks(out, lhs, packed, terms);
            return Ok(());
        }
        let is_small = Fast::is_small(lhs.rows, lhs.cols, mat.cols);
        if is_small && mat.col_stride == 1 {
            single::few_times_rows(out, lhs, mat, terms);
        } else if is_small && !pays_beyond(lhs, mat) {
            run_wide(Product { out, lhs, rhs: mat, terms });
        } else if lhs.rows == 1 && mat.col_stride == 1 {
            single::times_rows(out, lhs, mat, terms);
        } else if lhs.rows <= single::MOST_ROWS && lhs.col_stride == 1 && mat.row_stride == 1 {
            single::times_columns(out, lhs, mat, terms);
        } else if lhs.rows <= single::MOST_ROWS
            && mat.col_stride == 1
            && mat.rows.saturating_mul(mat.cols) <= CACHE / size_of::<f32>()
        {
            single::few_times_rows(out, lhs, mat, terms);
        } else {
            multiply_blocks(out, lhs, &mat, terms);
        }
        Ok(())
    }
}

/// Multiplies with a right operand whose columns come in blocks.
pub(crate) fn multiply_blocks<R: Columns>(out: &mut [f32], lhs: Mat<'_, f32>, rhs: &R, terms: Terms<'_, f32>) {
    let blocks = rhs.blocks();
    let (rows, columns) = (lhs.rows, blocks.columns);
    if rows == 0 || columns == 0 {
        return;
    }
    let path = FloatPath::best();
    let shared = MULTIPLICATION.pays(rows.saturating_mul(blocks.depth).saturating_mul(columns));
    let threads = if shared { threads::current() } else { 1 };
    // Every part of the rows reads all blocks, and fills those that are not packed; every part of the blocks reads the rows.
    let left = rows.saturating_mul(blocks.depth).saturating_mul(size_of::<f32>());
    let by_rows = match R::PACKED {
        true => blocks.bytes() <= CACHE.max(left) && rows >= threads * ROWS || blocks.count() < threads,
        false => blocks.count() < threads * 2 && rows >= threads * 2,
    };
    if by_rows || threads == 1 {
        let parts = if R::PACKED { threads * PARTS } else { threads };
        let each = if threads == 1 { rows } else { even(rows, parts, threads, |rows| rows + READ) };
        return for_each(shared, WriteAll(out, each * columns), |part, out| {
            let count = out.len() / columns;
            let (lhs, terms) = (lhs.rows(part * each, count), terms.of_rows(part * each, count));
            let out = threads::Columns::all(out, columns);
            path.run(Part { lhs, rhs, blocks: 0..blocks.count(), terms, out });
        });
    }
    let each = blocks.count().div_ceil(threads * PARTS);
    for_each(shared, WriteColumns(out, columns, each * blocks.width()), |part, out| {
        let first = part * each;
        path.run(Part { lhs, rhs, blocks: first..(first + each).min(blocks.count()), terms, out });
    });
}
