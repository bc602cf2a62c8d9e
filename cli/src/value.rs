//! Values outside of a program: tensors, numbers, text.

use edgepack_executor::{Input, Output};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{LayoutError, TensorBuf, TensorLayout};

/// An input or output of a run.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// `None`.
    Null,
    /// Number of an `Int` value.
    Int(i64),
    /// Content of a `Bool` value.
    Bool(bool),
    /// Number of a `Double` value.
    Double(f64),
    /// Text.
    Text(String),
    /// Tensor, with elements of its own.
    Tensor(TensorBuf),
    /// A list, by kind.
    List(&'static str),
}

impl Value {
    /// A copy of what a run gave.
    pub fn of(output: Output<'_>) -> Result<Value, LayoutError> {
        Ok(match output {
            Output::Null => Value::Null,
            Output::Int(value) => Value::Int(value),
            Output::Bool(value) => Value::Bool(value),
            Output::Double(value) => Value::Double(value),
            Output::Text(text) => Value::Text(text.to_owned()),
            Output::Tensor(tensor) => {
                let layout = TensorLayout::new(tensor.dtype, tensor.sizes, tensor.dim_order)?;
                Value::Tensor(TensorBuf::from_bytes(layout, tensor.bytes().to_vec())?)
            }
            Output::List(kind) => Value::List(kind),
        })
    }

    /// The single element of a tensor without dimensions, where it is a number of 64 bits, a bool or a float.
    pub fn of_scalar(tensor: &TensorBuf) -> Option<Value> {
        if !tensor.layout().sizes().is_empty() {
            return None;
        }
        Some(match tensor.layout().scalar_type() {
            ScalarType::LONG => Value::Int(i64::from_le_bytes(*tensor.data().first_chunk()?)),
            ScalarType::BOOL => Value::Bool(*tensor.data().first()? != 0),
            ScalarType::DOUBLE => Value::Double(f64::from_le_bytes(*tensor.data().first_chunk()?)),
            _ => return None,
        })
    }

    /// As an input of a run; `None` for a list, which no run takes.
    pub fn input(&self) -> Option<Input<'_>> {
        Some(match self {
            Value::Null => Input::Null,
            Value::Int(value) => Input::Int(*value),
            Value::Bool(value) => Input::Bool(*value),
            Value::Double(value) => Input::Double(*value),
            Value::Text(text) => Input::Text(text),
            Value::Tensor(tensor) => Input::Tensor(tensor.view()),
            Value::List(_) => return None,
        })
    }

    /// As a tensor: numbers are tensors without dimensions, `None`, text and lists are none.
    pub fn to_tensor(&self) -> Option<TensorBuf> {
        match self {
            Value::Tensor(tensor) => Some(tensor.clone()),
            Value::Int(value) => TensorBuf::scalar(ScalarType::LONG, &value.to_le_bytes()).ok(),
            Value::Bool(value) => TensorBuf::scalar(ScalarType::BOOL, &[u8::from(*value)]).ok(),
            Value::Double(value) => TensorBuf::scalar(ScalarType::DOUBLE, &value.to_le_bytes()).ok(),
            Value::Null | Value::Text(_) | Value::List(_) => None,
        }
    }

    /// Kind of the value in a message.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "None",
            Value::Int(_) => "an integer",
            Value::Bool(_) => "a bool",
            Value::Double(_) => "a double",
            Value::Text(_) => "text",
            Value::Tensor(_) => "a tensor",
            Value::List(kind) => kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_tensors_without_dimensions() {
        for value in [Value::Int(-3), Value::Bool(true), Value::Double(0.5)] {
            assert_eq!(Value::of_scalar(&value.to_tensor().unwrap()), Some(value));
        }
        assert_eq!(Value::Null.to_tensor(), None);
    }
}
