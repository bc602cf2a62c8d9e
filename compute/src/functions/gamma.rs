//! The gamma function's family: logarithmic derivatives, incomplete integrals, and Hurwitz' zeta function.

use std::f64::consts::PI;

/// Coefficients of the asymptotic series of `digamma`: Bernoulli numbers over their order.
const DIGAMMA: [f64; 8] =
    [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0, -3617.0 / 8160.0];

/// Bernoulli numbers of even order, from the second on, over the factorial of their order.
const BERNOULLI: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1209600.0,
    1.0 / 47900160.0,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0,
    43867.0 / 5109094217170944000.0,
    -174611.0 / 802857662698291200000.0,
];

/// The derivative of the logarithm of the gamma function.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        let fraction = x - x.trunc();
        return if fraction == 0.0 { f64::NAN } else { digamma(1.0 - x) - PI / (PI * fraction).tan() };
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    if x.is_infinite() {
        return x;
    }
    let square = 1.0 / (x * x);
    let series = DIGAMMA.iter().rev().fold(0.0, |sum, &c| (sum + c) * square);
    sum + x.ln() - 0.5 / x - series
}

/// Hurwitz' zeta function: the sum of `(q + k)^-x`.
pub fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || x.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if x != x.floor() {
            return f64::NAN;
        }
        // Terms of negative bases mirror those of `-q`, as far as the last base below zero.
        let nearest = q.fract();
        let sign = if x % 2.0 == 0.0 { 1.0 } else { -1.0 };
        return zeta(x, nearest + 1.0) + sign * zeta(x, -nearest) - sign * zeta(x, 1.0 - q);
    }
    // The first terms, then Euler and Maclaurin for the rest.
    let (mut a, mut sum) = (q, 0.0);
    let mut count = 0;
    while a <= 12.0 || count < 9 {
        let term = a.powf(-x);
        sum += term;
        a += 1.0;
        count += 1;
        if count > 8 && a > 12.0 && (term / sum).abs() < f64::EPSILON / 4.0 {
            return sum;
        }
    }
    let power = a.powf(-x);
    sum += power * a / (x - 1.0) + 0.5 * power;
    let (mut factor, mut over) = (x, power / a);
    for (k, &bernoulli) in BERNOULLI.iter().enumerate() {
        let term = bernoulli * factor * over;
        sum += term;
        if term.abs() < f64::EPSILON / 4.0 * sum.abs() {
            break;
        }
        let order = 2.0 * k as f64 + 1.0;
        factor *= (x + order) * (x + order + 1.0);
        over /= a * a;
    }
    sum
}

/// The derivative of this order of `digamma`.
pub fn polygamma(order: f64, x: f64) -> f64 {
    if order == 0.0 {
        return digamma(x);
    }
    let sign = if order % 2.0 == 0.0 { -1.0 } else { 1.0 };
    sign * libm::lgamma(order + 1.0).exp() * zeta(order + 1.0, x)
}

/// The most dimensions of [`multivariate_lgamma`], so that one element does not take seconds.
const MOST_DIMS: f64 = 10_000.0;

/// The logarithm of the gamma function of many dimensions; NaN for more than ten thousand.
pub fn multivariate_lgamma(x: f64, dims: f64) -> f64 {
    if dims > MOST_DIMS {
        return f64::NAN;
    }
    let sum: f64 = (0..dims.max(1.0) as u32).map(|j| libm::lgamma(x - f64::from(j) / 2.0)).sum();
    sum + dims * (dims - 1.0) / 4.0 * PI.ln()
}

/// The lower incomplete gamma integral over the whole.
pub fn igamma(a: f64, x: f64) -> f64 {
    match special(a, x) {
        Some(upper) => 1.0 - upper,
        None if x < a + 1.0 => lower(a, x),
        None => 1.0 - upper(a, x),
    }
}

/// The upper incomplete gamma integral over the whole.
pub fn igammac(a: f64, x: f64) -> f64 {
    match special(a, x) {
        Some(upper) => upper,
        None if x < a + 1.0 => 1.0 - lower(a, x),
        None => upper(a, x),
    }
}

/// Returns the upper integral at arguments where its value is known; `None` where it has to be computed.
fn special(a: f64, x: f64) -> Option<f64> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 {
        return Some(f64::NAN);
    }
    if a == 0.0 {
        return Some(if x > 0.0 { 0.0 } else { f64::NAN });
    }
    match (x == 0.0, a.is_infinite(), x.is_infinite()) {
        (true, ..) => Some(1.0),
        (_, true, true) => Some(f64::NAN),
        (_, true, _) => Some(1.0),
        (_, _, true) => Some(0.0),
        _ => None,
    }
}

/// `x^a e^-x / Γ(a)`.
fn front(a: f64, x: f64) -> f64 {
    (a * x.ln() - x - libm::lgamma(a)).exp()
}

fn lower(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut at) = (1.0 / a, 1.0 / a, a);
    for _ in 0..100_000 {
        at += 1.0;
        term *= x / at;
        sum += term;
        if term < sum * f64::EPSILON / 4.0 {
            break;
        }
    }
    sum * front(a, x)
}

fn upper(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut fraction = d;
    for k in 1..100_000 {
        let k = f64::from(k);
        let numerator = k * (a - k);
        b += 2.0;
        let (down, up) = (numerator * d + b, b + numerator / c);
        d = 1.0 / if down.abs() < TINY { TINY } else { down };
        c = if up.abs() < TINY { TINY } else { up };
        fraction *= c * d;
        if (c * d - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    fraction * front(a, x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(have: f64, want: f64) {
        assert!((have - want).abs() <= 1e-13 * want.abs().max(1e-2), "{have} {want}");
    }

    /// Numbers of PyTorch in double precision.
    #[test]
    fn the_family_of_gamma() {
        near(digamma(0.5), -1.963_510_026_021_423_5);
        near(digamma(-1.5), 0.703_156_640_645_243_2);
        near(polygamma(1.0, 2.5), 0.490_357_756_100_234_86);
        near(polygamma(3.0, 0.3), 743.141_764_655_049_7);
        near(zeta(2.0, 1.0), PI * PI / 6.0);
        near(zeta(3.0, -1.5), 0.118_102_025_820_864_13);
        near(zeta(2.0, -1e9 - 0.5), PI * PI - 1e-9);
        near(igamma(2.0, 1.5), 0.442_174_599_628_925_2);
        near(igammac(0.5, 3.0), 0.014_305_878_435_429_655);
        near(multivariate_lgamma(3.0, 2.0), 1.550_194_993_957_564_5);
    }
}
