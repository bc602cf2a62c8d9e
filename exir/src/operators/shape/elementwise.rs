//! Operators whose elements come from the elements at their places.

use edgepack_format::scalar::ScalarType;

use super::numbers::{Choice, broadcast, to_float, to_sum};
use super::{Call, ShapeFunction, made, one};
use crate::graph::{Size, TensorMeta};

pub(super) fn find(name: &str) -> Option<ShapeFunction> {
    let (base, overload) = name.split_once('.').unwrap_or((name, ""));
    Some(match base {
        "abs"
        | "neg"
        | "relu"
        | "floor"
        | "ceil"
        | "round"
        | "sign"
        | "trunc"
        | "elu"
        | "gelu"
        | "hardtanh"
        | "leaky_relu"
        | "bitwise_not"
        | "fill"
        | "hardswish"
        | "hardsigmoid"
        | "silu"
        | "mish"
        | "softplus"
        | "selu"
        | "celu"
        | "relu6"
        | "hardshrink"
        | "softshrink"
        | "threshold"
        | "square"
        | "positive"
        | "frac"
        | "sgn"
        | "dropout"
        | "contiguous"
        | "log_sigmoid"
        | "detach"
        | "alias"
        | "lift_fresh_copy"
        | "lift_fresh"
        | "alias_copy"
        | "detach_copy"
        | "clone"
        | "_clone_dim_order"
        | "flip"
        | "roll"
        | "tril"
        | "triu"
        | "lift"
        | "copy"
        | "masked_fill"
        | "_conj_physical"
        | "logcumsumexp"
        | "_fft_c2c"
        | "nan_to_num"
        | "_adaptive_avg_pool2d_backward" => same,
        "acos" | "acosh" | "asin" | "asinh" | "atan" | "atanh" | "cos" | "cosh" | "erf" | "erfc" | "exp" | "expm1"
        | "exp2" | "log" | "log10" | "log1p" | "log2" | "reciprocal" | "rsqrt" | "sigmoid" | "sin" | "sinh"
        | "sqrt" | "tan" | "tanh" | "logit" | "erfinv" | "lgamma" | "digamma" | "deg2rad" | "rad2deg"
        | "special_erfcx" | "i0" | "special_ndtri" | "sinc" | "polygamma" => float,
        "isnan" | "isinf" | "isfinite" | "logical_not" | "isneginf" | "isposinf" | "signbit" => truth,
        "add"
        | "sub"
        | "mul"
        | "rsub"
        | "minimum"
        | "maximum"
        | "fmod"
        | "remainder"
        | "bitwise_and"
        | "bitwise_or"
        | "bitwise_xor"
        | "bitwise_left_shift"
        | "bitwise_right_shift"
        | "__and__"
        | "__or__"
        | "__xor__"
        | "floor_divide"
        | "fmax"
        | "fmin"
        | "hypot"
        | "__lshift__"
        | "__rshift__" => arithmetic,
        "pow" => power,
        "div" | "true_divide" if overload.ends_with("_mode") => divided_by_mode,
        "div" | "true_divide" | "atan2" | "xlogy" | "special_xlog1py" | "igamma" | "igammac" => divided,
        "eq" | "ne" | "gt" | "ge" | "lt" | "le" | "logical_and" | "logical_or" | "logical_xor" | "isclose" => compared,
        "clamp" | "clamp_min" | "clamp_max" => clamped,
        "where" if !overload.is_empty() => chosen,
        "_softmax" | "_log_softmax" => softmax,
        "softmax" | "log_softmax" => softmax_with_type,
        "cumsum" | "cumprod" => cumulated,
        "_to_copy" | "to" | "_to_dim_order_copy" => cast,
        "addcmul" | "addcdiv" => three,
        "lerp" => interpolated,
        "type_as" => like_other_type,
        "full_like" | "zeros_like" | "ones_like" | "empty_like" | "rand_like" | "randn_like" => like,
        "native_dropout" => native_dropout,
        "prelu" | "_prelu_kernel" => same,
        "glu" => halved,
        _ => return None,
    })
}

/// The first tensor there is under a usual name.
fn main<'c>(call: &'c Call<'_>) -> Option<&'c TensorMeta> {
    call.tensor("self").or_else(|| call.tensor("input"))
}

fn same(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(input.scalar_type, &input.sizes)
}

fn float(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(to_float(input.scalar_type), &input.sizes)
}

fn truth(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(ScalarType::BOOL, &main(call)?.sizes)
}

/// The sizes of all tensors of a call together.
fn together(call: &Call<'_>, names: &[&str]) -> Option<Vec<Size>> {
    broadcast(names.iter().filter_map(|name| call.tensor(name)).map(|meta| meta.sizes.as_slice()))
}

fn type_of(call: &Call<'_>, names: &[&str]) -> Option<ScalarType> {
    names.iter().fold(Choice::default(), |choice, name| choice.with(call, name)).settle()
}

fn arithmetic(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(type_of(call, &["self", "other"])?, &together(call, &["self", "other"])?)
}

fn power(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(type_of(call, &["self", "exponent"])?, &together(call, &["self", "exponent"])?)
}

fn divided(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(to_float(type_of(call, &["self", "other"])?), &together(call, &["self", "other"])?)
}

fn divided_by_mode(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    if call.has("rounding_mode") { arithmetic(call) } else { divided(call) }
}

fn compared(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(ScalarType::BOOL, &together(call, &["self", "other"])?)
}

fn clamped(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(type_of(call, &["self", "min", "max"])?, &together(call, &["self", "min", "max"])?)
}

fn chosen(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(type_of(call, &["self", "other"])?, &together(call, &["condition", "self", "other"])?)
}

fn softmax(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    let scalar_type = if call.flag("half_to_float") { ScalarType::FLOAT } else { input.scalar_type };
    one(scalar_type, &input.sizes)
}

fn softmax_with_type(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(call.scalar_type("dtype").unwrap_or(to_float(input.scalar_type)), &input.sizes)
}

fn cumulated(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(call.scalar_type("dtype").unwrap_or(to_sum(input.scalar_type)), &input.sizes)
}

fn cast(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(call.scalar_type("dtype").unwrap_or(input.scalar_type), &input.sizes)
}

fn three(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let names = ["self", "tensor1", "tensor2"];
    one(type_of(call, &names)?, &together(call, &names)?)
}

fn interpolated(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(main(call)?.scalar_type, &together(call, &["self", "end", "weight"])?)
}

fn like_other_type(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(call.tensor("other")?.scalar_type, &main(call)?.sizes)
}

fn like(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    cast(call)
}

fn native_dropout(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    Some(vec![made(input.scalar_type, &input.sizes), made(ScalarType::BOOL, &input.sizes)])
}

fn halved(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    let dim = super::dimension(call.int("dim")?, input.rank())?;
    let mut sizes = input.sizes.clone();
    let size = sizes.get_mut(dim)?;
    *size = size.over(&Size::Known(2));
    one(input.scalar_type, &sizes)
}
