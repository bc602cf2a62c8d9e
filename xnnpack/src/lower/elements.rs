//! Elements of constants, as they are or as another type, and the numbers that stored elements represent.
//!
//! Invariant: what is copied or computed at load is charged to the method before memory is taken for it.

use edgepack_executor::delegate::Local;
use edgepack_executor::kernel::{KernelError, room};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;
use edgepack_format::xnnpack::{ConstantBytes, Datatype, Quantization};
use edgepack_loader::Bytes;
use half::{bf16, f16};

use super::refused;
use super::values::{Lowered, Values, contiguous, error, scalar_type};

impl<'l> Values<'l> {
    /// The elements of a constant in a layout of as many elements; those of other types are converted.
    pub fn constant(&mut self, index: usize, layout: TensorLayout) -> Result<Local, KernelError> {
        let tensor = self.payload.values().get(index).and_then(|value| value.tensor());
        let tensor = tensor.ok_or_else(|| error("a constant of an unknown kind"))?;
        if tensor.datatype == Datatype::QUINT8 || scalar_type(tensor.datatype)? != layout.scalar_type() {
            let bytes = self.elements(index, &layout)?;
            return Ok(self.all.constant(layout, Bytes::from(bytes)));
        }
        let bytes = self.weights.shared(tensor.constant_buffer_idx, layout.byte_len());
        let bytes = bytes.ok_or_else(|| error(format!("constant {} is too short", tensor.constant_buffer_idx)))?;
        Ok(self.all.constant(layout, bytes))
    }

    /// The first `len` bytes of a constant.
    fn bytes(&self, index: usize, len: usize) -> Result<&'l [u8], KernelError> {
        let tensor = self.payload.values().get(index).and_then(|value| value.tensor());
        let bytes = tensor.and_then(|tensor| self.weights.bytes(tensor.constant_buffer_idx)?.get(..len));
        bytes.ok_or_else(|| error("a constant is too short"))
    }

    /// A copy of the elements of a constant, as many as a layout has and of its type; it is charged to the method.
    pub fn elements(&self, index: usize, layout: &TensorLayout) -> Result<Vec<u8>, KernelError> {
        let tensor = self.payload.values().get(index).and_then(|value| value.tensor());
        let tensor = tensor.ok_or_else(|| error("a constant of an unknown kind"))?;
        self.reserve(layout.byte_len())?;
        let (from, len) = (tensor.datatype, layout.byte_len());
        let of_size = |bytes: usize| len.checked_mul(bytes).ok_or_else(|| refused("a constant beyond all memory"));
        let (from, mut to) = match (from, layout.scalar_type()) {
            (Datatype::QUINT8, ScalarType::CHAR) => (self.bytes(index, len)?, room(len)?),
            (Datatype::FP32, ScalarType::HALF) => (self.bytes(index, of_size(2)?)?, room(len)?),
            (Datatype::BF16, ScalarType::FLOAT) => (self.bytes(index, len / 2)?, room(len)?),
            (from, dtype) if scalar_type(from)? == dtype => (self.bytes(index, len)?, room(len)?),
            _ => return Err(refused("its elements are of several types")),
        };
        match (tensor.datatype, layout.scalar_type()) {
            (Datatype::QUINT8, _) => to.extend(from.iter().map(|number| number ^ 0x80)),
            (Datatype::FP32, ScalarType::HALF) => {
                let elements = from.as_chunks::<4>().0.iter().map(|element| f32::from_le_bytes(*element));
                elements.for_each(|element| to.extend(f16::from_f32(element).to_le_bytes()));
            }
            (Datatype::BF16, ScalarType::FLOAT) => {
                let elements = from.as_chunks::<2>().0.iter().map(|element| bf16::from_le_bytes(*element));
                elements.for_each(|element| to.extend(element.to_f32().to_le_bytes()));
            }
            _ => to.extend_from_slice(from),
        }
        Ok(to)
    }

    /// A value as elements of a floating type. Nodes in half precision take constants of single precision, too: those are
    /// converted at load.
    pub fn as_type(&mut self, value: Lowered, datatype: Datatype, node: u32) -> Result<Local, KernelError> {
        if value.datatype == datatype {
            return Ok(value.local);
        }
        if self.is_constant(value.index) {
            return self.constant(value.index, contiguous(datatype, value.shape.dims())?);
        }
        let local = self.temporary(datatype, &value.shape, value.dynamic)?;
        self.convert_float(value.local, local, node)?;
        Ok(local)
    }

    /// Converts between floating types.
    pub fn convert_float(&mut self, from: Local, to: Local, node: u32) -> Result<(), KernelError> {
        let (blocking, format) = (self.all.bool(false), self.all.none());
        self.call("aten::_to_copy.out", &[from, blocking, format, to], node)
    }

    /// Charges the method with memory that is about to be taken.
    pub fn reserve(&self, bytes: usize) -> Result<(), KernelError> {
        self.call.retained().reserve(bytes)
    }

    /// Returns whether a value is a constant.
    pub fn is_constant(&self, index: usize) -> bool {
        self.payload.values().get(index).and_then(|value| value.tensor()).is_some_and(|tensor| tensor.is_constant())
    }

    /// The parameters of a value.
    pub fn quantization(&self, index: usize) -> Result<Quantization<'l>, KernelError> {
        let value = self.payload.values().get(index).ok_or_else(|| error("a value that is not in the payload"))?;
        value.quantization(self.weights).map_err(|e| error(e.to_string()))
    }

    /// Returns the number that stored numbers are less by in here than in the payload: 128 for unsigned bytes, else 0.
    pub fn less(&self, index: usize) -> i32 {
        let tensor = self.payload.values().get(index).and_then(|value| value.tensor());
        if tensor.is_some_and(|tensor| tensor.datatype == Datatype::QUINT8) { 128 } else { 0 }
    }

    /// Scale and zero point of a value that has one of each.
    pub fn per_tensor(&self, index: usize) -> Result<(f32, i32), KernelError> {
        match self.quantization(index)? {
            Quantization::PerTensor { scale, zero_point } => Ok((scale, zero_point - self.less(index))),
            _ => Err(refused("a value that has not one scale")),
        }
    }

    /// Returns whether two values that have one scale each have the same, and the same zero point.
    pub fn mean_the_same(&self, [a, b]: [usize; 2]) -> Result<bool, KernelError> {
        let meaning = |index| self.per_tensor(index).map(|(scale, zero)| (scale.to_bits(), zero));
        Ok(meaning(a)? == meaning(b)?)
    }
}
