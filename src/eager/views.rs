//! Views, by the strides they have.

use edgepack_exir::graph::MemoryFormat;
use edgepack_format::scalar::ScalarType;

use super::tensor::{Tensor, contiguous, restride};
use super::{Call, EagerError, Slot};

/// The views that a call gives; `None` if it gives none.
pub(super) fn views(call: &Call<'_>) -> Result<Option<Vec<Tensor>>, EagerError> {
    let Some(name) = call.aten() else { return Ok(None) };
    let Some(x) = call.tensor("self").or_else(|| call.tensor("input")) else { return Ok(None) };
    let rank = x.sizes.len();
    let dim = |dim: i64| wrap(dim, rank);
    let one = |sizes: Vec<i64>, strides: Vec<i64>, offset: i64| Ok(Some(vec![x.seen(sizes, strides, offset)]));
    let same = || Ok(Some(vec![x.clone()]));
    let order = |order: Vec<usize>| {
        let pick = |list: &[i64]| order.iter().filter_map(|dim| list.get(*dim).copied()).collect::<Vec<i64>>();
        Ok(Some(vec![x.seen(pick(&x.sizes), pick(&x.strides), x.offset)]))
    };
    let swapped = |a: usize, b: usize| {
        let mut dims: Vec<usize> = (0..rank).collect();
        if a < rank && b < rank {
            dims.swap(a, b);
        }
        order(dims)
    };
    let part = |dim: usize, start: i64, len: i64, step: i64| {
        let (mut sizes, strides) = (x.sizes.clone(), x.strides.clone());
        let offset = x.offset + start * strides[dim];
        sizes[dim] = len;
        let mut stepped = strides;
        stepped[dim] *= step;
        x.seen(sizes, stepped, offset)
    };
    let complex = x.scalar_type.is_complex();
    match name {
        "alias" | "detach" | "positive" | "detach_" => same(),
        "transpose" | "transpose_" | "swapaxes" | "swapaxes_" | "swapdims" | "squeeze" | "squeeze_" | "movedim"
        | "moveaxis"
            if rank == 0 =>
        {
            same()
        }
        "lift_fresh" => Ok(None),
        "real" | "conj" | "_conj" | "resolve_conj" | "resolve_neg" if !complex => same(),
        "dropout"
        | "feature_dropout"
        | "alpha_dropout"
        | "feature_alpha_dropout"
        | "dropout_"
        | "feature_dropout_"
        | "alpha_dropout_" => match call.flag("train") && call.number("p") != Some(0.0) {
            true => Err(EagerError::new("dropout in training")),
            false => same(),
        },
        "view" | "_unsafe_view" | "reshape" | "view_as" | "reshape_as" | "flatten" | "unflatten" | "ravel"
        | "atleast_1d" | "atleast_2d" | "atleast_3d"
            if call.result_type().is_none_or(|wanted| wanted == x.scalar_type) =>
        {
            let sizes = call.result_sizes(x)?;
            let viewed = match name {
                "ravel" => (x.strides == contiguous(&x.sizes) || is_contiguous(x, MemoryFormat::Contiguous))
                    .then(|| contiguous(&sizes)),
                _ => restride(&x.sizes, &x.strides, &sizes),
            };
            match viewed {
                Some(strides) => one(sizes, strides, x.offset),
                None => Ok(None),
            }
        }
        "view" => {
            let wanted = call.result_type().unwrap_or(x.scalar_type);
            let viewed = reinterpreted(x, wanted);
            let viewed =
                viewed.ok_or_else(|| EagerError::new(format!("a tensor that cannot be viewed as {wanted}")))?;
            Ok(Some(vec![viewed]))
        }
        "unsqueeze" | "unsqueeze_" => {
            let at = wrap(call.int("dim")?, rank + 1)?;
            let (mut sizes, mut strides) = (x.sizes.clone(), x.strides.clone());
            let stride = if at < rank { sizes[at] * strides[at] } else { 1 };
            sizes.insert(at, 1);
            strides.insert(at, stride);
            one(sizes, strides, x.offset)
        }
        "squeeze" | "squeeze_" => {
            let dims: Option<Vec<usize>> = match call.slot("dim") {
                Slot::Int(one) => Some(vec![dim(one)?]),
                Slot::List(..) => Some(call.ints("dim")?.into_iter().map(dim).collect::<Result<_, _>>()?),
                _ => None,
            };
            let keep = |at: &usize| x.sizes[*at] != 1 || dims.as_ref().is_some_and(|dims| !dims.contains(at));
            order((0..rank).filter(keep).collect())
        }
        "t" | "t_" => swapped(0, 1),
        "transpose" | "transpose_" | "swapdims" | "swapdims_" => {
            swapped(dim(call.int("dim0")?)?, dim(call.int("dim1")?)?)
        }
        "swapaxes" | "swapaxes_" => swapped(dim(call.int("axis0")?)?, dim(call.int("axis1")?)?),
        "numpy_T" | "T" => order((0..rank).rev().collect()),
        "mT" | "mH" | "adjoint" | "matrix_H" if rank >= 2 && !complex => swapped(rank - 2, rank - 1),
        "permute" => order(call.ints("dims")?.into_iter().map(dim).collect::<Result<_, _>>()?),
        "movedim" | "moveaxis" => {
            let list = |name: &str| -> Result<Vec<usize>, EagerError> {
                match call.slot(name) {
                    Slot::Int(one) => Ok(vec![dim(one)?]),
                    _ => call.ints(name)?.into_iter().map(dim).collect(),
                }
            };
            let (from, to) = (list("source")?, list("destination")?);
            let mut dims: Vec<usize> = (0..rank).filter(|dim| !from.contains(dim)).collect();
            let mut pairs: Vec<(usize, usize)> = to.into_iter().zip(from).collect();
            pairs.sort_unstable();
            for (to, from) in pairs {
                dims.insert(to.min(dims.len()), from);
            }
            order(dims)
        }
        "select" => {
            let at = dim(call.int("dim")?)?;
            let index = call.int("index")?;
            let index = if index < 0 { index + x.sizes[at] } else { index };
            if !(0..x.sizes[at]).contains(&index) {
                return Err(EagerError::new("an index that is not there"));
            }
            let (mut sizes, mut strides) = (x.sizes.clone(), x.strides.clone());
            let offset = x.offset + index * strides[at];
            sizes.remove(at);
            strides.remove(at);
            one(sizes, strides, offset)
        }
        "slice" => {
            let at = dim(call.int("dim")?)?;
            let size = x.sizes[at];
            let bound = |slot: Slot, open: i64| match slot {
                Slot::Int(number) if number < 0 => number.saturating_add(size).clamp(0, size),
                Slot::Int(number) => number.min(size),
                _ => open,
            };
            let (start, end) = (bound(call.slot("start"), 0), bound(call.slot("end"), size));
            let step = call.int("step").unwrap_or(1).max(1);
            let len = (end - start + step - 1).max(0) / step;
            Ok(Some(vec![part(at, start, len, step)]))
        }
        "narrow" => {
            let at = dim(call.int("dim")?)?;
            let (start, length) = (call.int("start")?, call.int("length")?);
            let start = if start < 0 { start + x.sizes[at] } else { start };
            if start < 0 || length < 0 || start + length > x.sizes[at] {
                return Err(EagerError::new("a part that is not there"));
            }
            Ok(Some(vec![part(at, start, length, 1)]))
        }
        "split" | "split_with_sizes" | "chunk" | "tensor_split" | "hsplit" | "vsplit" | "dsplit" => {
            let at = match name {
                "vsplit" => 0,
                "hsplit" => usize::from(rank > 1),
                "dsplit" => 2,
                _ => dim(call.int("dim").unwrap_or(0))?,
            };
            let mut start = 0;
            let mut parts = Vec::new();
            for length in call.result_lengths(at)? {
                parts.push(part(at, start, length, 1));
                start += length;
            }
            Ok(Some(parts))
        }
        "unbind" => {
            let at = dim(call.int("dim").unwrap_or(0))?;
            let drop = |list: &[i64]| {
                let mut list = list.to_vec();
                list.remove(at);
                list
            };
            let index = |index: i64| x.seen(drop(&x.sizes), drop(&x.strides), x.offset + index * x.strides[at]);
            Ok(Some((0..x.sizes[at]).map(index).collect()))
        }
        "expand" | "expand_as" | "broadcast_to" => {
            let sizes = match name {
                "expand_as" => call.tensor("other").map(|other| other.sizes.clone()).unwrap_or_default(),
                _ => call.ints("size")?,
            };
            let ahead = sizes.len().checked_sub(rank).ok_or_else(|| EagerError::new("fewer dimensions than before"))?;
            let mut strides = vec![0; ahead];
            let mut wide = sizes[..ahead].to_vec();
            for (dim, wanted) in sizes[ahead..].iter().enumerate() {
                let repeated = x.sizes[dim] == 1 && *wanted != 1 && *wanted != -1;
                wide.push(if *wanted == -1 { x.sizes[dim] } else { *wanted });
                strides.push(if repeated { 0 } else { x.strides[dim] });
            }
            one(wide, strides, x.offset)
        }
        "diagonal" => {
            let (a, b) = (dim(call.int("dim1")?)?, dim(call.int("dim2")?)?);
            let offset = call.int("offset")?;
            let len = match offset >= 0 {
                true => x.sizes[a].min(x.sizes[b] - offset),
                false => (x.sizes[a] + offset).min(x.sizes[b]),
            };
            let start = if offset >= 0 { offset * x.strides[b] } else { -offset * x.strides[a] };
            let rest: Vec<usize> = (0..rank).filter(|dim| *dim != a && *dim != b).collect();
            let mut sizes: Vec<i64> = rest.iter().map(|dim| x.sizes[*dim]).collect();
            let mut strides: Vec<i64> = rest.iter().map(|dim| x.strides[*dim]).collect();
            sizes.push(len.max(0));
            strides.push(x.strides[a] + x.strides[b]);
            one(sizes, strides, x.offset + start)
        }
        "unfold" => {
            let at = dim(call.int("dimension")?)?;
            let (size, step) = (call.int("size")?, call.int("step")?.max(1));
            let (mut sizes, mut strides) = (x.sizes.clone(), x.strides.clone());
            sizes.push(size);
            strides.push(strides[at]);
            sizes[at] = (sizes[at] - size).max(0) / step + 1;
            strides[at] *= step;
            one(sizes, strides, x.offset)
        }
        "as_strided" => {
            let offset = match call.slot("storage_offset") {
                Slot::Int(offset) => offset,
                _ => x.offset,
            };
            one(call.ints("size")?, call.ints("stride")?, offset)
        }
        "contiguous" => {
            let format = call.memory_format().unwrap_or(MemoryFormat::Contiguous);
            if is_contiguous(x, format) { same() } else { Ok(None) }
        }
        "to" | "type_as" => {
            let same_type = call.result_type() == Some(x.scalar_type) && !call.flag("copy");
            let fits = match call.memory_format() {
                None | Some(MemoryFormat::Preserve) => true,
                Some(format) => is_contiguous(x, format),
            };
            if same_type && fits { same() } else { Ok(None) }
        }
        "view_as_real" | "real" | "imag" if complex => {
            let scalar_type = call.result_type().ok_or_else(|| EagerError::new("a view of unknown type"))?;
            let (mut sizes, mut strides) =
                (x.sizes.clone(), x.strides.iter().map(|stride| stride * 2).collect::<Vec<_>>());
            if name == "view_as_real" {
                sizes.push(2);
                strides.push(1);
            }
            let offset = x.offset * 2 + i64::from(name == "imag");
            Ok(Some(vec![x.seen(sizes, strides, offset).of_type(scalar_type)]))
        }
        "view_as_complex" => {
            let scalar_type = call.result_type().ok_or_else(|| EagerError::new("a view of unknown type"))?;
            let (mut sizes, mut strides) = (x.sizes.clone(), x.strides.clone());
            sizes.pop();
            strides.pop();
            let strides = strides.into_iter().map(|stride| stride / 2).collect();
            Ok(Some(vec![x.seen(sizes, strides, x.offset / 2).of_type(scalar_type)]))
        }
        _ => Ok(None),
    }
}

/// Returns the bytes as elements of another type, if they are stored such that those have strides.
fn reinterpreted(x: &Tensor, wanted: ScalarType) -> Option<Tensor> {
    let (own, new) = (x.scalar_type.size()? as i64, wanted.size()? as i64);
    if own == new {
        return Some(x.clone().of_type(wanted));
    }
    let scaled = |count: i64| (count * own % new == 0).then(|| count * own / new);
    let (last, outer) = x.strides.split_last().filter(|(last, _)| **last == 1)?;
    let mut strides: Vec<i64> = outer.iter().map(|stride| scaled(*stride)).collect::<Option<_>>()?;
    strides.push(*last);
    let mut sizes = x.sizes.clone();
    let size = sizes.last_mut()?;
    *size = scaled(*size)?;
    Some(x.seen(sizes, strides, scaled(x.offset)?).of_type(wanted))
}

fn wrap(dim: i64, rank: usize) -> Result<usize, EagerError> {
    let rank = rank as i64;
    let front = if dim < 0 { dim.saturating_add(rank) } else { dim };
    match (0..rank).contains(&front) {
        true => Ok(front as usize),
        false => Err(EagerError::new("a dimension that is not there")),
    }
}

/// Returns whether the elements are stored in the order of a memory format.
fn is_contiguous(x: &Tensor, format: MemoryFormat) -> bool {
    let order: Vec<usize> = match (format, x.sizes.len()) {
        (MemoryFormat::ChannelsLast, 4) => vec![0, 2, 3, 1],
        (MemoryFormat::ChannelsLast3d, 5) => vec![0, 2, 3, 4, 1],
        (MemoryFormat::Contiguous, rank) => (0..rank).collect(),
        _ => return false,
    };
    let mut step = 1;
    x.sizes.contains(&0)
        || order.into_iter().rev().all(|dim| {
            let fits = x.sizes[dim] == 1 || x.strides[dim] == step;
            step *= x.sizes[dim];
            fits
        })
}
