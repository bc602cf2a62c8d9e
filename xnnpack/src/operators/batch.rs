//! Products of matrices, batch by batch: of 8-bit numbers, and the sizes of batches that are broadcast.

use std::sync::Arc;

use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run};
use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::{Dims, MAX_RANK};

use super::integer::Requantize;
use super::own;
use super::rows::Bounds;

/// Sizes of `[..., M, K]` times `[..., K, N]`, or `[..., N, K]` if the second one is transposed.
struct Sizes {
    result: Dims,
    rows: usize,
    inner: usize,
    columns: usize,
    /// Batches of the result, and strides of both sides in matrices by dimension; 0 where a size is repeated.
    batches: Dims,
    strides: [Dims; 2],
}

impl Sizes {
    fn of(a: &[usize], b: &[usize], transposed: bool) -> Option<Sizes> {
        let (batch_a, [rows, inner]) = a.split_last_chunk::<2>()?;
        let (batch_b, [first, last]) = b.split_last_chunk::<2>()?;
        let (other, columns) = if transposed { (last, first) } else { (first, last) };
        let rank = batch_a.len().max(batch_b.len());
        if inner != other || rank + 2 > MAX_RANK {
            return None;
        }
        let at = |sizes: &[usize], dim: usize| (dim + sizes.len()).checked_sub(rank).map_or(1, |dim| sizes[dim]);
        let mut batches: Dims = Dims::filled(1, rank)?;
        let (mut sa, mut sb, mut all_a, mut all_b) = (batches, batches, 1, 1);
        for dim in (0..rank).rev() {
            let (da, db) = (at(batch_a, dim), at(batch_b, dim));
            if da != db && da != 1 && db != 1 {
                return None;
            }
            batches[dim] = if da == 1 { db } else { da };
            sa[dim] = if da == 1 { 0 } else { all_a };
            sb[dim] = if db == 1 { 0 } else { all_b };
            (all_a, all_b) = (all_a * da, all_b * db);
        }
        let result = Dims::collect(batches.iter().copied().chain([*rows, *columns]))?;
        Some(Sizes { result, rows: *rows, inner: *inner, columns: *columns, batches, strides: [sa, sb] })
    }

    /// The matrices of both sides that make matrix `index` of the result.
    fn matrices(&self, index: usize) -> [usize; 2] {
        let mut left = index;
        let mut at = [0; 2];
        for dim in (0..self.batches.len()).rev() {
            let place = left % self.batches[dim].max(1);
            left /= self.batches[dim].max(1);
            for (at, strides) in at.iter_mut().zip(&self.strides) {
                *at += place * strides[dim];
            }
        }
        at
    }

    /// Hands every element of the result to `each`: its place, its row among all rows of `a`, and its sum.
    fn sums(
        &self,
        a: &[i8],
        b: &[i8],
        zero: impl Fn(usize) -> i32,
        transposed: bool,
        mut each: impl FnMut(usize, usize, i32),
    ) {
        let (rows, inner, columns) = (self.rows, self.inner, self.columns);
        let count = self.batches.iter().product();
        for matrix in 0..count {
            let [in_a, in_b] = self.matrices(matrix);
            let b = &b[in_b * inner * columns..][..inner * columns];
            for row in 0..rows {
                let row_of_a = in_a * rows + row;
                let (x, zero) = (&a[row_of_a * inner..][..inner], zero(row_of_a));
                for column in 0..columns {
                    let weight = |k: usize| if transposed { b[column * inner + k] } else { b[k * columns + column] };
                    let sum = x.iter().enumerate().fold(0i32, |sum, (k, x)| {
                        sum.wrapping_add((i32::from(*x) - zero).wrapping_mul(i32::from(weight(k))))
                    });
                    each((matrix * rows + row) * columns + column, row_of_a, sum);
                }
            }
        }
    }
}

fn sizes(cx: &KernelContext<'_>, b: usize, transposed: bool) -> Result<Sizes, KernelError> {
    let (a, b) = (cx.meta(0)?.sizes, cx.meta(b)?.sizes);
    let unfit = || KernelError::new(ErrorCode::InvalidArgument, format!("{a:?} and {b:?} cannot be multiplied"));
    Sizes::of(a, b, transposed).ok_or_else(unfit)
}

/// A product whose right side has the zero point 0.
pub(crate) fn product(how: Requantize, transposed: bool) -> Arc<dyn Operator> {
    let schema = "(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)";
    own("xnnpack::batch_product.int8", schema, Alias::Disjoint, move |_| {
        let how = how.clone();
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let sizes = sizes(cx, 1, transposed)?;
            cx.resize(2, &sizes.result)?;
            let views = cx.views();
            let (a, b) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<i8>()?);
            let mut out = views.out(2)?;
            let out = out.as_mut_slice::<i8>()?;
            let columns = sizes.columns.max(1);
            sizes.sums(a, b, |_| how.zero_x, transposed, |at, _, sum| out[at] = how.result(sum, at % columns));
            Ok(())
        }) as Box<dyn Run>)
    })
}

/// A product of rows that are quantised at run time: `params` has scale and zero point of every row, `scales` are those of
/// the columns of `b`.
pub(crate) fn product_of_rows(scales: Vec<f32>, transposed: bool, bounds: Bounds) -> Arc<dyn Operator> {
    let schema = "(Tensor a, Tensor params, Tensor b, *, Tensor(a!) out) -> Tensor(a!)";
    own("xnnpack::batch_product_of_rows.out", schema, Alias::Disjoint, move |_| {
        let scales = scales.clone();
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let sizes = sizes(cx, 2, transposed)?;
            cx.resize(3, &sizes.result)?;
            let views = cx.views();
            let (a, params) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<f32>()?);
            let b = views.tensor(2)?.as_slice::<i8>()?;
            let mut out = views.out(3)?;
            let out = out.as_mut_slice::<f32>()?;
            let columns = sizes.columns.max(1);
            let zero = |row: usize| params[row * 2 + 1] as i32;
            sizes.sums(a, b, zero, transposed, |at, row, sum| {
                let y = (sum as f32 * params[row * 2]) * scales[at % columns % scales.len()];
                out[at] = y.max(bounds.0).min(bounds.1);
            });
            Ok(())
        }) as Box<dyn Run>)
    })
}
