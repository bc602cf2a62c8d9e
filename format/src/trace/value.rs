//! One recorded value: whether it holds what it says, and whether its tensors can be found in the debug buffer.

use alloc::format;
use alloc::string::ToString;

use super::{Tensor, Value, ValueType};
use crate::check::{Checker, Path};
use crate::row::Table as _;
use crate::rules::trace as rule;

/// Alignment of every offset into a debug buffer.
const TENSOR_ALIGNMENT: i64 = 64;

pub(super) fn check_value(value: &Value<'_>, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    let held = [
        (ValueType::Int, value.int_value.is_some()),
        (ValueType::Bool, value.bool_value.is_some()),
        (ValueType::Float, value.float_value.is_some()),
        (ValueType::Double, value.double_value.is_some()),
        (ValueType::Tensor, value.tensor.is_some()),
        (ValueType::TensorList, value.tensor_list.is_some()),
    ];
    if value.val.name().is_none() {
        out.report(&rule::VALUE_KIND, path, at, format!("kind {}", value.val.0));
    }
    for (kind, is_set) in held {
        if kind == value.val && !is_set {
            out.report(&rule::VALUE, path, at, format!("a {kind} without its sub-table"));
        }
        if kind != value.val && is_set {
            out.report(&rule::VALUE_EXTRA, path, at, format!("a {} that also holds a {kind}", value.val));
        }
    }
    if let Some(tensor) = &value.tensor {
        check_tensor(tensor, &path.field("tensor"), at, out);
    }
    let list = value.tensor_list.as_ref().and_then(|list| list.tensors.clone()).unwrap_or_default();
    for (index, table) in list.tables().iter().enumerate() {
        if let Ok((at, tensor)) = table.and_then(|table| Ok((table.offset(), Tensor::decode(table)?))) {
            let path = path.field("tensor_list");
            check_tensor(&tensor, &path.field("tensors").index(index), Some(at), out);
        }
    }
}

fn check_tensor(tensor: &Tensor<'_>, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    match tensor.offset {
        // -1 says that there are no bytes.
        -1 => {}
        offset if offset < 0 => out.report(&rule::TENSOR_OFFSET, path, at, format!("offset {offset}")),
        offset if offset % TENSOR_ALIGNMENT != 0 => {
            out.report(&rule::TENSOR_ALIGNMENT, path, at, format!("offset {offset}"));
        }
        _ => {}
    }
    let (Some(sizes), Some(strides)) = (&tensor.sizes, &tensor.strides) else {
        let which = if tensor.sizes.is_none() { "sizes" } else { "strides" };
        return out.report(&rule::TENSOR_PARTS, path, at, format!("the tensor has no {which}"));
    };
    if sizes.len() != strides.len() {
        let message = format!("{} sizes, but {} strides", sizes.len(), strides.len());
        return out.report(&rule::TENSOR_PARTS, path, at, message);
    }
    let Some(element) = tensor.scalar_type.size() else {
        return out.report(&rule::TENSOR, path, at, format!("{} is not an element type", tensor.scalar_type));
    };
    if let Some(number) = sizes.iter().chain(strides.iter()).find(|number| *number < 0) {
        return out.report(&rule::TENSOR, path, at, format!("{number} among sizes and strides"));
    }
    let bytes = sizes.iter().try_fold(element as i64, |product, size| product.checked_mul(size));
    if bytes.is_none() {
        out.report(&rule::TENSOR, path, at, "the byte count overflows".to_string());
    }
}
