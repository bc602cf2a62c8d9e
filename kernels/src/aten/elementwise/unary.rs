//! Functions of one number.

use edgepack_format::scalar::{Bool, Element, ScalarType};
use rten_simd::SimdUnaryOp;

use super::engine::Input::Tensor;
use super::lanes::{Body, Lane, Params, loops};
use super::schema::UNARY;
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
    pub(crate) ABS: UNARY, [Tensor(0)], [], 1, First, abs;
    pub(crate) NEG: UNARY, [Tensor(0)], [], 1, First, neg;
    SIGN: UNARY, [Tensor(0)], [], 1, First, sign;
    IS_NAN: UNARY, [Tensor(0)], [], 1, First, is_nan;
    IS_INFINITE: UNARY, [Tensor(0)], [], 1, First, is_infinite;
    FLOOR: UNARY, [Tensor(0)], [], 1, First, floor;
    CEIL: UNARY, [Tensor(0)], [], 1, First, ceil;
    TRUNC: UNARY, [Tensor(0)], [], 1, First, trunc;
    ROUND: UNARY, [Tensor(0)], [], 1, First, round;
    ROUND_DECIMALS: "(Tensor self, *, int decimals, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0)], [1], 2, First, round_decimals;
    pub(crate) EXP: UNARY, [Tensor(0)], [], 1, Float, exp;
    EXPM1: UNARY, [Tensor(0)], [], 1, Float, expm1;
    LN: UNARY, [Tensor(0)], [], 1, Float, ln;
    LOG1P: UNARY, [Tensor(0)], [], 1, Float, log1p;
    LOG2: UNARY, [Tensor(0)], [], 1, Float, log2;
    LOG10: UNARY, [Tensor(0)], [], 1, Float, log10;
    pub(crate) SQRT: UNARY, [Tensor(0)], [], 1, Float, sqrt;
    pub(crate) RSQRT: UNARY, [Tensor(0)], [], 1, Float, rsqrt;
    RECIPROCAL: UNARY, [Tensor(0)], [], 1, Float, reciprocal;
    SIN: UNARY, [Tensor(0)], [], 1, Float, sin;
    COS: UNARY, [Tensor(0)], [], 1, Float, cos;
    TAN: UNARY, [Tensor(0)], [], 1, Float, tan;
    ASIN: UNARY, [Tensor(0)], [], 1, Float, asin;
    ACOS: UNARY, [Tensor(0)], [], 1, Float, acos;
    ATAN: UNARY, [Tensor(0)], [], 1, Float, atan;
    SINH: UNARY, [Tensor(0)], [], 1, Float, sinh;
    COSH: UNARY, [Tensor(0)], [], 1, Float, cosh;
    pub(crate) TANH: UNARY, [Tensor(0)], [], 1, Float, tanh;
    ASINH: UNARY, [Tensor(0)], [], 1, Float, asinh;
    ACOSH: UNARY, [Tensor(0)], [], 1, Float, acosh;
    ATANH: UNARY, [Tensor(0)], [], 1, Float, atanh;
    ERF: UNARY, [Tensor(0)], [], 1, Float, erf;
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
