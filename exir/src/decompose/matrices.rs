//! Norms of matrices and vectors, equations of tensors, and quantiles: what needs more than a formula.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, Size, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "linalg_norm" | "linalg_norm.ord_str" => norm,
        "linalg_matrix_norm" | "linalg_matrix_norm.str_ord" => |make, node| {
            let x = converted(make, node)?;
            let order = order(node);
            one(matrix_norm(make, x, &order, &node.ints("dim")?, node.flag("keepdim"))?)
        },
        "nuclear_norm.dim" => |make, node| {
            let x = node.value("self")?;
            one(matrix_norm(make, x, &Order::Nuclear, &node.ints("dim")?, node.flag("keepdim"))?)
        },
        "renorm" => renorm,
        "linalg_tensorinv" => tensor_inverse,
        "linalg_tensorsolve" => tensor_solve,
        "quantile" | "quantile.scalar" => |make, node| quantile(make, node, false),
        "nanquantile" | "nanquantile.scalar" => |make, node| quantile(make, node, true),
        _ => return None,
    })
}

/// Kind of norm.
enum Order {
    Number(f64),
    Frobenius,
    Nuclear,
    Unknown,
}

fn order(node: &Composite<'_>) -> Order {
    match (node.number("ord"), node.text("ord").as_deref()) {
        (Some(number), _) => Order::Number(number),
        (_, Some("fro")) => Order::Frobenius,
        (_, Some("nuc")) => Order::Nuclear,
        _ => Order::Unknown,
    }
}

/// The input, in the type that is asked for.
fn converted(make: &mut Maker<'_>, node: &Composite<'_>) -> Result<ValueId, Error> {
    let x = node.value("self")?;
    match node.arg("dtype") {
        Argument::ScalarType(scalar_type) => make.cast(x, scalar_type),
        _ => Ok(x),
    }
}

fn vector_norm(make: &mut Maker<'_>, x: ValueId, order: f64, dims: &[i64], keep: bool) -> Result<ValueId, Error> {
    let dim = if dims.is_empty() { Argument::None } else { Argument::ints(dims.iter().copied()) };
    make.call("linalg_vector_norm", [("self", x.into()), ("ord", order.into()), ("dim", dim), ("keepdim", keep.into())])
}

fn norm(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (mut x, keep) = (converted(make, node)?, node.flag("keepdim"));
    let rank = make.rank(x)?;
    let mut dims = if node.has("dim") { node.ints("dim")? } else { Vec::new() };
    let order = order(node);
    let number = match order {
        Order::Number(number) => Some(number),
        _ => None,
    };
    if !node.has("ord") {
        if !node.has("dim") && keep {
            dims = (0..i64::try_from(rank).unwrap_or(0)).collect();
        } else if !node.has("dim") {
            let all = Size::product(&make.sizes(x)?);
            x = make.view(x, &[all])?;
            dims = vec![0];
        }
        return one(vector_norm(make, x, 2.0, &dims, keep)?);
    }
    if dims.is_empty() {
        dims = if rank == 2 { vec![0, 1] } else { (0..i64::try_from(rank).unwrap_or(0)).collect() };
    }
    one(match (number, dims.as_slice()) {
        (_, [_, _]) => matrix_norm(make, x, &order, &dims, keep)?,
        (Some(number), _) => vector_norm(make, x, number, &dims, keep)?,
        _ => return Err(node.wrong("ord")),
    })
}

fn matrix_norm(make: &mut Maker<'_>, x: ValueId, order: &Order, dims: &[i64], keep: bool) -> Result<ValueId, Error> {
    let rank = make.rank(x)?;
    let [rows, columns] = dims else { return Err(make.error("a norm of matrices along other than two dimensions")) };
    let (rows, columns) = (make.dim(*rows, rank)?, make.dim(*columns, rank)?);
    let number = |dim: usize| i64::try_from(dim).unwrap_or(0);
    match order {
        Order::Frobenius => vector_norm(make, x, 2.0, dims, keep),
        Order::Number(order) if order.abs() == 1.0 || order.is_infinite() => {
            let (summed, chosen) = if order.is_infinite() { (columns, rows) } else { (rows, columns) };
            let size = make.unary("abs", x)?;
            let sums = make.sum(size, &[number(summed)], keep)?;
            // Without the summed dimension, those behind it move up.
            let chosen = if !keep && chosen > summed { chosen.saturating_sub(1) } else { chosen };
            extreme(make, sums, *order > 0.0, &[number(chosen)], keep)
        }
        Order::Nuclear | Order::Number(_) => {
            let two = matches!(order, Order::Number(order) if order.abs() != 2.0);
            if two {
                return Err(make.error("a norm of matrices of this order"));
            }
            let rest = (0..rank).filter(|dim| *dim != rows && *dim != columns);
            let places: Vec<i64> = rest.chain([rows, columns]).map(number).collect();
            let turned = make.permute(x, &places)?;
            let args = [("A", turned.into()), ("full_matrices", false.into()), ("compute_uv", false.into())];
            let found = make.calls("_linalg_svd", args)?;
            let values = found.get(1).copied().ok_or_else(|| make.error("no singular values"))?;
            let mut result = match order {
                Order::Number(order) => extreme(make, values, *order > 0.0, &[-1], false)?,
                _ => make.sum(values, &[-1], false)?,
            };
            if keep {
                for dim in [rows.min(columns), rows.max(columns)] {
                    result = make.unsqueeze(result, number(dim))?;
                }
            }
            Ok(result)
        }
        Order::Unknown => Err(make.error("a norm of matrices of this name")),
    }
}

fn extreme(make: &mut Maker<'_>, x: ValueId, largest: bool, dims: &[i64], keep: bool) -> Result<ValueId, Error> {
    let core = if largest { "amax" } else { "amin" };
    let dim = Argument::ints(dims.iter().copied());
    make.call(core, [("self", x.into()), ("dim", dim), ("keepdim", keep.into())])
}

/// Parts along a dimension whose norm is not above a bound.
fn renorm(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let x = node.value("self")?;
    let rank = make.rank(x)?;
    let kept = make.dim(node.int("dim")?, rank)?;
    let dims: Vec<i64> = (0..rank).filter(|dim| *dim != kept).filter_map(|dim| i64::try_from(dim).ok()).collect();
    let (order, most) = (node.number("p").unwrap_or(2.0), node.number("maxnorm").ok_or_else(|| node.wrong("maxnorm"))?);
    let length = vector_norm(make, x, order, &dims, true)?;
    let above = make.binary("gt.Scalar", length, most)?;
    let safe = make.binary("add.Tensor", length, 1e-7)?;
    let scalar_type = make.meta(x)?.scalar_type;
    let most = make.scalar(most.into(), scalar_type)?;
    let factor = make.binary("div.Tensor", most, safe)?;
    let unit = make.scalar(1.0.into(), scalar_type)?;
    let factor = make.choose(above, factor, unit)?;
    one(make.binary("mul.Tensor", x, factor)?)
}

/// The inverse of a tensor as a matrix of its first dimensions by the others.
fn tensor_inverse(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let x = node.value("self")?;
    let sizes = make.sizes(x)?;
    let first = usize::try_from(node.int("ind")?).ok().filter(|first| *first <= sizes.len());
    let Some((left, right)) = first.and_then(|first| sizes.split_at_checked(first)) else { return Ok(None) };
    let matrix = make.view(x, &[Size::product(left), Size::product(right)])?;
    let inverse = make.call("linalg_inv_ex", [("A", matrix.into())])?;
    let wanted: Vec<Size> = right.iter().chain(left).cloned().collect();
    one(make.view(inverse, &wanted)?)
}

fn tensor_solve(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (mut a, b) = (node.value("self")?, node.value("other")?);
    if node.has("dims") {
        let rank = make.rank(a)?;
        let mut moved = Vec::new();
        for dim in node.ints("dims")? {
            moved.push(make.dim(dim, rank)?);
        }
        let rest = (0..rank).filter(|dim| !moved.contains(dim));
        let order = rest.chain(moved.iter().copied()).filter_map(|dim| i64::try_from(dim).ok());
        a = make.permute(a, &order.collect::<Vec<_>>())?;
    }
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let wanted = make.sizes(result)?;
    let (rows, columns) = (Size::product(&make.sizes(b)?), Size::product(&wanted));
    let matrix = make.view(a, &[rows.clone(), columns])?;
    let flat = make.view(b, &[rows])?;
    let solved = make.call("_linalg_solve_ex", [("A", matrix.into()), ("B", flat.into())])?;
    one(make.view(solved, &wanted)?)
}

/// Returns quantiles: elements at fractions of the sorted sequence, or values between two of them.
fn quantile(make: &mut Maker<'_>, node: &Composite<'_>, skip_missing: bool) -> Answer {
    let mut x = node.value("self")?;
    let meta = make.meta(x)?;
    let rank = meta.rank();
    let dim = match node.has("dim") {
        true => Some(make.dim(node.int("dim")?, rank)?),
        false => None,
    };
    x = match dim {
        Some(dim) => {
            let raised = make.unsqueeze(x, -1)?;
            let turned = make.transpose(raised, i64::try_from(dim).unwrap_or(0), -1)?;
            // The dimension itself is left with one element, and goes at the end unless it is to stay.
            turned
        }
        None => make.view(x, &[Size::product(&meta.sizes)])?,
    };
    let (count, scalar_type) = (make.known_size(x, -1)?, meta.scalar_type);
    let last = count.saturating_sub(1);
    let (parts, many) = match node.arg("q") {
        Argument::Value(q) if make.graph.tensor(q).is_some() => (q, make.rank(q)? > 0),
        number => (make.scalar(number, scalar_type)?, false),
    };
    let parts = if many { parts } else { make.unsqueeze(parts, 0)? };
    let missing = make.binary("ne.Tensor", x, x)?;
    let ranks = if skip_missing {
        let present = make.unary("logical_not", missing)?;
        let present = make.sum(present, &[-1], true)?;
        let present = make.cast(present, scalar_type)?;
        let present = make.binary("sub.Tensor", present, 1.0)?;
        let ranks = make.binary("mul.Tensor", present, parts)?;
        make.call("clamp", [("self", ranks.into()), ("min", 0.0.into())])?
    } else {
        let ranks = make.binary("mul.Tensor", parts, last as f64)?;
        let args = [("self", missing.into()), ("dim", Argument::Int(-1)), ("keepdim", true.into())];
        let any = make.call("any.dim", args)?;
        let end = make.scalar((last as f64).into(), scalar_type)?;
        make.choose(any, end, ranks)?
    };
    let sorted = make.call("sort", [("self", x.into()), ("dim", Argument::Int(-1))])?;
    let mode = node.text("interpolation").unwrap_or_else(|| "linear".to_owned());
    let place = match mode.as_str() {
        "linear" | "lower" | "midpoint" => make.unary("floor", ranks)?,
        "higher" => make.unary("ceil", ranks)?,
        "nearest" => make.unary("round", ranks)?,
        _ => return Err(node.wrong("interpolation")),
    };
    let pick = |make: &mut Maker<'_>, place: ValueId| -> Result<ValueId, Error> {
        let index = make.cast(place, ScalarType::LONG)?;
        make.call("gather", [("self", sorted.into()), ("dim", Argument::Int(-1)), ("index", index.into())])
    };
    let mut value = pick(make, place)?;
    if mode == "linear" || mode == "midpoint" {
        let upper = make.unary("ceil", ranks)?;
        let above = pick(make, upper)?;
        let way = make.binary("sub.Tensor", above, value)?;
        let weight = match mode.as_str() {
            "linear" => make.binary("sub.Tensor", ranks, place)?.into(),
            _ => Argument::Float(0.5),
        };
        let part = make.binary("mul.Tensor", way, weight)?;
        let between = make.binary("add.Tensor", value, part)?;
        // Between two equal infinities nothing can be interpolated.
        let same = make.binary("eq.Tensor", above, value)?;
        value = make.choose(same, value, between)?;
    }
    // Of several parts, the last dimension counts them and goes to the front.
    let rank_now = i64::try_from(make.rank(value)?).unwrap_or(1);
    let value = match many {
        true => {
            let order: Vec<i64> =
                [rank_now.saturating_sub(1)].into_iter().chain(0..rank_now.saturating_sub(1)).collect();
            make.permute(value, &order)?
        }
        false => make.squeeze(value, &[-1])?,
    };
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let wanted = make.sizes(result)?;
    one(make.view(value, &wanted)?)
}
