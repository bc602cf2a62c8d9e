//! Functions of one number.

use super::{kernels, specs};
use edgepack_compute::pointwise::unary::*;

specs! {
    ABS: "aten::abs.out", [Tensor("self")], [], First, abs;
    NEG: "aten::neg.out", [Tensor("self")], [], First, neg;
    SIGN: "aten::sign.out", [Tensor("self")], [], First, sign;
    IS_NAN: "aten::isnan.out", [Tensor("self")], [], First, is_nan;
    IS_INFINITE: "aten::isinf.out", [Tensor("self")], [], First, is_infinite;
    FLOOR: "aten::floor.out", [Tensor("self")], [], First, floor;
    CEIL: "aten::ceil.out", [Tensor("self")], [], First, ceil;
    TRUNC: "aten::trunc.out", [Tensor("self")], [], First, trunc;
    ROUND: "aten::round.out", [Tensor("self")], [], First, round;
    ROUND_DECIMALS: "aten::round.decimals_out", [Tensor("self")], ["decimals"], First, round_decimals;
    EXP: "aten::exp.out", [Tensor("self")], [], Float, exp;
    EXPM1: "aten::expm1.out", [Tensor("self")], [], Float, expm1;
    LN: "aten::log.out", [Tensor("self")], [], Float, ln;
    LOG1P: "aten::log1p.out", [Tensor("self")], [], Float, log1p;
    LOG2: "aten::log2.out", [Tensor("self")], [], Float, log2;
    LOG10: "aten::log10.out", [Tensor("self")], [], Float, log10;
    SQRT: "aten::sqrt.out", [Tensor("self")], [], Float, sqrt;
    RSQRT: "aten::rsqrt.out", [Tensor("self")], [], Float, rsqrt;
    RECIPROCAL: "aten::reciprocal.out", [Tensor("self")], [], Float, reciprocal;
    SIN: "aten::sin.out", [Tensor("self")], [], Float, sin;
    COS: "aten::cos.out", [Tensor("self")], [], Float, cos;
    TAN: "aten::tan.out", [Tensor("self")], [], Float, tan;
    ASIN: "aten::asin.out", [Tensor("self")], [], Float, asin;
    ACOS: "aten::acos.out", [Tensor("self")], [], Float, acos;
    ATAN: "aten::atan.out", [Tensor("self")], [], Float, atan;
    SINH: "aten::sinh.out", [Tensor("self")], [], Float, sinh;
    COSH: "aten::cosh.out", [Tensor("self")], [], Float, cosh;
    TANH: "aten::tanh.out", [Tensor("self")], [], Float, tanh;
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
