//! Calls that move numbers or give them other dimensions.

use super::elements::{floats, made};
use super::facts::Call;
use super::op::{Op, Range};
use super::reason::Reason;
use crate::graph::{Argument, Size, ValueId};

/// Recognises such a call.
pub(super) fn recognise(call: Call<'_, '_, '_>, name: &str) -> Option<Result<Op, Reason>> {
    Some(match name {
        "aten::cat" => cat(call),
        "aten::slice_copy.Tensor" => slice(call),
        "aten::select_copy.int" => select(call),
        "aten::split_with_sizes_copy" => split(call),
        "aten::permute_copy" => operand(call).and_then(|x| {
            let rank = call.facts.rank(x);
            let dims = call.ints("dims")?.into_iter().map(|dim| call.dim(dim, rank, "dims"));
            Ok(Op::Permute { x, dims: dims.collect::<Result<_, _>>()? })
        }),
        "aten::t_copy" => operand(call).map(|x| Op::Permute { x, dims: (0..call.facts.rank(x)).rev().collect() }),
        "aten::transpose_copy.int" => transpose(call),
        "aten::view_copy"
        | "aten::unsqueeze_copy"
        | "aten::squeeze_copy.dim"
        | "aten::squeeze_copy.dims"
        | "aten::squeeze_copy" => reshape(call),
        "aten::expand_copy" => same_sizes(call),
        "dim_order_ops::_clone_dim_order"
        | "dim_order_ops::_to_dim_order_copy"
        | "aten::alias_copy"
        | "aten::clone" => operand(call).map(Op::Same),
        "aten::_softmax" => softmax(call),
        _ => return None,
    })
}

fn operand(call: Call<'_, '_, '_>) -> Result<ValueId, Reason> {
    let x = call.float("self")?;
    floats(call, &[x])?;
    made(call, x)?;
    Ok(x)
}

fn softmax(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let x = operand(call)?;
    if call.facts.rank(x) == 0 {
        return Err(Reason::Rank { value: call.facts.name(x), found: 0, want: "1 to 6" });
    }
    Ok(Op::Softmax { x, dim: call.dim(call.int("dim", -1)?, call.facts.rank(x), "dim")? })
}

fn transpose(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let x = operand(call)?;
    let rank = call.facts.rank(x);
    let (a, b) = (call.dim(call.int("dim0", 0)?, rank, "dim0")?, call.dim(call.int("dim1", 1)?, rank, "dim1")?);
    let mut dims: Vec<usize> = (0..rank).collect();
    if a.max(b) < dims.len() {
        dims.swap(a, b);
    }
    Ok(Op::Permute { x, dims })
}

fn same_sizes(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let (x, result) = (operand(call)?, call.result()?);
    match call.facts.tensor(x)?.sizes == call.facts.tensor(result)?.sizes {
        true => Ok(Op::Same(x)),
        false => Err(Reason::Operator("elements repeated along a dimension".to_owned())),
    }
}

/// A reshape has at most one size that is a formula: the node finds it by itself.
fn reshape(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let (x, result) = (operand(call)?, call.result()?);
    let formulas = call.facts.tensor(result)?.sizes.iter().filter(|size| size.known().is_none()).count();
    match formulas {
        0 | 1 => Ok(Op::Reshape(x)),
        _ => Err(Reason::Dynamic { value: call.facts.name(result), why: "nodes find one size by themselves" }),
    }
}

fn cat(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let tensors = Reason::Argument { argument: "tensors", why: "they are not two tensors or more" };
    let items = call.node.arg("tensors").map(Argument::items).unwrap_or_default();
    let items = items.iter().map(Argument::value).collect::<Option<Vec<_>>>().filter(|items| items.len() > 1);
    let items = items.ok_or(tensors)?;
    floats(call, &items)?;
    if items.iter().all(|item| call.facts.constant(*item).is_some()) {
        return Err(Reason::Argument { argument: "tensors", why: "all are constants" });
    }
    let dim = call.dim(call.int("dim", 0)?, call.facts.rank(call.result()?), "dim")?;
    Ok(Op::Cat { items, dim })
}

/// Returns the size of a tensor along a dimension that is cut. It is a number: a node would cut what is too large without
/// a word. Along other dimensions it takes all there is.
fn cut(call: Call<'_, '_, '_>, x: ValueId, dim: usize) -> Result<usize, Reason> {
    let size = call.facts.tensor(x)?.sizes.get(dim).and_then(Size::known).and_then(|size| usize::try_from(size).ok());
    let why = "parts of tensors have places that are numbers";
    size.ok_or_else(|| Reason::Dynamic { value: call.facts.name(x), why })
}

fn slice(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let x = operand(call)?;
    let dim = call.dim(call.int("dim", 0)?, call.facts.rank(x), "dim")?;
    let size = cut(call, x, dim)?;
    if call.int("step", 1)? != 1 {
        return Err(Reason::Argument { argument: "step", why: "nodes take neighbours" });
    }
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let place = |place: i64| if place < 0 { place.saturating_add(size) } else { place }.clamp(0, size);
    let (start, end) = (place(call.int("start", 0)?), place(call.int("end", i64::MAX)?));
    let range = range(start, end.saturating_sub(start)).ok_or_else(|| Reason::Empty(call.facts.name(x)))?;
    Ok(Op::Slice { x, dim, parts: vec![range] })
}

fn range(start: i64, len: i64) -> Option<Range> {
    Some(Range { start: u32::try_from(start).ok()?, len: u32::try_from(len).ok().filter(|len| *len > 0)? })
}

fn select(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let x = operand(call)?;
    let rank = call.facts.rank(x);
    let dim = call.dim(call.int("dim", 0)?, rank, "dim")?;
    if rank == 1 {
        return Err(Reason::Rank { value: call.facts.name(call.result()?), found: 0, want: "1 to 6" });
    }
    let size = cut(call, x, dim)?;
    let formulas = call.facts.tensor(x)?.sizes.iter().filter(|size| size.known().is_none()).count();
    if formulas > 1 {
        return Err(Reason::Dynamic { value: call.facts.name(x), why: "nodes find one size by themselves" });
    }
    let index = super::facts::dim(call.int("index", 0)?, size).and_then(|index| u32::try_from(index).ok());
    let index = index.ok_or(Reason::Argument { argument: "index", why: "it is outside of the dimension" })?;
    Ok(Op::Select { x, dim, index })
}

fn split(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let x = operand(call)?;
    let dim = call.dim(call.int("dim", 0)?, call.facts.rank(x), "dim")?;
    cut(call, x, dim)?;
    let (mut parts, mut start) = (Vec::new(), 0i64);
    for len in call.ints("split_sizes")? {
        parts.push(range(start, len).ok_or_else(|| Reason::Empty(call.facts.name(x)))?);
        start = start.saturating_add(len);
    }
    let results = call.node.results();
    match results.len() == parts.len() {
        true => Ok(Op::Slice { x, dim, parts }),
        false => Err(Reason::Argument { argument: "split_sizes", why: "there is not one part for each result" }),
    }
}
