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
        "logspace" | "logspace.Tensor_Tensor" | "logspace.Tensor_Scalar" | "logspace.Scalar_Tensor" => |make, node| {
            let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
            let scalar_type = make.meta(result)?.scalar_type;
            let exponents = spread(make, node, ScalarType::DOUBLE)?;
            let base = node.number("base").unwrap_or(10.0);
            let value = make.call("pow.Scalar", [("self", base.into()), ("exponent", exponents.into())])?;
            one(make.cast(value, scalar_type)?)
        },
        "linspace.Tensor_Tensor" | "linspace.Tensor_Scalar" | "linspace.Scalar_Tensor" => |make, node| {
            let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
            let scalar_type = make.meta(result)?.scalar_type;
            let wide = if scalar_type == ScalarType::FLOAT { ScalarType::FLOAT } else { ScalarType::DOUBLE };
            let value = spread(make, node, wide)?;
            one(make.cast(value, scalar_type)?)
        },
        "hann_window" | "hann_window.periodic" => |make, node| window(make, node, [0.5, 0.5, 0.0]),
        "hamming_window" | "hamming_window.periodic" => |make, node| window(make, node, [0.54, 0.46, 0.0]),
        "blackman_window" | "blackman_window.periodic" => |make, node| window(make, node, [0.42, 0.5, 0.08]),
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

/// Numbers from a start to an end, of which either may be a tensor.
fn spread(make: &mut Maker<'_>, node: &Composite<'_>, scalar_type: ScalarType) -> Result<ValueId, Error> {
    let steps = node.int("steps")?;
    let mut side = |name: &str| match node.arg(name) {
        Argument::Value(value) if make.graph.tensor(value).is_some() => make.cast(value, scalar_type),
        number => make.scalar(number, scalar_type),
    };
    let (start, end) = (side("start")?, side("end")?);
    let place = make.count(&Size::Known(steps))?;
    let last = steps.saturating_sub(1);
    let way = make.binary("sub.Tensor", end, start)?;
    let step = make.binary("div.Tensor", way, last.max(1) as f64)?;
    let up = make.cast(place, scalar_type)?;
    let up = make.binary("mul.Tensor", up, step)?;
    let up = make.binary("add.Tensor", up, start)?;
    if steps < 2 {
        return Ok(up);
    }
    // From both ends to the middle, so that both ends are exact.
    let down = make.unary("neg", place)?;
    let down = make.binary("add.Tensor", down, last)?;
    let down = make.cast(down, scalar_type)?;
    let down = make.binary("mul.Tensor", down, step)?;
    let down = make.binary("sub.Tensor", end, down)?;
    let low = make.binary("lt.Scalar", place, steps.checked_div(2).unwrap_or(0))?;
    make.choose(low, up, down)
}

/// Sums of cosines over a period.
fn window(make: &mut Maker<'_>, node: &Composite<'_>, [a, b, c]: [f64; 3]) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let meta = make.meta(result)?;
    let length = node.int("window_length")?;
    let periodic = !node.has("periodic") || node.flag("periodic");
    let period = if periodic { length } else { length.saturating_sub(1) };
    if length < 2 {
        return one(make.full(&meta.sizes, Argument::Float(1.0), meta.scalar_type)?);
    }
    let place = make.count(&Size::Known(length))?;
    let place = make.cast(place, ScalarType::DOUBLE)?;
    let angle = make.binary("mul.Tensor", place, 2.0 * std::f64::consts::PI / period as f64)?;
    let cosine = make.unary("cos", angle)?;
    let part = make.binary("mul.Tensor", cosine, -b)?;
    let mut value = make.binary("add.Tensor", part, a)?;
    if c != 0.0 {
        let angle = make.binary("mul.Tensor", angle, 2.0)?;
        let cosine = make.unary("cos", angle)?;
        let part = make.binary("mul.Tensor", cosine, c)?;
        value = make.binary("add.Tensor", value, part)?;
    }
    one(make.cast(value, meta.scalar_type)?)
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

/// A matrix, or many, with elements on a diagonal and zeros elsewhere.
fn diag_embed(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (mut x, offset) = (node.value("self")?, node.int("offset")?);
    let scalar_type = make.meta(x)?.scalar_type;
    let rank = make.rank(x)?.saturating_add(1);
    let (a, b) = (make.dim(node.int("dim1")?, rank)?, make.dim(node.int("dim2")?, rank)?);
    if offset != 0 {
        // Rows or columns without an element on the diagonal.
        let pad = if offset > 0 { [offset, 0] } else { [0, offset.saturating_neg()] };
        let args = [("self", x.into()), ("pad", Argument::ints(pad)), ("value", Argument::Int(0))];
        x = make.call("constant_pad_nd", args)?;
    }
    let len = make.size(x, -1)?;
    let (row, column) = places(make, &len, &len)?;
    let off = make.binary("sub.Tensor", column, row)?;
    let on = make.binary("eq.Scalar", off, offset)?;
    let apart = make.unsqueeze(x, -2)?;
    let zero = make.scalar(Argument::Int(0), scalar_type)?;
    let value = make.choose(on, apart, zero)?;
    // Rows are the last but one dimension so far, columns the last.
    let number = |dim: usize| i64::try_from(dim).unwrap_or(0);
    let mut rest = (0..rank.saturating_sub(2)).map(number);
    let mut order = Vec::with_capacity(rank);
    for dim in 0..rank {
        order.push(match dim {
            _ if dim == a => number(rank.saturating_sub(2)),
            _ if dim == b => number(rank.saturating_sub(1)),
            _ => rest.next().unwrap_or(0),
        });
    }
    one(make.permute(value, &order)?)
}
