//! Operators that move elements without changing them: views and their copying twins, joining, padding, repeating.

use super::{Call, MOST_RESULTS, ShapeFunction, dimension, made, one};
use crate::graph::{Argument, Size, TensorMeta};

pub(super) const RULES: &[(&str, ShapeFunction)] = &[
    ("view", view),
    ("view_as_type", view_as_type),
    ("expand", expand),
    ("permute", permute),
    ("reversed", reversed),
    ("transpose", transpose),
    ("unsqueeze", unsqueeze),
    ("squeeze", squeeze),
    ("select", select),
    ("slice", slice),
    ("split_with_sizes", split_with_sizes),
    ("split", split),
    ("chunk", chunk),
    ("unbind", unbind),
    ("diagonal", diagonal),
    ("diag_embed", diag_embed),
    ("as_strided", as_strided),
    ("flatten", flatten),
    ("cat", cat),
    ("stack", stack),
    ("pad", pad),
    ("repeat", repeat),
    ("narrow", narrow),
    ("unfold", unfold),
    ("pixel_shuffle", pixel_shuffle),
    ("pixel_unshuffle", pixel_unshuffle),
];

/// Sizes in which one may be left to be computed.
fn completed(input: &TensorMeta, mut sizes: Vec<Size>) -> Option<Vec<Size>> {
    if let Some(open) = sizes.iter().position(|size| size.known() == Some(-1)) {
        let others = Size::product(sizes.iter().enumerate().filter(|(at, _)| *at != open).map(|(_, size)| size));
        let all = Size::product(&input.sizes);
        *sizes.get_mut(open)? = if others.known() == Some(0) { Size::Known(0) } else { quotient(input, &all, &others) };
    }
    Some(sizes)
}

/// The number of elements over a product of sizes, with factors that both have left out.
fn quotient(input: &TensorMeta, all: &Size, others: &Size) -> Size {
    let (Some(all_hint), Some(hint)) = (all.hint(), others.hint()) else { return all.over(others) };
    // A symbol among the factors of both cancels, so what is left may be a number.
    let known = |sizes: &[Size]| sizes.iter().filter_map(Size::known).try_fold(1i64, |all, size| all.checked_mul(size));
    let symbols: Vec<&Size> = input.sizes.iter().filter(|size| size.known().is_none()).collect();
    match (symbols.as_slice(), known(&input.sizes)) {
        ([symbol], Some(rest)) if **symbol == *others => Size::Known(rest),
        _ => match (all.known(), others.known()) {
            (None, None) if *others == Size::product(symbols.iter().copied()) => {
                all_hint.checked_div(hint).map_or_else(|| all.over(others), Size::Known)
            }
            _ => all.over(others),
        },
    }
}

fn view(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let sizes = call.sizes("size").or_else(|| call.sizes("shape"))?;
    one(input.scalar_type, &completed(input, sizes)?)
}

/// The same bytes as elements of another type: where those have another size, the last dimension is scaled.
fn view_as_type(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (input, to) = (call.tensor("self")?, call.scalar_type("dtype")?);
    let (own, wanted) = (input.scalar_type.size()?, to.size()?);
    let mut sizes = input.sizes.clone();
    if own != wanted {
        let last = sizes.last_mut()?;
        let ratio = i64::try_from(own.max(wanted).checked_div(own.min(wanted))?).ok()?;
        *last = match (own > wanted, last.known()) {
            (true, _) => last.times(&Size::Known(ratio)),
            (false, Some(known)) if known.checked_rem(ratio) != Some(0) => return None,
            (false, _) => last.over(&Size::Known(ratio)),
        };
    }
    one(to, &sizes)
}

fn expand(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let mut sizes = call.sizes("size")?;
    let new = sizes.len().checked_sub(input.rank())?;
    for (size, from) in sizes.iter_mut().skip(new).zip(&input.sizes) {
        if size.known() == Some(-1) {
            *size = from.clone();
        }
    }
    one(input.scalar_type, &sizes)
}

fn permute(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let dims = call.ints("dims")?;
    let size = |dim: i64| input.sizes.get(dimension(dim, input.rank())?).cloned();
    one(input.scalar_type, &dims.into_iter().map(size).collect::<Option<Vec<_>>>()?)
}

fn reversed(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    one(input.scalar_type, &input.sizes.iter().rev().cloned().collect::<Vec<_>>())
}

fn transpose(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let mut sizes = input.sizes.clone();
    let (a, b) = (dimension(call.int("dim0")?, input.rank())?, dimension(call.int("dim1")?, input.rank())?);
    if a.max(b) < sizes.len() {
        sizes.swap(a, b);
    }
    one(input.scalar_type, &sizes)
}

fn unsqueeze(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let mut sizes = input.sizes.clone();
    let dim = dimension(call.int("dim")?, sizes.len().saturating_add(1))?;
    sizes.insert(dim, Size::Known(1));
    one(input.scalar_type, &sizes)
}

fn squeeze(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let dims: Vec<usize> = match call.ints("dim") {
        Some(dims) => dims.into_iter().map(|dim| dimension(dim, input.rank())).collect::<Option<_>>()?,
        None => (0..input.rank()).collect(),
    };
    let kept = |(dim, size): &(usize, &Size)| size.known() != Some(1) || !dims.contains(dim);
    let sizes: Vec<Size> = input.sizes.iter().enumerate().filter(kept).map(|(_, size)| size.clone()).collect();
    one(input.scalar_type, &sizes)
}

fn select(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let mut sizes = input.sizes.clone();
    let dim = dimension(call.int("dim")?, sizes.len()).filter(|dim| *dim < sizes.len())?;
    sizes.remove(dim);
    one(input.scalar_type, &sizes)
}

fn slice(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let mut sizes = input.sizes.clone();
    let size = sizes.get_mut(dimension(call.int("dim")?, input.rank())?)?;
    let step = call.int("step")?;
    let end_of = |name: &str, default: Size| match call.arg(name) {
        None | Some(Argument::None) => Some(default),
        Some(_) => call.size(name),
    };
    let whole = size.clone();
    // Bounds are counted from the end if negative, and end where the dimension does.
    let bound = |at: Size| match (at.known(), whole.known()) {
        (Some(at), Some(whole)) => {
            let at = if at < 0 { at.saturating_add(whole) } else { at };
            // A dimension below zero belongs to no tensor, and has no elements between its bounds.
            Size::Known(at.min(whole).max(0))
        }
        (Some(i64::MAX), None) => whole.clone(),
        (Some(at), None) if at < 0 => whole.plus(&Size::Known(at)),
        (Some(0), None) => Size::Known(0),
        (None, None) if at == whole => at,
        _ => at.smaller(&whole),
    };
    let (start, end) = (bound(end_of("start", Size::Known(0))?), bound(end_of("end", Size::Known(i64::MAX))?));
    let len = end.minus(&start);
    let len = if len.known().is_some() { len.larger(&Size::Known(0)) } else { len };
    *size = len.plus(&Size::Known(step.checked_sub(1)?)).over(&Size::Known(step));
    one(input.scalar_type, &sizes)
}

fn pieces(input: &TensorMeta, dim: usize, lengths: &[Size]) -> Option<Vec<TensorMeta>> {
    let piece = |len: &Size| {
        let mut sizes = input.sizes.clone();
        *sizes.get_mut(dim)? = len.clone();
        Some(made(input.scalar_type, &sizes))
    };
    lengths.iter().map(piece).collect()
}

fn split_with_sizes(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    pieces(input, dimension(call.int("dim")?, input.rank())?, &call.sizes("split_sizes")?)
}

fn split(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let dim = dimension(call.int("dim")?, input.rank())?;
    pieces(input, dim, &even_lengths(input.sizes.get(dim)?.known()?, call.int("split_size")?, call.most)?)
}

fn chunk(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let dim = dimension(call.int("dim")?, input.rank())?;
    let (len, chunks) = (input.sizes.get(dim)?.known()?, call.int("chunks")?);
    let each = len.checked_add(chunks)?.checked_sub(1)?.checked_div(chunks)?;
    pieces(input, dim, &even_lengths(len, each.max(1), call.most)?)
}

/// Lengths of the first pieces, all the same but the last.
fn even_lengths(len: i64, each: i64, most: usize) -> Option<Vec<Size>> {
    if each <= 0 || len < 0 || len.checked_div(each)? > i64::try_from(MOST_RESULTS).ok()? {
        return None;
    }
    let mut lengths = Vec::new();
    let mut left = len;
    while left > 0 && lengths.len() < most {
        lengths.push(Size::Known(left.min(each)));
        left = left.saturating_sub(each);
    }
    Some(lengths)
}

fn unbind(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let dim = dimension(call.int("dim")?, input.rank())?;
    let count = usize::try_from(input.sizes.get(dim)?.known()?).ok().filter(|count| *count <= MOST_RESULTS)?;
    let mut sizes = input.sizes.clone();
    sizes.remove(dim);
    Some(vec![made(input.scalar_type, &sizes); count.min(call.most)])
}

fn diagonal(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let (a, b) = (dimension(call.int("dim1")?, input.rank())?, dimension(call.int("dim2")?, input.rank())?);
    let offset = call.int("offset")?;
    let (rows, columns) = (input.sizes.get(a)?, input.sizes.get(b)?);
    let (rows, columns) = match offset >= 0 {
        true => (rows.clone(), columns.minus(&Size::Known(offset))),
        false => (rows.plus(&Size::Known(offset)), columns.clone()),
    };
    let kept = input.sizes.iter().enumerate().filter(|(dim, _)| *dim != a && *dim != b);
    let mut sizes: Vec<Size> = kept.map(|(_, size)| size.clone()).collect();
    sizes.push(rows.smaller(&columns));
    one(input.scalar_type, &sizes)
}

fn diag_embed(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let rank = input.rank().checked_add(1)?;
    let (a, b) = (dimension(call.int("dim1")?, rank)?, dimension(call.int("dim2")?, rank)?);
    let side = input.sizes.last()?.plus(&Size::Known(call.int("offset")?.checked_abs()?));
    let mut rest = input.sizes.iter();
    let sizes: Option<Vec<Size>> =
        (0..rank).map(|dim| if dim == a || dim == b { Some(side.clone()) } else { rest.next().cloned() }).collect();
    one(input.scalar_type, &sizes?)
}

fn as_strided(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(call.tensor("self")?.scalar_type, &call.sizes("size")?)
}

fn flatten(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let (start, end) =
        (dimension(call.int("start_dim")?, input.rank())?, dimension(call.int("end_dim")?, input.rank())?);
    let mut sizes: Vec<Size> = input.sizes.iter().take(start).cloned().collect();
    sizes.push(Size::product(input.sizes.get(start..=end).unwrap_or_default()));
    sizes.extend(input.sizes.iter().skip(end.saturating_add(1)).cloned());
    one(input.scalar_type, &sizes)
}

fn cat(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let tensors = call.tensors("tensors")?;
    let scalar_type = tensors.iter().map(|meta| meta.scalar_type).reduce(super::promote)?;
    // What is empty and has one dimension only is left out, whatever the others are.
    let empty = |meta: &&&TensorMeta| meta.rank() != 1 || meta.sizes.first().and_then(Size::known) != Some(0);
    let kept: Vec<&TensorMeta> = tensors.iter().filter(empty).copied().collect();
    let Some(first) = kept.first() else { return one(scalar_type, &[Size::Known(0)]) };
    let dim = dimension(call.int("dim")?, first.rank())?;
    let mut sizes = first.sizes.clone();
    let mut len = Size::Known(0);
    for meta in &kept {
        len = len.plus(meta.sizes.get(dim)?);
    }
    *sizes.get_mut(dim)? = len;
    one(scalar_type, &sizes)
}

fn stack(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let tensors = call.tensors("tensors")?;
    let scalar_type = tensors.iter().map(|meta| meta.scalar_type).reduce(super::promote)?;
    let mut sizes = tensors.first()?.sizes.clone();
    let dim = dimension(call.int("dim")?, sizes.len().saturating_add(1))?;
    sizes.insert(dim, Size::Known(i64::try_from(tensors.len()).ok()?));
    one(scalar_type, &sizes)
}

fn pad(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let padding = call.sizes("pad")?;
    let mut sizes = input.sizes.clone();
    for (size, both) in sizes.iter_mut().rev().zip(padding.chunks(2)) {
        *size = both.iter().fold(size.clone(), |size, padding| size.plus(padding));
    }
    one(input.scalar_type, &sizes)
}

fn repeat(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let mut sizes = call.sizes("repeats")?;
    let new = sizes.len().checked_sub(input.rank())?;
    for (times, size) in sizes.iter_mut().skip(new).zip(&input.sizes) {
        *times = times.times(size);
    }
    one(input.scalar_type, &sizes)
}

fn narrow(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let mut sizes = input.sizes.clone();
    *sizes.get_mut(dimension(call.int("dim")?, input.rank())?)? = call.size("length")?;
    one(input.scalar_type, &sizes)
}

fn unfold(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let mut sizes = input.sizes.clone();
    let dim = sizes.get_mut(dimension(call.int("dimension")?, input.rank())?)?;
    let size = Size::Known(call.int("size")?);
    *dim = dim.minus(&size).over(&Size::Known(call.int("step")?)).plus(&Size::Known(1));
    sizes.push(size);
    one(input.scalar_type, &sizes)
}

/// Sizes of an image whose channels become pixels.
fn pixel_shuffle(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let factor = Size::Known(call.int("upscale_factor")?);
    let [rest @ .., channels, height, width] = input.sizes.as_slice() else { return None };
    let mut sizes = rest.to_vec();
    sizes.push(channels.over(&factor.times(&factor)));
    sizes.extend([height.times(&factor), width.times(&factor)]);
    one(input.scalar_type, &sizes)
}

fn pixel_unshuffle(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let factor = Size::Known(call.int("downscale_factor")?);
    let [rest @ .., channels, height, width] = input.sizes.as_slice() else { return None };
    let mut sizes = rest.to_vec();
    sizes.push(channels.times(&factor.times(&factor)));
    sizes.extend([height.over(&factor), width.over(&factor)]);
    one(input.scalar_type, &sizes)
}
