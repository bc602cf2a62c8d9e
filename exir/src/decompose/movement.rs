//! Composite operators by which elements only change places.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, MemoryFormat, Size, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "reshape" => |make, node| view_as_recorded(make, node),
        "view_as" | "reshape_as" => |make, node| {
            let sizes = make.sizes(node.value("other")?)?;
            one(make.view(node.value("self")?, &sizes)?)
        },
        "ravel" | "flatten.using_ints" | "unflatten.int" | "_unsafe_view" | "_reshape_alias" => {
            |make, node| view_as_recorded(make, node)
        }
        "transpose.int" | "swapaxes" | "swapdims" => |make, node| {
            let names = if node.has("dim0") { ["dim0", "dim1"] } else { ["axis0", "axis1"] };
            one(make.transpose(node.value("self")?, node.int(names[0])?, node.int(names[1])?)?)
        },
        "numpy_T" => |make, node| {
            let input = node.value("self")?;
            let rank = i64::try_from(make.rank(input)?).unwrap_or(0);
            one(make.permute(input, &(0..rank).rev().collect::<Vec<_>>())?)
        },
        "t" | "mT" | "adjoint" => |make, node| {
            let input = node.value("self")?;
            one(if make.rank(input)? < 2 { input } else { make.transpose(input, -1, -2)? })
        },
        "movedim.int" | "movedim.intlist" | "moveaxis.int" => movedim,
        "squeeze" | "squeeze_copy" => |make, node| {
            let input = node.value("self")?;
            let sizes = make.sizes(input)?;
            let ones = (0i64..).zip(&sizes).filter(|(_, size)| size.known() == Some(1)).map(|(dim, _)| dim);
            let ones: Vec<i64> = ones.collect();
            one(make.squeeze(input, &ones)?)
        },
        "squeeze.dim" | "squeeze_copy.dim" => |make, node| one(make.squeeze(node.value("self")?, &[node.int("dim")?])?),
        "expand_as" => |make, node| {
            let sizes = make.sizes(node.value("other")?)?;
            one(make.expand(node.value("self")?, &sizes)?)
        },
        "broadcast_to" => {
            |make, node| one(make.call("expand", [("self", node.arg("self")), ("size", node.arg("size"))])?)
        }
        "broadcast_tensors" => |make, node| {
            let recorded: Vec<ValueId> = node.node.results();
            let mut results = Vec::new();
            for (item, recorded) in node.arg("tensors").items().iter().zip(recorded) {
                let (Some(value), sizes) = (item.value(), make.sizes(recorded)?) else { return Ok(None) };
                results.push(Argument::Value(make.expand(value, &sizes)?));
            }
            Ok(Some(results))
        },
        "contiguous" => |make, node| {
            let format = ("memory_format", node.arg("memory_format"));
            one(make.call("clone", [("self", node.arg("self")), format])?)
        },
        "chunk"
        | "split.Tensor"
        | "split.sizes"
        | "unsafe_split.Tensor"
        | "unsafe_split_with_sizes"
        | "unsafe_chunk"
        | "tensor_split.sections" => split,
        "unbind.int" => unbind,
        "stack" => |make, node| {
            let mut raised = Vec::new();
            for value in node.arg("tensors").items().iter().filter_map(Argument::value) {
                raised.push(make.unsqueeze(value, node.int("dim")?)?);
            }
            one(make.cat(&raised, node.int("dim")?)?)
        },
        "concat" | "concatenate" => |make, node| {
            let values: Vec<ValueId> = node.arg("tensors").items().iter().filter_map(Argument::value).collect();
            one(make.cat(&values, node.int("dim")?)?)
        },
        "hstack" => |make, node| join(make, node, 1),
        "vstack" | "row_stack" => |make, node| join(make, node, 0),
        "column_stack" => |make, node| join(make, node, 1),
        "narrow" => |make, node| {
            let (mut start, length) = (make.size_of(&node.arg("start"))?, make.size_of(&node.arg("length"))?);
            if start.known().is_some_and(|start| start < 0) {
                start = make.size(node.value("self")?, node.int("dim")?)?.plus(&start);
            }
            let (from, to) = (make.size_arg(&start)?, make.size_arg(&start.plus(&length))?);
            let args = [("self", node.arg("self")), ("dim", node.arg("dim")), ("start", from), ("end", to)];
            one(make.call("slice.Tensor", args)?)
        },
        "to.dtype" | "to.device" | "to.other" | "to.dtype_layout" | "type_as" => to,
        "tile" => tile,
        "repeat_interleave.self_int" => repeat_interleave,
        "roll" => roll,
        "flip" | "fliplr" | "flipud" => |make, node| {
            if node.has("dims") {
                return Ok(None);
            }
            let dim = i64::from(node.node.calls("aten::fliplr"));
            one(make.call("flip", [("self", node.arg("self")), ("dims", Argument::ints([dim]))])?)
        },
        "pixel_shuffle" => |make, node| pixels(make, node, true),
        "pixel_unshuffle" => |make, node| pixels(make, node, false),
        "channel_shuffle" | "native_channel_shuffle" => channel_shuffle,
        "meshgrid" | "meshgrid.indexing" => meshgrid,
        "take_along_dim" => take_along,
        "gather" => gather,
        "unfold" => unfold,
        "as_strided" | "as_strided_copy" => |make, node| {
            // Strides count in memory, which is known only for tensors that are neither sliced nor transposed.
            let meta = make.meta(node.value("self")?)?;
            let plain = crate::graph::TensorMeta::contiguous(meta.scalar_type, &meta.sizes);
            if meta.strides != plain.strides || meta.storage_offset != Size::Known(0) {
                return Err(make.error("as_strided of a tensor that is a part of another"));
            }
            Ok(None)
        },
        "detach" | "alias" | "lift_fresh" | "lift_fresh_copy" | "lift" | "positive" | "resolve_conj"
        | "resolve_neg" => |_, node| one(node.value("self")?),
        _ => return None,
    })
}

/// A view whose sizes are those that were recorded.
fn view_as_recorded(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = node.value("self")?;
    if let shape @ Argument::List(..) = node.arg("shape") {
        return one(make.call("view", [("self", input.into()), ("size", shape)])?);
    }
    if let size @ Argument::List(..) = node.arg("size") {
        return one(make.call("view", [("self", input.into()), ("size", size)])?);
    }
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let sizes = make.sizes(result)?;
    one(make.view(input, &sizes)?)
}

fn movedim(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = node.value("self")?;
    let rank = make.rank(input)?;
    let dims = |make: &Maker<'_>, dims: Vec<i64>| -> Result<Vec<usize>, Error> {
        dims.into_iter().map(|dim| make.dim(dim, rank)).collect()
    };
    let (from, to) = (dims(make, node.ints("source")?)?, dims(make, node.ints("destination")?)?);
    let mut order: Vec<Option<usize>> = vec![None; rank];
    for (from, to) in from.iter().zip(&to) {
        if let Some(place) = order.get_mut(*to) {
            *place = Some(*from);
        }
    }
    let mut rest = (0..rank).filter(|dim| !from.contains(dim));
    let order: Vec<i64> = order
        .into_iter()
        .map(|place| place.or_else(|| rest.next()).and_then(|dim| i64::try_from(dim).ok()).unwrap_or(0))
        .collect();
    one(make.permute(input, &order)?)
}

/// Pieces of the lengths that were recorded.
fn split(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let dim = node.int("dim")?;
    let mut lengths = Vec::new();
    for result in node.node.results() {
        let length = make.size(result, dim)?;
        lengths.push(make.size_arg(&length)?);
    }
    let lengths = Argument::List(crate::graph::ListKind::Ints, lengths);
    let args = [("self", node.arg("self")), ("split_sizes", lengths), ("dim", dim.into())];
    Ok(Some(make.calls("split_with_sizes", args)?.into_iter().map(Argument::Value).collect()))
}

fn unbind(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let dim = node.int("dim")?;
    let count = i64::try_from(node.node.results().len()).unwrap_or(0);
    let mut results = Vec::new();
    for index in 0..count {
        let part = make.slice(node.value("self")?, dim, index, index.saturating_add(1))?;
        results.push(Argument::Value(make.squeeze(part, &[dim])?));
    }
    Ok(Some(results))
}

/// Tensors one after the other; those of too few dimensions become rows or columns.
fn join(make: &mut Maker<'_>, node: &Composite<'_>, dim: i64) -> Answer {
    let column = node.node.calls("aten::column_stack");
    let mut values = Vec::new();
    let mut along = dim;
    for value in node.arg("tensors").items().iter().filter_map(Argument::value) {
        values.push(match (make.rank(value)?, dim) {
            (0, 0) => make.view(value, &[Size::Known(1), Size::Known(1)])?,
            (0, _) if column => make.view(value, &[Size::Known(1), Size::Known(1)])?,
            (0, _) => {
                along = 0;
                make.unsqueeze(value, 0)?
            }
            (1, 0) => make.unsqueeze(value, 0)?,
            (1, _) if column => make.unsqueeze(value, 1)?,
            (1, _) => {
                along = 0;
                value
            }
            _ => value,
        });
    }
    one(make.cat(&values, along)?)
}

/// Conversions become copies; those that change nothing are left out.
fn to(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = node.value("self")?;
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let wanted = make.meta(result)?.scalar_type;
    let format = node.arg("memory_format");
    let same_format = matches!(format, Argument::None | Argument::MemoryFormat(MemoryFormat::Preserve));
    if make.meta(input)?.scalar_type == wanted && same_format {
        return one(if node.flag("copy") { make.unary("clone", input)? } else { input });
    }
    let args = [("self", input.into()), ("dtype", Argument::ScalarType(wanted)), ("memory_format", format)];
    one(make.call("_to_copy", args)?)
}

fn tile(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let rank = make.rank(node.value("self")?)?;
    let mut times = node.ints("dims")?;
    while times.len() < rank {
        times.insert(0, 1);
    }
    one(make.call("repeat", [("self", node.arg("self")), ("repeats", Argument::ints(times))])?)
}

fn repeat_interleave(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut input = node.value("self")?;
    let times = node.int("repeats")?;
    let dim = match node.arg("dim") {
        Argument::None => {
            let all = Size::product(&make.sizes(input)?);
            input = make.view(input, &[all])?;
            0
        }
        _ => make.dim(node.int("dim")?, make.rank(input)?)?,
    };
    let sizes = make.sizes(input)?;
    let after = dim.saturating_add(1);
    let apart = make.unsqueeze(input, i64::try_from(after).unwrap_or(0))?;
    let mut repeated = sizes.clone();
    repeated.insert(after.min(sizes.len()), Size::Known(times));
    let apart = make.expand(apart, &repeated)?;
    let format = ("memory_format", Argument::MemoryFormat(MemoryFormat::Contiguous));
    let apart = make.call("clone", [("self", apart.into()), format])?;
    let mut joined = sizes;
    if let Some(size) = joined.get_mut(dim) {
        *size = size.times(&Size::Known(times));
    }
    one(make.view(apart, &joined)?)
}

fn roll(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut input = node.value("self")?;
    let sizes = make.sizes(input)?;
    let (shifts, mut dims) = (node.ints("shifts")?, node.ints("dims")?);
    if dims.is_empty() {
        input = make.view(input, &[Size::product(&sizes)])?;
        dims = vec![0];
    }
    for (shift, dim) in shifts.into_iter().zip(dims) {
        let len = make.known_size(input, dim)?;
        let start = shift.checked_neg().and_then(|back| back.checked_rem_euclid(len)).unwrap_or(0);
        if start != 0 {
            let (head, tail) = (make.slice(input, dim, 0, start)?, make.slice(input, dim, start, len)?);
            input = make.cat(&[tail, head], dim)?;
        }
    }
    one(make.view(input, &sizes)?)
}

/// Channels become pixels, or pixels channels.
fn pixels(make: &mut Maker<'_>, node: &Composite<'_>, shuffle: bool) -> Answer {
    let input = node.value("self")?;
    let factor = node.int(if shuffle { "upscale_factor" } else { "downscale_factor" })?;
    let factor = Size::Known(factor);
    let sizes = make.sizes(input)?;
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let wanted = make.sizes(result)?;
    let [batch @ .., _, _, _] = sizes.as_slice() else { return Ok(None) };
    let count = i64::try_from(batch.len()).unwrap_or(0);
    let (source, target) = if shuffle { (&sizes, &wanted) } else { (&wanted, &sizes) };
    // Of the form with more channels: channels of the other, factor twice, rows, columns.
    let part = |sizes: &[Size], back: usize| {
        sizes.len().checked_sub(back).and_then(|at| sizes.get(at).cloned()).unwrap_or(Size::Known(1))
    };
    let (channels, rows, columns) = (part(target, 3), part(source, 2), part(source, 1));
    let apart: Vec<Size> = match shuffle {
        true => [channels, factor.clone(), factor, rows, columns].into(),
        false => [channels, rows, factor.clone(), columns, factor].into(),
    };
    let apart: Vec<Size> = batch.iter().cloned().chain(apart).collect();
    let order: [i64; 5] = if shuffle { [0, 3, 1, 4, 2] } else { [0, 2, 4, 1, 3] };
    let dims: Vec<i64> = (0..count).chain(order.map(|dim| dim.saturating_add(count))).collect();
    let value = make.view(input, &apart)?;
    let value = make.permute(value, &dims)?;
    let format = ("memory_format", Argument::MemoryFormat(MemoryFormat::Contiguous));
    let value = make.call("clone", [("self", value.into()), format])?;
    one(make.view(value, &wanted)?)
}

fn channel_shuffle(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = node.value("self")?;
    let groups = Size::Known(node.int("groups")?);
    let sizes = make.sizes(input)?;
    let [batch, channels, rest @ ..] = sizes.as_slice() else { return Ok(None) };
    let apart: Vec<Size> =
        [batch.clone(), groups.clone(), channels.over(&groups)].into_iter().chain(rest.iter().cloned()).collect();
    let value = make.view(input, &apart)?;
    let value = make.transpose(value, 1, 2)?;
    let format = ("memory_format", Argument::MemoryFormat(MemoryFormat::Contiguous));
    let value = make.call("clone", [("self", value.into()), format])?;
    one(make.view(value, &sizes)?)
}

fn meshgrid(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let recorded = node.node.results();
    let rank = recorded.len();
    let turned = rank > 1 && node.text("indexing").as_deref() == Some("xy");
    let mut results = Vec::new();
    for (at, (item, recorded)) in node.arg("tensors").items().iter().zip(recorded).enumerate() {
        let Some(value) = item.value() else { return Ok(None) };
        let at = match (turned, at) {
            (true, 0) => 1,
            (true, 1) => 0,
            _ => at,
        };
        let mut sizes = vec![Size::Known(1); rank];
        if let Some(size) = sizes.get_mut(at) {
            *size = Size::product(&make.sizes(value)?);
        }
        let value = make.view(value, &sizes)?;
        let wanted = make.sizes(recorded)?;
        results.push(Argument::Value(make.expand(value, &wanted)?));
    }
    Ok(Some(results))
}

/// Elements by index along a dimension, where the other dimensions of both are repeated to agree.
fn take_along(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (mut x, mut index) = (node.value("self")?, node.value("indices")?);
    if !node.has("dim") {
        let (all, places) = (Size::product(&make.sizes(x)?), Size::product(&make.sizes(index)?));
        (x, index) = (make.view(x, &[all])?, make.view(index, &[places])?);
        return one(make.call("gather", [("self", x.into()), ("dim", Argument::Int(0)), ("index", index.into())])?);
    }
    let (sizes, mut wanted) = (make.sizes(x)?, make.sizes(index)?);
    let along = make.dim(node.int("dim")?, sizes.len())?;
    let mut full = sizes.clone();
    for (dim, (from, to)) in full.iter_mut().zip(wanted.iter_mut()).enumerate() {
        match (from.known(), to.known()) {
            _ if dim == along => {}
            (Some(1), _) => *from = to.clone(),
            (_, Some(1)) => *to = from.clone(),
            _ => {}
        }
    }
    let (x, index) = (make.expand(x, &full)?, make.expand(index, &wanted)?);
    one(make.call("gather", [("self", x.into()), ("dim", node.arg("dim")), ("index", index.into())])?)
}

/// Short indices become long ones.
fn gather(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let index = node.value("index")?;
    if matches!(make.meta(index)?.scalar_type, ScalarType::INT | ScalarType::LONG) {
        return Ok(None);
    }
    let index = make.cast(index, ScalarType::LONG)?;
    one(make.call("gather", [("self", node.arg("self")), ("dim", node.arg("dim")), ("index", index.into())])?)
}

/// Windows along a dimension, picked by index.
fn unfold(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut input = node.value("self")?;
    if make.rank(input)? == 0 {
        input = make.unsqueeze(input, 0)?;
        let size = node.int("size")?;
        return one(make.slice(input, 0, 0, size)?);
    }
    let rank = make.rank(input)?;
    let dim = make.dim(node.int("dimension")?, rank)?;
    let at = i64::try_from(dim).unwrap_or(0);
    let (size, step) = (node.int("size")?, node.int("step")?);
    let len = make.known_size(input, at)?;
    let windows = len.saturating_sub(size).checked_div(step).unwrap_or(0).saturating_add(1);
    let starts = [
        ("start", Argument::Int(0)),
        ("end", Argument::Int(windows.saturating_mul(step))),
        ("step", Argument::Int(step)),
        ("dtype", Argument::ScalarType(ScalarType::LONG)),
    ];
    let starts = make.call("arange.start_step", starts)?;
    let starts = make.unsqueeze(starts, 1)?;
    let inside = make.count(&Size::Known(size))?;
    let index = make.binary("add.Tensor", starts, inside)?;
    let flat = make.view(index, &[Size::Known(windows.saturating_mul(size))])?;
    let args = [("self", input.into()), ("dim", at.into()), ("index", flat.into())];
    let picked = make.call("index_select", args)?;
    let mut sizes = make.sizes(picked)?;
    if let Some(place) = sizes.get_mut(dim) {
        *place = Size::Known(windows);
    }
    sizes.insert(dim.saturating_add(1).min(sizes.len()), Size::Known(size));
    let apart = make.view(picked, &sizes)?;
    let mut order: Vec<i64> = (0..i64::try_from(sizes.len()).unwrap_or(0)).collect();
    let window = order.remove(dim.saturating_add(1).min(order.len().saturating_sub(1)));
    order.push(window);
    one(make.permute(apart, &order)?)
}
