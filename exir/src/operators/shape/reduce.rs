//! Operators that make fewer elements of many along dimensions.

use edgepack_format::scalar::ScalarType;

use super::numbers::{to_float, to_sum};
use super::{Call, ShapeFunction, dimension, made, one};
use crate::graph::{Argument, Size, TensorMeta};

pub(super) const RULES: &[(&str, ShapeFunction)] = &[
    ("sum", sum),
    ("mean", mean),
    ("reduced", reduced),
    ("decision", decision),
    ("position", position),
    ("reduced_with_positions", reduced_with_positions),
    ("topk", topk),
    ("sort", sort),
    ("argsort", argsort),
    ("layer_norm", layer_norm),
    ("group_norm", group_norm),
    ("batch_norm_eval", batch_norm_eval),
    ("batch_norm_functional", |call| {
        let mut found = batch_norm(call)?;
        found.extend([call.tensor("running_mean")?.clone(), call.tensor("running_var")?.clone()]);
        Some(found)
    }),
    ("batch_norm", batch_norm),
    ("reduced_twice", reduced_twice),
];

/// Sizes without the dimensions that an argument names; without all of them if it names none.
fn without(call: &Call<'_>, input: &TensorMeta) -> Option<Vec<Size>> {
    let dims = match call.arg("dim") {
        None | Some(Argument::None) => Vec::new(),
        Some(_) => call.ints("dim")?,
    };
    let dims: Vec<usize> = dims.into_iter().map(|dim| dimension(dim, input.rank())).collect::<Option<_>>()?;
    let gone = |dim: usize| dims.is_empty() || dims.contains(&dim);
    let keep = call.flag("keepdim");
    let sizes = input.sizes.iter().enumerate().filter_map(|(dim, size)| match (gone(dim), keep) {
        (false, _) => Some(size.clone()),
        (true, true) => Some(Size::Known(1)),
        (true, false) => None,
    });
    Some(sizes.collect())
}

fn sum(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    one(call.scalar_type("dtype").unwrap_or(to_sum(input.scalar_type)), &without(call, input)?)
}

fn mean(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    one(call.scalar_type("dtype").unwrap_or(to_float(input.scalar_type)), &without(call, input)?)
}

fn reduced(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    one(input.scalar_type, &without(call, input)?)
}

fn decision(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let scalar_type = if input.scalar_type == ScalarType::BYTE { ScalarType::BYTE } else { ScalarType::BOOL };
    one(scalar_type, &without(call, input)?)
}

fn position(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(ScalarType::LONG, &without(call, call.tensor("self")?)?)
}

fn reduced_with_positions(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let sizes = without(call, input)?;
    Some(vec![made(input.scalar_type, &sizes), made(ScalarType::LONG, &sizes)])
}

fn topk(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let mut sizes = input.sizes.clone();
    if let Some(size) = sizes.get_mut(dimension(call.int("dim")?, input.rank())?) {
        *size = call.size("k")?;
    }
    Some(vec![made(input.scalar_type, &sizes), made(ScalarType::LONG, &sizes)])
}

fn sort(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    Some(vec![made(input.scalar_type, &input.sizes), made(ScalarType::LONG, &input.sizes)])
}

fn argsort(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(ScalarType::LONG, &call.tensor("self")?.sizes)
}

fn layer_norm(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("input")?;
    let normal = call.sizes("normalized_shape")?.len();
    let outer = input.rank().checked_sub(normal)?;
    let sizes: Vec<Size> = input
        .sizes
        .iter()
        .enumerate()
        .map(|(dim, size)| if dim < outer { size.clone() } else { Size::Known(1) })
        .collect();
    let moment = made(input.scalar_type, &sizes);
    Some(vec![made(input.scalar_type, &input.sizes), moment.clone(), moment])
}

fn group_norm(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("input")?;
    let moment = made(input.scalar_type, &[call.size("N")?, call.size("group")?]);
    Some(vec![made(input.scalar_type, &input.sizes), moment.clone(), moment])
}

fn batch_norm_eval(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("input")?;
    let nothing = made(input.scalar_type, &[Size::Known(0)]);
    Some(vec![made(input.scalar_type, &input.sizes), nothing.clone(), nothing])
}

fn batch_norm(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("input")?;
    let channels = match call.flag("training") {
        true => input.sizes.get(1)?.clone(),
        false => Size::Known(0),
    };
    let moment = made(input.scalar_type, &[channels]);
    Some(vec![made(input.scalar_type, &input.sizes), moment.clone(), moment])
}

fn reduced_twice(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let sizes = without(call, input)?;
    Some(vec![made(input.scalar_type, &sizes); 2])
}
