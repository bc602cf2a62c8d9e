//! Tensors in files of others: safetensors and NumPy arrays, told apart by content.

use std::fmt;

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{LayoutError, TensorLayout};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::npy;
use crate::value::Tensor;

/// Why a file of tensors cannot be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum InterchangeError {
    /// The safetensors file is broken.
    Safetensors(safetensors::SafeTensorError),
    /// The array is broken.
    Npy(String),
    /// An element type that the other side does not have.
    Type(String),
    /// Shape and bytes do not fit.
    Layout(LayoutError),
}

impl fmt::Display for InterchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterchangeError::Safetensors(error) => write!(f, "no valid safetensors file: {error}"),
            InterchangeError::Npy(message) => write!(f, "no valid NumPy array: {message}"),
            InterchangeError::Type(name) => write!(f, "there is no element type for {name}"),
            InterchangeError::Layout(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InterchangeError {}

impl From<LayoutError> for InterchangeError {
    fn from(error: LayoutError) -> Self {
        InterchangeError::Layout(error)
    }
}

impl From<safetensors::SafeTensorError> for InterchangeError {
    fn from(error: safetensors::SafeTensorError) -> Self {
        InterchangeError::Safetensors(error)
    }
}

/// The element types both sides have.
const TYPES: &[(Dtype, ScalarType)] = &[
    (Dtype::BOOL, ScalarType::BOOL),
    (Dtype::U8, ScalarType::BYTE),
    (Dtype::I8, ScalarType::CHAR),
    (Dtype::I16, ScalarType::SHORT),
    (Dtype::I32, ScalarType::INT),
    (Dtype::I64, ScalarType::LONG),
    (Dtype::U16, ScalarType::UINT16),
    (Dtype::U32, ScalarType::UINT32),
    (Dtype::U64, ScalarType::UINT64),
    (Dtype::F16, ScalarType::HALF),
    (Dtype::BF16, ScalarType::BFLOAT16),
    (Dtype::F32, ScalarType::FLOAT),
    (Dtype::F64, ScalarType::DOUBLE),
    (Dtype::C64, ScalarType::COMPLEX_FLOAT),
    (Dtype::F8_E5M2, ScalarType::FLOAT8_E5M2),
    (Dtype::F8_E4M3, ScalarType::FLOAT8_E4M3FN),
];

/// All tensors of a safetensors file with their names.
pub fn read_safetensors(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, InterchangeError> {
    let file = SafeTensors::deserialize(bytes)?;
    let mut tensors = Vec::new();
    for (name, view) in file.iter() {
        let found = TYPES.iter().find(|(dtype, _)| *dtype == view.dtype());
        let (_, scalar_type) = found.ok_or_else(|| InterchangeError::Type(format!("{:?}", view.dtype())))?;
        let layout = TensorLayout::contiguous(*scalar_type, view.shape())?;
        tensors.push((name.to_owned(), Tensor::new(layout, view.data().to_vec())?));
    }
    Ok(tensors)
}

/// The metadata entry `key` of a safetensors file; `None` if there is no such entry, or no such file.
pub fn safetensors_metadata(bytes: &[u8], key: &str) -> Option<String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    metadata.metadata().as_ref()?.get(key).cloned()
}

/// A safetensors file of these tensors. Memory order is not kept: all are contiguous.
pub fn write_safetensors(tensors: &[(String, Tensor)]) -> Result<Vec<u8>, InterchangeError> {
    let contiguous: Vec<(&str, Tensor)> =
        tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.contiguous())).collect();
    let mut views = Vec::new();
    for (name, tensor) in &contiguous {
        let layout = tensor.layout();
        let found = TYPES.iter().find(|(_, scalar_type)| *scalar_type == layout.scalar_type());
        let (dtype, _) = found.ok_or_else(|| InterchangeError::Type(layout.scalar_type().to_string()))?;
        views.push((*name, TensorView::new(*dtype, layout.sizes().to_vec(), tensor.data())?));
    }
    Ok(safetensors::serialize(views, None)?)
}

/// What a file of tensors holds.
pub enum TensorFile {
    /// Named tensors.
    Named(Vec<(String, Tensor)>),
    /// One array.
    Single(Tensor),
}

/// Reads a safetensors file or a NumPy array.
pub fn read(bytes: &[u8]) -> Result<TensorFile, InterchangeError> {
    match bytes.starts_with(npy::MAGIC) {
        true => npy::read(bytes).map(TensorFile::Single),
        false => read_safetensors(bytes).map(TensorFile::Named),
    }
}
