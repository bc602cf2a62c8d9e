//! Bessel's functions that the mathematics library has none of, and Airy's.

use std::f64::consts::PI;

/// Largest argument for which modified functions are computed by the series; beyond, by the expansion.
const LARGE: f64 = 30.0;

/// `Σ (x²/4)^k / (k! (k + order)!)`, with the power in front.
fn series(x: f64, order: u32) -> f64 {
    let quarter = x * x / 4.0;
    let mut term = if order == 0 { 1.0 } else { x / 2.0 };
    let mut sum = term;
    for k in 1..500 {
        term *= quarter / (f64::from(k) * f64::from(k + order));
        sum += term;
        if term.abs() < sum.abs() * f64::EPSILON / 4.0 {
            break;
        }
    }
    sum
}

/// The expansion for large arguments, without the exponential in front.
fn expansion(x: f64, order: u32) -> f64 {
    let mu = 4.0 * f64::from(order * order);
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..40 {
        let odd = f64::from(2 * k - 1);
        let next = -term * (mu - odd * odd) / (f64::from(k) * 8.0 * x);
        if next.abs() > f64::abs(term) {
            break;
        }
        term = next;
        sum += term;
    }
    sum / (2.0 * PI * x).sqrt()
}

fn scaled(x: f64, order: u32) -> f64 {
    let size = x.abs();
    let value = if size <= LARGE { series(size, order) * (-size).exp() } else { expansion(size, order) };
    if order == 1 { value.copysign(x) } else { value }
}

/// The modified function of the first kind of order 0.
pub fn i0(x: f64) -> f64 {
    if x.abs() <= LARGE { series(x, 0) } else { expansion(x.abs(), 0) * (x.abs() / 2.0).exp() * (x.abs() / 2.0).exp() }
}

/// The modified function of the first kind of order 1.
pub fn i1(x: f64) -> f64 {
    if x.abs() <= LARGE {
        return series(x, 1);
    }
    let half = (x.abs() / 2.0).exp();
    (expansion(x.abs(), 1) * half * half).copysign(x)
}

/// `exp(-|x|) i0(x)`.
pub fn i0e(x: f64) -> f64 {
    scaled(x, 0)
}

/// `exp(-|x|) i1(x)`.
pub fn i1e(x: f64) -> f64 {
    scaled(x, 1)
}

/// `∫ exp(-x (cosh t - 1)) cosh(order t) dt`, by a sum that converges fast.
fn integral(x: f64, order: f64) -> f64 {
    const STEP: f64 = 1.0 / 32.0;
    let mut sum = 0.5;
    for k in 1..4000 {
        let t = f64::from(k) * STEP;
        // cosh t - 1, without cancelling.
        let half = (t / 2.0).sinh();
        let exponent = -2.0 * x * half * half;
        if exponent < -745.0 {
            break;
        }
        sum += exponent.exp() * (order * t).cosh();
    }
    sum * STEP
}

/// Modified functions of the second kind, times `exp(x)`.
fn second(x: f64, order: u32) -> f64 {
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x < 0.0 || x.is_nan() {
        return f64::NAN;
    }
    if x > 0.5 {
        return integral(x, f64::from(order));
    }
    // Near zero, by the series with a logarithm.
    const EULER: f64 = 0.577_215_664_901_532_9;
    let (log, quarter) = ((x / 2.0).ln(), x * x / 4.0);
    let (mut term, mut harmonic, mut sum) = (1.0, 0.0, 0.0);
    for k in 0..30 {
        let k = f64::from(k);
        sum += term
            * match order {
                0 => harmonic - EULER,
                _ => 2.0 * (harmonic - EULER) + 1.0 / (k + 1.0),
            };
        harmonic += 1.0 / (k + 1.0);
        term *= quarter / ((k + 1.0) * (k + 1.0 + f64::from(order)));
    }
    let value = match order {
        0 => sum - log * series(x, 0),
        _ => 1.0 / x + log * series(x, 1) - x / 4.0 * sum,
    };
    value * x.exp()
}

/// The modified function of the second kind of order 0.
pub fn k0(x: f64) -> f64 {
    second(x, 0) * (-x).exp()
}

/// The modified function of the second kind of order 1.
pub fn k1(x: f64) -> f64 {
    second(x, 1) * (-x).exp()
}

/// `exp(x) k0(x)`.
pub fn k0e(x: f64) -> f64 {
    second(x, 0)
}

/// `exp(x) k1(x)`.
pub fn k1e(x: f64) -> f64 {
    second(x, 1)
}

/// The spherical function of order 0: `sin(x) / x`.
pub fn spherical_j0(x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    if x.abs() < 0.5 {
        let square = x * x;
        return (1..12).rev().fold(1.0, |sum, k| 1.0 - square / f64::from(2 * k * (2 * k + 1)) * sum);
    }
    x.sin() / x
}

/// Airy's function.
pub fn airy_ai(x: f64) -> f64 {
    let zeta = 2.0 / 3.0 * x.abs().powf(1.5);
    if x.is_infinite() {
        return if x > 0.0 { 0.0 } else { f64::NAN };
    }
    if x > 2.0 {
        return (x / 3.0).sqrt() / PI * integral(zeta, 1.0 / 3.0) * (-zeta).exp();
    }
    if x > -7.0 {
        // Two series around zero.
        let cube = x * x * x;
        let (mut f, mut g) = (1.0, x);
        let (mut first, mut second) = (f, g);
        for k in 1..120 {
            let k3 = 3.0 * f64::from(k);
            f *= cube / ((k3 - 1.0) * k3);
            g *= cube / (k3 * (k3 + 1.0));
            first += f;
            second += g;
        }
        return 0.355_028_053_887_817_2 * first - 0.258_819_403_792_806_8 * second;
    }
    // The expansion of an oscillation.
    let (mut even, mut odd, mut term) = (1.0, 0.0, 1.0);
    for k in 1..20 {
        let k6 = 6.0 * f64::from(k);
        let next =
            term * (k6 - 5.0) * (k6 - 3.0) * (k6 - 1.0) / (216.0 * f64::from(k) * (2.0 * f64::from(k) - 1.0) * zeta);
        if next.abs() > f64::abs(term) {
            break;
        }
        term = next;
        match k % 4 {
            0 => even += term,
            1 => odd += term,
            2 => even -= term,
            _ => odd -= term,
        }
    }
    let angle = zeta + PI / 4.0;
    (angle.sin() * even - angle.cos() * odd) / (PI.sqrt() * x.abs().powf(0.25))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(have: f64, want: f64) {
        assert!((have - want).abs() <= 1e-12 * want.abs().max(1e-6), "{have} {want}");
    }

    /// Numbers of PyTorch in double precision.
    #[test]
    fn bessel_and_airy() {
        near(i0(2.5), 3.289_839_144_050_123);
        near(i1(-2.5), -2.516_716_245_288_698_5);
        near(i0e(100.0), 0.039_944_379_299_096_68);
        near(k0(0.3), 1.372_460_060_544_297_2);
        near(k1(0.3), 3.055_992_033_457_324_4);
        near(k1(4.0), 0.012_483_498_887_268_433);
        near(airy_ai(1.0), 0.135_292_416_312_881_4);
        near(airy_ai(-9.0), -0.022_133_721_547_341_24);
        near(airy_ai(5.0), 1.083_444_281_360_744_2e-4);
        assert_eq!(spherical_j0(0.0), 1.0);
    }
}
