//! Calls that compute element by element.

use edgepack_format::scalar::ScalarType;

use super::facts::Call;
use super::op::{Binary, Op, Unary};
use super::reason::Reason;
use crate::graph::{Argument, ValueId};

/// Operators without arguments, by name.
const UNARY: [(&str, Unary); 14] = [
    ("aten::abs", Unary::Abs),
    ("aten::ceil", Unary::Ceiling),
    ("aten::cos", Unary::Cos),
    ("aten::exp", Unary::Exp),
    ("aten::floor", Unary::Floor),
    ("aten::gelu", Unary::Gelu),
    ("aten::hardswish", Unary::Hardswish),
    ("aten::log", Unary::Log),
    ("aten::neg", Unary::Negate),
    ("aten::rsqrt", Unary::ReciprocalSquareRoot),
    ("aten::sigmoid", Unary::Sigmoid),
    ("aten::sin", Unary::Sin),
    ("aten::sqrt", Unary::SquareRoot),
    ("aten::tanh", Unary::Tanh),
];

const BINARY: [(&str, Binary); 6] = [
    ("aten::add.Tensor", Binary::Add),
    ("aten::div.Tensor", Binary::Divide),
    ("aten::maximum", Binary::Maximum),
    ("aten::minimum", Binary::Minimum),
    ("aten::mul.Tensor", Binary::Multiply),
    ("aten::sub.Tensor", Binary::Subtract),
];

/// Recognises such a call.
pub(super) fn recognise(call: Call<'_, '_, '_>, name: &str) -> Option<Result<Op, Reason>> {
    if let Some((_, unary)) = UNARY.iter().find(|(known, _)| *known == name) {
        return Some(function(call, *unary));
    }
    if let Some((_, binary)) = BINARY.iter().find(|(known, _)| *known == name) {
        return Some(pairs(call, *binary));
    }
    Some(match name {
        "aten::relu" | "aten::hardtanh" | "aten::clamp" | "aten::relu6" => clamp(call),
        "aten::leaky_relu" => {
            let slope = call.number("negative_slope").map(|slope| slope.unwrap_or(0.01) as f32);
            slope.and_then(|slope| function(call, Unary::Leaky(slope)))
        }
        "aten::elu" => elu(call),
        "aten::pow.Tensor_Scalar" => match call.number("exponent") {
            Ok(Some(2.0)) => function(call, Unary::Square),
            _ => Err(Reason::Argument { argument: "exponent", why: "nodes compute the power 2 alone" }),
        },
        "aten::prelu" | "aten::_prelu_kernel" => slopes(call),
        _ => return None,
    })
}

/// Checks that result and operands are floats of one type.
pub(super) fn floats(call: Call<'_, '_, '_>, operands: &[ValueId]) -> Result<ScalarType, Reason> {
    let facts = call.facts;
    let result = call.result()?;
    let kind = facts.float(result)?;
    for operand in operands {
        let found = facts.float(*operand)?;
        if found != kind {
            return Err(Reason::Type { value: facts.name(*operand), found, want: "those of the result" });
        }
    }
    Ok(kind)
}

/// Checks that an operand is not a constant: nodes of constants alone are none.
pub(super) fn made(call: Call<'_, '_, '_>, x: ValueId) -> Result<(), Reason> {
    match call.facts.constant(x) {
        Some(_) => Err(Reason::Argument { argument: "self", why: "it is a constant" }),
        None => Ok(()),
    }
}

fn function(call: Call<'_, '_, '_>, unary: Unary) -> Result<Op, Reason> {
    let x = call.float("self")?;
    let kind = floats(call, &[x])?;
    made(call, x)?;
    if unary == Unary::Gelu {
        if !matches!(call.node.arg("approximate"), None | Some(Argument::None))
            && call.node.arg("approximate") != Some(&Argument::Text("none".to_owned()))
        {
            return Err(Reason::Argument { argument: "approximate", why: "nodes compute the exact form alone" });
        }
        if kind == ScalarType::HALF {
            return Err(Reason::Type { value: call.facts.name(x), found: kind, want: "f32" });
        }
    }
    Ok(Op::Unary(unary, x))
}

fn elu(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    for argument in ["scale", "input_scale"] {
        if call.number(argument)?.is_some_and(|scale| scale != 1.0) {
            return Err(Reason::Argument { argument, why: "nodes have no factor but alpha" });
        }
    }
    let alpha = call.number("alpha")?.unwrap_or(1.0) as f32;
    if !(alpha.is_normal() && alpha > 0.0) {
        return Err(Reason::Argument { argument: "alpha", why: "nodes take numbers above 0" });
    }
    function(call, Unary::Elu(alpha))
}

fn pairs(call: Call<'_, '_, '_>, binary: Binary) -> Result<Op, Reason> {
    let (a, b) = (call.float("self")?, call.float("other")?);
    floats(call, &[a, b])?;
    if call.number("alpha")?.is_some_and(|alpha| alpha != 1.0) {
        return Err(Reason::Argument { argument: "alpha", why: "nodes have no factor" });
    }
    match (call.facts.constant(a), call.facts.constant(b)) {
        (Some(_), Some(_)) => Err(Reason::Argument { argument: "self", why: "both operands are constants" }),
        _ => Ok(Op::Binary(binary, a, b)),
    }
}

/// Recognises a call that holds numbers to a range.
pub(super) fn clamp(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let x = call.float("self")?;
    floats(call, &[x])?;
    made(call, x)?;
    let (least, most) = if call.node.calls("aten::relu") {
        (0.0, f32::INFINITY)
    } else if call.node.calls("aten::relu6") {
        (0.0, 6.0)
    } else if call.node.calls("aten::hardtanh") {
        (call.number("min_val")?.unwrap_or(-1.0) as f32, call.number("max_val")?.unwrap_or(1.0) as f32)
    } else if call.node.calls("aten::clamp") {
        let bound = |name| call.number(name).map(|bound| bound.map(|bound| bound as f32));
        (bound("min")?.unwrap_or(f32::NEG_INFINITY), bound("max")?.unwrap_or(f32::INFINITY))
    } else {
        return Err(Reason::Operator(call.node.target.to_string()));
    };
    match least <= most {
        true => Ok(Op::Clamp(x, least, most)),
        false => Err(Reason::Argument { argument: "min", why: "it is above `max`, or not a number" }),
    }
}

fn slopes(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let (facts, x, slope) = (call.facts, call.float("self")?, call.float("weight")?);
    floats(call, &[x, slope])?;
    made(call, x)?;
    if facts.constant(slope).is_none() {
        return Err(Reason::NotConstant("weight"));
    }
    let rank = facts.rank(x);
    if rank < 2 {
        return Err(Reason::Rank { value: facts.name(x), found: rank, want: "2 to 6" });
    }
    let count: usize = facts.sizes(slope, "slopes are constants")?.iter().product();
    let channels = facts.tensor(x)?.sizes.get(1).and_then(crate::graph::Size::known);
    match count == 1 || i64::try_from(count).ok() == channels {
        true => Ok(Op::Slopes(x, slope)),
        false => Err(Reason::Argument { argument: "weight", why: "it has not one slope for each channel" }),
    }
}
