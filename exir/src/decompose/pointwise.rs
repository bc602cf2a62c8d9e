//! Functions of one element at a time, out of the core ones.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, ValueId};

/// Other names of core operators that take the same arguments.
const SYNONYMS: [(&str, &str); 63] = [
    ("absolute", "abs"),
    ("arccos", "acos"),
    ("arccosh", "acosh"),
    ("arcsin", "asin"),
    ("arcsinh", "asinh"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("arctanh", "atanh"),
    ("negative", "neg"),
    ("fix", "trunc"),
    ("multiply.Tensor", "mul.Tensor"),
    ("multiply.Scalar", "mul.Scalar"),
    ("subtract.Tensor", "sub.Tensor"),
    ("subtract.Scalar", "sub.Scalar"),
    ("divide.Tensor", "div.Tensor"),
    ("divide.Scalar", "div.Scalar"),
    ("divide.Tensor_mode", "div.Tensor_mode"),
    ("true_divide.Tensor", "div.Tensor"),
    ("true_divide.Scalar", "div.Scalar"),
    ("greater.Tensor", "gt.Tensor"),
    ("greater.Scalar", "gt.Scalar"),
    ("greater_equal.Tensor", "ge.Tensor"),
    ("greater_equal.Scalar", "ge.Scalar"),
    ("less.Tensor", "lt.Tensor"),
    ("less.Scalar", "lt.Scalar"),
    ("less_equal.Tensor", "le.Tensor"),
    ("less_equal.Scalar", "le.Scalar"),
    ("not_equal.Tensor", "ne.Tensor"),
    ("not_equal.Scalar", "ne.Scalar"),
    ("__and__.Tensor", "bitwise_and.Tensor"),
    ("__and__.Scalar", "bitwise_and.Scalar"),
    ("__or__.Tensor", "bitwise_or.Tensor"),
    ("__or__.Scalar", "bitwise_or.Scalar"),
    ("__xor__.Tensor", "bitwise_xor.Tensor"),
    ("__xor__.Scalar", "bitwise_xor.Scalar"),
    ("__lshift__.Tensor", "bitwise_left_shift.Tensor"),
    ("__lshift__.Scalar", "bitwise_left_shift.Tensor_Scalar"),
    ("__rshift__.Tensor", "bitwise_right_shift.Tensor"),
    ("__rshift__.Scalar", "bitwise_right_shift.Tensor_Scalar"),
    ("clip", "clamp"),
    ("clip.Tensor", "clamp.Tensor"),
    ("special_expit", "sigmoid"),
    ("special_erf", "erf"),
    ("special_expm1", "expm1"),
    ("special_log1p", "log1p"),
    ("special_round", "round"),
    ("special_digamma", "digamma"),
    ("special_psi", "digamma"),
    ("special_erfc", "erfc"),
    ("special_erfinv", "erfinv"),
    ("special_exp2", "exp2"),
    ("special_gammaln", "lgamma"),
    ("special_i0", "i0"),
    ("special_gammainc", "igamma"),
    ("special_gammaincc", "igammac"),
    ("special_polygamma", "polygamma"),
    ("special_multigammaln", "mvlgamma"),
    ("special_logsumexp", "logsumexp"),
    ("matrix_exp", "linalg_matrix_exp"),
    ("orgqr", "linalg_householder_product"),
    ("pdist", "_pdist_forward"),
    ("argwhere", "nonzero"),
    ("linalg_eigvals", "_linalg_eigvals"),
];

pub(super) fn find(name: &str) -> Option<Rule> {
    if SYNONYMS.iter().any(|(other, _)| *other == name) {
        return Some(synonym);
    }
    Some(match name {
        "relu6" => |make, node| {
            one(make.call("hardtanh", [("self", node.arg("self")), ("min_val", 0.0.into()), ("max_val", 6.0.into())])?)
        },
        "silu" => |make, node| {
            let x = node.value("self")?;
            let sigmoid = make.unary("sigmoid", x)?;
            one(make.binary("mul.Tensor", x, sigmoid)?)
        },
        "mish" => |make, node| {
            let x = node.value("self")?;
            let soft = softplus(make, x, 1.0, 20.0)?;
            let tanh = make.unary("tanh", soft)?;
            one(make.binary("mul.Tensor", x, tanh)?)
        },
        "softplus" => |make, node| {
            let (beta, threshold) = (node.number("beta").unwrap_or(1.0), node.number("threshold").unwrap_or(20.0));
            one(softplus(make, node.value("self")?, beta, threshold)?)
        },
        "hardsigmoid" => |make, node| {
            let x = node.value("self")?;
            let part = hard(make, x)?;
            one(make.binary("div.Tensor", part, 6.0)?)
        },
        "hardswish" => |make, node| {
            let x = node.value("self")?;
            let part = hard(make, x)?;
            let product = make.binary("mul.Tensor", x, part)?;
            one(make.binary("div.Tensor", product, 6.0)?)
        },
        "log_sigmoid" => |make, node| {
            // min(x, 0) - log(1 + exp(-|x|))
            let x = node.value("self")?;
            let low = make.call("clamp", [("self", x.into()), ("max", Argument::Int(0))])?;
            let size = make.unary("abs", x)?;
            let size = make.unary("neg", size)?;
            let size = make.unary("exp", size)?;
            let log = make.unary("log1p", size)?;
            one(make.binary("sub.Tensor", low, log)?)
        },
        "elu" => elu,
        "selu" => |make, node| {
            let x = node.value("self")?;
            one(exponential(make, x, 1.673_263_242_354_377_2, 1.050_700_987_355_480_5, 1.0)?)
        },
        "celu" => |make, node| {
            let alpha = node.number("alpha").unwrap_or(1.0);
            one(exponential(make, node.value("self")?, alpha, 1.0, 1.0 / alpha)?)
        },
        "prelu" | "_prelu_kernel" => prelu,
        "threshold" => |make, node| {
            let x = node.value("self")?;
            let above = make.binary("gt.Scalar", x, node.arg("threshold"))?;
            choose_scalar(make, above, x, node.arg("value"))
        },
        "hardshrink" => |make, node| {
            let x = node.value("self")?;
            let size = make.unary("abs", x)?;
            let kept = make.binary("gt.Scalar", size, node.arg("lambd"))?;
            choose_scalar(make, kept, x, Argument::Int(0))
        },
        "softshrink" => |make, node| {
            // x - clamp(x, -lambd, lambd)
            let (x, most) = (node.value("self")?, node.number("lambd").unwrap_or(0.5));
            let part = make.call("clamp", [("self", x.into()), ("min", (-most).into()), ("max", most.into())])?;
            one(make.binary("sub.Tensor", x, part)?)
        },
        "glu" => |make, node| {
            let (x, dim) = (node.value("self")?, node.int("dim")?);
            let len = make.known_size(x, dim)?;
            let half = len.checked_div(2).unwrap_or(0);
            let (a, b) = (make.slice(x, dim, 0, half)?, make.slice(x, dim, half, len)?);
            let gate = make.unary("sigmoid", b)?;
            one(make.binary("mul.Tensor", a, gate)?)
        },
        "square" => |make, node| {
            one(make.call("pow.Tensor_Scalar", [("self", node.arg("self")), ("exponent", Argument::Int(2))])?)
        },
        "float_power.Tensor_Scalar" => |make, node| {
            let x = make.cast(node.value("self")?, ScalarType::DOUBLE)?;
            one(make.call("pow.Tensor_Scalar", [("self", x.into()), ("exponent", node.arg("exponent"))])?)
        },
        "rsub.Tensor" | "rsub.Scalar" => rsub,
        "floor_divide" | "floor_divide.Scalar" => |make, node| {
            let args = [
                ("self", node.arg("self")),
                ("other", node.arg("other")),
                ("rounding_mode", Argument::Text("floor".to_owned())),
            ];
            one(make.call("div.Tensor_mode", args)?)
        },
        "addcmul" | "addcdiv" => |make, node| {
            let division = node.node.calls("aten::addcdiv");
            let op = if division { "div.Tensor" } else { "mul.Tensor" };
            let product = make.binary(op, node.value("tensor1")?, node.arg("tensor2"))?;
            let product = match node.number("value") {
                Some(1.0) | None => product,
                Some(_) => make.binary("mul.Tensor", product, node.arg("value"))?,
            };
            one(make.binary("add.Tensor", node.value("self")?, product)?)
        },
        "lerp.Scalar" | "lerp.Tensor" => |make, node| {
            let start = node.value("self")?;
            let way = make.binary("sub.Tensor", node.value("end")?, start)?;
            let part = make.binary("mul.Tensor", way, node.arg("weight"))?;
            one(make.binary("add.Tensor", start, part)?)
        },
        "frac" => |make, node| {
            let x = node.value("self")?;
            let whole = make.unary("trunc", x)?;
            one(make.binary("sub.Tensor", x, whole)?)
        },
        "sgn" => |make, node| {
            let x = node.value("self")?;
            if !make.meta(x)?.scalar_type.is_complex() {
                return one(make.unary("sign", x)?);
            }
            let size = make.unary("abs", x)?;
            let none = make.binary("eq.Scalar", size, 0i64)?;
            let (zero, size) = (make.scalar(0.0.into(), make.meta(x)?.scalar_type)?, size);
            let turned = make.binary("div.Tensor", x, size)?;
            one(make.choose(none, zero, turned)?)
        },
        "clamp_min" => |make, node| bounded(make, node, "min"),
        "clamp_max" => |make, node| bounded(make, node, "max"),
        "clamp_min.Tensor" => |make, node| one(make.binary("maximum", node.value("self")?, node.arg("min"))?),
        "clamp_max.Tensor" => |make, node| one(make.binary("minimum", node.value("self")?, node.arg("max"))?),
        "masked_fill.Scalar" | "masked_fill.Tensor" => masked_fill,
        "where.ScalarSelf" | "where.ScalarOther" | "where.Scalar" => where_scalar,
        "fill.Scalar" | "fill.Tensor" => |make, node| {
            let x = node.value("self")?;
            let meta = make.meta(x)?;
            match node.arg("value") {
                Argument::Value(value) => {
                    let value = make.cast(value, meta.scalar_type)?;
                    one(make.expand(value, &meta.sizes)?)
                }
                number => one(make.full(&meta.sizes, number, meta.scalar_type)?),
            }
        },
        "copy" => |make, node| {
            let meta = make.meta(node.value("self")?)?;
            let source = make.cast(node.value("src")?, meta.scalar_type)?;
            one(make.expand(source, &meta.sizes)?)
        },
        "deg2rad" => |make, node| one(make.binary("mul.Tensor", node.value("self")?, std::f64::consts::PI / 180.0)?),
        "rad2deg" => |make, node| one(make.binary("mul.Tensor", node.value("self")?, 180.0 / std::f64::consts::PI)?),
        "isfinite" => |make, node| {
            // Infinite and missing numbers alone differ from themselves or from all finite ones.
            let x = node.value("self")?;
            if !make.meta(x)?.scalar_type.is_floating() {
                return one(make.binary("eq.Tensor", x, x)?);
            }
            let (same, size) = (make.binary("eq.Tensor", x, x)?, make.unary("abs", x)?);
            let below = make.binary("ne.Scalar", size, f64::INFINITY)?;
            one(make.binary("logical_and", same, below)?)
        },
        "nan_to_num" => nan_to_num,
        _ => return None,
    })
}

fn synonym(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let name = node.node.target.to_string();
    let name = name.strip_prefix("aten::").unwrap_or(&name);
    let Some((_, core)) = SYNONYMS.iter().find(|(other, _)| *other == name) else { return Ok(None) };
    let results = make.same_results(core, node)?;
    Ok(Some(results.into_iter().map(Argument::Value).collect()))
}

/// log(1 + exp(beta x)) / beta, and x itself where that is large.
fn softplus(make: &mut Maker<'_>, x: ValueId, beta: f64, threshold: f64) -> Result<ValueId, Error> {
    let scaled = if beta == 1.0 { x } else { make.binary("mul.Tensor", x, beta)? };
    let grown = make.unary("exp", scaled)?;
    let log = make.unary("log1p", grown)?;
    let soft = if beta == 1.0 { log } else { make.binary("div.Tensor", log, beta)? };
    let large = make.binary("gt.Scalar", scaled, threshold)?;
    make.choose(large, x, soft)
}

/// x + 3, no less than 0 and no more than 6.
fn hard(make: &mut Maker<'_>, x: ValueId) -> Result<ValueId, Error> {
    let moved = make.binary("add.Tensor", x, 3i64)?;
    make.call("clamp", [("self", moved.into()), ("min", Argument::Int(0)), ("max", Argument::Int(6))])
}

/// The core form has no kernel everywhere, so it is written out.
fn elu(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let number = |name: &str| node.number(name).unwrap_or(1.0);
    if number("scale") == 1.0 && number("input_scale") == 1.0 {
        return Ok(None);
    }
    one(exponential(make, node.value("self")?, number("alpha"), number("scale"), number("input_scale"))?)
}

/// scale * x where x is positive, scale * alpha * (exp(x * inner) - 1) elsewhere.
fn exponential(make: &mut Maker<'_>, x: ValueId, alpha: f64, scale: f64, inner: f64) -> Result<ValueId, Error> {
    let above = make.binary("gt.Scalar", x, 0i64)?;
    let linear = if scale == 1.0 { x } else { make.binary("mul.Tensor", x, scale)? };
    let scaled = if inner == 1.0 { x } else { make.binary("mul.Tensor", x, inner)? };
    let curve = make.unary("expm1", scaled)?;
    let curve = make.binary("mul.Tensor", curve, alpha * scale)?;
    make.choose(above, linear, curve)
}

fn prelu(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (x, mut weight) = (node.value("self")?, node.value("weight")?);
    let rank = make.rank(x)?;
    if make.rank(weight)? == 1 && rank > 2 {
        let mut sizes = vec![crate::graph::Size::Known(1); rank];
        if let Some(size) = sizes.get_mut(1) {
            *size = make.size(weight, 0)?;
        }
        weight = make.view(weight, &sizes)?;
    }
    let above = make.binary("gt.Scalar", x, 0i64)?;
    let below = make.binary("mul.Tensor", weight, x)?;
    one(make.choose(above, x, below)?)
}

/// Elements where a condition holds, a number elsewhere.
fn choose_scalar(make: &mut Maker<'_>, condition: ValueId, yes: ValueId, number: Argument) -> Answer {
    let scalar_type = make.meta(yes)?.scalar_type;
    let number = make.scalar(number, scalar_type)?;
    one(make.choose(condition, yes, number)?)
}

fn rsub(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let x = node.value("self")?;
    let scaled = match node.number("alpha") {
        Some(1.0) | None => x,
        Some(_) => make.binary("mul.Tensor", x, node.arg("alpha"))?,
    };
    let less = make.unary("neg", scaled)?;
    one(make.binary("add.Tensor", less, node.arg("other"))?)
}

fn bounded(make: &mut Maker<'_>, node: &Composite<'_>, bound: &str) -> Answer {
    one(make.call("clamp", [("self", node.arg("self")), (bound, node.arg(bound))])?)
}

fn masked_fill(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let x = node.value("self")?;
    let scalar_type = make.meta(x)?.scalar_type;
    let value = match node.arg("value") {
        Argument::Value(value) if make.graph.tensor(value).is_some() => make.cast(value, scalar_type)?,
        number => make.scalar(number, scalar_type)?,
    };
    one(make.choose(node.value("mask")?, value, x)?)
}

fn where_scalar(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let wanted = make.meta(result)?.scalar_type;
    let mut side = |name: &str| -> Result<ValueId, Error> {
        match node.arg(name) {
            Argument::Value(value) if make.graph.tensor(value).is_some() => Ok(value),
            number => make.scalar(number, wanted),
        }
    };
    let (yes, no) = (side("self")?, side("other")?);
    one(make.choose(node.value("condition")?, yes, no)?)
}

fn nan_to_num(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let x = node.value("self")?;
    let scalar_type = make.meta(x)?.scalar_type;
    let most = match scalar_type {
        ScalarType::DOUBLE => f64::MAX,
        ScalarType::HALF => 65504.0,
        ScalarType::BFLOAT16 => 3.389_531_389_251_535_5e38,
        ScalarType::FLOAT => f64::from(f32::MAX),
        _ => return one(x),
    };
    let mut value = x;
    let replacements = [
        (None, node.number("nan").unwrap_or(0.0)),
        (Some(f64::INFINITY), node.number("posinf").unwrap_or(most)),
        (Some(f64::NEG_INFINITY), node.number("neginf").unwrap_or(-most)),
    ];
    for (what, replacement) in replacements {
        let found = match what {
            None => make.binary("ne.Tensor", x, x)?,
            Some(infinite) => make.binary("eq.Scalar", x, infinite)?,
        };
        let replacement = make.scalar(Argument::Float(replacement), scalar_type)?;
        value = make.choose(found, replacement, value)?;
    }
    one(value)
}
