//! Activations and clamps.

use edgepack_format::scalar::ScalarType;

use super::exponential::{Elu, GELU, GELU_TANH, SIGMOID, SILU};
use super::{Body, Lane, Params, Values, loops};
use crate::float::Float;
use crate::number::Compute;
use crate::simd::wide;

loops! {
    pub clamp: all<C: Compute> -> C, |p; a, least, greatest| a.greater_of(least).lesser_of(greatest);
    pub relu: real<C: Compute> -> C, |p; a| if a.less(C::ZERO) { C::ZERO } else { a };
    pub leaky_relu: float<C: Float> -> C, |p; a| {
        // The compiler chooses between numbers that are there, and would jump where one is not.
        let scaled = a.times(p[0]);
        if a.less_or_same(C::ZERO) { scaled } else { a }
    };
    elu_plain: float<C: Float> -> C, |p; a| {
        let [alpha, scale, input_scale] = p;
        if a.less_or_same(C::ZERO) { a.times(input_scale).exp_m1().times(alpha.times(scale)) } else { a.times(scale) }
    };
    sigmoid_plain: float<C: Float> -> C, |p; a| C::ONE.over(C::ONE.plus(a.negative().exp()));
    gelu_plain: float<C: Float> -> C, |p; a| {
        let half = C::of(0.5);
        half.times(a).times(C::ONE.plus(a.times(C::of(std::f64::consts::FRAC_1_SQRT_2)).erf()))
    };
    gelu_tanh_plain: float<C: Float> -> C, |p; a| {
        let cubic = a.plus(C::of(0.044715).times(a).times(a).times(a));
        let inner = C::of(std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2).times(cubic);
        C::of(0.5).times(a).times(C::ONE.plus(inner.tanh()))
    };
    pub logit: float<C: Float> -> C, |p; a| a.over(C::ONE.minus(a)).ln();
    pub logit_clamped: float<C: Float> -> C, |p; a| {
        let a = a.greater_of(p[0]).lesser_of(C::ONE.minus(p[0]));
        a.over(C::ONE.minus(a)).ln()
    };
}

/// Picks the loop of `1 / (1 + exp(-a))`, vectorised for `f32`.
pub fn sigmoid(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(SIGMOID) } else { sigmoid_plain(compute) }
}

/// Picks the loop of `a * sigmoid(a)`, of `f32` only: the results are those of a sigmoid and a product.
pub fn silu(compute: ScalarType) -> Option<Body> {
    (compute == ScalarType::FLOAT).then_some(SILU)
}

/// Picks the loop of `a * min(max(a + 3, 0), 6) / 6`, of `f32` only: the results are those of the operations one by one.
pub fn hard_swish(compute: ScalarType) -> Option<Body> {
    fn run(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        let value = super::hard_swish;
        let out: &mut [f32] = bytemuck::cast_slice_mut(out);
        match lanes[0].values::<f32>() {
            Values::Each(input) => wide(|| out.iter_mut().zip(input).for_each(|(y, x)| *y = value(*x))),
            Values::One(x) => out.fill(value(x)),
        }
    }
    (compute == ScalarType::FLOAT).then_some(Body { run, result: ScalarType::FLOAT })
}

/// Picks the loop of `scale * a`, or `alpha * scale * (exp(input_scale * a) - 1)` where `a` is not greater than zero, of these three
/// numbers; vectorised for `f32` and a positive `input_scale`.
pub fn elu(compute: ScalarType) -> Option<Body> {
    fn run(params: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        match Elu::of(params.of()) {
            Some(elu) => elu.map(lanes, out),
            None => elu_plain(ScalarType::FLOAT).into_iter().for_each(|plain| (plain.run)(params, lanes, out)),
        }
    }
    if compute == ScalarType::FLOAT { Some(Body { run, result: ScalarType::FLOAT }) } else { elu_plain(compute) }
}

/// Picks the loop of `a * (1 + erf(a / sqrt(2))) / 2`, vectorised for `f32`.
pub fn gelu(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(GELU) } else { gelu_plain(compute) }
}

/// Picks the loop of the approximation of [`gelu`] by a hyperbolic tangent, vectorised for `f32`.
pub fn gelu_tanh(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(GELU_TANH) } else { gelu_tanh_plain(compute) }
}

#[cfg(test)]
mod tests {
    use super::super::{Table, unary};
    use super::*;
    use crate::element::Scalar;

    fn applied(table: Table, x: &[f32]) -> Vec<f32> {
        let mut out = vec![0f32; x.len()];
        let lane = Lane { bytes: bytemuck::cast_slice(x), constant: false };
        let params = Params([Scalar::Int(0); 3]);
        (table(ScalarType::FLOAT).unwrap().run)(&params, &[lane], bytemuck::cast_slice_mut(&mut out));
        out
    }

    #[test]
    fn a_hard_swish_is_its_operations() {
        let x: Vec<f32> = (-100..100).map(|i| i as f32 * 0.07).chain([f32::NAN, f32::INFINITY, -0.0]).collect();
        for (x, y) in x.iter().zip(applied(hard_swish, &x)) {
            let want = x * (x + 3.0).greater_of(0.0).lesser_of(6.0) / 6.0;
            assert!(y.to_bits() == want.to_bits() || y.is_nan() && want.is_nan(), "{x}: {y}, not {want}");
        }
    }

    #[test]
    fn vectorised_loops_agree_with_plain_ones() {
        let mut x: Vec<f32> = (-400..400).map(|i| i as f32 * 0.05).collect();
        x.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1e-20, -1e-20, 100.0, -100.0, 88.7, -103.0]);
        let pairs: [(&str, Table, Table, f32); 6] = [
            ("exp", unary::exp, unary::exp_plain, 1e-37),
            ("tanh", unary::tanh, unary::tanh_plain, 1e-30),
            ("erf", unary::erf, unary::erf_plain, 3e-7),
            ("sigmoid", sigmoid, sigmoid_plain, 1e-30),
            ("gelu", gelu, gelu_plain, 1e-6),
            ("gelu by tanh", gelu_tanh, gelu_tanh_plain, 1e-6),
        ];
        for (name, fast, slow, absolute) in pairs {
            for ((x, fast), slow) in x.iter().zip(applied(fast, &x)).zip(applied(slow, &x)) {
                let near = fast == slow || (fast - slow).abs() <= 2e-6 * slow.abs() + absolute;
                assert!(near || fast.is_nan() && slow.is_nan(), "{name}({x}) is {slow}, vectorised {fast}");
            }
        }
    }
}
