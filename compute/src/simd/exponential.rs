//! Powers of e, and of 2, of vectors.

use super::floats::{Floats, Vectors};

/// Added to a number below `2^21`, it leaves the nearest whole number, and that number and 127 in the lowest bits.
const WHOLE: f32 = 12_582_912.0 + 127.0;
/// There the power of 2 in `exp(-x)` is 0.
const ZERO: f32 = 88.1;
/// The natural logarithm of 2 as a number whose products with exponents are exact, and the rest of it.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// Coefficients of `(exp(-r) - 1 + r) / r^2` within half the logarithm of 2 around 0, from the last on.
const POLYNOMIAL: [f32; 6] = [-1.987_569_1e-4, 1.398_199_9e-3, -8.333_452e-3, 4.166_579_6e-2, -1.666_666_5e-1, 0.5];

/// Parts of `exp(-x) = 2^n exp(-r)`, `n` a whole number and the rest `r` near to 0.
pub(crate) struct Exponential<V> {
    pub power: V,
    pub rest: V,
    pub square: V,
    /// `(exp(-r) - 1 + r) / r^2`.
    pub polynomial: V,
}

/// The parts of `exp(-x)`, `x` being at least -88.7, where the power of 2 is an infinity; NaN is NaN.
#[inline(always)]
pub(crate) fn exponential<F: Vectors>(floats: F, x: F::V) -> Exponential<F::V> {
    let bounded = floats.at_most(floats.splat(ZERO), x);
    // The rest is `x + n ln(2)`.
    let shifted = floats.fma(bounded, floats.splat(-std::f32::consts::LOG2_E), floats.splat(WHOLE));
    let one = floats.splat(1.0);
    let n = floats.fma(one, shifted, floats.splat(-WHOLE));
    let rest = floats.fma(n, floats.splat(LN_2[1]), floats.fma(n, floats.splat(LN_2[0]), bounded));
    let mut polynomial = floats.splat(POLYNOMIAL[0]);
    for coefficient in &POLYNOMIAL[1..] {
        polynomial = floats.fma(polynomial, rest, floats.splat(*coefficient));
    }
    let square = floats.fma(rest, rest, floats.splat(0.0));
    Exponential { power: floats.power(shifted), rest, square, polynomial }
}

/// Coefficients of `(2^f - 1) / f` within a half around 0, from the last on.
const POWER: [f32; 5] = [1.330_035_9e-3, 9.669_661e-3, 5.550_559e-2, 2.402_228_3e-1, std::f32::consts::LN_2];

/// `2^(n + f)` of some vectors, of which `shifted` is `n` added to [`WHOLE`], from -127 on, where it is 0, and `f` is at most a
/// half.
#[inline(always)]
fn power_of_two<F: Vectors, const COUNT: usize>(floats: F, shifted: [F::V; COUNT], f: [F::V; COUNT]) -> [F::V; COUNT] {
    let mut powers = [floats.splat(POWER[0]); COUNT];
    for coefficient in POWER[1..].iter().chain(&[1.0]) {
        for (power, f) in powers.iter_mut().zip(f) {
            *power = floats.fma(*power, f, floats.splat(*coefficient));
        }
    }
    for (power, shifted) in powers.iter_mut().zip(shifted) {
        *power = floats.fma(*power, floats.power(shifted), floats.splat(0.0));
    }
    powers
}

/// `exp(-x)` of vectors of numbers that are not negative, near to what is exact relative to 1; 0 where it is less than any
/// normal number. Each step is done for all vectors before the next: alone, a vector would wait for its own steps.
#[inline(always)]
pub(crate) fn exp_of_negative<F: Floats, const COUNT: usize>(floats: F, mut x: [F::V; COUNT]) -> [F::V; COUNT] {
    let (factor, whole) = (floats.splat(-std::f32::consts::LOG2_E), floats.splat(WHOLE));
    for x in &mut x {
        *x = floats.at_most(floats.splat(ZERO), *x);
    }
    let mut shifted = x;
    for shifted in &mut shifted {
        *shifted = floats.fma(*shifted, factor, whole);
    }
    for (x, shifted) in x.iter_mut().zip(shifted) {
        *x = floats.fma(*x, factor, floats.minus(whole, shifted));
    }
    power_of_two(floats, shifted, x)
}

/// `2^x` of vectors of numbers below 127; 0 where it is less than any normal number. Each step is done for all vectors before the
/// next.
#[inline(always)]
pub(crate) fn two_to<F: Floats, const COUNT: usize>(floats: F, mut x: [F::V; COUNT]) -> [F::V; COUNT] {
    let (least, whole) = (floats.splat(-127.0), floats.splat(WHOLE));
    for x in &mut x {
        *x = floats.at_least(least, *x);
    }
    let mut shifted = x;
    for shifted in &mut shifted {
        *shifted = floats.plus(*shifted, whole);
    }
    for (x, shifted) in x.iter_mut().zip(shifted) {
        *x = floats.minus(*x, floats.minus(shifted, whole));
    }
    power_of_two(floats, shifted, x)
}
