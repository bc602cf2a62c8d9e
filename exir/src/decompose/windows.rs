//! Windows that are laid out as columns and put back, and places of images under an affine map.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, ListKind, Size, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "im2col" => im2col,
        "col2im" => col2im,
        "affine_grid_generator" => affine_grid,
        _ => return None,
    })
}

/// One dimension of windows: where each begins and how its places are apart.
struct Along {
    kernel: i64,
    dilation: i64,
    padding: i64,
    stride: i64,
    windows: i64,
}

/// Positions of windows along rows and columns of an image of these sizes.
fn layout(node: &Composite<'_>, sizes: [i64; 2]) -> Result<[Along; 2], Error> {
    let names = ["kernel_size", "dilation", "padding", "stride"];
    let mut found = Vec::new();
    for (dim, size) in sizes.into_iter().enumerate() {
        let mut numbers = [0i64; 4];
        for (number, name) in numbers.iter_mut().zip(names) {
            let given = node.ints(name)?;
            *number = given.get(dim).or(given.first()).copied().ok_or_else(|| node.wrong(name))?;
        }
        let [kernel, dilation, padding, stride] = numbers;
        let reach = dilation.saturating_mul(kernel.saturating_sub(1)).saturating_add(1);
        let room = size.saturating_add(padding.saturating_mul(2)).saturating_sub(reach);
        let windows = room.checked_div(stride).ok_or_else(|| node.wrong("stride"))?.saturating_add(1);
        found.push(Along { kernel, dilation, padding, stride, windows });
    }
    <[Along; 2]>::try_from(found).map_err(|_| node.wrong("kernel_size"))
}

/// The place in the padded image of every element of every window: a matrix of places by windows.
fn places(make: &mut Maker<'_>, along: &Along) -> Result<ValueId, Error> {
    let inside = make.count(&Size::Known(along.kernel))?;
    let inside = make.binary("mul.Tensor", inside, along.dilation)?;
    let inside = make.unsqueeze(inside, 1)?;
    let start = make.count(&Size::Known(along.windows))?;
    let start = make.binary("mul.Tensor", start, along.stride)?;
    make.binary("add.Tensor", inside, start)
}

fn known(sizes: &[Size], node: &Composite<'_>) -> Result<Vec<i64>, Error> {
    sizes.iter().map(Size::known).collect::<Option<Vec<_>>>().ok_or_else(|| node.wrong("self"))
}

fn padding(rows: &Along, columns: &Along) -> Argument {
    Argument::ints([columns.padding, columns.padding, rows.padding, rows.padding])
}

fn im2col(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut x = node.value("self")?;
    let sizes = make.sizes(x)?;
    let [outer @ .., height, width] = sizes.as_slice() else { return Ok(None) };
    let numbers = known(&[height.clone(), width.clone()], node)?;
    let [height, width] = numbers.as_slice() else { return Ok(None) };
    let [rows, columns] = layout(node, [*height, *width])?;
    if rows.padding != 0 || columns.padding != 0 {
        let args = [("self", x.into()), ("pad", padding(&rows, &columns)), ("value", Argument::Int(0))];
        x = make.call("constant_pad_nd", args)?;
    }
    for (dim, along) in [(-2i64, &rows), (-1, &columns)] {
        let index = places(make, along)?;
        let count = along.kernel.saturating_mul(along.windows);
        let index = make.view(index, &[Size::Known(count)])?;
        x = make.call("index_select", [("self", x.into()), ("dim", dim.into()), ("index", index.into())])?;
    }
    let apart = [rows.kernel, rows.windows, columns.kernel, columns.windows].map(Size::Known);
    let apart: Vec<Size> = outer.iter().cloned().chain(apart).collect();
    let x = make.view(x, &apart)?;
    let count = i64::try_from(outer.len()).unwrap_or(0);
    let order = (0..count).chain([0i64, 2, 1, 3].map(|dim| dim.saturating_add(count)));
    let x = make.permute(x, &order.collect::<Vec<_>>())?;
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let wanted = make.sizes(result)?;
    one(make.view(x, &wanted)?)
}

/// Sums the elements of windows that fall on one place.
fn col2im(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let x = node.value("self")?;
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let meta = make.meta(result)?;
    let [outer @ .., height, width] = meta.sizes.as_slice() else { return Ok(None) };
    let numbers = known(&[height.clone(), width.clone()], node)?;
    let [height, width] = numbers.as_slice() else { return Ok(None) };
    let [rows, columns] = layout(node, [*height, *width])?;
    let apart = [rows.kernel, columns.kernel, rows.windows, columns.windows].map(Size::Known);
    let apart: Vec<Size> = outer.iter().cloned().chain(apart).collect();
    let x = make.view(x, &apart)?;
    let count = i64::try_from(outer.len()).unwrap_or(0);
    let order = (0..count).chain([0i64, 2, 1, 3].map(|dim| dim.saturating_add(count)));
    let x = make.permute(x, &order.collect::<Vec<_>>())?;
    let twice = |padding: i64| padding.saturating_mul(2);
    let padded = [height.saturating_add(twice(rows.padding)), width.saturating_add(twice(columns.padding))];
    let padded: Vec<Size> = outer.iter().cloned().chain(padded.map(Size::Known)).collect();
    let zeros = make.full(&padded, Argument::Int(0), meta.scalar_type)?;
    let row = places(make, &rows)?;
    let row = make.unsqueeze(row, -1)?;
    let row = make.unsqueeze(row, -1)?;
    let column = places(make, &columns)?;
    let mut indices = vec![Argument::None; outer.len()];
    indices.extend([Argument::Value(row), Argument::Value(column)]);
    let args = [
        ("self", zeros.into()),
        ("indices", Argument::List(ListKind::OptionalTensors, indices)),
        ("values", x.into()),
        ("accumulate", true.into()),
    ];
    let summed = make.call("index_put", args)?;
    let inner = make.slice(summed, -2, rows.padding, height.saturating_add(rows.padding))?;
    one(make.slice(inner, -1, columns.padding, width.saturating_add(columns.padding))?)
}

/// Computes the sampling positions of an image under an affine map: positions from -1 to 1 times its matrix.
fn affine_grid(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let theta = node.value("theta")?;
    let sizes = node.ints("size")?;
    let [batch, _, spatial @ ..] = sizes.as_slice() else { return Ok(None) };
    let scalar_type = make.meta(theta)?.scalar_type;
    let full: Vec<Size> = spatial.iter().copied().map(Size::Known).collect();
    let mut columns = Vec::new();
    // The last dimension is the first coordinate.
    for (dim, len) in spatial.iter().enumerate().rev() {
        let place = make.count(&Size::Known(*len))?;
        let place = make.cast(place, ScalarType::FLOAT)?;
        let place = match (node.flag("align_corners"), *len) {
            (true, 0 | 1) => make.binary("mul.Tensor", place, 0.0)?,
            (true, len) => {
                let place = make.binary("mul.Tensor", place, 2.0 / len.saturating_sub(1) as f64)?;
                make.binary("sub.Tensor", place, 1.0)?
            }
            (false, len) => {
                let place = make.binary("mul.Tensor", place, 2.0 / len.max(1) as f64)?;
                make.binary("add.Tensor", place, 1.0 / len.max(1) as f64 - 1.0)?
            }
        };
        let place = make.cast(place, scalar_type)?;
        let mut shape = vec![Size::Known(1); spatial.len()];
        if let Some(size) = shape.get_mut(dim) {
            *size = Size::Known(*len);
        }
        let place = make.view(place, &shape)?;
        let place = make.expand(place, &full)?;
        columns.push(make.unsqueeze(place, -1)?);
    }
    let shape: Vec<Size> = full.iter().cloned().chain([Size::Known(1)]).collect();
    columns.push(make.full(&shape, Argument::Float(1.0), scalar_type)?);
    let points = make.cat(&columns, -1)?;
    let count = Size::product(&full);
    let coordinates = i64::try_from(spatial.len()).unwrap_or(0);
    let points = make.view(points, &[Size::Known(1), count.clone(), Size::Known(coordinates.saturating_add(1))])?;
    let turned = make.transpose(theta, 1, 2)?;
    let product = super::products::matmul(make, points, turned)?;
    let wanted: Vec<Size> = [Size::Known(*batch)].into_iter().chain(full).chain([Size::Known(coordinates)]).collect();
    one(make.view(product, &wanted)?)
}
