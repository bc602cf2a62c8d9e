//! Operators that make tensors of nothing but numbers.

use edgepack_format::scalar::ScalarType;

use super::{Call, ShapeFunction, one};
use crate::graph::{Argument, Meta, Size, TensorMeta};

pub(super) const RULES: &[(&str, ShapeFunction)] = &[
    ("full", full),
    ("new", new),
    ("filled", filled),
    ("permutation", permutation),
    ("scalar", scalar),
    ("arange", arange),
    ("eye", eye),
];

/// The element type of a number.
fn number_type(call: &Call<'_>, name: &str) -> ScalarType {
    match call.arg(name) {
        Some(Argument::Bool(_)) => ScalarType::BOOL,
        Some(Argument::Int(_)) => ScalarType::LONG,
        Some(Argument::Value(id)) => match call.graph.value(*id).map(|value| &value.meta) {
            Some(Meta::Int(_)) => ScalarType::LONG,
            Some(Meta::Bool(_)) => ScalarType::BOOL,
            _ => ScalarType::FLOAT,
        },
        _ => ScalarType::FLOAT,
    }
}

fn full(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let scalar_type = call.scalar_type("dtype").unwrap_or_else(|| number_type(call, "fill_value"));
    one(scalar_type, &call.sizes("size")?)
}

fn filled(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(call.scalar_type("dtype").unwrap_or(ScalarType::FLOAT), &call.sizes("size")?)
}

fn new(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(call.scalar_type("dtype").unwrap_or(call.tensor("self")?.scalar_type), &call.sizes("size")?)
}

fn permutation(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(call.scalar_type("dtype").unwrap_or(ScalarType::LONG), &[call.size("n")?])
}

fn scalar(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(call.scalar_type("dtype").unwrap_or(ScalarType::FLOAT), &[])
}

fn eye(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let rows = call.size("n")?;
    let columns = call.size("m").unwrap_or_else(|| rows.clone());
    one(call.scalar_type("dtype").unwrap_or(ScalarType::FLOAT), &[rows, columns])
}

fn arange(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let whole =
        ["start", "end", "step"].iter().all(|name| number_type(call, name) == ScalarType::LONG || !call.has(name));
    let scalar_type = call.scalar_type("dtype").unwrap_or(if whole { ScalarType::LONG } else { ScalarType::FLOAT });
    if let (true, Some(end)) = (whole, call.size("end")) {
        let start = call.size("start").unwrap_or(Size::Known(0));
        let step = call.int("step").unwrap_or(1);
        let len = match step >= 0 {
            true => end.minus(&start).plus(&Size::Known(step.checked_sub(1)?)).over(&Size::Known(step)),
            false => {
                let step = step.checked_neg()?;
                start.minus(&end).plus(&Size::Known(step.checked_sub(1)?)).over(&Size::Known(step))
            }
        };
        return one(scalar_type, &[len]);
    }
    let number = |name: &str, default: f64| match call.arg(name) {
        Some(Argument::Int(number)) => Some(*number as f64),
        Some(Argument::Float(number)) => Some(*number),
        None | Some(Argument::None) => Some(default),
        _ => None,
    };
    let len = ((number("end", 0.0)? - number("start", 0.0)?) / number("step", 1.0)?).ceil();
    one(scalar_type, &[Size::Known(len as i64)])
}
