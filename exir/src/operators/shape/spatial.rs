//! Operators on images, sequences and volumes: convolution, pooling, resampling.

use edgepack_format::scalar::ScalarType;

use super::{Call, ShapeFunction, made, one};
use crate::graph::{Argument, Size, TensorMeta};

pub(super) const RULES: &[(&str, ShapeFunction)] = &[
    ("convolution", convolution),
    ("avg_pool1d", |call| average(call, 1)),
    ("avg_pool2d", |call| average(call, 2)),
    ("avg_pool3d", |call| average(call, 3)),
    ("max_pool2d_with_indices", |call| largest(call, 2)),
    ("max_pool3d_with_indices", |call| largest(call, 3)),
    ("max_pool2d", |call| Some(largest(call, 2)?.into_iter().take(1).collect())),
    ("adaptive_pool1d", |call| adaptive(call, 1)),
    ("adaptive_pool2d", |call| adaptive(call, 2)),
    ("adaptive_pool3d", |call| adaptive(call, 3)),
    ("adaptive_pool2d_with_indices", |call| adaptive_with_places(call, 2)),
    ("adaptive_pool3d_with_indices", |call| adaptive_with_places(call, 3)),
    ("resize1d", |call| resampled(call, 1)),
    ("resize2d", |call| resampled(call, 2)),
    ("resize3d", |call| resampled(call, 3)),
    ("pad1d", |call| padded(call, 1)),
    ("pad2d", |call| padded(call, 2)),
    ("pad3d", |call| padded(call, 3)),
    ("grid_sampler2d", grid),
    ("grid_sampler3d", grid_of_volumes),
    ("col2im", col2im),
    ("spectrum", to_spectrum),
    ("real_from_spectrum", from_spectrum),
];

/// Returns one number per dimension; a single number applies to all.
fn each(call: &Call<'_>, name: &str, dims: usize, default: i64) -> Option<Vec<i64>> {
    let numbers = match call.arg(name) {
        None | Some(Argument::None) => Vec::new(),
        Some(_) => call.ints(name)?,
    };
    match numbers.as_slice() {
        [] => Some(vec![default; dims]),
        [one] => Some(vec![*one; dims]),
        all => (all.len() == dims).then(|| all.to_vec()),
    }
}

/// Returns the number of positions of a window that moves over a dimension.
fn places(size: &Size, kernel: i64, stride: i64, padding: i64, dilation: i64, ceil: bool) -> Option<Size> {
    let reach = kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    let room = size.plus(&Size::Known(padding.checked_mul(2)?.checked_sub(reach)?));
    let up = if ceil { stride.checked_sub(1)? } else { 0 };
    let mut count = room.plus(&Size::Known(up)).over(&Size::Known(stride)).plus(&Size::Known(1));
    if let (true, Some(known), Some(size)) = (ceil, count.known(), size.known()) {
        // The last window has to begin inside, or in the padding before it.
        if known.checked_sub(1)?.checked_mul(stride)? >= size.checked_add(padding)? {
            count = Size::Known(known.checked_sub(1)?);
        }
    }
    Some(count)
}

fn convolution(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (input, weight) = (call.tensor("input")?, call.tensor("weight")?);
    let dims = weight.rank().checked_sub(2)?;
    let stride = each(call, "stride", dims, 1)?;
    let padding = each(call, "padding", dims, 0)?;
    let dilation = each(call, "dilation", dims, 1)?;
    let extra = each(call, "output_padding", dims, 0)?;
    let transposed = call.flag("transposed");
    let batch = input.rank().checked_sub(dims.checked_add(1)?)?;
    let mut sizes: Vec<Size> = input.sizes.iter().take(batch).cloned().collect();
    sizes.push(match transposed {
        true => weight.sizes.get(1)?.times(&Size::Known(call.int("groups")?)),
        false => weight.sizes.first()?.clone(),
    });
    for dim in 0..dims {
        let size = input.sizes.get(batch.checked_add(1)?.checked_add(dim)?)?;
        let kernel = weight.sizes.get(dim.checked_add(2)?)?.known()?;
        let (stride, padding, dilation) = (*stride.get(dim)?, *padding.get(dim)?, *dilation.get(dim)?);
        sizes.push(match transposed {
            true => {
                let reach = kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
                let more = reach.checked_sub(padding.checked_mul(2)?)?.checked_add(*extra.get(dim)?)?;
                size.minus(&Size::Known(1)).times(&Size::Known(stride)).plus(&Size::Known(more))
            }
            false => places(size, kernel, stride, padding, dilation, false)?,
        });
    }
    one(input.scalar_type, &sizes)
}

fn pooled(call: &Call<'_>, dims: usize) -> Option<Vec<Size>> {
    let input = call.tensor("self")?;
    let kernel = each(call, "kernel_size", dims, 1)?;
    let stride = match each(call, "stride", dims, 0)? {
        none if none.iter().all(|stride| *stride == 0) => kernel.clone(),
        stride => stride,
    };
    let (padding, dilation) = (each(call, "padding", dims, 0)?, each(call, "dilation", dims, 1)?);
    let outer = input.rank().checked_sub(dims)?;
    let mut sizes = input.sizes.clone();
    for (dim, size) in sizes.iter_mut().skip(outer).enumerate() {
        let (kernel, stride) = (*kernel.get(dim)?, *stride.get(dim)?);
        *size = places(size, kernel, stride, *padding.get(dim)?, *dilation.get(dim)?, call.flag("ceil_mode"))?;
    }
    Some(sizes)
}

fn average(call: &Call<'_>, dims: usize) -> Option<Vec<TensorMeta>> {
    one(call.tensor("self")?.scalar_type, &pooled(call, dims)?)
}

fn largest(call: &Call<'_>, dims: usize) -> Option<Vec<TensorMeta>> {
    let sizes = pooled(call, dims)?;
    Some(vec![made(call.tensor("self")?.scalar_type, &sizes), made(ScalarType::LONG, &sizes)])
}

fn adaptive(call: &Call<'_>, dims: usize) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let outer = input.rank().checked_sub(dims)?;
    let mut sizes: Vec<Size> = input.sizes.iter().take(outer).cloned().collect();
    let wanted = match call.sizes("output_size")?.as_slice() {
        [one] => vec![one.clone(); dims],
        all => all.to_vec(),
    };
    sizes.extend(wanted);
    one(input.scalar_type, &sizes)
}

fn adaptive_with_places(call: &Call<'_>, dims: usize) -> Option<Vec<TensorMeta>> {
    let mut found = adaptive(call, dims)?;
    let places = found.first()?.cast(ScalarType::LONG);
    found.push(places);
    Some(found)
}

fn grid_of_volumes(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (input, grid) = (call.tensor("input")?, call.tensor("grid")?);
    let mut sizes: Vec<Size> = input.sizes.iter().take(2).cloned().collect();
    sizes.extend(grid.sizes.iter().skip(1).take(3).cloned());
    one(input.scalar_type, &sizes)
}

fn resampled(call: &Call<'_>, dims: usize) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self").or_else(|| call.tensor("input"))?;
    let outer = input.rank().checked_sub(dims)?;
    let mut sizes: Vec<Size> = input.sizes.iter().take(outer).cloned().collect();
    if call.has("output_size") {
        sizes.extend(call.sizes("output_size")?);
    } else {
        let factors = call.arg("scale_factors")?.items();
        for (size, factor) in input.sizes.iter().skip(outer).zip(factors) {
            let Argument::Float(factor) = factor else { return None };
            sizes.push(Size::Known((size.known()? as f64 * factor).floor() as i64));
        }
    }
    (sizes.len() == input.rank()).then(|| one(input.scalar_type, &sizes))?
}

fn padded(call: &Call<'_>, dims: usize) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let padding = call.sizes("padding").filter(|padding| padding.len() == dims.saturating_mul(2))?;
    let mut sizes = input.sizes.clone();
    for (size, both) in sizes.iter_mut().rev().zip(padding.chunks(2)) {
        *size = both.iter().fold(size.clone(), |size, padding| size.plus(padding));
    }
    one(input.scalar_type, &sizes)
}

fn grid(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (input, grid) = (call.tensor("input")?, call.tensor("grid")?);
    let ([batch, channels, ..], [_, height, width, _]) = (input.sizes.as_slice(), grid.sizes.as_slice()) else {
        return None;
    };
    one(input.scalar_type, &[batch.clone(), channels.clone(), height.clone(), width.clone()])
}

fn col2im(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let kernel = Size::product(&call.sizes("kernel_size")?);
    let [batch @ .., columns, _] = input.sizes.as_slice() else { return None };
    let mut sizes = batch.to_vec();
    sizes.push(columns.over(&kernel));
    sizes.extend(call.sizes("output_size")?);
    one(input.scalar_type, &sizes)
}

/// Pairs of an element type of real numbers and that of complex ones of the same precision.
pub(super) const COMPLEX: [(ScalarType, ScalarType); 3] = [
    (ScalarType::HALF, ScalarType::COMPLEX_HALF),
    (ScalarType::FLOAT, ScalarType::COMPLEX_FLOAT),
    (ScalarType::DOUBLE, ScalarType::COMPLEX_DOUBLE),
];

fn to_spectrum(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let (_, complex) = COMPLEX.iter().find(|(real, _)| *real == input.scalar_type)?;
    let mut sizes = input.sizes.clone();
    if call.flag("onesided") {
        let size = sizes.get_mut(super::dimension(*call.ints("dim")?.last()?, input.rank())?)?;
        *size = size.over(&Size::Known(2)).plus(&Size::Known(1));
    }
    one(*complex, &sizes)
}

fn from_spectrum(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let (real, _) = COMPLEX.iter().find(|(_, complex)| *complex == input.scalar_type)?;
    let mut sizes = input.sizes.clone();
    *sizes.get_mut(super::dimension(*call.ints("dim")?.last()?, input.rank())?)? = call.size("last_dim_size")?;
    one(*real, &sizes)
}
