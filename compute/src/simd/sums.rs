//! Sums of rows of floats.

use super::floats::{Floats, LANES};

/// Independent vectors of a sum.
const SUMS: usize = 4;
/// Elements summed in their own precision before the sum is widened.
pub(crate) const STRETCH: usize = 1024;

/// The sum of what is added for each element of a row, and nothing for `rest`.
#[inline(always)]
pub(crate) fn sum<F: Floats>(floats: F, row: &[f32], rest: f32, add: impl Fn(F::V, F::V) -> F::V) -> f64 {
    let mut total = 0.0;
    for stretch in row.chunks(STRETCH) {
        let mut sums = [floats.splat(0.0); SUMS];
        let (whole, last) = stretch.as_chunks::<LANES>();
        let (some, others) = whole.as_chunks::<SUMS>();
        for some in some {
            for (sum, x) in sums.iter_mut().zip(some) {
                *sum = add(*sum, floats.load(x));
            }
        }
        for (sum, x) in sums.iter_mut().zip(others) {
            *sum = add(*sum, floats.load(x));
        }
        if !last.is_empty() {
            sums[SUMS - 1] = add(sums[SUMS - 1], floats.load_some(last, rest));
        }
        let [a, b, c, d] = sums;
        total += f64::from(floats.total(floats.plus(floats.plus(a, b), floats.plus(c, d))));
    }
    total
}
