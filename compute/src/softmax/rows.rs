//! Softmax of rows of `f32`, in the vectors of the machine from the first element to the last.

use crate::simd::exponential::exp_of_negative;
use crate::simd::floats::{Floats, LANES, WithFloats};

/// Rows of which each step is done before the next: it waits for nothing that another row's does.
const TOGETHER: usize = 4;

/// Rows of `size` elements, one behind the other.
pub(super) struct Rows<'a> {
    pub size: usize,
    pub input: &'a [f32],
    pub out: &'a mut [f32],
}

impl WithFloats for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Rows { size, input, out } = self;
        let some = size * TOGETHER;
        let (mut from, mut to) = (input.chunks_exact(some), out.chunks_exact_mut(some));
        for (input, out) in from.by_ref().zip(to.by_ref()) {
            block::<F, TOGETHER>(floats, size, input, out);
        }
        for (input, out) in from.remainder().chunks_exact(size).zip(to.into_remainder().chunks_exact_mut(size)) {
            block::<F, 1>(floats, size, input, out);
        }
    }
}

/// Some rows. What is NaN, or an infinity of the wrong sign, is NaN behind the exponential, and so is the sum, which has as many
/// parts whatever vectors the machine has. A row does not depend on how many there are.
#[inline(always)]
fn block<F: Floats, const ROWS: usize>(floats: F, size: usize, input: &[f32], out: &mut [f32]) {
    let (mut whole, mut last) = ([[].as_slice(); ROWS], [[].as_slice(); ROWS]);
    let mut greatest = [floats.splat(0.0); ROWS];
    let rows = input.chunks_exact(size).zip(whole.iter_mut().zip(&mut last));
    for ((row, (whole, last)), greatest) in rows.zip(&mut greatest) {
        (*whole, *last) = row.as_chunks::<LANES>();
        *greatest = floats.splat(peak(floats, whole, last));
    }

    let (mut sums, mut x) = ([floats.splat(0.0); ROWS], greatest);
    let mut to: [&mut [[f32; LANES]]; ROWS] = std::array::from_fn(|_| Default::default());
    let mut to_last: [&mut [f32]; ROWS] = std::array::from_fn(|_| Default::default());
    for (row, (to, to_last)) in out.chunks_exact_mut(size).zip(to.iter_mut().zip(&mut to_last)) {
        (*to, *to_last) = row.as_chunks_mut::<LANES>();
    }
    for at in 0..size / LANES {
        for (x, row) in x.iter_mut().zip(whole) {
            *x = floats.load(&row[at]);
        }
        x = exponentials(floats, greatest, x, &mut sums);
        for (x, to) in x.iter().zip(&mut to) {
            floats.store(*x, &mut to[at]);
        }
    }
    if !size.is_multiple_of(LANES) {
        for (x, row) in x.iter_mut().zip(last) {
            *x = floats.load_some(row, f32::NEG_INFINITY);
        }
        x = exponentials(floats, greatest, x, &mut sums);
    }

    let zero = floats.splat(0.0);
    for (factor, sum) in greatest.iter_mut().zip(sums) {
        *factor = floats.splat(1.0 / floats.total(sum));
    }
    for ((to, factor), (to_last, x)) in to.into_iter().zip(greatest).zip(to_last.into_iter().zip(x)) {
        for y in to {
            floats.store(floats.fma(floats.load(y), factor, zero), y);
        }
        if !to_last.is_empty() {
            floats.store_some(floats.fma(x, factor, zero), to_last);
        }
    }
}

/// The greatest element of a row; any number or NaN if one is NaN.
#[inline(always)]
fn peak<F: Floats>(floats: F, whole: &[[f32; LANES]], last: &[f32]) -> f32 {
    let mut greatest = match last {
        [] => floats.splat(f32::NEG_INFINITY),
        _ => floats.load_some(last, f32::NEG_INFINITY),
    };
    let (fours, rest) = whole.as_chunks::<4>();
    for [a, b, c, d] in fours {
        let ab = floats.at_least(floats.load(a), floats.load(b));
        let cd = floats.at_least(floats.load(c), floats.load(d));
        greatest = floats.at_least(greatest, floats.at_least(ab, cd));
    }
    for x in rest {
        greatest = floats.at_least(greatest, floats.load(x));
    }
    floats.peak(greatest)
}

/// The exponentials of what numbers are less than the greatest of their rows, which are added to sums.
#[inline(always)]
fn exponentials<F: Floats, const ROWS: usize>(
    floats: F,
    greatest: [F::V; ROWS],
    mut x: [F::V; ROWS],
    sums: &mut [F::V; ROWS],
) -> [F::V; ROWS] {
    for (x, greatest) in x.iter_mut().zip(greatest) {
        *x = floats.minus(greatest, *x);
    }
    let exponentials = exp_of_negative(floats, x);
    for (sum, x) in sums.iter_mut().zip(exponentials) {
        *sum = floats.plus(*sum, x);
    }
    exponentials
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::AxisView;
    use crate::random::Random;
    use crate::simd::float_path::FloatPath;
    use crate::softmax::softmax;
    use crate::threads::Threads;

    const SIZES: [usize; 16] = [1, 2, 7, 8, 15, 16, 17, 31, 49, 64, 65, 127, 196, 197, 300, 1000];

    fn numbers(count: usize) -> Vec<f32> {
        Random::new(count as u64 + 11).floats(count).iter().map(|x| x * 12.0).collect()
    }

    fn rows(path: FloatPath, size: usize, input: &[f32]) -> Vec<f32> {
        let mut out = vec![f32::NAN; input.len()];
        path.run(Rows { size, input, out: &mut out });
        out
    }

    #[test]
    fn rows_of_every_length_are_near_to_the_exact_ones_on_every_path() {
        for path in FloatPath::all().into_iter().flatten() {
            for size in SIZES {
                for count in 1..10 {
                    let x = numbers(size * count);
                    for (x, y) in x.chunks(size).zip(rows(path, size, &x).chunks(size)) {
                        let greatest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                        let exp = |x: f32| (f64::from(x) - f64::from(greatest)).exp();
                        let sum: f64 = x.iter().map(|&x| exp(x)).sum();
                        for (x, y) in x.iter().zip(y) {
                            let want = exp(*x) / sum;
                            let near = (f64::from(*y) - want).abs() <= 5e-7 * want + 6e-8 / sum;
                            assert!(near, "{path:?}, {count} rows of {size}: {y}, not {want}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_is_the_same_alone_and_in_company() {
        for path in FloatPath::all().into_iter().flatten() {
            for size in SIZES {
                let x = numbers(size * 7);
                let alone: Vec<f32> = x.chunks(size).flat_map(|row| rows(path, size, row)).collect();
                assert_eq!(rows(path, size, &x), alone, "{path:?}, rows of {size}");
            }
        }
    }

    #[test]
    fn rows_are_the_same_on_every_path_that_fuses_products() {
        for size in SIZES {
            let x = numbers(size * 7);
            let want = rows(FloatPath::best(), size, &x);
            for path in FloatPath::fused() {
                assert_eq!(rows(path, size, &x), want, "{path:?}, rows of {size}");
            }
        }
    }

    #[test]
    fn rows_do_not_depend_on_threads() {
        let view = AxisView { outer: 1003, size: 197, inner: 1 };
        let x = numbers(view.count());
        let mut first = None;
        for threads in 1..4 {
            let mut out = vec![f32::NAN; x.len()];
            Threads::new(threads).unwrap().run(|| softmax(view, &x, &mut out)).unwrap();
            assert!(first.get_or_insert_with(|| out.clone()) == &out, "{threads} threads");
        }
    }

    #[test]
    fn what_is_no_number_makes_its_own_row_nan() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for path in FloatPath::all().into_iter().flatten() {
            for size in [1, 16, 17, 49, 64, 100] {
                for place in [0, size / 2, size - 1] {
                    for wrong in [nan, -nan, inf] {
                        let mut x = numbers(size * 6);
                        let clean = rows(path, size, &x);
                        x[size * 2 + place] = wrong;
                        x[size * 5 + place] = wrong;
                        for (row, (y, clean)) in rows(path, size, &x).chunks(size).zip(clean.chunks(size)).enumerate() {
                            let right = if matches!(row, 2 | 5) { y.iter().all(|y| y.is_nan()) } else { y == clean };
                            assert!(right, "{path:?}, row {row} of {size} with {wrong}: {y:?}");
                        }
                    }
                }
                let nothing = rows(path, size, &vec![-inf; size * 5]);
                assert!(nothing.iter().all(|y| y.is_nan()), "{path:?}, {size}");
            }
        }
    }

    #[test]
    fn what_is_infinitely_less_is_zero() {
        for path in FloatPath::all().into_iter().flatten() {
            for size in [2, 17, 64, 197] {
                let mut x = vec![f32::NEG_INFINITY; size * 5];
                x.chunks_mut(size).for_each(|row| row[size - 1] = -3.0);
                for (at, y) in rows(path, size, &x).into_iter().enumerate() {
                    assert_eq!(y, if at % size == size - 1 { 1.0 } else { 0.0 }, "{path:?}, {size}");
                }
                let far: Vec<f32> = (0..size).map(|i| if i == 0 { f32::MAX } else { f32::MIN }).collect();
                assert_eq!(rows(path, size, &far)[..2], [1.0, 0.0], "{path:?}, {size}");
            }
        }
    }
}
