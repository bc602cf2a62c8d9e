//! Picking and putting by index, in other forms than the core ones.

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, ListKind, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "_unsafe_index.Tensor" => {
            |make, node| one(make.call("index.Tensor", ["self", "indices"].map(|name| (name, node.arg(name))))?)
        }
        "_unsafe_index_put" | "_index_put_impl" => |make, node| {
            let names = ["self", "indices", "values", "accumulate"];
            one(make.call("index_put", names.map(|name| (name, node.arg(name))))?)
        },
        "index_add" => |make, node| {
            let mut source = node.value("source")?;
            if node.number("alpha").is_some_and(|alpha| alpha != 1.0) {
                source = make.binary("mul.Tensor", source, node.arg("alpha"))?;
            }
            put(make, node, source, true)
        },
        "index_copy" => |make, node| put(make, node, node.value("source")?, false),
        "index_fill.int_Scalar" => |make, node| {
            let scalar_type = make.meta(node.value("self")?)?.scalar_type;
            let value = make.scalar(node.arg("value"), scalar_type)?;
            put(make, node, value, false)
        },
        "index_fill.int_Tensor" => |make, node| put(make, node, node.value("value")?, false),
        "isin.Tensor_Tensor" => |make, node| {
            let elements = make.unsqueeze(node.value("elements")?, -1)?;
            let others = node.value("test_elements")?;
            let all = crate::graph::Size::product(&make.sizes(others)?);
            let others = make.view(others, &[all])?;
            let same = make.binary("eq.Tensor", elements, others)?;
            let args = [("self", same.into()), ("dim", Argument::Int(-1)), ("keepdim", false.into())];
            let found = make.call("any.dim", args)?;
            one(if node.flag("invert") { make.unary("logical_not", found)? } else { found })
        },
        "isclose" => |make, node| {
            // |a - b| <= atol + rtol * |b|
            let (a, b) = (node.value("self")?, node.value("other")?);
            let off = make.binary("sub.Tensor", a, b)?;
            let off = make.unary("abs", off)?;
            let size = make.unary("abs", b)?;
            let may = make.binary("mul.Tensor", size, node.number("rtol").unwrap_or(1e-5))?;
            let may = make.binary("add.Tensor", may, node.number("atol").unwrap_or(1e-8))?;
            let near = make.binary("le.Tensor", off, may)?;
            let same = make.binary("eq.Tensor", a, b)?;
            one(make.binary("logical_or", near, same)?)
        },
        "embedding_bag" | "embedding_bag.padding_idx" => embedding_bag,
        "diff" => |make, node| {
            let (mut value, dim) = (node.value("self")?, node.int("dim")?);
            let mut parts = Vec::new();
            for name in ["prepend", "self", "append"] {
                parts.extend(node.arg(name).value());
            }
            if parts.len() > 1 {
                value = make.cat(&parts, dim)?;
            }
            let truth = make.meta(value)?.scalar_type == edgepack_format::scalar::ScalarType::BOOL;
            let op = if truth { "logical_xor" } else { "sub.Tensor" };
            for _ in 0..node.int("n")?.clamp(0, 64) {
                let len = make.known_size(value, dim)?;
                let (next, this) = (make.slice(value, dim, 1, len)?, make.slice(value, dim, 0, len.saturating_sub(1))?);
                value = make.binary(op, next, this)?;
            }
            one(value)
        },
        "_unsafe_masked_index" => |make, node| {
            let indices = inside(make, node)?;
            let picked = make.call("index.Tensor", [("self", node.arg("self")), ("indices", indices)])?;
            let fill = make.scalar(node.arg("fill"), make.meta(picked)?.scalar_type)?;
            one(make.choose(node.value("mask")?, picked, fill)?)
        },
        "_unsafe_masked_index_put_accumulate" => |make, node| {
            let indices = inside(make, node)?;
            let values = node.value("values")?;
            let zero = make.scalar(Argument::Int(0), make.meta(values)?.scalar_type)?;
            let values = make.choose(node.value("mask")?, values, zero)?;
            let args = [
                ("self", node.arg("self")),
                ("indices", indices),
                ("values", values.into()),
                ("accumulate", true.into()),
            ];
            one(make.call("index_put", args)?)
        },
        "cross" | "linalg_cross" => |make, node| {
            let (a, b) = (node.value("self")?, node.value("other")?);
            let dim = if node.has("dim") { node.int("dim")? } else { -1 };
            let order = |from: i64| move |make: &mut Maker<'_>, x: ValueId| turned(make, x, dim, from);
            let (one_on, two_on) = (order(1), order(2));
            let (a1, b2) = (one_on(make, a)?, two_on(make, b)?);
            let (a2, b1) = (two_on(make, a)?, one_on(make, b)?);
            let (left, right) = (make.binary("mul.Tensor", a1, b2)?, make.binary("mul.Tensor", a2, b1)?);
            one(make.binary("sub.Tensor", left, right)?)
        },
        _ => return None,
    })
}

/// Indices that all lie inside.
fn inside(make: &mut Maker<'_>, node: &Composite<'_>) -> Result<Argument, Error> {
    let x = node.value("self")?;
    let mut items = Vec::new();
    for (dim, item) in (0i64..).zip(node.arg("indices").items()) {
        items.push(match item.value() {
            Some(index) => {
                let last = Argument::Int(make.known_size(x, dim)?.saturating_sub(1));
                make.call("clamp", [("self", index.into()), ("min", Argument::Int(0)), ("max", last)])?.into()
            }
            None => Argument::None,
        });
    }
    Ok(Argument::List(ListKind::OptionalTensors, items))
}

/// Three elements along a dimension, beginning with another one.
fn turned(make: &mut Maker<'_>, x: ValueId, dim: i64, from: i64) -> Result<ValueId, Error> {
    let (head, tail) = (make.slice(x, dim, 0, from)?, make.slice(x, dim, from, 3)?);
    make.cat(&[tail, head], dim)
}

/// Puts elements where an index along one dimension says.
fn put(make: &mut Maker<'_>, node: &Composite<'_>, values: ValueId, accumulate: bool) -> Answer {
    let mut input = node.value("self")?;
    let mut values = values;
    let dim = make.dim(node.int("dim")?, make.rank(input)?)?;
    // A number counts as one element along one dimension.
    let number = make.rank(input)? == 0;
    if number {
        input = make.unsqueeze(input, 0)?;
    }
    let mut index = node.value("index")?;
    if make.rank(index)? == 0 {
        index = make.unsqueeze(index, 0)?;
        if make.rank(values)? > 0 && make.rank(values)? < make.rank(input)? {
            values = make.unsqueeze(values, i64::try_from(dim).unwrap_or(0))?;
        }
    }
    if number && make.rank(values)? == 0 {
        values = make.unsqueeze(values, 0)?;
    }
    let mut indices = vec![Argument::None; dim];
    indices.push(index.into());
    let args = [
        ("self", input.into()),
        ("indices", Argument::List(ListKind::OptionalTensors, indices)),
        ("values", values.into()),
        ("accumulate", accumulate.into()),
    ];
    let result = make.call("index_put", args)?;
    one(if number { make.squeeze(result, &[0])? } else { result })
}

fn embedding_bag(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let args = [
        ("weight", node.arg("weight")),
        ("indices", node.arg("indices")),
        ("offsets", node.arg("offsets")),
        ("scale_grad_by_freq", node.arg("scale_grad_by_freq")),
        ("mode", node.arg("mode")),
        ("sparse", node.arg("sparse")),
        ("per_sample_weights", node.arg("per_sample_weights")),
        ("include_last_offset", node.arg("include_last_offset")),
        ("padding_idx", if node.has("padding_idx") { node.arg("padding_idx") } else { Argument::Int(-1) }),
    ];
    Ok(Some(make.calls("_embedding_bag", args)?.into_iter().map(Argument::Value).collect()))
}
