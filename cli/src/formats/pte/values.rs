//! Values and operators of a program on one line: `f32[1, 3]`, `int`, `aten::add.out`.

use edgepack_format::pte::{KernelTypes, Operator, Tensor};

use crate::spelling;

/// The shape of a tensor of a program.
pub fn tensor(tensor: &Tensor<'_>) -> String {
    let sizes: Vec<i64> = tensor.sizes.iter().flat_map(|sizes| sizes.iter()).map(i64::from).collect();
    let order: Vec<u8> = tensor.dim_order.iter().flat_map(|order| order.iter()).collect();
    spelling::shape(tensor.scalar_type, &sizes, &order, tensor.shape_dynamism)
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
        Some(KernelTypes::Double(number)) => spelling::double(number.double_val),
        Some(KernelTypes::String(text)) => format!("{:?}", text.string_val.as_deref().unwrap_or_default()),
        other => signature(other),
    }
}

/// The kind of a value.
pub fn kind(value: &KernelTypes<'_>) -> &'static str {
    match value {
        KernelTypes::Null(_) => "none",
        KernelTypes::Int(_) => "int",
        KernelTypes::Bool(_) => "bool",
        KernelTypes::Double(_) => "double",
        KernelTypes::Tensor(_) => "tensor",
        KernelTypes::String(_) => "text",
        KernelTypes::IntList(_) => "int[]",
        KernelTypes::DoubleList(_) => "double[]",
        KernelTypes::BoolList(_) => "bool[]",
        KernelTypes::TensorList(_) => "tensor[]",
        KernelTypes::OptionalTensorList(_) => "tensor?[]",
        KernelTypes::Unknown(_) => "unknown",
    }
}

/// The name of an operator with its overload.
pub fn operator_name(operator: &Operator<'_>) -> String {
    let name = spelling::name(operator.name.as_deref().unwrap_or("?"));
    match operator.overload.as_deref() {
        None | Some("") => name,
        Some(overload) => format!("{name}.{}", spelling::name(overload)),
    }
}
