//! Pooling, resizing and padding.

use super::elements::{floats, made};
use super::facts::Call;
use super::op::{Op, Windows};
use super::reason::Reason;
use crate::graph::ValueId;

/// Recognises such a call.
pub(super) fn recognise(call: Call<'_, '_, '_>, name: &str) -> Option<Result<Op, Reason>> {
    Some(match name {
        "aten::max_pool2d_with_indices" => greatest(call),
        "aten::max.dim" => largest(call, Some(1)),
        "aten::amax" => largest(call, None),
        "aten::avg_pool2d" => average(call),
        "aten::mean.dim" => mean(call),
        "aten::upsample_bilinear2d.vec" => resize(call),
        "aten::constant_pad_nd" => pad(call),
        _ => return None,
    })
}

/// Returns the operand, which is a batch of images.
fn image(call: Call<'_, '_, '_>, name: &'static str) -> Result<ValueId, Reason> {
    let x = call.float(name)?;
    floats(call, &[x])?;
    made(call, x)?;
    match call.facts.rank(x) {
        4 => Ok(x),
        found => Err(Reason::Rank { value: call.facts.name(x), found, want: "4" }),
    }
}

fn windows(call: Call<'_, '_, '_>, x: ValueId) -> Result<Windows, Reason> {
    let size = call.pair("kernel_size", 1)?;
    let stride = match call.ints("stride")?.is_empty() {
        true => size,
        false => call.pair("stride", 1)?,
    };
    let padding = call.pair("padding", 0)?;
    let dilation = call.pair("dilation", 1)?;
    if size.contains(&0) || stride.contains(&0) || dilation.contains(&0) {
        return Err(Reason::Argument { argument: "kernel_size", why: "a window, stride or dilation is 0" });
    }
    Ok(Windows { x, size, stride, before: padding, after: padding, dilation })
}

fn greatest(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let (facts, x) = (call.facts, image(call, "self")?);
    let mut windows = windows(call, x)?;
    if call.node.results().get(1).is_some_and(|indices| !facts.is_unused(*indices)) {
        return Err(Reason::Result(1));
    }
    if windows.stride.iter().zip(&windows.size).any(|(stride, size)| stride > size) {
        return Err(Reason::Argument { argument: "stride", why: "nodes take strides up to the size of the window" });
    }
    if windows.size == [1, 1] {
        return Err(Reason::Argument { argument: "kernel_size", why: "a window of one element is none" });
    }
    if call.flag("ceil_mode", false)? {
        let why = "rounding up adds padding, which is a number";
        let (have, want) = (facts.sizes(x, why)?, facts.sizes(call.result()?, why)?);
        for axis in 0..2usize {
            let at = |list: &[usize]| list.get(axis.saturating_add(2)).and_then(|size| u32::try_from(*size).ok());
            let pick = |pair: &[u32; 2]| pair.get(axis).copied().unwrap_or(1);
            let too_large = || Reason::Argument { argument: "ceil_mode", why: "windows reach too far" };
            let reach = |count: u32| {
                let last = count.checked_sub(1)?.checked_mul(pick(&windows.stride))?;
                let window =
                    pick(&windows.size).checked_sub(1)?.checked_mul(pick(&windows.dilation))?.checked_add(1)?;
                last.checked_add(window)
            };
            let reach = at(&want).and_then(reach).ok_or_else(too_large)?;
            let covered = at(&have).and_then(|size| size.checked_add(pick(&windows.before))).ok_or_else(too_large)?;
            if let Some(after) = windows.after.get_mut(axis) {
                *after = reach.saturating_sub(covered).max(*after);
            }
        }
    }
    Ok(Op::Greatest(windows))
}

/// The largest number along height, width or both: a window of all of it. `indices` is a result that nodes do not give.
fn largest(call: Call<'_, '_, '_>, indices: Option<usize>) -> Result<Op, Reason> {
    let (facts, x) = (call.facts, image(call, "self")?);
    let used = indices.filter(|index| call.node.results().get(*index).is_some_and(|result| !facts.is_unused(*result)));
    if let Some(index) = used {
        return Err(Reason::Result(index));
    }
    let dims = match indices {
        Some(_) => vec![call.int("dim", 0)?],
        None => call.ints("dim")?,
    };
    let mut size = [1u32; 2];
    for dim in &dims {
        let along = call.dim(*dim, 4, "dim")?;
        let place = along.checked_sub(2).and_then(|place| size.get_mut(place));
        let place = place.ok_or(Reason::Argument { argument: "dim", why: "windows are of height and width alone" })?;
        let known = facts.tensor(x)?.sizes.get(along).and_then(crate::graph::Size::known);
        *place = known
            .and_then(|size| u32::try_from(size).ok())
            .ok_or_else(|| Reason::Dynamic { value: facts.name(x), why: "the size of a window is a number" })?;
    }
    if size == [1, 1] {
        return Err(Reason::Argument { argument: "dim", why: "a window of one element is none" });
    }
    Ok(Op::Greatest(Windows { x, size, stride: size, before: [0, 0], after: [0, 0], dilation: [1, 1] }))
}

fn average(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let x = image(call, "self")?;
    let windows = windows(call, x)?;
    if call.flag("ceil_mode", false)? {
        return Err(Reason::Argument { argument: "ceil_mode", why: "nodes round down" });
    }
    if call.flag("count_include_pad", true)? && windows.before != [0, 0] {
        return Err(Reason::Argument { argument: "count_include_pad", why: "nodes count elements of the image alone" });
    }
    let [height, width] = windows.size;
    let count = i64::from(height).checked_mul(i64::from(width)).unwrap_or(0);
    if call.int("divisor_override", count)? != count {
        return Err(Reason::Argument {
            argument: "divisor_override",
            why: "nodes divide by the elements of the window",
        });
    }
    if windows.size == [1, 1] {
        return Err(Reason::Argument { argument: "kernel_size", why: "a window of one element is none" });
    }
    Ok(Op::Average(windows))
}

fn mean(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let x = image(call, "self")?;
    let given = call.ints("dim")?.into_iter().map(|dim| call.dim(dim, 4, "dim"));
    let mut dims = given.collect::<Result<Vec<usize>, Reason>>()?;
    dims.sort_unstable();
    match dims.as_slice() {
        [2, 3] => Ok(Op::Mean(x)),
        _ => Err(Reason::Argument { argument: "dim", why: "nodes compute the mean over height and width alone" }),
    }
}

fn resize(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let (facts, x) = (call.facts, image(call, "input")?);
    let why = "the size of the result is a number";
    let (have, want) = (facts.sizes(x, why)?, facts.sizes(call.result()?, why)?);
    let align_corners = call.flag("align_corners", false)?;
    let factors = call.node.arg("scale_factors").map(|factors| factors.items().to_vec()).unwrap_or_default();
    for (axis, factor) in factors.iter().enumerate() {
        let crate::graph::Argument::Float(factor) = factor else { continue };
        let at = |list: &[usize]| list.get(axis.saturating_add(2)).map_or(0.0, |size| *size as f64);
        if !align_corners && at(&have) * factor != at(&want) {
            return Err(Reason::Argument { argument: "scale_factors", why: "they are not those of the sizes" });
        }
    }
    Ok(Op::Resize { x, align_corners })
}

fn pad(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let (facts, x) = (call.facts, call.float("self")?);
    floats(call, &[x])?;
    made(call, x)?;
    let rank = facts.rank(x);
    let wrong = || Reason::Argument { argument: "pad", why: "nodes add elements, they take none away" };
    let pads = call.ints("pad")?.into_iter().map(|pad| u32::try_from(pad).map_err(|_| wrong()));
    let pads = pads.collect::<Result<Vec<u32>, Reason>>()?;
    let (mut before, mut after) = (vec![0; rank], vec![0; rank]);
    for (pair, (before, after)) in pads.chunks(2).zip(before.iter_mut().zip(&mut after).rev()) {
        let [first, last] = pair else { return Err(wrong()) };
        (*before, *after) = (*first, *last);
    }
    let value = call.number("value")?.unwrap_or(0.0) as f32;
    Ok(Op::Pad { x, before, after, value })
}
