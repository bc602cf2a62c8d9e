//! A tensor of a graph without its data.

use std::fmt;

use edgepack_format::mlf::{DataType, Entry, params};
use edgepack_format::tensor::{LayoutError, TensorLayout};

/// Element type and shape of an argument or result of a function; always row-major.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    data_type: DataType,
    shape: Vec<i64>,
    sizes: Vec<usize>,
    bytes: usize,
}

impl Operand {
    /// Makes an operand of this type and shape; `None` if it has more bytes than can be addressed.
    pub fn new(data_type: DataType, shape: &[u64]) -> Option<Self> {
        let bytes = usize::try_from(params::byte_count(shape, data_type.bytes())?).ok()?;
        let sizes = shape.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<_>>()?;
        let shape = shape.iter().map(|&size| i64::try_from(size).ok()).collect::<Option<_>>()?;
        Some(Operand { data_type, shape, sizes, bytes })
    }

    /// Makes the operand of an entry of a graph; `None` if it has more bytes than can be addressed.
    pub fn of(entry: &Entry) -> Option<Self> {
        Self::new(entry.data_type, &entry.shape)
    }

    /// Returns the operand in one dimension.
    pub fn flat(&self) -> Self {
        let count = self.sizes.iter().product();
        Operand { shape: vec![count as i64], sizes: vec![count], ..self.clone() }
    }

    /// Element type.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// Elements along each dimension.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Returns the elements along each dimension, as functions in C take them.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Bytes of all elements.
    pub fn byte_len(&self) -> usize {
        self.bytes
    }

    /// As the other formats have it.
    pub fn layout(&self) -> Result<TensorLayout, LayoutError> {
        let shape: Vec<u64> = self.sizes.iter().map(|&size| size as u64).collect();
        params::layout(self.data_type, &shape)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.data_type.notation(), self.sizes)
    }
}
