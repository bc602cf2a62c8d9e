//! Values that go into methods and come out of them.

use std::ffi::c_void;

use edgepack::executor::tensor::TensorShape;
use edgepack::executor::{Input, Output};
use edgepack::format::scalar::ScalarType;
use edgepack::format::tensor::{MAX_RANK, TensorLayout, TensorView};

use crate::failure::Failure;
use crate::pointer::{In, Out};
use crate::text::EdgepackText;

/// Kinds of values.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgepackKind {
    /// `None`.
    None = 0,
    /// An integer, in `integer`.
    Int = 1,
    /// A truth value: 0 or 1 in `integer`.
    Bool = 2,
    /// A floating point number, in `number`.
    Double = 3,
    /// Text, in `text`.
    Text = 4,
    /// A tensor, in `tensor`.
    Tensor = 5,
    /// A list, of which only the kind is told, in `text`: IntList, TensorList and others.
    List = 6,
}

/// Element types, by the numbers that programs have for them.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgepackDtype {
    /// Unsigned 8-bit integer.
    Byte = 0,
    /// Signed 8-bit integer.
    Char = 1,
    /// Signed 16-bit integer.
    Short = 2,
    /// Signed 32-bit integer.
    Int = 3,
    /// Signed 64-bit integer.
    Long = 4,
    /// IEEE 754 half precision.
    Half = 5,
    /// IEEE 754 single precision.
    Float = 6,
    /// IEEE 754 double precision.
    Double = 7,
    /// Two halves.
    ComplexHalf = 8,
    /// Two floats.
    ComplexFloat = 9,
    /// Two doubles.
    ComplexDouble = 10,
    /// A byte; 0 and 1 are written, every other one reads as true.
    Bool = 11,
    /// Quantised signed 8-bit.
    QInt8 = 12,
    /// Quantised unsigned 8-bit.
    QUInt8 = 13,
    /// Quantised signed 32-bit.
    QInt32 = 14,
    /// The upper half of a float.
    BFloat16 = 15,
    /// Unsigned 16-bit integer.
    UInt16 = 27,
    /// Unsigned 32-bit integer.
    UInt32 = 28,
    /// Unsigned 64-bit integer.
    UInt64 = 29,
}

/// A tensor to read: its elements lie one after the other, outermost dimension of the dim order first, little-endian.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackTensor {
    /// Element type, an EdgepackDtype.
    pub dtype: i32,
    /// Number of dimensions, at most 16.
    pub rank: usize,
    /// Elements along each dimension; `rank` of them.
    pub sizes: In<usize>,
    /// Dimensions from outermost to innermost in memory; `rank` of them, or null for 0, 1, 2 and so on.
    pub dim_order: In<u8>,
    /// The bytes of the elements, at any address; null of a tensor of which only the layout is told.
    pub data: In<c_void>,
    /// Number of bytes: exactly those of the elements.
    pub len: usize,
}

/// A tensor that is written.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackTensorMut {
    /// Element type, an EdgepackDtype.
    pub dtype: i32,
    /// Number of dimensions.
    pub rank: usize,
    /// Elements along each dimension; `rank` of them.
    pub sizes: In<usize>,
    /// Dimensions from outermost to innermost in memory; `rank` of them.
    pub dim_order: In<u8>,
    /// Memory of the elements.
    pub data: Out<c_void>,
    /// Number of bytes.
    pub len: usize,
}

/// A value: its kind says which of the fields count.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackValue {
    /// An EdgepackKind.
    pub kind: u32,
    /// The number of an integer, 0 or 1 of a truth value.
    pub integer: i64,
    /// The number of a floating point number.
    pub number: f64,
    /// A text; of one that is given to the library, no zero byte is needed behind it.
    pub text: EdgepackText,
    /// A tensor.
    pub tensor: EdgepackTensor,
}

impl EdgepackTensor {
    /// No tensor.
    pub(crate) const NONE: EdgepackTensor =
        EdgepackTensor { dtype: 0, rank: 0, sizes: In::NULL, dim_order: In::NULL, data: In::NULL, len: 0 };

    /// A layout without data; it has to live as long.
    pub(crate) fn of_layout(layout: &TensorLayout) -> Self {
        EdgepackTensor {
            dtype: i32::from(layout.scalar_type().0),
            rank: layout.sizes().len(),
            sizes: In::to(layout.sizes().as_ptr()),
            dim_order: In::to(layout.dim_order().as_ptr()),
            data: In::NULL,
            len: layout.byte_len(),
        }
    }

    /// A shape of a method; it has to live as long.
    pub(crate) fn of_shape(shape: &TensorShape<'_>, data: Option<&[u8]>) -> Self {
        EdgepackTensor {
            dtype: i32::from(shape.dtype.0),
            rank: shape.rank(),
            sizes: In::to(shape.sizes.as_ptr()),
            dim_order: In::to(shape.dim_order.as_ptr()),
            data: data.map_or(In::NULL, |data| In::to(data.as_ptr().cast())),
            len: shape.byte_len(),
        }
    }

    /// As a view, if all of it makes sense.
    fn view(&self) -> Result<TensorView<'_>, Failure> {
        let dtype = i8::try_from(self.dtype).map(ScalarType).ok().filter(|dtype| dtype.is_valid());
        let dtype = dtype.ok_or_else(|| Failure::argument(format!("{} is no element type", self.dtype)))?;
        if self.rank > MAX_RANK {
            return Err(Failure::argument(format!("{} dimensions, at most {MAX_RANK} are possible", self.rank)));
        }
        let sizes = self.sizes.slice(self.rank, "sizes")?;
        let layout = match self.dim_order.is_null() {
            true => TensorLayout::contiguous(dtype, sizes),
            false => TensorLayout::new(dtype, sizes, self.dim_order.slice(self.rank, "dim_order")?),
        };
        let layout = layout.map_err(|error| Failure::argument(error.to_string()))?;
        if layout.byte_len() != self.len {
            let message = format!("{layout} has {} bytes, len is {}", layout.byte_len(), self.len);
            return Err(Failure::argument(message));
        }
        let data = self.data.bytes(self.len, "data")?;
        TensorView::new(layout, data).map_err(|error| Failure::argument(error.to_string()))
    }
}

impl EdgepackValue {
    /// `None`.
    pub(crate) const NONE: EdgepackValue = EdgepackValue {
        kind: EdgepackKind::None as u32,
        integer: 0,
        number: 0.0,
        text: EdgepackText::EMPTY,
        tensor: EdgepackTensor::NONE,
    };

    /// An integer.
    pub(crate) fn int(integer: i64) -> Self {
        EdgepackValue { kind: EdgepackKind::Int as u32, integer, ..Self::NONE }
    }

    /// A truth value.
    pub(crate) fn bool(value: bool) -> Self {
        EdgepackValue { kind: EdgepackKind::Bool as u32, integer: value.into(), ..Self::NONE }
    }

    /// A floating point number.
    pub(crate) fn double(number: f64) -> Self {
        EdgepackValue { kind: EdgepackKind::Double as u32, number, ..Self::NONE }
    }

    /// A text.
    pub(crate) fn text(text: EdgepackText) -> Self {
        EdgepackValue { kind: EdgepackKind::Text as u32, text, ..Self::NONE }
    }

    /// A tensor.
    pub(crate) fn tensor(tensor: EdgepackTensor) -> Self {
        EdgepackValue { kind: EdgepackKind::Tensor as u32, tensor, ..Self::NONE }
    }

    /// A list of this kind.
    pub(crate) fn list(kind: EdgepackText) -> Self {
        EdgepackValue { kind: EdgepackKind::List as u32, text: kind, ..Self::NONE }
    }

    /// As an input of a method.
    pub(crate) fn input(&self, index: usize) -> Result<Input<'_>, Failure> {
        let input = match self.kind {
            kind if kind == EdgepackKind::None as u32 => Ok(Input::Null),
            kind if kind == EdgepackKind::Int as u32 => Ok(Input::Int(self.integer)),
            kind if kind == EdgepackKind::Bool as u32 => match self.integer {
                0 | 1 => Ok(Input::Bool(self.integer == 1)),
                other => Err(Failure::argument(format!("a truth value is 0 or 1, not {other}"))),
            },
            kind if kind == EdgepackKind::Double as u32 => Ok(Input::Double(self.number)),
            kind if kind == EdgepackKind::Text as u32 => self.text.data.text_of(self.text.len, "text").map(Input::Text),
            kind if kind == EdgepackKind::Tensor as u32 => self.tensor.view().map(Input::Tensor),
            other => Err(Failure::argument(format!("{other} is no kind of input"))),
        };
        input.map_err(|failure| {
            let message = format!("input {index}: {}", failure.message);
            Failure { message, ..failure }.at(format!("inputs[{index}]"))
        })
    }

    /// An output of a method, which has to live as long; `text` holds a text of it with a zero byte.
    pub(crate) fn output(output: Output<'_>, text: impl FnOnce(&str) -> EdgepackText) -> Self {
        match output {
            Output::Null => Self::NONE,
            Output::Int(integer) => Self::int(integer),
            Output::Bool(value) => Self::bool(value),
            Output::Double(number) => Self::double(number),
            Output::Text(words) => Self::text(text(words)),
            Output::Tensor(tensor) => Self::tensor(EdgepackTensor::of_shape(&tensor, Some(tensor.bytes()))),
            Output::List(kind) => Self::list(text(kind)),
        }
    }
}

/// Returns the bytes of an element of this type, an EdgepackDtype; 0 if there is no such type.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_dtype_size(dtype: i32) -> usize {
    i8::try_from(dtype).ok().and_then(|dtype| ScalarType(dtype).size()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_are_those_of_programs() {
        for (ours, theirs) in [
            (EdgepackDtype::Byte, ScalarType::BYTE),
            (EdgepackDtype::Char, ScalarType::CHAR),
            (EdgepackDtype::Short, ScalarType::SHORT),
            (EdgepackDtype::Int, ScalarType::INT),
            (EdgepackDtype::Long, ScalarType::LONG),
            (EdgepackDtype::Half, ScalarType::HALF),
            (EdgepackDtype::Float, ScalarType::FLOAT),
            (EdgepackDtype::Double, ScalarType::DOUBLE),
            (EdgepackDtype::ComplexHalf, ScalarType::COMPLEX_HALF),
            (EdgepackDtype::ComplexFloat, ScalarType::COMPLEX_FLOAT),
            (EdgepackDtype::ComplexDouble, ScalarType::COMPLEX_DOUBLE),
            (EdgepackDtype::Bool, ScalarType::BOOL),
            (EdgepackDtype::QInt8, ScalarType::QINT8),
            (EdgepackDtype::QUInt8, ScalarType::QUINT8),
            (EdgepackDtype::QInt32, ScalarType::QINT32),
            (EdgepackDtype::BFloat16, ScalarType::BFLOAT16),
            (EdgepackDtype::UInt16, ScalarType::UINT16),
            (EdgepackDtype::UInt32, ScalarType::UINT32),
            (EdgepackDtype::UInt64, ScalarType::UINT64),
        ] {
            assert_eq!(ours as i32, i32::from(theirs.0));
        }
        assert_eq!((edgepack_dtype_size(6), edgepack_dtype_size(-1), edgepack_dtype_size(262)), (4, 0, 0));
    }
}
