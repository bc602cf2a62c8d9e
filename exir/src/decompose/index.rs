//! Picking and putting by index, in other forms than the core ones.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, ListKind, Size, TensorMeta, ValueId};

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
            let all = Size::product(&make.sizes(others)?);
            let others = make.view(others, &[all])?;
            let same = make.binary("eq.Tensor", elements, others)?;
            let args = [("self", same.into()), ("dim", Argument::Int(-1)), ("keepdim", false.into())];
            let found = make.call("any.dim", args)?;
            one(if node.flag("invert") { make.unary("logical_not", found)? } else { found })
        },
        "isclose" => |make, node| {
            // Equal, or no further apart than atol + rtol * |b|, which infinities never are.
            let (a, b) = (node.value("self")?, node.value("other")?);
            let mut close = make.binary("eq.Tensor", a, b)?;
            if make.meta(a)?.scalar_type == ScalarType::BOOL {
                return one(close);
            }
            if node.flag("equal_nan") && make.meta(a)?.scalar_type.is_floating() {
                let (first, second) = (make.binary("ne.Tensor", a, a)?, make.binary("ne.Tensor", b, b)?);
                let both = make.binary("logical_and", first, second)?;
                close = make.binary("logical_or", close, both)?;
            }
            let off = make.binary("sub.Tensor", a, b)?;
            let off = make.unary("abs", off)?;
            let size = make.unary("abs", b)?;
            let may = make.binary("mul.Tensor", size, node.number("rtol").unwrap_or(1e-5))?;
            let may = make.binary("add.Tensor", may, node.number("atol").unwrap_or(1e-8))?;
            let mut near = make.binary("le.Tensor", off, may)?;
            if make.meta(off)?.scalar_type.is_floating() {
                let finite = make.binary("lt.Scalar", off, f64::INFINITY)?;
                near = make.binary("logical_and", near, finite)?;
            }
            one(make.binary("logical_or", near, close)?)
        },
        "repeat_interleave.self_Tensor" => |make, node| {
            // Every place as often as it is repeated, and the elements there.
            let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
            let (mut x, mut repeats) = (node.value("self")?, node.value("repeats")?);
            let dim = if node.has("dim") { node.int("dim")? } else { 0 };
            if !node.has("dim") {
                let all = Size::product(&make.sizes(x)?);
                x = make.view(x, &[all])?;
            }
            if make.rank(repeats)? == 0 || make.size(repeats, 0)?.known() == Some(1) {
                let all = make.size(x, dim)?;
                repeats = make.view(repeats, &[Size::Known(1)])?;
                repeats = make.expand(repeats, &[all])?;
            }
            let count = make.size(result, dim)?;
            let meta = TensorMeta::contiguous(ScalarType::LONG, &[count]);
            let size = ("output_size", node.arg("output_size"));
            let places = make.call_giving("repeat_interleave.Tensor", [("repeats", repeats.into()), size], meta)?;
            one(make.call("index_select", [("self", x.into()), ("dim", dim.into()), ("index", places.into())])?)
        },
        "embedding_bag" | "embedding_bag.padding_idx" => embedding_bag,
        "diff" => |make, node| {
            let (mut value, dim) = (node.value("self")?, node.int("dim")?);
            if node.int("n")? == 0 {
                return one(make.unary("clone", value)?);
            }
            let mut parts = Vec::new();
            for name in ["prepend", "self", "append"] {
                parts.extend(node.arg(name).value());
            }
            if parts.len() > 1 {
                value = make.cat(&parts, dim)?;
            }
            let truth = make.meta(value)?.scalar_type == ScalarType::BOOL;
            let op = if truth { "logical_xor" } else { "sub.Tensor" };
            for _ in 0..node.int("n")?.clamp(0, 64) {
                let len = make.known_size(value, dim)?;
                let (next, this) = (make.slice(value, dim, 1, len)?, make.slice(value, dim, 0, len.saturating_sub(1))?);
                value = make.binary(op, next, this)?;
            }
            one(value)
        },
        "nonzero_numpy" => |make, node| {
            // A row for every element that is not zero; as many as were recorded.
            let (x, recorded) = (node.value("self")?, node.node.results());
            let Some(count) = recorded.first().map(|first| make.size(*first, 0)).transpose()? else { return Ok(None) };
            let rank = i64::try_from(recorded.len()).unwrap_or(0);
            let meta = TensorMeta::contiguous(ScalarType::LONG, &[count, Size::Known(rank)]);
            let x = if make.rank(x)? == 0 { make.unsqueeze(x, 0)? } else { x };
            let places = make.call_giving("nonzero", [("self", x.into())], meta)?;
            let mut columns = Vec::new();
            for dim in 0..rank {
                columns.push(Argument::Value(make.select(places, 1, dim)?));
            }
            Ok(Some(columns))
        },
        "as_strided_scatter" => |make, node| {
            let x = node.value("self")?;
            let (wanted, strides) = (node.ints("size")?, node.ints("stride")?);
            let meta = make.meta(x)?;
            if meta.strides != TensorMeta::contiguous(meta.scalar_type, &meta.sizes).strides {
                return Err(make.error("as_strided_scatter of a tensor that does not lie in order"));
            }
            let offset = if node.has("storage_offset") { node.int("storage_offset")? } else { 0 };
            let mut place = make.full(&[], Argument::Int(offset), ScalarType::LONG)?;
            for (size, stride) in wanted.iter().zip(&strides) {
                let along = make.count(&Size::Known(*size))?;
                let along = make.binary("mul.Tensor", along, *stride)?;
                place = make.unsqueeze(place, -1)?;
                place = make.binary("add.Tensor", place, along)?;
            }
            let flat = make.view(x, &[Size::product(&meta.sizes)])?;
            let args = [
                ("self", flat.into()),
                ("indices", Argument::List(ListKind::OptionalTensors, vec![place.into()])),
                ("values", node.arg("src")),
                ("accumulate", false.into()),
            ];
            let put = make.call("index_put", args)?;
            one(make.view(put, &meta.sizes)?)
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

/// Makes indices that are all inside.
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
