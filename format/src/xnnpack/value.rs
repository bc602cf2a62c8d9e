//! Values: what flows between nodes, by element type, dimensions and role.

use super::tables::{Datatype, NO_ID, QuantParams, TensorValue, Value, ValueUnion};

/// The flag of a value that comes from outside.
pub const INPUT: u32 = 1;

/// The flag of a value that goes outside.
pub const OUTPUT: u32 = 2;

/// The most dimensions of a value.
pub const MAX_RANK: usize = 6;

/// A shape of any rank that there can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    dims: [u32; MAX_RANK],
    rank: usize,
}

impl Shape {
    /// These dimensions; `None` if they are too many.
    pub fn new(dims: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut shape = Shape::default();
        for dim in dims {
            shape = shape.push(dim)?;
        }
        Some(shape)
    }

    /// The same with a dimension more; `None` if there is no room for it.
    pub fn push(mut self, dim: u32) -> Option<Self> {
        *self.dims.get_mut(self.rank)? = dim;
        self.rank = self.rank.saturating_add(1);
        Some(self)
    }

    /// The dimensions, outermost first.
    pub fn dims(&self) -> &[u32] {
        self.dims.get(..self.rank).unwrap_or_default()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The product of all; `None` if that overflows.
    pub fn elements(&self) -> Option<u64> {
        self.dims().iter().try_fold(1u64, |product, dim| product.checked_mul((*dim).into()))
    }
}

impl<'a> Value<'a> {
    /// The tensor, quantised or not; `None` for a kind of value that is not known.
    pub fn tensor(&self) -> Option<&TensorValue<'a>> {
        match self.xvalue_union.as_ref()? {
            ValueUnion::TensorValue(tensor) => Some(tensor),
            ValueUnion::QuantizedTensorValue(value) => value.tensor_value.as_ref(),
            ValueUnion::Unknown(_) => None,
        }
    }

    /// Parameters of its numbers, where the file has them.
    pub fn quant_params(&self) -> Option<&QuantParams<'a>> {
        match self.xvalue_union.as_ref()? {
            ValueUnion::QuantizedTensorValue(value) => value.quant_params.as_ref(),
            _ => None,
        }
    }

    /// Returns whether the value is of the quantised kind, whatever its element type.
    pub fn is_quantized(&self) -> bool {
        matches!(self.xvalue_union, Some(ValueUnion::QuantizedTensorValue(_)))
    }

    /// The scale and zero point of the whole tensor, if it has one of each.
    pub fn per_tensor(&self) -> Option<(f32, i32)> {
        match self.quant_params()? {
            QuantParams::PerTensorQuant(params) => Some((params.scale, params.zero_point)),
            _ => None,
        }
    }
}

impl TensorValue<'_> {
    /// Returns whether the value comes from outside.
    pub fn is_input(&self) -> bool {
        self.flags & INPUT != 0
    }

    /// Returns whether the value goes outside.
    pub fn is_output(&self) -> bool {
        self.flags & OUTPUT != 0
    }

    /// Returns whether the value's elements are in the file or in named data.
    pub fn is_constant(&self) -> bool {
        self.constant_buffer_idx != 0
    }

    /// Its position among the arguments of the delegate call.
    pub fn position(&self) -> Option<u32> {
        (self.external_id != NO_ID).then_some(self.external_id)
    }

    /// Its dimensions; `None` if they are more than there can be.
    pub fn shape(&self) -> Option<Shape> {
        Shape::new(self.dims.iter().flat_map(|dims| dims.iter()))
    }

    /// Its bytes; `None` if that overflows or its element type has none.
    pub fn byte_len(&self) -> Option<u64> {
        self.datatype.byte_len(self.dims.iter().flat_map(|dims| dims.iter()))
    }

    /// Element type as nodes see it: of a dynamically quantised input, the one it has once it is read.
    pub fn seen_as(&self) -> Datatype {
        match self.dq_datatype {
            Datatype::QINT8 if self.is_input() => Datatype::QDINT8,
            _ => self.datatype,
        }
    }
}
