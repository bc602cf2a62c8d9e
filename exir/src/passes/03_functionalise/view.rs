//! Views: which elements of a tensor they show, and how those are put back.

use crate::decompose::Composite;
use crate::decompose::maker::Maker;
use crate::error::Error;
use crate::graph::{Argument, Node, Size, TensorMeta, ValueId};
use edgepack_format::operators::Schema;

/// The most elements of a view whose places in memory are compared one by one.
const MOST_PLACES: i64 = 1 << 20;

/// A view of one tensor.
#[derive(Clone)]
pub(super) enum Step {
    /// All elements in the same order under these sizes.
    Sizes(Vec<Size>),
    /// Dimensions in another order.
    Permute(Vec<i64>),
    /// One index of a dimension, which goes.
    Select(i64, Argument),
    /// A part of a dimension: start, end, step.
    Slice(i64, [Argument; 3]),
    /// So many indices of a dimension from one on, which may be computed.
    Narrow(i64, Size, Size),
    /// Elements repeated to these sizes.
    Expand(Vec<Size>),
    /// Elements at these places of the tensor in its own order.
    Places(Places),
    /// A complex tensor as pairs of real numbers.
    Pairs,
    /// Pairs of real numbers as a complex tensor.
    Complex,
    /// Whatever this call shows of its `self`.
    Call(Node),
}

/// Places `offset + index · strides` for every index below `sizes`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Places {
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) offset: i64,
}

impl Step {
    /// The elements that the view shows of `whole`.
    pub(super) fn take(&self, make: &mut Maker<'_>, whole: ValueId, meta: &TensorMeta) -> Result<ValueId, Error> {
        match self {
            Step::Sizes(sizes) => make.view(whole, sizes),
            Step::Permute(dims) => make.permute(whole, dims),
            Step::Select(dim, index) => {
                make.call("select.int", [("self", whole.into()), ("dim", (*dim).into()), ("index", index.clone())])
            }
            Step::Slice(dim, [start, end, step]) => {
                let bounds = [("start", start.clone()), ("end", end.clone()), ("step", step.clone())];
                let [start, end, step] = bounds;
                make.call("slice.Tensor", [("self", whole.into()), ("dim", (*dim).into()), start, end, step])
            }
            Step::Narrow(dim, start, length) => narrow(make, *dim, start, length)?.take(make, whole, meta),
            Step::Expand(sizes) => make.expand(whole, sizes),
            Step::Places(places) => places.take(make, whole),
            Step::Pairs => make.unary("view_as_real_copy", whole),
            Step::Complex => make.unary("view_as_complex_copy", whole),
            Step::Call(call) => {
                let op = call.target.operator().map_or("view", |op| &op.name).to_owned();
                let value = make.graph.add_value(&op, meta.clone());
                let mut call = call.clone();
                call.name = make.graph.name(value).to_owned();
                call.set_arg("self", whole);
                call.outputs = vec![Argument::Value(value)];
                make.push(call)?;
                Ok(value)
            }
        }
    }

    /// `whole` with the elements that the view shows replaced by those of `part`.
    pub(super) fn put(&self, make: &mut Maker<'_>, whole: ValueId, part: ValueId) -> Result<ValueId, Error> {
        let sizes = make.sizes(whole)?;
        match self {
            Step::Sizes(_) => make.view(part, &sizes),
            Step::Permute(dims) => {
                let mut back = vec![0i64; dims.len()];
                for (at, dim) in (0i64..).zip(dims) {
                    let dim = make.dim(*dim, back.len())?;
                    if let Some(place) = back.get_mut(dim) {
                        *place = at;
                    }
                }
                make.permute(part, &back)
            }
            Step::Select(dim, index) => {
                let place = [("dim", (*dim).into()), ("index", index.clone())];
                let [dim, index] = place;
                make.call("select_scatter", [("self", whole.into()), ("src", part.into()), dim, index])
            }
            Step::Slice(dim, [start, end, step]) => {
                let bounds = [("start", start.clone()), ("end", end.clone()), ("step", step.clone())];
                let [start, end, step] = bounds;
                let dim = ("dim", (*dim).into());
                make.call("slice_scatter", [("self", whole.into()), ("src", part.into()), dim, start, end, step])
            }
            Step::Narrow(dim, start, length) => narrow(make, *dim, start, length)?.put(make, whole, part),
            Step::Expand(wide) => {
                let ones = |sizes: &[Size]| sizes.iter().filter(|size| size.known() != Some(1)).cloned().collect();
                let (narrow, wide): (Vec<Size>, Vec<Size>) = (ones(&sizes), ones(wide));
                if narrow != wide {
                    return Err(make.error("a change of a tensor whose elements are repeated in memory"));
                }
                make.view(part, &sizes)
            }
            Step::Places(places) => places.put(make, whole, part),
            Step::Pairs => make.unary("view_as_complex_copy", part),
            Step::Complex => make.unary("view_as_real_copy", part),
            Step::Call(call) => {
                let name = call.target.to_string();
                match places_of(make, call, &sizes)? {
                    Some(places) => places.put(make, whole, part),
                    None => Err(make.error(format!("a change of what {name} shows"))),
                }
            }
        }
    }
}

/// The slice that shows so many indices from one on.
fn narrow(make: &mut Maker<'_>, dim: i64, start: &Size, length: &Size) -> Result<Step, Error> {
    let bounds = [make.size_arg(start)?, make.size_arg(&start.plus(length))?, Argument::Int(1)];
    Ok(Step::Slice(dim, bounds))
}

/// Returns the places of a tensor of these sizes, in its own order, that a call shows.
fn places_of(make: &Maker<'_>, call: &Node, sizes: &[Size]) -> Result<Option<Places>, Error> {
    let Some(op) = call.target.operator() else { return Ok(None) };
    let text = make.operators.text(&op.to_string()).unwrap_or_default();
    let Ok(schema) = Schema::parse(text) else { return Ok(None) };
    let args = Composite::new(call, &schema);
    let known: Option<Vec<i64>> = sizes.iter().map(Size::known).collect();
    let Some(mut known) = known else { return Ok(None) };
    let mut strides = contiguous(&known);
    match op.name.as_str() {
        "diagonal" | "linalg_diagonal" => {
            let dims = ["dim1", "dim2"].map(|name| args.int(name).and_then(|dim| make.dim(dim, known.len())));
            let [first, second] = dims;
            let (first, second, offset) = (first?, second?, args.int("offset")?);
            let at = |list: &[i64], dim: usize| list.get(dim).copied().unwrap_or(0);
            let (rows, columns) = (at(&known, first), at(&known, second));
            let (row, column) = (at(&strides, first), at(&strides, second));
            let (len, start) = match offset {
                0.. => (rows.min(columns.saturating_sub(offset)), offset.saturating_mul(column)),
                _ => (columns.min(rows.saturating_add(offset)), offset.checked_neg().unwrap_or(0).saturating_mul(row)),
            };
            for dim in [first.max(second), first.min(second)] {
                known.remove(dim.min(known.len().saturating_sub(1)));
                strides.remove(dim.min(strides.len().saturating_sub(1)));
            }
            known.push(len.max(0));
            strides.push(row.saturating_add(column));
            Ok(Some(Places { sizes: known, strides, offset: start }))
        }
        "unfold" => {
            let dim = make.dim(args.int("dimension")?, known.len())?;
            let (size, step) = (args.int("size")?, args.int("step")?);
            let (Some(len), Some(stride)) = (known.get_mut(dim), strides.get_mut(dim)) else { return Ok(None) };
            let inner = *stride;
            *len = len.saturating_sub(size).checked_div(step).unwrap_or(0).saturating_add(1);
            *stride = stride.saturating_mul(step);
            known.push(size);
            strides.push(inner);
            Ok(Some(Places { sizes: known, strides, offset: 0 }))
        }
        _ => Ok(None),
    }
}

/// The strides of a contiguous tensor.
fn contiguous(sizes: &[i64]) -> Vec<i64> {
    let mut step = 1i64;
    let mut strides: Vec<i64> = sizes
        .iter()
        .rev()
        .map(|size| {
            let stride = step;
            step = step.saturating_mul(*size);
            stride
        })
        .collect();
    strides.reverse();
    strides
}

impl Places {
    fn numel(&self) -> i64 {
        self.sizes.iter().fold(1i64, |all, size| all.saturating_mul((*size).max(0)))
    }

    /// Returns whether every place is inside a tensor of `numel` elements.
    pub(super) fn fit(&self, numel: i64) -> bool {
        let reach = self.sizes.iter().zip(&self.strides).fold(self.offset, |reach, (size, stride)| {
            reach.saturating_add(size.saturating_sub(1).max(0).saturating_mul(*stride))
        });
        self.numel() == 0 || self.strides.iter().all(|stride| *stride >= 0) && self.offset >= 0 && reach < numel
    }

    /// Returns whether no place is shown twice; `None` if there are too many to compare.
    fn apart(&self) -> Option<bool> {
        let mut dims: Vec<(i64, i64)> = self.sizes.iter().copied().zip(self.strides.iter().copied()).collect();
        dims.retain(|(size, _)| *size != 1);
        dims.sort_by_key(|(_, stride)| *stride);
        // The stride of each dimension passes over all that the smaller ones reach.
        let mut reach = 0i64;
        let nested = dims.iter().all(|(size, stride)| {
            let over = *stride > reach;
            reach = reach.saturating_add(size.saturating_sub(1).max(0).saturating_mul(*stride));
            over
        });
        if nested || self.numel() == 0 {
            return Some(true);
        }
        if self.numel() > MOST_PLACES {
            return None;
        }
        let mut places = vec![0i64];
        for (size, stride) in dims {
            let steps = (0..size).map(|index| index.saturating_mul(stride));
            places = steps.flat_map(|step| places.iter().map(move |place| place.saturating_add(step))).collect();
        }
        places.sort_unstable();
        Some(places.windows(2).all(|pair| pair.first() != pair.last()))
    }

    /// The places as a tensor of one dimension.
    fn index(&self, make: &mut Maker<'_>) -> Result<ValueId, Error> {
        let rank = self.sizes.len();
        let mut sum: Option<ValueId> = None;
        for (dim, (size, stride)) in self.sizes.iter().zip(&self.strides).enumerate() {
            let mut index = make.count(&Size::Known(*size))?;
            if *stride != 1 {
                index = make.binary("mul.Tensor", index, *stride)?;
            }
            let mut sizes = vec![Size::Known(1); rank];
            if let Some(place) = sizes.get_mut(dim) {
                *place = Size::Known(*size);
            }
            let index = make.view(index, &sizes)?;
            sum = Some(match sum {
                Some(sum) => make.binary("add.Tensor", sum, index)?,
                None => index,
            });
        }
        let places = match (sum, self.offset) {
            (Some(sum), 0) => sum,
            (Some(sum), offset) => make.binary("add.Tensor", sum, offset)?,
            (None, offset) => {
                let long = edgepack_format::scalar::ScalarType::LONG;
                make.full(&[Size::Known(1)], Argument::Int(offset), long)?
            }
        };
        make.view(places, &[Size::Known(self.numel())])
    }

    fn flat(&self, make: &mut Maker<'_>, whole: ValueId) -> Result<ValueId, Error> {
        let all = Size::product(&make.sizes(whole)?);
        make.view(whole, &[all])
    }

    fn own_sizes(&self) -> Vec<Size> {
        self.sizes.iter().copied().map(Size::Known).collect()
    }

    fn take(&self, make: &mut Maker<'_>, whole: ValueId) -> Result<ValueId, Error> {
        let (flat, index) = (self.flat(make, whole)?, self.index(make)?);
        let args = [("self", flat.into()), ("dim", Argument::Int(0)), ("index", index.into())];
        let picked = make.call("index_select", args)?;
        make.view(picked, &self.own_sizes())
    }

    fn put(&self, make: &mut Maker<'_>, whole: ValueId, part: ValueId) -> Result<ValueId, Error> {
        if self.apart() != Some(true) {
            return Err(make.error("a change of a view whose elements overlap in memory"));
        }
        let sizes = make.sizes(whole)?;
        let (flat, index) = (self.flat(make, whole)?, self.index(make)?);
        let part = self.flat(make, part)?;
        let args = [("self", flat.into()), ("dim", Argument::Int(0)), ("index", index.into()), ("src", part.into())];
        let put = make.call("scatter.src", args)?;
        make.view(put, &sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_apart() {
        let places =
            |sizes: &[i64], strides: &[i64]| Places { sizes: sizes.into(), strides: strides.into(), offset: 0 };
        assert_eq!(places(&[4, 6], &[6, 1]).apart(), Some(true));
        assert_eq!(places(&[3, 2], &[1, 1]).apart(), Some(false));
        assert_eq!(places(&[2, 3], &[3, 2]).apart(), Some(true));
        assert_eq!(places(&[4], &[0]).apart(), Some(false));
        assert!(places(&[4, 6], &[6, 1]).fit(24) && !places(&[4, 6], &[6, 1]).fit(23));
    }
}
