//! Inputs of a method.

use std::collections::BTreeMap;

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorBuf;
use edgepack_loader::{MethodMeta, ValueMeta};

use crate::inputs::{Kind, Wanted};
use crate::spelling;
use crate::units::count;
use crate::value::Value;

/// The inputs of a method: recorded tensors in the order the method wants, numbers as such, and for what is not
/// recorded the value the program was traced with.
pub fn inputs(meta: &MethodMeta, recorded: &BTreeMap<usize, TensorBuf>) -> Result<Vec<Value>, String> {
    if let Some((last, _)) = recorded.last_key_value()
        && *last >= meta.inputs.len()
    {
        let takes = count(meta.inputs.len(), "input");
        return Err(format!("input {last} is one too many: the method takes {takes}"));
    }
    let one = |(index, wanted): (usize, &ValueMeta)| match (wanted, recorded.get(&index)) {
        (ValueMeta::Tensor(wanted), Some(tensor)) if wanted.layout.sizes().len() != tensor.layout().sizes().len() => {
            let (want, got) = (spelling::layout(&wanted.layout), spelling::layout(tensor.layout()));
            Err(format!("input {index} wants {want}, got {got}"))
        }
        (ValueMeta::Tensor(wanted), Some(tensor)) => {
            let ordered = tensor.in_order(wanted.layout.dim_order());
            ordered.map(Value::Tensor).map_err(|error| format!("input {index}: {error}"))
        }
        (_, Some(tensor)) => match Value::of_scalar(tensor) {
            Some(number) => Ok(number),
            None => {
                let (want, got) = (kind(wanted), spelling::layout(tensor.layout()));
                Err(format!("input {index} wants {want}, got {got}"))
            }
        },
        (ValueMeta::Null, None) => Ok(Value::Null),
        (ValueMeta::Int(value), None) => Ok(Value::Int(*value)),
        (ValueMeta::Bool(value), None) => Ok(Value::Bool(*value)),
        (ValueMeta::Double(value), None) => Ok(Value::Double(*value)),
        (ValueMeta::Text(text), None) => Ok(Value::Text(text.clone())),
        (ValueMeta::Tensor(wanted), None) => {
            Err(format!("input {index} wants {}, got nothing", spelling::layout(&wanted.layout)))
        }
        _ => Err(format!("input {index} is of a kind that cannot be given")),
    };
    meta.inputs.iter().enumerate().map(one).collect()
}

/// The kind of what an input wants, in words.
fn kind(wanted: &ValueMeta) -> &'static str {
    match wanted {
        ValueMeta::Null => "nothing",
        ValueMeta::Int(_) => "an integer",
        ValueMeta::Bool(_) => "a bool",
        ValueMeta::Double(_) => "a double",
        ValueMeta::Text(_) => "text",
        ValueMeta::Tensor(_) => "a tensor",
        _ => "a value that cannot be given",
    }
}

/// The inputs as the command line may give them.
pub fn wanted(meta: &MethodMeta) -> Vec<Wanted> {
    let kind = |input: &ValueMeta| match input {
        ValueMeta::Tensor(tensor) => Kind::Tensor(tensor.layout.clone()),
        ValueMeta::Int(_) => Kind::Scalar(ScalarType::LONG),
        ValueMeta::Bool(_) => Kind::Scalar(ScalarType::BOOL),
        ValueMeta::Double(_) => Kind::Scalar(ScalarType::DOUBLE),
        _ => Kind::Unknown,
    };
    meta.inputs.iter().map(|input| Wanted { name: None, kind: kind(input) }).collect()
}
