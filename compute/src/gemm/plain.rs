//! Products of matrices of every element type, in plain loops that vectorise.

use super::{Bias, Gemm, Mat, Operand, Terms};
use crate::error::Error;
use crate::number::{Cast, Compute, Number};
use crate::simd::{Loop, run_wide};

/// Every element type, in plain loops.
pub struct Plain;

/// The packed operand of plain loops, which never exists: plain loops pack nothing.
pub enum NeverPacked {}

impl<T: Number> Gemm<T> for Plain {
    type Packed = NeverPacked;

    fn pack(_: Mat<'_, T>) -> Result<Option<NeverPacked>, Error> {
        Ok(None)
    }

    fn multiply(
        out: &mut [T],
        lhs: Mat<'_, T>,
        rhs: Operand<'_, T, NeverPacked>,
        terms: Terms<'_, T>,
    ) -> Result<(), Error> {
        run_wide(Product { out, lhs, rhs: rhs.mat, terms });
        Ok(())
    }
}

/// Sums held at once: several vector registers, and they fit the stack.
const LANES: usize = 32;

/// A product in plain loops.
pub(super) struct Product<'a, 'o, T: Number> {
    pub(super) out: &'o mut [T],
    pub(super) lhs: Mat<'a, T>,
    pub(super) rhs: Mat<'a, T>,
    pub(super) terms: Terms<'a, T>,
}

impl<T: Number> Loop for Product<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Product { out, lhs, rhs, terms } = self;
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
