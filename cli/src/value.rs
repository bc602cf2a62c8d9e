//! Values outside of a program: tensors with their bytes, numbers, text.

use edgepack_executor::{Input, Output};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{LayoutError, TensorLayout, is_contiguous};

/// A tensor that owns its bytes, which are in the memory order of its layout.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    layout: TensorLayout,
    data: Vec<u8>,
}

/// An input or output of a run.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// `None`.
    Null,
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
    /// A double.
    Double(f64),
    /// Text.
    Text(String),
    /// A tensor.
    Tensor(Tensor),
    /// A list, by kind.
    List(&'static str),
}

impl Tensor {
    /// A tensor; the bytes are exactly those of its elements.
    pub fn new(layout: TensorLayout, data: Vec<u8>) -> Result<Tensor, LayoutError> {
        if data.len() != layout.byte_len() {
            return Err(LayoutError::Data { have: data.len() as u64, want: layout.byte_len() as u64 });
        }
        Ok(Tensor { layout, data })
    }

    /// A tensor without dimensions.
    pub fn scalar(scalar_type: ScalarType, data: &[u8]) -> Result<Tensor, LayoutError> {
        Tensor::new(TensorLayout::contiguous(scalar_type, &[])?, data.to_vec())
    }

    /// What it looks like.
    pub fn layout(&self) -> &TensorLayout {
        &self.layout
    }

    /// Its bytes.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The same logical tensor in another memory order. Fails if the order is no permutation of its dimensions.
    pub fn in_order(&self, dim_order: &[u8]) -> Result<Tensor, LayoutError> {
        let layout = TensorLayout::new(self.layout.scalar_type(), self.layout.sizes(), dim_order)?;
        if dim_order == self.layout.dim_order() {
            return Ok(self.clone());
        }
        let (from, to) = (self.layout.strides(), layout.strides());
        let size = layout.scalar_type().size().unwrap_or(1);
        let sizes = layout.sizes().to_vec();
        let mut data = vec![0; self.data.len()];
        let mut index = vec![0; sizes.len()];
        let place = |index: &[usize], strides: &[usize]| -> usize {
            size * index.iter().zip(strides).map(|(index, stride)| index * stride).sum::<usize>()
        };
        for _ in 0..layout.element_count() {
            let (source, target) = (place(&index, &from), place(&index, &to));
            data[target..target + size].copy_from_slice(&self.data[source..source + size]);
            // The next index, last dimension first.
            for (index, size) in index.iter_mut().zip(&sizes).rev() {
                *index += 1;
                if *index < *size {
                    break;
                }
                *index = 0;
            }
        }
        Ok(Tensor { layout, data })
    }

    /// The same with its elements in index order.
    pub fn contiguous(&self) -> Tensor {
        let order: Vec<u8> = (0..self.layout.sizes().len() as u8).collect();
        if is_contiguous(self.layout.dim_order()) {
            return self.clone();
        }
        // The identity is a permutation of any number of dimensions.
        self.in_order(&order).unwrap_or_else(|_| self.clone())
    }

    /// The single element of a tensor without dimensions, where it is a number of 64 bits, a bool or a float.
    pub fn to_number(&self) -> Option<Value> {
        if !self.layout.sizes().is_empty() {
            return None;
        }
        Some(match self.layout.scalar_type() {
            ScalarType::LONG => Value::Int(i64::from_le_bytes(*self.data.first_chunk()?)),
            ScalarType::BOOL => Value::Bool(*self.data.first()? != 0),
            ScalarType::DOUBLE => Value::Double(f64::from_le_bytes(*self.data.first_chunk()?)),
            _ => return None,
        })
    }
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
                Value::Tensor(Tensor::new(layout, tensor.bytes().to_vec())?)
            }
            Output::List(kind) => Value::List(kind),
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
            Value::Tensor(Tensor { layout, data }) => Input::Tensor {
                dtype: layout.scalar_type(),
                sizes: layout.sizes(),
                dim_order: layout.dim_order(),
                data,
            },
            Value::List(_) => return None,
        })
    }

    /// As a tensor: numbers are tensors without dimensions, `None`, text and lists are none.
    pub fn to_tensor(&self) -> Option<Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor.clone()),
            Value::Int(value) => Tensor::scalar(ScalarType::LONG, &value.to_le_bytes()).ok(),
            Value::Bool(value) => Tensor::scalar(ScalarType::BOOL, &[u8::from(*value)]).ok(),
            Value::Double(value) => Tensor::scalar(ScalarType::DOUBLE, &value.to_le_bytes()).ok(),
            Value::Null | Value::Text(_) | Value::List(_) => None,
        }
    }

    /// Its kind in a message.
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
    fn reordering_keeps_the_logical_tensor() {
        let layout = TensorLayout::contiguous(ScalarType::BYTE, &[1, 2, 2, 3]).unwrap();
        let tensor = Tensor::new(layout, (0..12).collect()).unwrap();
        let last = tensor.in_order(&[0, 2, 3, 1]).unwrap();
        assert_eq!(last.data(), [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]);
        assert_eq!(last.contiguous(), tensor);
        assert!(tensor.in_order(&[0, 1, 2]).is_err());
    }

    #[test]
    fn numbers_are_tensors_without_dimensions() {
        for value in [Value::Int(-3), Value::Bool(true), Value::Double(0.5)] {
            assert_eq!(value.to_tensor().unwrap().to_number(), Some(value));
        }
        assert_eq!(Value::Null.to_tensor(), None);
    }
}
