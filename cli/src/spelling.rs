//! One spelling of types, numbers and names for all output: `f32[1, 3, 96, 96]`, `1.0`, `[1, 2]`, `"floor"`.

use std::fmt::Write as _;

use edgepack_format::pte::TensorShapeDynamism;
use edgepack_format::row::{Scalar, Scalars};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, is_channels_last, is_contiguous};

/// The short name of an element type; PyTorch's of a type without one.
pub fn dtype(scalar_type: ScalarType) -> String {
    match scalar_type.names() {
        Some(names) => names.short.unwrap_or(names.torch).to_owned(),
        None => scalar_type.to_string().to_lowercase(),
    }
}

/// Element type and sizes; `≤` before sizes that are upper bounds, and the dim order if it is not contiguous.
pub fn shape(scalar_type: ScalarType, sizes: &[i64], dim_order: &[u8], dynamism: TensorShapeDynamism) -> String {
    let bound = match dynamism {
        TensorShapeDynamism::STATIC => "",
        TensorShapeDynamism::DYNAMIC_UNBOUND => "?",
        _ => "≤",
    };
    let sizes: Vec<String> = sizes.iter().map(|size| format!("{bound}{size}")).collect();
    let mut text = format!("{}[{}]", dtype(scalar_type), sizes.join(", "));
    if is_channels_last(dim_order) {
        text.push_str(" channels-last");
    } else if !is_contiguous(dim_order) {
        let _ = write!(text, " order {dim_order:?}");
    }
    text
}

/// The shape of a layout.
pub fn layout(layout: &TensorLayout) -> String {
    let sizes: Vec<i64> = layout.sizes().iter().map(|&size| size as i64).collect();
    shape(layout.scalar_type(), &sizes, layout.dim_order(), TensorShapeDynamism::STATIC)
}

/// A double that reads back as one: `1.0`, not `1`.
pub fn double(value: f64) -> String {
    format!("{value:?}")
}

/// Text with quotes and escapes, so that a file cannot talk to the terminal.
pub fn text(value: &str) -> String {
    format!("{value:?}")
}

/// A name from the file, unquoted but without control characters.
pub fn name(value: &str) -> String {
    let plain = |c: char| !c.is_control();
    match value.chars().all(plain) {
        true => value.to_owned(),
        false => value.escape_debug().to_string(),
    }
}

/// A list of numbers in brackets.
pub fn numbers<T: Scalar>(list: Option<&Scalars<'_, T>>, one: impl Fn(T) -> String) -> String {
    let items: Vec<String> = list.iter().flat_map(|list| list.iter()).map(one).collect();
    format!("[{}]", items.join(", "))
}
