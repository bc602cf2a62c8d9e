//! Functions of one number.

use edgepack_format::scalar::{Bool, Element, ScalarType};
use rten_simd::SimdUnaryOp;

use super::exponential::TANH;
use super::{Body, Lane, Params, complex, loops, map1};
use crate::float::Float;
use crate::number::Compute;

loops! {
    identity: real<C: Compute> -> C, |p; a| a;
    real_abs: real<C: Compute> -> C, |p; a| a.magnitude();
    pub neg: real<C: Compute> -> C, |p; a| a.negative();
    pub sign: all<C: Compute> -> C, |p; a| {
        if C::ZERO.less(a) { C::ONE } else if a.less(C::ZERO) { C::ONE.negative() } else { a }
    };
    pub is_nan: all<C: Compute> -> Bool, |p; a| Bool::from(a.is_nan());
    pub is_infinite: all<C: Compute> -> Bool, |p; a| Bool::from(C::FLOATING && a.magnitude().same(C::GREATEST));
    floor_float: float<C: Float> -> C, |p; a| a.floor();
    ceil_float: float<C: Float> -> C, |p; a| a.ceil();
    trunc_float: float<C: Float> -> C, |p; a| a.trunc();
    round_float: float<C: Float> -> C, |p; a| a.round_even();
    pub round_decimals: float<C: Float> -> C, |p; a| {
        let digits = p[0];
        let scale = C::of(10.0).power(digits.magnitude());
        if digits.is_zero() {
            a.round_even()
        } else if digits.less(C::ZERO) {
            a.over(scale).round_even().times(scale)
        } else {
            a.times(scale).round_even().over(scale)
        }
    };
    pub(super) exp_plain: float<C: Float> -> C, |p; a| a.exp();
    pub expm1: float<C: Float> -> C, |p; a| a.exp_m1();
    pub ln: float<C: Float> -> C, |p; a| a.ln();
    pub log1p: float<C: Float> -> C, |p; a| a.ln_1p();
    pub log2: float<C: Float> -> C, |p; a| a.log2();
    pub log10: float<C: Float> -> C, |p; a| a.log10();
    pub sqrt: float<C: Float> -> C, |p; a| a.sqrt();
    pub rsqrt: float<C: Float> -> C, |p; a| C::ONE.over(a.sqrt());
    pub reciprocal: float<C: Float> -> C, |p; a| C::ONE.over(a);
    pub sin: float<C: Float> -> C, |p; a| a.sin();
    pub cos: float<C: Float> -> C, |p; a| a.cos();
    pub tan: float<C: Float> -> C, |p; a| a.tan();
    pub asin: float<C: Float> -> C, |p; a| a.asin();
    pub acos: float<C: Float> -> C, |p; a| a.acos();
    pub atan: float<C: Float> -> C, |p; a| a.atan();
    pub sinh: float<C: Float> -> C, |p; a| a.sinh();
    pub cosh: float<C: Float> -> C, |p; a| a.cosh();
    pub(super) tanh_plain: float<C: Float> -> C, |p; a| a.tanh();
    pub asinh: float<C: Float> -> C, |p; a| a.asinh();
    pub acosh: float<C: Float> -> C, |p; a| a.acosh();
    pub atanh: float<C: Float> -> C, |p; a| a.atanh();
    pub(super) erf_plain: float<C: Float> -> C, |p; a| a.erf();
}

/// Picks the loop of magnitudes, of complex numbers too.
pub fn abs(compute: ScalarType) -> Option<Body> {
    real_abs(compute).or_else(|| complex::abs(compute))
}

/// Picks the loop of the next integer below.
pub fn floor(compute: ScalarType) -> Option<Body> {
    floor_float(compute).or_else(|| identity(compute))
}

/// Picks the loop of the next integer above.
pub fn ceil(compute: ScalarType) -> Option<Body> {
    ceil_float(compute).or_else(|| identity(compute))
}

/// Picks the loop of the next integer towards zero.
pub fn trunc(compute: ScalarType) -> Option<Body> {
    trunc_float(compute).or_else(|| identity(compute))
}

/// Picks the loop of the nearest integer, the even one of two.
pub fn round(compute: ScalarType) -> Option<Body> {
    round_float(compute).or_else(|| identity(compute))
}

/// The vectorised loop of a function of `f32`.
fn vectorised<Op: SimdUnaryOp<f32> + Vectorised>() -> Body {
    fn run<Op: SimdUnaryOp<f32> + Vectorised>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        map1(lanes, out, |a: f32| a);
        Op::NEW.map_mut(bytemuck::cast_slice_mut(out));
    }
    Body { run: run::<Op>, result: f32::SCALAR_TYPE }
}

/// A vectorised function as a constant.
trait Vectorised {
    /// Value of a type without fields: the function itself.
    const NEW: Self;
}

macro_rules! vectorised {
    ($($op:ident)*) => {
        $(impl Vectorised for rten_vecmath::$op {
            const NEW: Self = rten_vecmath::$op {};
        })*
    };
}

vectorised!(Exp Erf);

/// Picks the loop of exponentials, vectorised for `f32`.
pub fn exp(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(vectorised::<rten_vecmath::Exp>()) } else { exp_plain(compute) }
}

/// Picks the loop of hyperbolic tangents, vectorised for `f32`.
pub fn tanh(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(TANH) } else { tanh_plain(compute) }
}

/// Picks the loop of error functions, vectorised for `f32`.
pub fn erf(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(vectorised::<rten_vecmath::Erf>()) } else { erf_plain(compute) }
}
