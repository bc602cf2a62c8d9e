//! Inputs and outputs as JavaScript sees them: descriptions as JSON, elements as bytes.

use edgepack::executor::Output;
use edgepack::format::tensor::{TensorLayout, TensorView};
use edgepack::loader::ValueMeta;
use js_sys::{Array, Uint8Array};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::failure::failed;

/// An input or output of a method.
#[derive(Serialize)]
pub(crate) struct Described {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<usize>>,
    /// True if the sizes may be smaller.
    dynamic: bool,
    /// The value of a number or text with which the method was traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    traced: Option<String>,
}

impl Described {
    /// Describes a value of a method.
    pub(crate) fn of(meta: &ValueMeta) -> Described {
        let plain = |kind, traced| Described { kind, name: None, dtype: None, shape: None, dynamic: false, traced };
        match meta {
            ValueMeta::Null => plain("none", None),
            ValueMeta::Int(value) => plain("int", Some(value.to_string())),
            ValueMeta::Bool(value) => plain("bool", Some(value.to_string())),
            ValueMeta::Double(value) => plain("double", Some(value.to_string())),
            ValueMeta::Text(text) => plain("text", Some(text.clone())),
            ValueMeta::Tensor(tensor) => Described {
                kind: "tensor",
                name: tensor.name.clone(),
                dtype: Some(tensor.layout.scalar_type().to_string()),
                shape: Some(tensor.layout.sizes().to_vec()),
                dynamic: tensor.dynamic,
                traced: None,
            },
            _ => plain("list", None),
        }
    }
}

/// An output as an array: its kind; then the value or, of a tensor, the element type, the sizes and a copy of the bytes
/// in index order.
pub(crate) fn output(output: Output<'_>) -> Result<Array, JsValue> {
    Ok(match output {
        Output::Null => Array::of1(&"none".into()),
        Output::Int(value) => Array::of2(&"int".into(), &value.into()),
        Output::Bool(value) => Array::of2(&"bool".into(), &value.into()),
        Output::Double(value) => Array::of2(&"double".into(), &value.into()),
        Output::Text(text) => Array::of2(&"text".into(), &text.into()),
        Output::List(kind) => Array::of2(&"list".into(), &kind.into()),
        Output::Tensor(tensor) => {
            let sizes: Array = tensor.sizes.iter().map(|size| JsValue::from_f64(*size as f64)).collect();
            let bytes = match tensor.dim_order.is_sorted() {
                true => Uint8Array::from(tensor.bytes()),
                false => {
                    let layout = TensorLayout::new(tensor.dtype, tensor.sizes, tensor.dim_order).map_err(failed)?;
                    let view = TensorView::new(layout, tensor.bytes()).map_err(failed)?;
                    let order: Vec<u8> = (0..tensor.sizes.len() as u8).collect();
                    Uint8Array::from(view.in_order(&order).map_err(failed)?.data())
                }
            };
            let dtype = tensor.dtype.to_string();
            Array::of4(&"tensor".into(), &dtype.into(), &sizes, &bytes)
        }
    })
}
