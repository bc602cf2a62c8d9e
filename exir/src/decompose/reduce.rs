//! Sums, extremes and moments in other forms than the core ones.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "sum" => |make, node| {
            let args = [("self", node.arg("self")), ("dim", Argument::ints([])), ("dtype", node.arg("dtype"))];
            one(make.call("sum.dim_IntList", args)?)
        },
        "max" => |make, node| extreme(make, node, "amax"),
        "min" => |make, node| extreme(make, node, "amin"),
        "max.other" => |make, node| one(make.binary("maximum", node.value("self")?, node.arg("other"))?),
        "min.other" => |make, node| one(make.binary("minimum", node.value("self")?, node.arg("other"))?),
        "aminmax" => |make, node| {
            let dim = if node.has("dim") { Argument::ints([node.int("dim")?]) } else { Argument::ints([]) };
            let mut results = Vec::new();
            for op in ["amin", "amax"] {
                let args = [("self", node.arg("self")), ("dim", dim.clone()), ("keepdim", node.arg("keepdim"))];
                results.push(Argument::Value(make.call(op, args)?));
            }
            Ok(Some(results))
        },
        "all" | "all.dim" | "all.dims" | "any.dims" => every,
        "std" | "std.dim" | "std.correction" | "var" | "var.dim" => moment,
        "std_mean" | "std_mean.dim" | "std_mean.correction" | "var_mean" | "var_mean.dim" | "var_mean.correction" => {
            both_moments
        }
        "linalg_vector_norm" => vector_norm,
        "norm.ScalarOpt_dim" | "norm.Scalar" => vector_norm,
        "frobenius_norm.dim" => vector_norm,
        "logsumexp" => logsumexp,
        "argsort" | "argsort.stable" => |make, node| {
            let args = [("self", node.arg("self")), ("dim", node.arg("dim")), ("descending", node.arg("descending"))];
            let results = make.calls("sort", args)?;
            Ok(Some(results.into_iter().skip(1).map(Argument::Value).collect()))
        },
        "count_nonzero" | "count_nonzero.dim_IntList" => |make, node| {
            let some = make.binary("ne.Scalar", node.value("self")?, 0i64)?;
            let dims = if node.has("dim") { node.ints("dim")? } else { Vec::new() };
            one(make.sum(some, &dims, false)?)
        },
        "cosine_similarity" => cosine_similarity,
        "mse_loss" => |make, node| loss(make, node, |make, off| make.binary("mul.Tensor", off, off)),
        "l1_loss" => |make, node| loss(make, node, |make, off| make.unary("abs", off)),
        "nansum" => |make, node| {
            let x = node.value("self")?;
            let missing = make.binary("ne.Tensor", x, x)?;
            let zero = make.scalar(Argument::Int(0), make.meta(x)?.scalar_type)?;
            let kept = make.choose(missing, zero, x)?;
            let dims = if node.has("dim") { node.ints("dim")? } else { Vec::new() };
            one(make.sum(kept, &dims, node.flag("keepdim"))?)
        },
        "trace" => |make, node| {
            let diagonal = make.call("diagonal", [("self", node.arg("self"))])?;
            one(make.sum(diagonal, &[0], false)?)
        },
        "cdist" => |make, node| {
            let args = ["x1", "x2", "p", "compute_mode"].map(|name| (name, node.arg(name)));
            one(make.call("_cdist_forward", args)?)
        },
        _ => return None,
    })
}

fn extreme(make: &mut Maker<'_>, node: &Composite<'_>, core: &str) -> Answer {
    let args = [("self", node.arg("self")), ("dim", Argument::ints([])), ("keepdim", false.into())];
    one(make.call(core, args)?)
}

/// Returns whether all elements are true: whether none is false. Several dimensions are reduced one after the other.
fn every(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let name = node.node.target.to_string();
    let all = name.starts_with("aten::all");
    let mut value = node.value("self")?;
    if all {
        value = make.unary("logical_not", value)?;
    }
    if !node.has("dim") {
        value = make.unary("any", value)?;
    } else {
        let rank = make.rank(value)?;
        let mut dims = Vec::new();
        for dim in node.ints("dim")? {
            dims.push(make.dim(dim, rank)?);
        }
        // From the last one on, so that those before keep their numbers.
        dims.sort_unstable();
        for dim in dims.into_iter().rev() {
            let dim = i64::try_from(dim).unwrap_or(0);
            let args = [("self", value.into()), ("dim", dim.into()), ("keepdim", node.flag("keepdim").into())];
            value = make.call("any.dim", args)?;
        }
    }
    one(if all { make.unary("logical_not", value)? } else { value })
}

/// The variance, with the divisor as the operator says it.
fn variance(make: &mut Maker<'_>, node: &Composite<'_>) -> Result<ValueId, Error> {
    let correction = match (node.arg("correction"), node.arg("unbiased")) {
        (Argument::None, Argument::Bool(unbiased)) => Argument::Int(i64::from(unbiased)),
        (Argument::None, _) => Argument::Int(1),
        (correction, _) => correction,
    };
    let dim = match node.arg("dim") {
        Argument::Int(dim) => Argument::ints([dim]),
        dim => dim,
    };
    let args = [
        ("self", node.arg("self")),
        ("dim", dim),
        ("correction", correction),
        ("keepdim", node.flag("keepdim").into()),
    ];
    make.call("var.correction", args)
}

fn moment(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let variance = variance(make, node)?;
    let root = node.node.target.to_string().starts_with("aten::std");
    one(if root { make.unary("sqrt", variance)? } else { variance })
}

fn both_moments(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut first = variance(make, node)?;
    if node.node.target.to_string().starts_with("aten::std") {
        first = make.unary("sqrt", first)?;
    }
    let dims = if node.has("dim") { node.ints("dim")? } else { Vec::new() };
    let mean = make.mean(node.value("self")?, &dims, node.flag("keepdim"))?;
    Ok(Some(vec![first.into(), mean.into()]))
}

/// The root of the sum of powers, along dimensions.
fn vector_norm(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut x = node.value("self")?;
    if let Argument::ScalarType(scalar_type) = node.arg("dtype") {
        x = make.cast(x, scalar_type)?;
    }
    // Short floats are summed as longer ones.
    let short = make.meta(x)?.scalar_type;
    if matches!(short, ScalarType::HALF | ScalarType::BFLOAT16) {
        x = make.cast(x, ScalarType::FLOAT)?;
        let mut wide = node.arguments.clone();
        for (name, argument) in &mut wide {
            match name.as_str() {
                "self" => *argument = x.into(),
                "dtype" => *argument = Argument::None,
                _ => {}
            }
        }
        let Some(found) = vector_norm(make, &Composite { node: node.node, arguments: wide })? else { return Ok(None) };
        let Some(value) = found.first().and_then(Argument::value) else { return Ok(None) };
        return one(make.cast(value, short)?);
    }
    let order = if node.has("ord") { node.number("ord") } else { node.number("p") }.unwrap_or(2.0);
    let dims = if node.has("dim") { node.ints("dim")? } else { Vec::new() };
    let keep = node.flag("keepdim");
    let power = |make: &mut Maker<'_>, x: ValueId, exponent: f64| {
        let exponent = if exponent.fract() == 0.0 { Argument::Int(exponent as i64) } else { Argument::Float(exponent) };
        make.call("pow.Tensor_Scalar", [("self", x.into()), ("exponent", exponent)])
    };
    if order.is_infinite() {
        let size = make.unary("abs", x)?;
        let core = if order > 0.0 { "amax" } else { "amin" };
        let args = [("self", size.into()), ("dim", Argument::ints(dims)), ("keepdim", keep.into())];
        return one(make.call(core, args)?);
    }
    if order == 0.0 {
        let some = make.binary("ne.Scalar", x, 0i64)?;
        let scalar_type = make.meta(x)?.scalar_type;
        let some = make.cast(some, scalar_type)?;
        return one(make.sum(some, &dims, keep)?);
    }
    if order == 1.0 {
        let size = make.unary("abs", x)?;
        return one(make.sum(size, &dims, keep)?);
    }
    let even = order.fract() == 0.0 && (order / 2.0).fract() == 0.0;
    let size = if even { x } else { make.unary("abs", x)? };
    let powers = power(make, size, order)?;
    let sum = make.sum(powers, &dims, keep)?;
    one(power(make, sum, 1.0 / order)?)
}

/// The logarithm of a sum of exponentials, taken relative to the largest.
fn logsumexp(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut x = node.value("self")?;
    if !make.meta(x)?.scalar_type.is_floating() {
        x = make.cast(x, ScalarType::FLOAT)?;
    }
    let dims = node.ints("dim")?;
    let args = [("self", x.into()), ("dim", Argument::ints(dims.iter().copied())), ("keepdim", true.into())];
    let most = make.call("amax", args)?;
    // Infinities are left out of the difference, where they would give no number.
    let size = make.unary("abs", most)?;
    let infinite = make.binary("eq.Scalar", size, f64::INFINITY)?;
    let zero = make.scalar(Argument::Float(0.0), make.meta(x)?.scalar_type)?;
    let base = make.choose(infinite, zero, most)?;
    let off = make.binary("sub.Tensor", x, base)?;
    let grown = make.unary("exp", off)?;
    let sum = make.sum(grown, &dims, true)?;
    let log = make.unary("log", sum)?;
    let result = make.binary("add.Tensor", log, base)?;
    one(if node.flag("keepdim") { result } else { make.squeeze(result, &dims)? })
}

fn cosine_similarity(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (a, b, dim) = (node.value("x1")?, node.value("x2")?, node.int("dim")?);
    let eps = node.number("eps").unwrap_or(1e-8);
    let product = make.binary("mul.Tensor", a, b)?;
    let product = make.sum(product, &[dim], false)?;
    let mut length = |x: ValueId| -> Result<ValueId, Error> {
        let square = make.binary("mul.Tensor", x, x)?;
        let sum = make.sum(square, &[dim], false)?;
        let root = make.unary("sqrt", sum)?;
        make.call("clamp", [("self", root.into()), ("min", eps.into())])
    };
    let (first, second) = (length(a)?, length(b)?);
    let lengths = make.binary("mul.Tensor", first, second)?;
    one(make.binary("div.Tensor", product, lengths)?)
}

fn loss(
    make: &mut Maker<'_>,
    node: &Composite<'_>,
    each: impl Fn(&mut Maker<'_>, ValueId) -> Result<ValueId, Error>,
) -> Answer {
    let off = make.binary("sub.Tensor", node.value("self")?, node.value("target")?)?;
    let value = each(make, off)?;
    let dims: Vec<i64> = (0..i64::try_from(make.rank(value)?).unwrap_or(0)).collect();
    one(match node.int("reduction")? {
        0 => value,
        1 => make.mean(value, &dims, false)?,
        _ => make.sum(value, &dims, false)?,
    })
}
