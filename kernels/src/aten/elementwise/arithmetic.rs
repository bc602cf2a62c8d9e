//! Sums, products, quotients, remainders, powers and extremes.

use edgepack_executor::kernel::{KernelError, Prepare, Run};

use super::engine::{prepare, prepare_fused};
use super::schema::{BINARY, WITH_NUMBER};
use super::spec::Input::{Scalar, Tensor};
use super::spec::Spec;
use super::{kernels, specs};
use crate::fused::Base;
use crate::schema::position;
use edgepack_compute::pointwise::arithmetic::*;
const ALPHA: &str = "(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)";
const NUMBER_ALPHA: &str = "(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out) -> Tensor(a!)";
const MODE: &str = "(Tensor self, Tensor other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)";
const NUMBER_MODE: &str = "(Tensor self, Scalar other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)";

specs! {
    ADD: ALPHA, [Tensor(0), Tensor(1)], [2], 3, Promote, add;
    ADD_PLAIN: ALPHA, [Tensor(0), Tensor(1)], [], 3, Promote, plain_add;
    ADD_NUMBER: NUMBER_ALPHA, [Tensor(0), Scalar(1)], [2], 3, Promote, add;
    SUB: ALPHA, [Tensor(0), Tensor(1)], [2], 3, Promote, sub;
    SUB_NUMBER: NUMBER_ALPHA, [Tensor(0), Scalar(1)], [2], 3, Promote, sub;
    RSUB_NUMBER: NUMBER_ALPHA, [Tensor(0), Scalar(1)], [2], 3, Promote, rsub;
    MUL: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, mul;
    MUL_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, mul;
    DIV: BINARY, [Tensor(0), Tensor(1)], [], 2, Float, div;
    DIV_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, div;
    FLOOR_DIVIDE: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, floor_div, divisor 1;
    REMAINDER: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, remainder, divisor 1;
    REMAINDER_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, remainder, divisor 1;
    FMOD: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, fmod, divisor 1;
    FMOD_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, fmod, divisor 1;
    MAXIMUM: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, maximum;
    MINIMUM: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, minimum;
    ATAN2: BINARY, [Tensor(0), Tensor(1)], [], 2, Float, atan2;
    POW: "(Tensor self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), Tensor(1)], [], 2, Promote, pow;
    POW_NUMBER: "(Tensor self, Scalar exponent, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), Scalar(1)], [1], 2, Promote, pow;
    NUMBER_POW: "(Scalar self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
        [Scalar(0), Tensor(1)], [], 2, Promote, pow;
    DIV_MODE: MODE, [Tensor(0), Tensor(1)], [], 3, Float, div;
    DIV_TRUNC: MODE, [Tensor(0), Tensor(1)], [], 3, Promote, trunc_div, divisor 1;
    DIV_FLOOR: MODE, [Tensor(0), Tensor(1)], [], 3, Promote, floor_div, divisor 1;
    DIV_NUMBER_MODE: NUMBER_MODE, [Tensor(0), Scalar(1)], [], 3, Float, div;
    DIV_NUMBER_TRUNC: NUMBER_MODE, [Tensor(0), Scalar(1)], [], 3, Promote, trunc_div, divisor 1;
    DIV_NUMBER_FLOOR: NUMBER_MODE, [Tensor(0), Scalar(1)], [], 3, Promote, floor_div, divisor 1;
}

fn by_mode(args: &Prepare<'_>, modes: [&'static Spec; 3]) -> Result<Box<dyn Run>, KernelError> {
    let [exact, trunc, floor] = modes;
    if args.is_none(2) {
        return prepare(args, exact);
    }
    match args.text(2)? {
        "trunc" => prepare(args, trunc),
        "floor" => prepare(args, floor),
        other => Err(KernelError::argument(format!("`rounding_mode` is {other:?}, not \"trunc\" or \"floor\""))),
    }
}

/// Almost every sum is plain, and then no product is computed.
fn prepare_add(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(5)?;
    prepare(args, sum(args)?)
}

fn sum(args: &Prepare<'_>) -> Result<&'static Spec, KernelError> {
    let plain = args.scalar(2)? == Some(edgepack_executor::tensor::Scalar::Int(1));
    Ok(if plain { &ADD_PLAIN } else { &ADD })
}

/// `aten::add.out` and the operations behind it.
pub(crate) static FUSED_ADD: Base = Base {
    name: "edgepack::add.epilogue_out",
    schema: ALPHA,
    out: position("aten::add.out", "out"),
    in_place: false,
    prepare: |args, epilogue| prepare_fused(args, sum(args)?, epilogue),
};

/// `aten::mul.out` and the operations behind it.
pub(crate) static FUSED_MUL: Base = Base {
    name: "edgepack::mul.epilogue_out",
    schema: BINARY,
    out: position("aten::mul.out", "out"),
    in_place: false,
    prepare: |args, epilogue| prepare_fused(args, &MUL, epilogue),
};

kernels! {
    "aten::add.Scalar_out" => ADD_NUMBER,
    "aten::sub.out" => SUB,
    "aten::sub.Scalar_out" => SUB_NUMBER,
    "aten::rsub.Scalar_out" => RSUB_NUMBER,
    "aten::mul.out" => MUL,
    "aten::mul.Scalar_out" => MUL_NUMBER,
    "aten::div.out" => DIV,
    "aten::div.Scalar_out" => DIV_NUMBER,
    "aten::floor_divide.out" => FLOOR_DIVIDE,
    "aten::remainder.Tensor_out" => REMAINDER,
    "aten::remainder.Scalar_out" => REMAINDER_NUMBER,
    "aten::fmod.Tensor_out" => FMOD,
    "aten::fmod.Scalar_out" => FMOD_NUMBER,
    "aten::maximum.out" => MAXIMUM,
    "aten::minimum.out" => MINIMUM,
    "aten::atan2.out" => ATAN2,
    "aten::pow.Tensor_Tensor_out" => POW,
    "aten::pow.Tensor_Scalar_out" => POW_NUMBER,
    "aten::pow.Scalar_out" => NUMBER_POW;
    "aten::add.out" ALPHA => prepare_add,
    "aten::div.out_mode" MODE => |args| by_mode(args, [&DIV_MODE, &DIV_TRUNC, &DIV_FLOOR]),
    "aten::div.Scalar_mode_out" NUMBER_MODE =>
        |args| by_mode(args, [&DIV_NUMBER_MODE, &DIV_NUMBER_TRUNC, &DIV_NUMBER_FLOOR]),
}
