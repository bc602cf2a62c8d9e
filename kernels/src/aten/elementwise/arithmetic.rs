//! Sums, products, quotients, remainders, powers and extremes.

use edgepack_executor::kernel::{Alias, Kernel, KernelError, Prepare, Run};

use super::engine::{Spec, prepare, prepare_then};
use super::lanes::{Body, Lane, Params, loops, map2, with_class};
use super::{complex, kernels, specs};
use crate::schema::position;
use edgepack_compute::float::Float;
use edgepack_compute::number::Compute;
use edgepack_format::scalar::ScalarType;

loops! {
    real_add: all<C: Compute> -> C, |p; a, b| a.plus(b.times(p[0]));
    real_plain_add: all<C: Compute> -> C, |p; a, b| a.plus(b);
    real_sub: real<C: Compute> -> C, |p; a, b| a.minus(b.times(p[0]));
    rsub: real<C: Compute> -> C, |p; a, b| b.minus(a.times(p[0]));
    real_mul: all<C: Compute> -> C, |p; a, b| a.times(b);
    real_div: float<C: Float> -> C, |p; a, b| a.over(b);
    trunc_div: real<C: Compute> -> C, |p; a, b| a.trunc_div(b);
    floor_div: real<C: Compute> -> C, |p; a, b| a.floor_div(b);
    remainder: real<C: Compute> -> C, |p; a, b| a.rem_floor(b);
    fmod: real<C: Compute> -> C, |p; a, b| a.rem_trunc(b);
    maximum: all<C: Compute> -> C, |p; a, b| a.greater_of(b);
    minimum: all<C: Compute> -> C, |p; a, b| a.lesser_of(b);
    atan2: float<C: Float> -> C, |p; a, b| a.atan2(b);
}

/// Operators of real and of complex numbers.
macro_rules! both {
    ($($name:ident: $real:ident;)*) => {$(
        fn $name(compute: ScalarType) -> Option<Body> {
            $real(compute).or_else(|| complex::$name(compute))
        }
    )*};
}

both! {
    add: real_add;
    plain_add: real_plain_add;
    sub: real_sub;
    mul: real_mul;
    div: real_div;
}

/// Powers, with the small whole exponents that models use written out.
fn pow(compute: ScalarType) -> Option<Body> {
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
        if let super::lanes::Values::One(exponent) = lanes[1].values::<C>() {
            let two = C::ONE.plus(C::ONE);
            if C::FLOATING && exponent.same(two) {
                return map2(lanes, out, |a: C, _: C| a.times(a));
            }
            if C::FLOATING && exponent.same(two.plus(C::ONE)) {
                return map2(lanes, out, |a: C, _: C| a.times(a).times(a));
            }
        }
        map2(lanes, out, |a: C, b: C| a.power(b));
    }
    fn body<C: Compute>() -> Body {
        Body { run: run::<C>, result: C::SCALAR_TYPE }
    }
    with_class!(real, compute, T => body::<T>())
}

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

const ALPHA: usize = position("aten::add.out", "alpha");

/// Almost every sum is plain, and then no product is computed.
fn prepare_add(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(5)?;
    prepare(args, sum(args)?)
}

fn sum(args: &Prepare<'_>) -> Result<&'static Spec, KernelError> {
    let plain = args.scalar(ALPHA)? == Some(edgepack_executor::tensor::Scalar::Int(1));
    Ok(if plain { &ADD_PLAIN } else { &ADD })
}

/// `aten::add.out` whose results go through steps. Programs do not name it.
pub(crate) static ADD_THEN: Kernel = Kernel {
    name: "edgepack::add.then_out",
    schema: "(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out, str then) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare_then(args, sum(args)?),
};

/// `aten::mul.out` whose results go through steps. Programs do not name it.
pub(crate) static MUL_THEN: Kernel = Kernel {
    name: "edgepack::mul.then_out",
    schema: "(Tensor self, Tensor other, *, Tensor(a!) out, str then) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare_then(args, &MUL),
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
