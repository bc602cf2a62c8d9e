//! Composite operators that stack, split, rotate and shift tensors; Kronecker products, gradients, matrix powers.

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, Size, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "atleast_1d" => |make, node| one(at_least(make, node.value("self")?, 1)?),
        "atleast_2d" => |make, node| one(at_least(make, node.value("self")?, 2)?),
        "atleast_3d" => |make, node| one(at_least(make, node.value("self")?, 3)?),
        "atleast_1d.Sequence" => |make, node| all_at_least(make, node, 1),
        "atleast_2d.Sequence" => |make, node| all_at_least(make, node, 2),
        "atleast_3d.Sequence" => |make, node| all_at_least(make, node, 3),
        "dstack" => |make, node| {
            let mut raised = Vec::new();
            for value in tensors(node) {
                raised.push(at_least(make, value, 3)?);
            }
            one(make.cat(&raised, 2)?)
        },
        "tensor_split.indices" | "tensor_split.tensor_indices_or_sections" => |make, node| pieces(make, node, None),
        "hsplit.int" | "hsplit.array" => |make, node| {
            let rank = make.rank(node.value("self")?)?;
            pieces(make, node, Some(if rank == 1 { 0 } else { 1 }))
        },
        "vsplit.int" | "vsplit.array" => |make, node| pieces(make, node, Some(0)),
        "dsplit.int" | "dsplit.array" => |make, node| pieces(make, node, Some(2)),
        "mH" | "matrix_H" => |make, node| {
            let turned = make.transpose(node.value("self")?, -2, -1)?;
            one(conjugate(make, turned)?)
        },
        "block_diag" => block_diag,
        "kron" => kron,
        "cartesian_prod" => cartesian_product,
        "rot90" => rot90,
        "sum_to_size" => sum_to_size,
        "gradient.scalarint"
        | "gradient.scalararray"
        | "gradient.array"
        | "gradient.scalarrayint"
        | "gradient.scalarrayarray"
        | "gradient.tensorarrayint"
        | "gradient.tensorarray" => gradient,
        "fft_fftshift" => |make, node| shift(make, node, false),
        "fft_ifftshift" => |make, node| shift(make, node, true),
        "chain_matmul" | "linalg_multi_dot" => |make, node| {
            let mut product: Option<ValueId> = None;
            for value in node.arguments.first().map(|(_, list)| list.items().to_vec()).unwrap_or_default() {
                let Some(value) = value.value() else { return Ok(None) };
                product = Some(match product {
                    Some(product) => super::products::matmul(make, product, value)?,
                    None => value,
                });
            }
            product.map_or(Ok(None), one)
        },
        "matrix_power" | "linalg_matrix_power" => matrix_power,
        "diagonal_scatter" => diagonal_scatter,
        _ => return None,
    })
}

fn tensors(node: &Composite<'_>) -> Vec<ValueId> {
    node.arg("tensors").items().iter().filter_map(Argument::value).collect()
}

/// The conjugates of complex numbers; other numbers as they are.
pub(super) fn conjugate(make: &mut Maker<'_>, value: ValueId) -> Result<ValueId, Error> {
    match make.meta(value)?.scalar_type.is_complex() {
        true => make.unary("_conj_physical", value),
        false => Ok(value),
    }
}

/// A tensor with dimensions of one added: in front, and a third one behind.
fn at_least(make: &mut Maker<'_>, mut value: ValueId, rank: usize) -> Result<ValueId, Error> {
    while make.rank(value)? < rank {
        let behind = make.rank(value)? == 2;
        value = make.unsqueeze(value, if behind { -1 } else { 0 })?;
    }
    Ok(value)
}

fn all_at_least(make: &mut Maker<'_>, node: &Composite<'_>, rank: usize) -> Answer {
    let mut results = Vec::new();
    for value in tensors(node) {
        results.push(Argument::Value(at_least(make, value, rank)?));
    }
    Ok(Some(results))
}

/// Pieces of the recorded lengths, one after the other.
fn pieces(make: &mut Maker<'_>, node: &Composite<'_>, dim: Option<i64>) -> Answer {
    let dim = match dim {
        Some(dim) => dim,
        None => node.int("dim")?,
    };
    let (input, mut start, mut results) = (node.value("self")?, 0i64, Vec::new());
    for recorded in node.node.results() {
        let end = start.saturating_add(make.known_size(recorded, dim)?);
        results.push(Argument::Value(make.slice(input, dim, start, end)?));
        start = end;
    }
    // Bounds that do not rise give pieces that are not next to each other.
    if node.has("indices") || node.has("tensor_indices_or_sections") {
        let mut bounds = node.ints("indices").unwrap_or_default();
        if node.has("tensor_indices_or_sections") || bounds.windows(2).any(|pair| pair.first() > pair.last()) {
            return Err(node.wrong("indices"));
        }
        let size = make.known_size(input, dim)?;
        bounds.retain(|bound| *bound < 0 || *bound > size);
        if !bounds.is_empty() {
            return Err(node.wrong("indices"));
        }
    }
    Ok(Some(results))
}

fn block_diag(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let meta = make.meta(result)?;
    let [_, columns] = meta.sizes.as_slice() else { return Ok(None) };
    let columns = columns.known().ok_or_else(|| node.wrong("tensors"))?;
    let (mut rows, mut before) = (Vec::new(), 0i64);
    for value in tensors(node) {
        let block = at_least(make, value, 2)?;
        let block = make.cast(block, meta.scalar_type)?;
        let width = make.known_size(block, 1)?;
        let after = columns.saturating_sub(before).saturating_sub(width);
        let pad = Argument::ints([before, after]);
        rows.push(make.call("constant_pad_nd", [("self", block.into()), ("pad", pad), ("value", Argument::Int(0))])?);
        before = before.saturating_add(width);
    }
    one(make.cat(&rows, 0)?)
}

/// Every element of one times the whole of the other.
fn kron(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let wanted = make.sizes(result)?;
    let apart = |make: &mut Maker<'_>, name: &str, first: bool| -> Result<ValueId, Error> {
        let mut value = node.value(name)?;
        while make.rank(value)? < wanted.len() {
            value = make.unsqueeze(value, 0)?;
        }
        let sizes = make.sizes(value)?;
        let pair = |size: Size| if first { [size, Size::Known(1)] } else { [Size::Known(1), size] };
        make.view(value, &sizes.into_iter().flat_map(pair).collect::<Vec<_>>())
    };
    let (a, b) = (apart(make, "self", true)?, apart(make, "other", false)?);
    let product = make.binary("mul.Tensor", a, b)?;
    one(make.view(product, &wanted)?)
}

fn cartesian_product(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let all = tensors(node);
    if let [only] = all.as_slice() {
        return one(*only);
    }
    let mut sizes = Vec::new();
    for value in &all {
        sizes.push(make.size(*value, 0)?);
    }
    let mut columns = Vec::new();
    for (at, value) in all.iter().enumerate() {
        let mut shape = vec![Size::Known(1); sizes.len()];
        if let (Some(place), Some(size)) = (shape.get_mut(at), sizes.get(at)) {
            *place = size.clone();
        }
        let value = make.view(*value, &shape)?;
        let value = make.expand(value, &sizes)?;
        let format = ("memory_format", Argument::MemoryFormat(crate::graph::MemoryFormat::Contiguous));
        let value = make.call("clone", [("self", value.into()), format])?;
        columns.push(make.view(value, &[Size::product(&sizes), Size::Known(1)])?);
    }
    one(make.cat(&columns, 1)?)
}

/// Quarter turns in the plane of two dimensions.
fn rot90(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let x = node.value("self")?;
    let dims = node.ints("dims")?;
    let [a, b] = dims.as_slice() else { return Ok(None) };
    let flip = |make: &mut Maker<'_>, x: ValueId, dims: &[i64]| {
        make.call("flip", [("self", x.into()), ("dims", Argument::ints(dims.iter().copied()))])
    };
    one(match node.int("k")?.rem_euclid(4) {
        1 => {
            let flipped = flip(make, x, &[*b])?;
            make.transpose(flipped, *a, *b)?
        }
        2 => flip(make, x, &[*a, *b])?,
        3 => {
            let flipped = flip(make, x, &[*a])?;
            make.transpose(flipped, *a, *b)?
        }
        _ => make.unary("clone", x)?,
    })
}

/// Sums along what broadcasting would have repeated.
fn sum_to_size(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let x = node.value("self")?;
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let (sizes, wanted) = (make.sizes(x)?, make.sizes(result)?);
    let new = sizes.len().saturating_sub(wanted.len());
    let mut dims: Vec<i64> = (0..i64::try_from(new).unwrap_or(0)).collect();
    for (dim, (size, wanted)) in
        sizes.iter().enumerate().skip(new).map(|(dim, size)| (dim, (size, wanted.get(dim.saturating_sub(new)))))
    {
        if wanted.and_then(Size::known) == Some(1) && size.known() != Some(1) {
            dims.push(i64::try_from(dim).unwrap_or(0));
        }
    }
    if dims.is_empty() {
        return one(x);
    }
    let summed = make.sum(x, &dims, true)?;
    one(make.view(summed, &wanted)?)
}

/// Halves of dimensions change places.
fn shift(make: &mut Maker<'_>, node: &Composite<'_>, inverse: bool) -> Answer {
    let mut x = node.value("self")?;
    let rank = i64::try_from(make.rank(x)?).unwrap_or(0);
    let dims = if node.has("dim") { node.ints("dim")? } else { (0..rank).collect() };
    for dim in dims {
        let len = make.known_size(x, dim)?;
        let half = len.checked_div(2).unwrap_or(0);
        // What goes to the front is the second half, of an odd length the shorter one unless it goes back.
        let start = if inverse { half } else { len.saturating_sub(half) };
        if start > 0 && start < len {
            let (head, tail) = (make.slice(x, dim, 0, start)?, make.slice(x, dim, start, len)?);
            x = make.cat(&[tail, head], dim)?;
        }
    }
    one(x)
}

/// Distance between neighbours along a dimension.
enum Spacing {
    Even(f64),
    Places(ValueId),
}

/// Differences of neighbours, one-sided at the ends.
fn gradient(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut x = node.value("self")?;
    let scalar_type = make.meta(x)?.scalar_type;
    if !scalar_type.is_floating() && !scalar_type.is_complex() {
        x = make.cast(x, edgepack_format::scalar::ScalarType::FLOAT)?;
    }
    let rank = i64::try_from(make.rank(x)?).unwrap_or(0);
    let dims = if node.has("dim") { node.ints("dim")? } else { (0..rank).collect() };
    let spacing = node.arg("spacing");
    let mut results = Vec::new();
    for (at, dim) in dims.into_iter().enumerate() {
        let space = match &spacing {
            Argument::None => Spacing::Even(1.0),
            Argument::List(_, items) => match items.get(at) {
                Some(Argument::Value(places)) => Spacing::Places(*places),
                Some(Argument::Float(step)) => Spacing::Even(*step),
                Some(Argument::Int(step)) => Spacing::Even(*step as f64),
                _ => return Err(node.wrong("spacing")),
            },
            _ => Spacing::Even(node.number("spacing").ok_or_else(|| node.wrong("spacing"))?),
        };
        results.push(Argument::Value(slope(make, x, dim, &space, node.int("edge_order")?)?));
    }
    Ok(Some(results))
}

fn slope(make: &mut Maker<'_>, x: ValueId, dim: i64, spacing: &Spacing, order: i64) -> Result<ValueId, Error> {
    let len = make.known_size(x, dim)?;
    let last = len.saturating_sub(1);
    let at = |make: &mut Maker<'_>, from: i64, to: i64| make.slice(x, dim, from, to);
    let pair = |make: &mut Maker<'_>, low: i64| -> Result<ValueId, Error> {
        let (a, b) = (at(make, low, low.saturating_add(1))?, at(make, low.saturating_add(1), low.saturating_add(2))?);
        make.binary("sub.Tensor", b, a)
    };
    match spacing {
        Spacing::Even(step) => {
            let (before, after) = (at(make, 0, len.saturating_sub(2))?, at(make, 2, len)?);
            let middle = make.binary("sub.Tensor", after, before)?;
            let middle = make.binary("div.Tensor", middle, 2.0 * step)?;
            let (mut first, mut end) = (pair(make, 0)?, pair(make, last.saturating_sub(1))?);
            if order == 2 {
                // (-3 a + 4 b - c) / 2, and mirrored.
                let (second, before_end) = (pair(make, 1)?, pair(make, last.saturating_sub(2))?);
                for (edge, inner) in [(&mut first, second), (&mut end, before_end)] {
                    let more = make.binary("mul.Tensor", *edge, 1.5)?;
                    let less = make.binary("mul.Tensor", inner, 0.5)?;
                    *edge = make.binary("sub.Tensor", more, less)?;
                }
            }
            let (first, end) = (make.binary("div.Tensor", first, *step)?, make.binary("div.Tensor", end, *step)?);
            make.cat(&[first, middle, end], dim)
        }
        Spacing::Places(places) => {
            if order != 1 {
                return Err(make.error("a gradient over uneven places at edges of order 2"));
            }
            let mut shape = vec![Size::Known(1); make.rank(x)?];
            let along = make.dim(dim, shape.len())?;
            if let Some(size) = shape.get_mut(along) {
                *size = make.size(*places, 0)?;
            }
            let places = make.view(*places, &shape)?;
            let (low, high) = (make.slice(places, dim, 0, last)?, make.slice(places, dim, 1, len)?);
            let steps = make.binary("sub.Tensor", high, low)?;
            let (low, high) = (at(make, 0, last)?, at(make, 1, len)?);
            let rise = make.binary("sub.Tensor", high, low)?;
            let slopes = make.binary("div.Tensor", rise, steps)?;
            let inner = last.saturating_sub(1);
            let (left, right) = (make.slice(slopes, dim, 0, inner)?, make.slice(slopes, dim, 1, last)?);
            let (before, after) = (make.slice(steps, dim, 0, inner)?, make.slice(steps, dim, 1, last)?);
            let (a, b) = (make.binary("mul.Tensor", left, after)?, make.binary("mul.Tensor", right, before)?);
            let (weighed, both) = (make.binary("add.Tensor", a, b)?, make.binary("add.Tensor", before, after)?);
            let middle = make.binary("div.Tensor", weighed, both)?;
            let (first, end) = (make.slice(slopes, dim, 0, 1)?, make.slice(slopes, dim, inner, last)?);
            make.cat(&[first, middle, end], dim)
        }
    }
}

/// Powers by squaring.
fn matrix_power(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (mut base, mut power) = (node.value("self")?, node.int("n")?);
    if power < 0 {
        base = make.call("linalg_inv_ex", [("A", base.into())])?;
        power = power.saturating_neg();
    }
    if power == 0 {
        let size = make.size(base, -1)?;
        let (row, column) = (make.count(&size)?, make.count(&size)?);
        let row = make.unsqueeze(row, 1)?;
        let same = make.binary("eq.Tensor", row, column)?;
        let scalar_type = make.meta(base)?.scalar_type;
        let unit = make.cast(same, scalar_type)?;
        let sizes = make.sizes(base)?;
        return one(make.expand(unit, &sizes)?);
    }
    let mut result: Option<ValueId> = None;
    while power > 0 {
        if power & 1 == 1 {
            result = Some(match result {
                Some(result) => super::products::matmul(make, result, base)?,
                None => base,
            });
        }
        power >>= 1;
        if power > 0 {
            base = super::products::matmul(make, base, base)?;
        }
    }
    result.map_or(Ok(None), one)
}

/// Puts elements onto a diagonal: those of the diagonal are counted, and picked where the count says so.
fn diagonal_scatter(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (x, source, offset) = (node.value("self")?, node.value("src")?, node.int("offset")?);
    let rank = make.rank(x)?;
    let (a, b) = (make.dim(node.int("dim1")?, rank)?, make.dim(node.int("dim2")?, rank)?);
    let number = |dim: usize| i64::try_from(dim).unwrap_or(0);
    let rest = (0..rank).filter(|dim| *dim != a && *dim != b).map(number);
    let order: Vec<i64> = rest.chain([number(a), number(b)]).collect();
    let turned = make.permute(x, &order)?;
    let (rows, columns) = (make.size(turned, -2)?, make.size(turned, -1)?);
    let (row, column) = (make.count(&rows)?, make.count(&columns)?);
    let row = make.unsqueeze(row, 1)?;
    let off = make.binary("sub.Tensor", column, row)?;
    let on = make.binary("eq.Scalar", off, offset)?;
    // Along the diagonal, rows count from where it begins.
    let first = offset.saturating_neg().max(0);
    let length = make.known_size(source, -1)?;
    let place = make.binary("sub.Tensor", row, first)?;
    let last = Argument::Int(length.saturating_sub(1).max(0));
    let place = make.call("clamp", [("self", place.into()), ("min", Argument::Int(0)), ("max", last)])?;
    let place = make.squeeze(place, &[1])?;
    if length == 0 {
        return one(x);
    }
    let picked =
        make.call("index_select", [("self", source.into()), ("dim", (-1i64).into()), ("index", place.into())])?;
    let picked = make.unsqueeze(picked, -1)?;
    let chosen = make.choose(on, picked, turned)?;
    let mut back = vec![0i64; rank];
    for (at, dim) in order.iter().enumerate() {
        if let Some(place) = usize::try_from(*dim).ok().and_then(|dim| back.get_mut(dim)) {
            *place = number(at);
        }
    }
    one(make.permute(chosen, &back)?)
}
