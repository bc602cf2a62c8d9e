//! Tensors of numbers, patterns and indices.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, Size, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "zeros"
        | "new_zeros"
        | "zeros_like"
        | "empty_like"
        | "new_empty"
        | "empty.memory_format"
        | "empty_permuted" => |make, node| filled(make, node, 0),
        "ones" | "new_ones" | "ones_like" => |make, node| filled(make, node, 1),
        "new_full" | "full_like" | "full" => full,
        "arange" | "arange.start" => arange,
        "linspace" => linspace,
        "eye" | "eye.m" => eye,
        "tril" => |make, node| triangle(make, node, "le.Tensor"),
        "triu" => |make, node| triangle(make, node, "ge.Tensor"),
        "one_hot" => one_hot,
        "diag_embed" => diag_embed,
        "item" => |make, node| {
            let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
            let mut call = node.node.clone();
            let Some(meta) = make.graph.value(result).map(|value| value.meta.clone()) else { return Ok(None) };
            let value = make.graph.add_value("_local_scalar_dense", meta);
            call.target = crate::graph::Target::Operator(
                crate::graph::OpName::parse("aten::_local_scalar_dense").ok_or_else(|| node.wrong("self"))?,
            );
            call.outputs = vec![Argument::Value(value)];
            make.sizes.note(make.graph, &call);
            make.made.push(call);
            one(value)
        },
        "bucketize.Tensor" => bucketize,
        _ => return None,
    })
}

/// A tensor of the recorded form with the same number everywhere.
fn filled(make: &mut Maker<'_>, node: &Composite<'_>, number: i64) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let meta = make.meta(result)?;
    let number = match meta.scalar_type {
        ScalarType::BOOL => Argument::Bool(number != 0),
        other if other.is_floating() => Argument::Float(number as f64),
        _ => Argument::Int(number),
    };
    one(make.full(&meta.sizes, number, meta.scalar_type)?)
}

/// Core forms stay as they are.
fn full(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    if !node.node.calls("aten::new_full") {
        return Ok(None);
    }
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let meta = make.meta(result)?;
    one(make.full(&meta.sizes, node.arg("fill_value"), meta.scalar_type)?)
}

fn arange(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let scalar_type = make.meta(result)?.scalar_type;
    let start = if node.has("start") { node.arg("start") } else { Argument::Int(0) };
    let args = [
        ("start", start),
        ("end", node.arg("end")),
        ("step", Argument::Int(1)),
        ("dtype", Argument::ScalarType(scalar_type)),
    ];
    one(make.call("arange.start_step", args)?)
}

/// From both ends to the middle, so that both ends are exact.
fn linspace(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let scalar_type = make.meta(result)?.scalar_type;
    let steps = node.int("steps")?;
    let (Some(start), Some(end)) = (node.number("start"), node.number("end")) else { return Ok(None) };
    if steps < 2 {
        return one(make.full(&[Size::Known(steps)], Argument::Float(start), scalar_type)?);
    }
    let last = steps.saturating_sub(1);
    let step = (end - start) / last as f64;
    let place = make.count(&Size::Known(steps))?;
    let up = make.cast(place, ScalarType::FLOAT)?;
    let up = make.binary("mul.Tensor", up, step)?;
    let up = make.binary("add.Tensor", up, start)?;
    let down = make.unary("neg", place)?;
    let down = make.binary("add.Tensor", down, last)?;
    let down = make.cast(down, ScalarType::FLOAT)?;
    let down = make.binary("mul.Tensor", down, -step)?;
    let down = make.binary("add.Tensor", down, end)?;
    let low = make.binary("lt.Scalar", place, steps.checked_div(2).unwrap_or(0))?;
    let value = make.choose(low, up, down)?;
    one(make.cast(value, scalar_type)?)
}

/// Row numbers as a column and column numbers as a row.
fn places(make: &mut Maker<'_>, rows: &Size, columns: &Size) -> Result<(ValueId, ValueId), Error> {
    let (row, column) = (make.count(rows)?, make.count(columns)?);
    Ok((make.unsqueeze(row, 1)?, column))
}

fn eye(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let meta = make.meta(result)?;
    let [rows, columns] = meta.sizes.as_slice() else { return Ok(None) };
    let (row, column) = places(make, rows, columns)?;
    let same = make.binary("eq.Tensor", row, column)?;
    one(make.cast(same, meta.scalar_type)?)
}

fn triangle(make: &mut Maker<'_>, node: &Composite<'_>, kept: &str) -> Answer {
    let x = node.value("self")?;
    let (rows, columns) = (make.size(x, -2)?, make.size(x, -1)?);
    let (row, column) = places(make, &rows, &columns)?;
    let off = make.binary("sub.Tensor", column, row)?;
    let bound = make.scalar(node.int("diagonal")?.into(), ScalarType::LONG)?;
    let kept = make.binary(kept, off, bound)?;
    let scalar_type = make.meta(x)?.scalar_type;
    if scalar_type == ScalarType::BOOL {
        return one(make.binary("logical_and", kept, x)?);
    }
    let zero = make.scalar(Argument::Int(0), scalar_type)?;
    one(make.choose(kept, x, zero)?)
}

fn one_hot(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let classes = make.size(result, -1)?;
    let class = make.count(&classes)?;
    let apart = make.unsqueeze(node.value("self")?, -1)?;
    let same = make.binary("eq.Tensor", apart, class)?;
    one(make.cast(same, ScalarType::LONG)?)
}

fn diag_embed(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let x = node.value("self")?;
    if node.int("offset")? != 0 || node.int("dim1")? != -2 || node.int("dim2")? != -1 {
        return Err(node.wrong("offset"));
    }
    let len = make.size(x, -1)?;
    let (row, column) = places(make, &len, &len)?;
    let same = make.binary("eq.Tensor", row, column)?;
    let apart = make.unsqueeze(x, -1)?;
    let zero = make.scalar(Argument::Int(0), make.meta(x)?.scalar_type)?;
    one(make.choose(same, apart, zero)?)
}

/// How many boundaries lie below each element.
fn bucketize(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (x, boundaries) = (node.value("self")?, node.value("boundaries")?);
    let apart = make.unsqueeze(x, -1)?;
    let below = make.binary(if node.flag("right") { "ge.Tensor" } else { "gt.Tensor" }, apart, boundaries)?;
    let count = make.sum(below, &[-1], false)?;
    let wanted = if node.flag("out_int32") { ScalarType::INT } else { ScalarType::LONG };
    one(make.cast(count, wanted)?)
}
