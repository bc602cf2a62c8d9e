//! Normalisation, softmax, and what only training does.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, Size, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "batch_norm" => batch_norm,
        "native_batch_norm" | "_batch_norm_no_update" => |make, node| {
            if node.flag("training") {
                let names = ["input", "weight", "bias", "training", "momentum", "eps"];
                let found =
                    make.calls("_native_batch_norm_legit.no_stats", names.map(|name| (name, node.arg(name))))?;
                return Ok(Some(found.into_iter().map(Argument::Value).collect()));
            }
            let names = ["input", "weight", "bias", "running_mean", "running_var", "momentum", "eps"];
            let args = names.map(|name| (name, node.arg(name)));
            let mut found: Vec<Argument> =
                make.calls("_native_batch_norm_legit_no_training", args)?.into_iter().map(Argument::Value).collect();
            if let Some(spare) = node.node.results().get(3) {
                let meta = make.meta(*spare)?;
                found.push(make.full(&meta.sizes, Argument::Int(0), meta.scalar_type)?.into());
            }
            Ok(Some(found))
        },
        "instance_norm" => instance_norm,
        "layer_norm" => layer_norm,
        "group_norm" => group_norm,
        "rms_norm" | "_fused_rms_norm" => rms_norm,
        "_weight_norm" | "_weight_norm_interface" => weight_norm,
        "softmax.int" | "special_softmax" => |make, node| softmax(make, node, "_softmax"),
        "log_softmax.int" | "special_log_softmax" => |make, node| softmax(make, node, "_log_softmax"),
        "_safe_softmax" => |make, node| {
            // Rows of nothing but minus infinity give zeros.
            let x = node.value("self")?;
            let found = softmax(make, node, "_softmax")?;
            let Some(value) = found.as_deref().and_then(<[Argument]>::first).and_then(Argument::value) else {
                return Ok(None);
            };
            let open = make.binary("ne.Scalar", x, f64::NEG_INFINITY)?;
            let args = [("self", open.into()), ("dim", node.int("dim")?.into()), ("keepdim", true.into())];
            let open = make.call("any.dim", args)?;
            let zero = make.scalar(Argument::Float(0.0), make.meta(value)?.scalar_type)?;
            one(make.choose(open, value, zero)?)
        },
        "dropout" | "feature_dropout" | "alpha_dropout" | "feature_alpha_dropout" => |make, node| {
            if node.flag("train") && node.number("p") != Some(0.0) {
                return Err(node.wrong("train"));
            }
            one(make.unary("clone", node.value("input")?)?)
        },
        "native_dropout" => |make, node| {
            if node.flag("train") && node.number("p") != Some(0.0) {
                return Err(node.wrong("train"));
            }
            let input = node.value("input")?;
            let sizes = make.sizes(input)?;
            let (result, mask) = (make.unary("clone", input)?, make.full(&sizes, true.into(), ScalarType::BOOL)?);
            Ok(Some(vec![result.into(), mask.into()]))
        },
        _ => return None,
    })
}

fn softmax(make: &mut Maker<'_>, node: &Composite<'_>, core: &str) -> Answer {
    let mut input = node.value("self")?;
    match node.arg("dtype") {
        Argument::ScalarType(scalar_type) => input = make.cast(input, scalar_type)?,
        _ if !make.meta(input)?.scalar_type.is_floating() => input = make.cast(input, ScalarType::FLOAT)?,
        _ => {}
    }
    let args = [("self", input.into()), ("dim", node.int("dim")?.into()), ("half_to_float", false.into())];
    one(make.call(core, args)?)
}

fn batch_norm(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = node.value("input")?;
    if node.flag("training") {
        // What training changes besides is written out before; here are no running moments.
        if node.has("running_mean") || node.has("running_var") {
            return Err(node.wrong("running_mean"));
        }
        let rank = i64::try_from(make.rank(input)?).unwrap_or(0);
        let dims: Vec<i64> = (0..rank).filter(|dim| *dim != 1).collect();
        let value = normalised(make, input, &dims, node.arg("eps"))?;
        return one(affine(make, value, node, 1)?);
    }
    let names = ["weight", "bias", "running_mean", "running_var", "momentum", "eps"];
    let [weight, bias, mean, var, momentum, eps] = names.map(|name| (name, node.arg(name)));
    let args = [("input", input.into()), weight, bias, mean, var, momentum, eps];
    one(make.call("_native_batch_norm_legit_no_training", args)?)
}

/// Scale and shift with one number per channel.
fn affine(make: &mut Maker<'_>, value: ValueId, node: &Composite<'_>, channels: usize) -> Result<ValueId, Error> {
    let rank = make.rank(value)?;
    let mut value = value;
    for (name, op) in [("weight", "mul.Tensor"), ("bias", "add.Tensor")] {
        let Some(factor) = node.arg(name).value() else { continue };
        let mut sizes = vec![Size::Known(1); rank];
        if let Some(size) = sizes.get_mut(channels) {
            *size = make.size(factor, 0)?;
        }
        let factor = make.view(factor, &sizes)?;
        value = make.binary(op, value, factor)?;
    }
    Ok(value)
}

/// Subtracts the mean and divides by the square root of the variance, along dimensions.
fn normalised(make: &mut Maker<'_>, input: ValueId, dims: &[i64], eps: Argument) -> Result<ValueId, Error> {
    let mean = make.mean(input, dims, true)?;
    let centred = make.binary("sub.Tensor", input, mean)?;
    let square = make.binary("mul.Tensor", centred, centred)?;
    let variance = make.mean(square, dims, true)?;
    let variance = make.binary("add.Tensor", variance, eps)?;
    let scale = make.unary("rsqrt", variance)?;
    make.binary("mul.Tensor", centred, scale)
}

fn instance_norm(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    if !node.flag("use_input_stats") {
        return batch_norm(make, node);
    }
    if node.has("running_mean") || node.has("running_var") {
        return Err(node.wrong("running_mean"));
    }
    let input = node.value("input")?;
    let dims: Vec<i64> = (2..i64::try_from(make.rank(input)?).unwrap_or(0)).collect();
    let value = normalised(make, input, &dims, node.arg("eps"))?;
    one(affine(make, value, node, 1)?)
}

fn layer_norm(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = node.value("input")?;
    let args = ["normalized_shape", "weight", "bias", "eps"].map(|name| (name, node.arg(name)));
    let [shape, weight, bias, eps] = args;
    one(make.call("native_layer_norm", [("input", input.into()), shape, weight, bias, eps])?)
}

fn group_norm(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = node.value("input")?;
    let sizes = make.sizes(input)?;
    let [batch, channels, rest @ ..] = sizes.as_slice() else { return Ok(None) };
    let pixels = Size::product(rest);
    let args = [
        ("input", input.into()),
        ("weight", node.arg("weight")),
        ("bias", node.arg("bias")),
        ("N", make.size_arg(batch)?),
        ("C", make.size_arg(channels)?),
        ("HxW", make.size_arg(&pixels)?),
        ("group", node.int("num_groups")?.into()),
        ("eps", node.arg("eps")),
    ];
    one(make.call("native_group_norm", args)?)
}

/// A weight whose rows along one dimension have the lengths that are given.
fn weight_norm(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (weight, lengths) = (node.value("v")?, node.value("g")?);
    let rank = i64::try_from(make.rank(weight)?).unwrap_or(0);
    let kept = i64::try_from(make.dim(node.int("dim")?, make.rank(weight)?)?).unwrap_or(0);
    let dims: Vec<i64> = (0..rank).filter(|dim| *dim != kept).collect();
    let square = make.binary("mul.Tensor", weight, weight)?;
    let sum = make.sum(square, &dims, true)?;
    let norm = make.unary("sqrt", sum)?;
    let scale = make.binary("div.Tensor", lengths, norm)?;
    let value = make.binary("mul.Tensor", weight, scale)?;
    Ok(Some(vec![value.into(), norm.into()]))
}

fn rms_norm(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = node.value("input")?;
    let scalar_type = make.meta(input)?.scalar_type;
    let count = i64::try_from(node.ints("normalized_shape")?.len()).unwrap_or(0);
    let dims: Vec<i64> = (1..=count).rev().map(i64::saturating_neg).collect();
    // Small floats are summed as larger ones.
    let small = matches!(scalar_type, ScalarType::HALF | ScalarType::BFLOAT16);
    let wide = if small { make.cast(input, ScalarType::FLOAT)? } else { input };
    let eps = match node.number("eps") {
        Some(eps) => eps,
        None if scalar_type == ScalarType::DOUBLE => f64::EPSILON,
        None if scalar_type == ScalarType::HALF => 2f64.powi(-10),
        None if scalar_type == ScalarType::BFLOAT16 => 2f64.powi(-7),
        None => f64::from(f32::EPSILON),
    };
    let square = make.call("pow.Tensor_Scalar", [("self", wide.into()), ("exponent", Argument::Int(2))])?;
    let mean = make.mean(square, &dims, true)?;
    let mean = make.binary("add.Tensor", mean, eps)?;
    let scale = make.unary("rsqrt", mean)?;
    let mut value = make.binary("mul.Tensor", wide, scale)?;
    if let Some(weight) = node.arg("weight").value() {
        value = make.binary("mul.Tensor", value, weight)?;
    }
    let value = make.cast(value, scalar_type)?;
    match node.node.outputs.len() {
        1 => one(value),
        _ => Ok(Some(vec![value.into(), scale.into()])),
    }
}
