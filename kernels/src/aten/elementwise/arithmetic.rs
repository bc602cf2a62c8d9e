//! Sums, products, quotients, remainders, powers and extremes.

use edgepack_executor::kernel::{KernelError, Prepare, Run};

use super::engine::{prepare, prepare_fused};
use super::spec::Spec;
use super::{kernels, specs};
use crate::fused::Base;
use crate::schema::{position, signature};
use edgepack_compute::pointwise::arithmetic::*;

specs! {
    ADD: "aten::add.out", [Tensor("self"), Tensor("other")], ["alpha"], Promote, add;
    ADD_PLAIN: "aten::add.out", [Tensor("self"), Tensor("other")], [], Promote, plain_add;
    ADD_NUMBER: "aten::add.Scalar_out", [Tensor("self"), Scalar("other")], ["alpha"], Promote, add;
    SUB: "aten::sub.out", [Tensor("self"), Tensor("other")], ["alpha"], Promote, sub;
    SUB_NUMBER: "aten::sub.Scalar_out", [Tensor("self"), Scalar("other")], ["alpha"], Promote, sub;
    RSUB_NUMBER: "aten::rsub.Scalar_out", [Tensor("self"), Scalar("other")], ["alpha"], Promote, rsub;
    MUL: "aten::mul.out", [Tensor("self"), Tensor("other")], [], Promote, mul;
    MUL_NUMBER: "aten::mul.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, mul;
    DIV: "aten::div.out", [Tensor("self"), Tensor("other")], [], Float, div;
    DIV_NUMBER: "aten::div.Scalar_out", [Tensor("self"), Scalar("other")], [], Float, div;
    FLOOR_DIVIDE: "aten::floor_divide.out", [Tensor("self"), Tensor("other")], [], Promote, floor_div, divisor 1;
    REMAINDER: "aten::remainder.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, remainder, divisor 1;
    REMAINDER_NUMBER: "aten::remainder.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, remainder, divisor 1;
    FMOD: "aten::fmod.Tensor_out", [Tensor("self"), Tensor("other")], [], Promote, fmod, divisor 1;
    FMOD_NUMBER: "aten::fmod.Scalar_out", [Tensor("self"), Scalar("other")], [], Promote, fmod, divisor 1;
    MAXIMUM: "aten::maximum.out", [Tensor("self"), Tensor("other")], [], Promote, maximum;
    MINIMUM: "aten::minimum.out", [Tensor("self"), Tensor("other")], [], Promote, minimum;
    ATAN2: "aten::atan2.out", [Tensor("self"), Tensor("other")], [], Float, atan2;
    POW: "aten::pow.Tensor_Tensor_out", [Tensor("self"), Tensor("exponent")], [], Promote, pow;
    POW_NUMBER: "aten::pow.Tensor_Scalar_out", [Tensor("self"), Scalar("exponent")], ["exponent"], Promote, pow;
    NUMBER_POW: "aten::pow.Scalar_out", [Scalar("self"), Tensor("exponent")], [], Promote, pow;
    DIV_MODE: "aten::div.out_mode", [Tensor("self"), Tensor("other")], [], Float, div;
    DIV_TRUNC: "aten::div.out_mode", [Tensor("self"), Tensor("other")], [], Promote, trunc_div, divisor 1;
    DIV_FLOOR: "aten::div.out_mode", [Tensor("self"), Tensor("other")], [], Promote, floor_div, divisor 1;
    DIV_NUMBER_MODE: "aten::div.Scalar_mode_out", [Tensor("self"), Scalar("other")], [], Float, div;
    DIV_NUMBER_TRUNC: "aten::div.Scalar_mode_out", [Tensor("self"), Scalar("other")], [], Promote, trunc_div, divisor 1;
    DIV_NUMBER_FLOOR: "aten::div.Scalar_mode_out", [Tensor("self"), Scalar("other")], [], Promote, floor_div, divisor 1;
}

/// The argument of both divisions that says how.
const ROUNDING_MODE: usize = position("aten::div.out_mode", "rounding_mode");

fn by_mode(args: &Prepare<'_>, modes: [&'static Spec; 3]) -> Result<Box<dyn Run>, KernelError> {
    let [exact, trunc, floor] = modes;
    if args.is_none(ROUNDING_MODE) {
        return prepare(args, exact);
    }
    match args.text(ROUNDING_MODE)? {
        "trunc" => prepare(args, trunc),
        "floor" => prepare(args, floor),
        other => Err(KernelError::argument(format!("`rounding_mode` is {other:?}, not \"trunc\" or \"floor\""))),
    }
}

/// The factor of the second operand of a sum.
pub(crate) const ALPHA: usize = position("aten::add.out", "alpha");

/// Almost every sum is plain, and then no product is computed.
fn prepare_add(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(ADD.out + 2)?;
    prepare(args, sum(args)?)
}

fn sum(args: &Prepare<'_>) -> Result<&'static Spec, KernelError> {
    let plain = args.scalar(ALPHA)? == Some(edgepack_executor::tensor::Scalar::Int(1));
    Ok(if plain { &ADD_PLAIN } else { &ADD })
}

/// `aten::add.out` and the operations behind it.
pub(crate) static FUSED_ADD: Base = Base {
    name: "edgepack::add.epilogue_out",
    schema: signature("aten::add.out"),
    out: position("aten::add.out", "out"),
    in_place: false,
    prepare: |args, epilogue| prepare_fused(args, sum(args)?, epilogue),
};

/// `aten::mul.out` and the operations behind it.
pub(crate) static FUSED_MUL: Base = Base {
    name: "edgepack::mul.epilogue_out",
    schema: signature("aten::mul.out"),
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
    "aten::add.out" => prepare_add,
    "aten::div.out_mode" => |args| by_mode(args, [&DIV_MODE, &DIV_TRUNC, &DIV_FLOOR]),
    "aten::div.Scalar_mode_out" =>
        |args| by_mode(args, [&DIV_NUMBER_MODE, &DIV_NUMBER_TRUNC, &DIV_NUMBER_FLOOR]),
}
