//! Folds that reductions apply to their elements: sums, products, extremes, places of extremes, moments.
//!
//! Floats are folded in double precision, with rows summed in the element's own precision over short stretches only;
//! integers in 64 bits, wrapping around.

use std::marker::PhantomData;

use crate::complex::{self, Complex};
use crate::element::Scalar;
use crate::number::{Cast, Compute, Number, as_floats};
use crate::parts::{PARTS, joined};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, WithFloats};
use crate::simd::sums::{STRETCH, sum};

/// An operation that folds elements into one accumulator.
pub trait Fold<T> {
    /// State that is retained while folding.
    type Acc: Copy;

    /// The accumulator before the first element.
    fn start(&self) -> Self::Acc;

    /// Adds element number `index`.
    fn add(&self, acc: &mut Self::Acc, x: T, index: usize);

    /// Adds neighbouring elements, the first of which is number `index`.
    fn add_row(&self, acc: &mut Self::Acc, row: &[T], index: usize)
    where
        T: Copy,
    {
        for (i, &x) in row.iter().enumerate() {
            self.add(acc, x, index + i);
        }
    }
}

/// The partial results of a row, each folded from `start` on with `step`, as one.
#[inline(always)]
fn folded<T: Copy, C: Copy>(row: &[T], start: C, step: impl Fn(C, T) -> C, join: impl Fn(C, C) -> C) -> C {
    let mut parts = [start; PARTS];
    let (chunks, rest) = row.as_chunks::<PARTS>();
    for chunk in chunks {
        for (part, &x) in parts.iter_mut().zip(chunk) {
            *part = step(*part, x);
        }
    }
    for (part, &x) in parts.iter_mut().zip(rest) {
        *part = step(*part, x);
    }
    joined(parts, join)
}

/// The partial results of a row, folded into one with `f`.
#[inline(always)]
fn parts<T: Number>(row: &[T], start: T::Compute, f: impl Fn(T::Compute, T::Compute) -> T::Compute) -> T::Compute {
    folded(row, start, |part, x| f(part, x.to_compute()), &f)
}

/// The sum of `f` of every element of a row, as a double.
#[inline(always)]
pub fn row_sum<T: Number>(row: &[T], f: impl Fn(T::Compute) -> T::Compute) -> f64 {
    let mut sum = 0.0;
    for stretch in row.chunks(STRETCH) {
        let add = |part: T::Compute, x: T| part.plus(f(x.to_compute()));
        sum += Cast::<f64>::cast(folded(stretch, T::Compute::ZERO, add, T::Compute::plus));
    }
    sum
}

/// The sum of `f` of every element of a row, in double precision throughout.
///
/// ```
/// use edgepack_compute::fold::double_sum;
///
/// assert_eq!(double_sum(&[1e9f32, 0.5, -1e9], |x| x), 0.5);
/// ```
#[inline(always)]
pub fn double_sum<T: Number>(row: &[T], f: impl Fn(f64) -> f64) -> f64 {
    folded(row, 0.0, |part, x| part + f(x.cast()), |a, b| a + b)
}

/// The greatest element of a row, or NaN; the least there is for no elements.
#[inline(always)]
pub fn row_max<T: Number>(row: &[T]) -> T::Compute {
    parts(row, T::Compute::LEAST, T::Compute::greater_of)
}

/// The sum, as a double.
pub struct Sum;

impl<T: Number> Fold<T> for Sum {
    type Acc = f64;

    fn start(&self) -> f64 {
        0.0
    }

    #[inline(always)]
    fn add(&self, acc: &mut f64, x: T, _: usize) {
        *acc += Cast::<f64>::cast(x);
    }

    fn add_row(&self, acc: &mut f64, row: &[T], _: usize) {
        if !T::Compute::FLOATING {
            row.iter().for_each(|&x| *acc += Cast::<f64>::cast(x));
            return;
        }
        *acc += match as_floats(row) {
            Some(row) => FloatPath::best().run(FloatSum(row)),
            None => row_sum(row, |x| x),
        };
    }
}

/// The sum of a row of floats.
struct FloatSum<'a>(&'a [f32]);

impl WithFloats for FloatSum<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) -> f64 {
        sum(floats, self.0, 0.0, |sum, x| floats.plus(sum, x))
    }
}

/// The sum in single precision, one element after another: the order in which the portable mean of ExecuTorch adds.
pub struct OrderedSum;

impl Fold<f32> for OrderedSum {
    type Acc = f32;

    fn start(&self) -> f32 {
        0.0
    }

    #[inline(always)]
    fn add(&self, acc: &mut f32, x: f32, _: usize) {
        *acc += x;
    }
}

/// The sum of complex numbers, part by part.
pub struct ComplexSum;

impl<R: Number> Fold<Complex<R>> for ComplexSum {
    type Acc = Complex<f64>;

    fn start(&self) -> Self::Acc {
        [0.0; 2]
    }

    #[inline(always)]
    fn add(&self, acc: &mut Self::Acc, x: Complex<R>, _: usize) {
        *acc = complex::plus(*acc, x.map(Cast::cast));
    }
}

/// The sum in 64 bits.
pub struct WholeSum;

impl<T: Number> Fold<T> for WholeSum {
    type Acc = i64;

    fn start(&self) -> i64 {
        0
    }

    #[inline(always)]
    fn add(&self, acc: &mut i64, x: T, _: usize) {
        *acc = acc.wrapping_add(x.cast());
    }
}

/// The product, as a double.
pub struct Product;

impl<T: Number> Fold<T> for Product {
    type Acc = f64;

    fn start(&self) -> f64 {
        1.0
    }

    #[inline(always)]
    fn add(&self, acc: &mut f64, x: T, _: usize) {
        *acc *= Cast::<f64>::cast(x);
    }
}

/// The product in 64 bits.
pub struct WholeProduct;

impl<T: Number> Fold<T> for WholeProduct {
    type Acc = i64;

    fn start(&self) -> i64 {
        1
    }

    #[inline(always)]
    fn add(&self, acc: &mut i64, x: T, _: usize) {
        *acc = acc.wrapping_mul(x.cast());
    }
}

/// Folds elements to whether any is true, or with `ALL` whether all are.
pub struct Truth<const ALL: bool>;

impl<T: Number, const ALL: bool> Fold<T> for Truth<ALL> {
    type Acc = bool;

    fn start(&self) -> bool {
        ALL
    }

    #[inline(always)]
    fn add(&self, acc: &mut bool, x: T, _: usize) {
        let x = x.to_compute().is_true();
        *acc = if ALL { *acc & x } else { *acc | x };
    }
}

/// The greatest element, or with `LEAST` the least; NaN if there is one.
pub struct Extreme<T, const LEAST: bool>(PhantomData<T>);

impl<T, const LEAST: bool> Extreme<T, LEAST> {
    /// The only one.
    pub const NEW: Self = Extreme(PhantomData);
}

fn further<C: Compute, const LEAST: bool>(a: C, b: C) -> C {
    if LEAST { a.lesser_of(b) } else { a.greater_of(b) }
}

fn worst<C: Compute, const LEAST: bool>() -> C {
    if LEAST { C::GREATEST } else { C::LEAST }
}

impl<T: Number, const LEAST: bool> Fold<T> for Extreme<T, LEAST> {
    type Acc = T::Compute;

    fn start(&self) -> T::Compute {
        worst::<T::Compute, LEAST>()
    }

    #[inline(always)]
    fn add(&self, acc: &mut T::Compute, x: T, _: usize) {
        *acc = further::<T::Compute, LEAST>(*acc, x.to_compute());
    }

    fn add_row(&self, acc: &mut T::Compute, row: &[T], _: usize) {
        let f = further::<T::Compute, LEAST>;
        let here = match as_floats(row) {
            Some(row) => {
                T::Compute::from_scalar(Scalar::Double(FloatPath::best().run(FloatExtreme::<LEAST>(row)).into()))
            }
            None => parts(row, worst::<T::Compute, LEAST>(), f),
        };
        *acc = f(*acc, here);
    }
}

/// The greatest of a row of floats, or with `LEAST` the least; NaN if there is one.
struct FloatExtreme<'a, const LEAST: bool>(&'a [f32]);

impl<const LEAST: bool> WithFloats for FloatExtreme<'_, LEAST> {
    type Output = f32;

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) -> f32 {
        let sign = floats.splat(if LEAST { -1.0 } else { 1.0 });
        let signed = |x: F::V| floats.fma(x, sign, floats.splat(-0.0));
        let (whole, last) = self.0.as_chunks::<LANES>();
        let (fours, others) = whole.as_chunks::<4>();
        let mut greatest = [floats.splat(f32::NEG_INFINITY); 4];
        for four in fours {
            for (greatest, x) in greatest.iter_mut().zip(four) {
                *greatest = floats.greater(*greatest, signed(floats.load(x)));
            }
        }
        for (greatest, x) in greatest.iter_mut().zip(others) {
            *greatest = floats.greater(*greatest, signed(floats.load(x)));
        }
        let worst = if LEAST { f32::INFINITY } else { f32::NEG_INFINITY };
        let [a, b, c, d] = greatest;
        let last = floats.greater(d, signed(floats.load_some(last, worst)));
        let all = floats.greater(floats.greater(a, b), floats.greater(c, last));
        let mut lanes = [0.0; LANES];
        floats.store(signed(all), &mut lanes);
        joined(lanes, further::<f32, LEAST>)
    }
}

/// The first place of the extreme, with its value; the first NaN if there is one.
pub struct Place<T, const LEAST: bool>(PhantomData<T>);

impl<T, const LEAST: bool> Place<T, LEAST> {
    /// The only one.
    pub const NEW: Self = Place(PhantomData);
}

impl<T: Number, const LEAST: bool> Fold<T> for Place<T, LEAST> {
    type Acc = (T::Compute, usize);

    fn start(&self) -> Self::Acc {
        (worst::<T::Compute, LEAST>(), 0)
    }

    #[inline(always)]
    fn add(&self, acc: &mut Self::Acc, x: T, index: usize) {
        let x = x.to_compute();
        let beyond = if LEAST { x.less(acc.0) } else { acc.0.less(x) };
        if beyond || (x.is_nan() && !acc.0.is_nan()) {
            *acc = (x, index);
        }
    }
}

/// Count, mean and sum of squared distances from it, held exact while elements arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: f64,
    /// The mean so far.
    pub mean: f64,
    squares: f64,
}

impl Moments {
    /// One more element.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        self.count += 1.0;
        let before = x - self.mean;
        self.mean += before / self.count;
        self.squares += before * (x - self.mean);
    }

    /// The variance, where `correction` is taken from the count before dividing.
    pub fn variance(&self, correction: f64) -> f64 {
        self.squares / (self.count - correction).max(0.0)
    }

    /// The mean, NaN if there are no elements.
    pub fn mean(&self) -> f64 {
        if self.count == 0.0 { f64::NAN } else { self.mean }
    }
}

/// The moments of the elements.
pub struct MomentsOf;

impl<T: Number> Fold<T> for MomentsOf {
    type Acc = Moments;

    fn start(&self) -> Moments {
        Moments::default()
    }

    #[inline(always)]
    fn add(&self, acc: &mut Moments, x: T, _: usize) {
        acc.add(x.cast());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<T: Number, F: Fold<T>>(fold: F, row: &[T]) -> F::Acc {
        let mut acc = fold.start();
        fold.add_row(&mut acc, row, 0);
        acc
    }

    #[test]
    fn nan_wins_and_the_first_place_counts() {
        let values = [1.0f32, f32::NAN, 5.0, f32::NAN];
        assert!(row(Extreme::<f32, false>::NEW, &values).is_nan());
        assert_eq!(row(Place::<f32, true>::NEW, &values).1, 1);
        assert_eq!(row(Place::<i32, false>::NEW, &[2, 7, 7, 1]), (7, 1));
        assert_eq!(row(Place::<f32, false>::NEW, &[f32::NEG_INFINITY; 3]).1, 0);
    }

    #[test]
    fn long_sums_stay_exact() {
        let ones = vec![1.0f32 + 1e-3; 1 << 20];
        let sum = row(Sum, &ones);
        assert!((sum - 1.001 * f64::from(1 << 20)).abs() < 1.0, "{sum}");
    }

    #[test]
    fn whole_sums_wrap() {
        assert_eq!(row(WholeSum, &[i64::MAX, 1]), i64::MIN);
        assert_eq!(row(WholeProduct, &[3u8, 100, 2]), 600);
    }

    #[test]
    fn moments_divide_by_what_is_left() {
        let moments = row(MomentsOf, &[1.0f64, 2.0, 4.0]);
        assert!((moments.variance(1.0) - 7.0 / 3.0).abs() < 1e-12);
        assert!(row(MomentsOf, &[1.0f32]).variance(1.0).is_nan());
    }
}
