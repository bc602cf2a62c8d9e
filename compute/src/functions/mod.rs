//! Special functions of one or two doubles, computed so that they are accurate to nearly all digits.
//!
//! Shorter floats are computed as doubles and rounded, so one form serves all. Arguments outside the domain give NaN, poles
//! an infinity, as PyTorch has it.

mod bessel;
mod gamma;
mod polynomials;

pub use bessel::{airy_ai, i0, i0e, i1, i1e, k0, k0e, k1, k1e, spherical_j0};
pub use gamma::{digamma, igamma, igammac, multivariate_lgamma, polygamma, zeta};
pub use polynomials::{Kind, polynomial};

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI, SQRT_2};

/// `exp(x²) erfc(x)`, which does not vanish as `erfc` does.
pub fn erfcx(x: f64) -> f64 {
    if x < 5.0 {
        return if x < -27.0 { f64::INFINITY } else { (x * x).exp() * libm::erfc(x) };
    }
    if x > 1e8 {
        return 1.0 / (x * PI.sqrt());
    }
    // The continued fraction of Laplace, from the inside.
    let fraction = (1..=60).rev().fold(x, |below, k| x + f64::from(k) / 2.0 / below);
    1.0 / (fraction * PI.sqrt())
}

/// The inverse of `erf`.
pub fn erfinv(y: f64) -> f64 {
    if y.abs() >= 1.0 || y.is_nan() {
        return if y.abs() == 1.0 { y * f64::INFINITY } else { f64::NAN };
    }
    if y == 0.0 {
        return y;
    }
    let size = y.abs();
    // A first guess from the logarithm of how little is missing to 1, then Newton's iterations.
    let log = ((1.0 - size) * (1.0 + size)).ln();
    let a = 2.0 / (PI * 0.147) + log / 2.0;
    let mut x = ((a * a - log / 0.147).sqrt() - a).max(0.0).sqrt();
    for _ in 0..4 {
        let above = if x > 0.5 { (1.0 - size) - libm::erfc(x) } else { libm::erf(x) - size };
        let step = above / (FRAC_2_SQRT_PI * (-x * x).exp());
        if step.is_finite() {
            x -= step;
        }
    }
    x.copysign(y)
}

/// Returns the point that a normal variable is below with a probability.
pub fn ndtri(p: f64) -> f64 {
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p == 1.0 {
        return f64::INFINITY;
    }
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if (0.1..=0.9).contains(&p) {
        return SQRT_2 * erfinv(2.0 * p - 1.0);
    }
    let tail = p.min(1.0 - p);
    // Newton's iterations on the logarithm of the tail, where it is nearly a parabola.
    let mut x = (-2.0 * tail.ln()).sqrt();
    for _ in 0..30 {
        let scaled = erfcx(x * FRAC_1_SQRT_2);
        let log = (scaled / 2.0).ln() - x * x / 2.0;
        let slope = -FRAC_2_SQRT_PI * FRAC_1_SQRT_2 / scaled;
        let step = (log - tail.ln()) / slope;
        x -= step;
        if step.abs() < 1e-15 * x.abs() {
            break;
        }
    }
    if p < 0.5 { -x } else { x }
}

/// The greatest number that divides both.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_of_error_functions() {
        for y in [-0.999999, -0.7, -1e-12, 1e-9, 0.3, 0.5, 0.95, 0.9999999999] {
            assert!((libm::erf(erfinv(y)) - y).abs() <= 4e-16 * (1.0 + y.abs()), "{y}");
        }
        // Numbers of PyTorch.
        for (p, want) in
            [(0.025, -1.959_963_984_540_054), (0.999, 3.090_232_306_167_813), (1e-20, -9.262_340_089_798_408)]
        {
            assert!((ndtri(p) - want).abs() < 1e-12 * want.abs(), "{p}: {}", ndtri(p));
        }
        assert!((erfcx(10.0) - 0.056_140_992_743_822_6).abs() < 1e-16);
        assert!((erfcx(-1.0) - 5.008_980_080_762_283).abs() < 1e-13);
        assert_eq!(gcd(-12, 18), 6);
    }
}
