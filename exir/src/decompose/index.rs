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
            if node.has("prepend") || node.has("append") {
                return Err(node.wrong("prepend"));
            }
            let (mut value, dim) = (node.value("self")?, node.int("dim")?);
            for _ in 0..node.int("n")?.clamp(0, 64) {
                let len = make.known_size(value, dim)?;
                let (next, this) = (make.slice(value, dim, 1, len)?, make.slice(value, dim, 0, len.saturating_sub(1))?);
                value = make.binary("sub.Tensor", next, this)?;
            }
            one(value)
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

/// Three elements along a dimension, beginning with another one.
fn turned(make: &mut Maker<'_>, x: ValueId, dim: i64, from: i64) -> Result<ValueId, Error> {
    let (head, tail) = (make.slice(x, dim, 0, from)?, make.slice(x, dim, from, 3)?);
    make.cat(&[tail, head], dim)
}

/// Puts elements where an index along one dimension says.
fn put(make: &mut Maker<'_>, node: &Composite<'_>, values: ValueId, accumulate: bool) -> Answer {
    let input = node.value("self")?;
    let dim = make.dim(node.int("dim")?, make.rank(input)?)?;
    let mut indices = vec![Argument::None; dim];
    indices.push(node.arg("index"));
    let args = [
        ("self", input.into()),
        ("indices", Argument::List(ListKind::OptionalTensors, indices)),
        ("values", values.into()),
        ("accumulate", accumulate.into()),
    ];
    one(make.call("index_put", args)?)
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
