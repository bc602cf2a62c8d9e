//! Functions of one number.

use edgepack_format::scalar::{Bool, Element, ScalarType};
use rten_simd::SimdUnaryOp;

use super::lanes::{Body, Lane, Params, loops};
use super::{complex, kernels, specs};
use edgepack_compute::float::Float;
use edgepack_compute::number::Compute;

loops! {
    keep: real<C: Compute> -> C, |p; a| a;
    real_abs: real<C: Compute> -> C, |p; a| a.magnitude();
    neg: real<C: Compute> -> C, |p; a| a.negative();
    sign: all<C: Compute> -> C, |p; a| {
        if C::ZERO.less(a) { C::ONE } else if a.less(C::ZERO) { C::ONE.negative() } else { a }
    };
    is_nan: all<C: Compute> -> Bool, |p; a| Bool::from(a.is_nan());
    is_infinite: all<C: Compute> -> Bool, |p; a| Bool::from(C::FLOATING && a.magnitude().same(C::GREATEST));
    floor_float: float<C: Float> -> C, |p; a| a.floor();
    ceil_float: float<C: Float> -> C, |p; a| a.ceil();
    trunc_float: float<C: Float> -> C, |p; a| a.trunc();
    round_float: float<C: Float> -> C, |p; a| a.round_even();
    round_decimals: float<C: Float> -> C, |p; a| {
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
    exp_plain: float<C: Float> -> C, |p; a| a.exp();
    expm1: float<C: Float> -> C, |p; a| a.exp_m1();
    ln: float<C: Float> -> C, |p; a| a.ln();
    log1p: float<C: Float> -> C, |p; a| a.ln_1p();
    log2: float<C: Float> -> C, |p; a| a.log2();
    log10: float<C: Float> -> C, |p; a| a.log10();
    sqrt: float<C: Float> -> C, |p; a| a.sqrt();
    rsqrt: float<C: Float> -> C, |p; a| C::ONE.over(a.sqrt());
    reciprocal: float<C: Float> -> C, |p; a| C::ONE.over(a);
    sin: float<C: Float> -> C, |p; a| a.sin();
    cos: float<C: Float> -> C, |p; a| a.cos();
    tan: float<C: Float> -> C, |p; a| a.tan();
    asin: float<C: Float> -> C, |p; a| a.asin();
    acos: float<C: Float> -> C, |p; a| a.acos();
    atan: float<C: Float> -> C, |p; a| a.atan();
    sinh: float<C: Float> -> C, |p; a| a.sinh();
    cosh: float<C: Float> -> C, |p; a| a.cosh();
    tanh_plain: float<C: Float> -> C, |p; a| a.tanh();
    asinh: float<C: Float> -> C, |p; a| a.asinh();
    acosh: float<C: Float> -> C, |p; a| a.acosh();
    atanh: float<C: Float> -> C, |p; a| a.atanh();
    erf_plain: float<C: Float> -> C, |p; a| a.erf();
}

fn abs(compute: ScalarType) -> Option<Body> {
    real_abs(compute).or_else(|| complex::abs(compute))
}

fn floor(compute: ScalarType) -> Option<Body> {
    floor_float(compute).or_else(|| keep(compute))
}

fn ceil(compute: ScalarType) -> Option<Body> {
    ceil_float(compute).or_else(|| keep(compute))
}

fn trunc(compute: ScalarType) -> Option<Body> {
    trunc_float(compute).or_else(|| keep(compute))
}

fn round(compute: ScalarType) -> Option<Body> {
    round_float(compute).or_else(|| keep(compute))
}

/// The vectorised loop of a function of `f32`.
pub(super) fn vectorised<Op: SimdUnaryOp<f32> + Vectorised>() -> Body {
    fn run<Op: SimdUnaryOp<f32> + Vectorised>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        super::lanes::map1(lanes, out, |a: f32| a);
        Op::NEW.map_mut(bytemuck::cast_slice_mut(out));
    }
    Body { run: run::<Op>, result: f32::SCALAR_TYPE }
}

/// A vectorised function as a constant.
pub(super) trait Vectorised {
    /// The function.
    const NEW: Self;
}

macro_rules! vectorised {
    ($($op:ident)*) => {
        $(impl Vectorised for rten_vecmath::$op {
            const NEW: Self = rten_vecmath::$op {};
        })*
    };
}

vectorised!(Exp Tanh Erf Sigmoid Gelu ApproxGelu);

pub(super) fn exp(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(vectorised::<rten_vecmath::Exp>()) } else { exp_plain(compute) }
}

pub(super) fn tanh(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(vectorised::<rten_vecmath::Tanh>()) } else { tanh_plain(compute) }
}

pub(super) fn erf(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(vectorised::<rten_vecmath::Erf>()) } else { erf_plain(compute) }
}

specs! {
    pub(crate) ABS: "aten::abs.out", [Tensor("self")], [], First, abs;
    pub(crate) NEG: "aten::neg.out", [Tensor("self")], [], First, neg;
    SIGN: "aten::sign.out", [Tensor("self")], [], First, sign;
    IS_NAN: "aten::isnan.out", [Tensor("self")], [], First, is_nan;
    IS_INFINITE: "aten::isinf.out", [Tensor("self")], [], First, is_infinite;
    FLOOR: "aten::floor.out", [Tensor("self")], [], First, floor;
    CEIL: "aten::ceil.out", [Tensor("self")], [], First, ceil;
    TRUNC: "aten::trunc.out", [Tensor("self")], [], First, trunc;
    ROUND: "aten::round.out", [Tensor("self")], [], First, round;
    ROUND_DECIMALS: "aten::round.decimals_out", [Tensor("self")], ["decimals"], First, round_decimals;
    pub(crate) EXP: "aten::exp.out", [Tensor("self")], [], Float, exp;
    EXPM1: "aten::expm1.out", [Tensor("self")], [], Float, expm1;
    LN: "aten::log.out", [Tensor("self")], [], Float, ln;
    LOG1P: "aten::log1p.out", [Tensor("self")], [], Float, log1p;
    LOG2: "aten::log2.out", [Tensor("self")], [], Float, log2;
    LOG10: "aten::log10.out", [Tensor("self")], [], Float, log10;
    pub(crate) SQRT: "aten::sqrt.out", [Tensor("self")], [], Float, sqrt;
    pub(crate) RSQRT: "aten::rsqrt.out", [Tensor("self")], [], Float, rsqrt;
    RECIPROCAL: "aten::reciprocal.out", [Tensor("self")], [], Float, reciprocal;
    SIN: "aten::sin.out", [Tensor("self")], [], Float, sin;
    COS: "aten::cos.out", [Tensor("self")], [], Float, cos;
    TAN: "aten::tan.out", [Tensor("self")], [], Float, tan;
    ASIN: "aten::asin.out", [Tensor("self")], [], Float, asin;
    ACOS: "aten::acos.out", [Tensor("self")], [], Float, acos;
    ATAN: "aten::atan.out", [Tensor("self")], [], Float, atan;
    SINH: "aten::sinh.out", [Tensor("self")], [], Float, sinh;
    COSH: "aten::cosh.out", [Tensor("self")], [], Float, cosh;
    pub(crate) TANH: "aten::tanh.out", [Tensor("self")], [], Float, tanh;
    ASINH: "aten::asinh.out", [Tensor("self")], [], Float, asinh;
    ACOSH: "aten::acosh.out", [Tensor("self")], [], Float, acosh;
    ATANH: "aten::atanh.out", [Tensor("self")], [], Float, atanh;
    ERF: "aten::erf.out", [Tensor("self")], [], Float, erf;
}

kernels! {
    "aten::abs.out" => ABS,
    "aten::neg.out" => NEG,
    "aten::sign.out" => SIGN,
    "aten::isnan.out" => IS_NAN,
    "aten::isinf.out" => IS_INFINITE,
    "aten::floor.out" => FLOOR,
    "aten::ceil.out" => CEIL,
    "aten::trunc.out" => TRUNC,
    "aten::round.out" => ROUND,
    "aten::round.decimals_out" => ROUND_DECIMALS,
    "aten::exp.out" => EXP,
    "aten::expm1.out" => EXPM1,
    "aten::log.out" => LN,
    "aten::log1p.out" => LOG1P,
    "aten::log2.out" => LOG2,
    "aten::log10.out" => LOG10,
    "aten::sqrt.out" => SQRT,
    "aten::rsqrt.out" => RSQRT,
    "aten::reciprocal.out" => RECIPROCAL,
    "aten::sin.out" => SIN,
    "aten::cos.out" => COS,
    "aten::tan.out" => TAN,
    "aten::asin.out" => ASIN,
    "aten::acos.out" => ACOS,
    "aten::atan.out" => ATAN,
    "aten::sinh.out" => SINH,
    "aten::cosh.out" => COSH,
    "aten::tanh.out" => TANH,
    "aten::asinh.out" => ASINH,
    "aten::acosh.out" => ACOSH,
    "aten::atanh.out" => ATANH,
    "aten::erf.out" => ERF;
}
