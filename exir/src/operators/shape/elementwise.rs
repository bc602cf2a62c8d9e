//! Operators whose elements come from the elements at their places.

use edgepack_format::scalar::ScalarType;

use super::numbers::{Choice, broadcast, to_float, to_sum};
use super::{Call, ShapeFunction, made, one};
use crate::graph::{Size, TensorMeta};

pub(super) const RULES: &[(&str, ShapeFunction)] = &[
    ("same", same),
    ("float", float),
    ("truth", truth),
    ("arithmetic", arithmetic),
    ("power", power),
    ("quotient_by_mode", quotient_by_mode),
    ("quotient", quotient),
    ("comparison", comparison),
    ("clamp", clamp),
    ("where", where_rule),
    ("softmax", softmax),
    ("softmax_with_type", softmax_with_type),
    ("cumulated", cumulated),
    ("cast", cast),
    ("three_operands", three_operands),
    ("interpolation", interpolation),
    ("other_type", other_type),
    ("like", like),
    ("dropout", dropout),
    ("gated", gated),
];

/// The first tensor there is under a usual name.
fn main<'c>(call: &'c Call<'_>) -> Option<&'c TensorMeta> {
    call.tensor("self").or_else(|| call.tensor("input"))
}

fn same(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(input.scalar_type, &input.sizes)
}

fn float(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(to_float(input.scalar_type), &input.sizes)
}

fn truth(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(ScalarType::BOOL, &main(call)?.sizes)
}

/// The sizes of all tensors of a call together.
fn together(call: &Call<'_>, names: &[&str]) -> Option<Vec<Size>> {
    broadcast(names.iter().filter_map(|name| call.tensor(name)).map(|meta| meta.sizes.as_slice()))
}

fn type_of(call: &Call<'_>, names: &[&str]) -> Option<ScalarType> {
    names.iter().fold(Choice::default(), |choice, name| choice.with(call, name)).settle()
}

fn arithmetic(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(type_of(call, &["self", "other"])?, &together(call, &["self", "other"])?)
}

fn power(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(type_of(call, &["self", "exponent"])?, &together(call, &["self", "exponent"])?)
}

fn quotient(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(to_float(type_of(call, &["self", "other"])?), &together(call, &["self", "other"])?)
}

fn quotient_by_mode(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    if call.has("rounding_mode") { arithmetic(call) } else { quotient(call) }
}

fn comparison(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(ScalarType::BOOL, &together(call, &["self", "other"])?)
}

fn clamp(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(type_of(call, &["self", "min", "max"])?, &together(call, &["self", "min", "max"])?)
}

fn where_rule(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(type_of(call, &["self", "other"])?, &together(call, &["condition", "self", "other"])?)
}

fn softmax(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    let scalar_type = if call.flag("half_to_float") { ScalarType::FLOAT } else { input.scalar_type };
    one(scalar_type, &input.sizes)
}

fn softmax_with_type(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(call.scalar_type("dtype").unwrap_or(to_float(input.scalar_type)), &input.sizes)
}

fn cumulated(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(call.scalar_type("dtype").unwrap_or(to_sum(input.scalar_type)), &input.sizes)
}

fn cast(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    one(call.scalar_type("dtype").unwrap_or(input.scalar_type), &input.sizes)
}

fn three_operands(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let names = ["self", "tensor1", "tensor2"];
    one(type_of(call, &names)?, &together(call, &names)?)
}

fn interpolation(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(main(call)?.scalar_type, &together(call, &["self", "end", "weight"])?)
}

fn other_type(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(call.tensor("other")?.scalar_type, &main(call)?.sizes)
}

fn like(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    cast(call)
}

fn dropout(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    Some(vec![made(input.scalar_type, &input.sizes), made(ScalarType::BOOL, &input.sizes)])
}

fn gated(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = main(call)?;
    let dim = super::dimension(call.int("dim")?, input.rank())?;
    let mut sizes = input.sizes.clone();
    let size = sizes.get_mut(dim)?;
    *size = size.over(&Size::Known(2));
    one(input.scalar_type, &sizes)
}
