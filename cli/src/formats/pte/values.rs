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

/// Returns the number of items of a list that is shown as a constant; 0 for everything else.
pub fn items(value: Option<&KernelTypes<'_>>) -> usize {
    match value {
        Some(KernelTypes::IntList(list)) => list.items.as_ref().map_or(0, |items| items.len()),
        Some(KernelTypes::DoubleList(list)) => list.items.as_ref().map_or(0, |items| items.len()),
        Some(KernelTypes::BoolList(list)) => list.items.as_ref().map_or(0, |items| items.len()),
        _ => 0,
    }
}

/// A value that does not change: what is in it, or the type of what is elsewhere.
///
/// `number` is the integer of another value: lists of integers have them.
pub fn constant(value: Option<&KernelTypes<'_>>, number: impl Fn(i64) -> Option<i64>) -> String {
    match value {
        Some(KernelTypes::IntList(list)) => {
            let items: Vec<Option<i64>> = list.items.iter().flat_map(|ids| ids.iter()).map(number).collect();
            let items = items.iter().map(|item| item.map_or_else(|| "?".to_owned(), |number| number.to_string()));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Some(KernelTypes::Int(int)) => int.int_val.to_string(),
        Some(KernelTypes::Bool(bool)) => bool.bool_val.to_string(),
        Some(KernelTypes::Double(number)) => spelling::double(number.double_val),
        Some(KernelTypes::String(text)) => format!("{:?}", text.string_val.as_deref().unwrap_or_default()),
        Some(KernelTypes::DoubleList(list)) => shown(list.items.iter().flat_map(|items| items.iter())),
        Some(KernelTypes::BoolList(list)) => shown(list.items.iter().flat_map(|items| items.iter())),
        other => signature(other),
    }
}

fn shown<T: std::fmt::Debug>(items: impl Iterator<Item = T>) -> String {
    format!("{:?}", items.collect::<Vec<_>>())
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
