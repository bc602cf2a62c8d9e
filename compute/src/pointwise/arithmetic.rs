//! Sums, products, quotients, remainders, powers and extremes.

use edgepack_format::scalar::ScalarType;

use super::{Body, Lane, Mapped, Params, Values, complex, loops, map2, with_class};
use crate::float::Float;
use crate::number::Compute;

loops! {
    real_add: all<C: Compute> -> C, |p; a, b| a.plus(b.times(p[0]));
    real_plain_add: all<C: Compute> -> C, |p; a, b| a.plus(b);
    real_sub: real<C: Compute> -> C, |p; a, b| a.minus(b.times(p[0]));
    pub rsub: real<C: Compute> -> C, |p; a, b| b.minus(a.times(p[0]));
    real_mul: all<C: Compute> -> C, |p; a, b| a.times(b);
    real_div: float<C: Float> -> C, |p; a, b| a.over(b);
    pub trunc_div: real<C: Compute> -> C, |p; a, b| a.trunc_div(b);
    pub floor_div: real<C: Compute> -> C, |p; a, b| a.floor_div(b);
    pub remainder: real<C: Compute> -> C, |p; a, b| a.rem_floor(b);
    /// Floats get the sign of the divisor, integers keep that of the dividend.
    pub remainder_by_kind: real<C: Compute> -> C, |p; a, b| if C::FLOATING { a.rem_floor(b) } else { a.rem_trunc(b) };
    pub fmod: real<C: Compute> -> C, |p; a, b| a.rem_trunc(b);
    pub maximum: all<C: Compute> -> C, |p; a, b| a.greater_of(b);
    pub minimum: all<C: Compute> -> C, |p; a, b| a.lesser_of(b);
    pub atan2: float<C: Float> -> C, |p; a, b| a.atan2(b);
}

/// Functions of real and of complex numbers.
macro_rules! both {
    ($($name:ident: $real:ident, $what:literal;)*) => {$(
        #[doc = concat!("Picks the loop of `", $what, "`, of complex numbers too.")]
        pub fn $name(compute: ScalarType) -> Option<Body> {
            $real(compute).or_else(|| complex::$name(compute))
        }
    )*};
}

both! {
    add: real_add, "a + b * p";
    plain_add: real_plain_add, "a + b";
    sub: real_sub, "a - b * p";
    mul: real_mul, "a * b";
    div: real_div, "a / b";
}

/// Picks the loop of `a` to the power of `b`; squares and cubes are products.
pub fn pow(compute: ScalarType) -> Option<Body> {
    fn run<C: Compute>(params: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        if !C::FLOATING && params.0[0].to_f64() < 0.0 {
            // The number may not survive in an unsigned type, its sign decides everything.
            let power = C::from_scalar(params.0[0]);
            let unsigned = C::ZERO.less_or_same(C::LEAST);
            return map2(lanes, out, |a: C, _: C| match (a.same(C::ONE), unsigned) {
                (false, false) => a.power(power),
                (one, _) => {
                    if one {
                        C::ONE
                    } else {
                        C::ZERO
                    }
                }
            });
        }
        if let Values::One(exponent) = lanes[1].values::<C>() {
            let two = C::ONE.plus(C::ONE);
            if C::FLOATING && exponent.same(two) {
                return Mapped::<(C, C), _>::of(lanes, out, |a: C, _: C| a.times(a)).run_as::<C>();
            }
            if C::FLOATING && exponent.same(two.plus(C::ONE)) {
                return Mapped::<(C, C), _>::of(lanes, out, |a: C, _: C| a.times(a).times(a)).run_as::<C>();
            }
        }
        map2(lanes, out, |a: C, b: C| a.power(b));
    }
    fn body<C: Compute>() -> Body {
        Body { run: run::<C>, result: C::SCALAR_TYPE }
    }
    with_class!(real, compute, T => body::<T>())
}
