//! How values are written on one line: `f32[1, 3, 96, 96]`, `%12`, `[1, 2]`, `"floor"`.

use edgepack_format::notation::TensorType;
use edgepack_format::pte::notation::Dynamism;
pub use edgepack_format::pte::notation::kind;
use edgepack_format::pte::{KernelTypes, Tensor, TensorShapeDynamism};
use edgepack_format::row::{Scalar, Scalars};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

/// Element type, sizes, the dim order if it is not contiguous, and whether sizes are bounds.
pub fn shape(scalar_type: ScalarType, sizes: &[i64], dim_order: &[u8], dynamism: TensorShapeDynamism) -> String {
    let shape = TensorType { element: scalar_type, sizes, dim_order };
    match dynamism {
        TensorShapeDynamism::STATIC => shape.to_string(),
        _ => format!("{shape} {}", Dynamism(dynamism)),
    }
}

/// The shape of a layout.
pub fn layout(layout: &TensorLayout) -> String {
    let sizes: Vec<i64> = layout.sizes().iter().map(|&size| size as i64).collect();
    shape(layout.scalar_type(), &sizes, layout.dim_order(), TensorShapeDynamism::STATIC)
}

/// The shape of a tensor of a program.
pub fn tensor(tensor: &Tensor<'_>) -> String {
    let sizes: Vec<i64> = tensor.sizes.iter().flat_map(|sizes| sizes.iter()).map(i64::from).collect();
    let order: Vec<u8> = tensor.dim_order.iter().flat_map(|order| order.iter()).collect();
    shape(tensor.scalar_type, &sizes, &order, tensor.shape_dynamism)
}

/// The type of a value, as in a signature.
pub fn signature(value: Option<&KernelTypes<'_>>) -> String {
    match value {
        Some(KernelTypes::Tensor(t)) => tensor(t),
        Some(value) => kind(value).to_owned(),
        None => "none".to_owned(),
    }
}

/// A value that does not change: what is in it, or the type of what is elsewhere.
pub fn constant(value: Option<&KernelTypes<'_>>) -> String {
    match value {
        Some(KernelTypes::Int(int)) => int.int_val.to_string(),
        Some(KernelTypes::Bool(bool)) => bool.bool_val.to_string(),
        Some(KernelTypes::Double(number)) => double(number.double_val),
        Some(KernelTypes::String(text)) => format!("{:?}", text.string_val.as_deref().unwrap_or_default()),
        other => signature(other),
    }
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
