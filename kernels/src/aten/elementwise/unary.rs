//! Functions of one number.

use super::schema::UNARY;
use super::spec::Input::Tensor;
use super::{kernels, specs};
use edgepack_compute::pointwise::unary::*;

specs! {
    ABS: UNARY, [Tensor(0)], [], 1, First, abs;
    NEG: UNARY, [Tensor(0)], [], 1, First, neg;
    SIGN: UNARY, [Tensor(0)], [], 1, First, sign;
    IS_NAN: UNARY, [Tensor(0)], [], 1, First, is_nan;
    IS_INFINITE: UNARY, [Tensor(0)], [], 1, First, is_infinite;
    FLOOR: UNARY, [Tensor(0)], [], 1, First, floor;
    CEIL: UNARY, [Tensor(0)], [], 1, First, ceil;
    TRUNC: UNARY, [Tensor(0)], [], 1, First, trunc;
    ROUND: UNARY, [Tensor(0)], [], 1, First, round;
    ROUND_DECIMALS: "(Tensor self, *, int decimals, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0)], [1], 2, First, round_decimals;
    EXP: UNARY, [Tensor(0)], [], 1, Float, exp;
    EXPM1: UNARY, [Tensor(0)], [], 1, Float, expm1;
    LN: UNARY, [Tensor(0)], [], 1, Float, ln;
    LOG1P: UNARY, [Tensor(0)], [], 1, Float, log1p;
    LOG2: UNARY, [Tensor(0)], [], 1, Float, log2;
    LOG10: UNARY, [Tensor(0)], [], 1, Float, log10;
    SQRT: UNARY, [Tensor(0)], [], 1, Float, sqrt;
    RSQRT: UNARY, [Tensor(0)], [], 1, Float, rsqrt;
    RECIPROCAL: UNARY, [Tensor(0)], [], 1, Float, reciprocal;
    SIN: UNARY, [Tensor(0)], [], 1, Float, sin;
    COS: UNARY, [Tensor(0)], [], 1, Float, cos;
    TAN: UNARY, [Tensor(0)], [], 1, Float, tan;
    ASIN: UNARY, [Tensor(0)], [], 1, Float, asin;
    ACOS: UNARY, [Tensor(0)], [], 1, Float, acos;
    ATAN: UNARY, [Tensor(0)], [], 1, Float, atan;
    SINH: UNARY, [Tensor(0)], [], 1, Float, sinh;
    COSH: UNARY, [Tensor(0)], [], 1, Float, cosh;
    TANH: UNARY, [Tensor(0)], [], 1, Float, tanh;
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
