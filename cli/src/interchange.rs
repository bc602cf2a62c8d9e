//! Tensors in files of others: safetensors and NumPy arrays, told apart by content.

use std::fmt;

use edgepack::edit::{dtype_of, scalar_type_of};
use edgepack_format::tensor::{LayoutError, TensorBuf, TensorLayout};
use safetensors::tensor::{SafeTensors, TensorView};

use crate::npy;

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

/// All tensors of a safetensors file with their names.
pub fn read_safetensors(bytes: &[u8]) -> Result<Vec<(String, TensorBuf)>, InterchangeError> {
    let file = SafeTensors::deserialize(bytes)?;
    let mut tensors = Vec::new();
    for (name, view) in file.iter() {
        let unknown = || InterchangeError::Type(format!("{:?}", view.dtype()));
        let scalar_type = scalar_type_of(view.dtype()).ok_or_else(unknown)?;
        let layout = TensorLayout::contiguous(scalar_type, view.shape())?;
        tensors.push((name.to_owned(), TensorBuf::from_bytes(layout, view.data().to_vec())?));
    }
    Ok(tensors)
}

/// The metadata entry `key` of a safetensors file; `None` if there is no such entry, or no such file.
pub fn safetensors_metadata(bytes: &[u8], key: &str) -> Option<String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    metadata.metadata().as_ref()?.get(key).cloned()
}

/// A safetensors file of these tensors. Memory order is not kept: all are contiguous.
pub fn write_safetensors(tensors: &[(String, TensorBuf)]) -> Result<Vec<u8>, InterchangeError> {
    let contiguous = tensors.iter().map(|(name, tensor)| Ok((name.as_str(), tensor.contiguous()?)));
    let contiguous = contiguous.collect::<Result<Vec<_>, LayoutError>>()?;
    let mut views = Vec::new();
    for (name, tensor) in &contiguous {
        let layout = tensor.layout();
        let unknown = || InterchangeError::Type(layout.scalar_type().to_string());
        let dtype = dtype_of(layout.scalar_type()).ok_or_else(unknown)?;
        views.push((*name, TensorView::new(dtype, layout.sizes().to_vec(), tensor.data())?));
    }
    Ok(safetensors::serialize(views, None)?)
}

/// What a file of tensors holds.
pub enum TensorFile {
    /// Named tensors.
    Named(Vec<(String, TensorBuf)>),
    /// One array.
    Single(TensorBuf),
}

/// Reads a safetensors file or a NumPy array.
pub fn read(bytes: &[u8]) -> Result<TensorFile, InterchangeError> {
    match bytes.starts_with(npy::MAGIC) {
        true => npy::read(bytes).map(TensorFile::Single),
        false => read_safetensors(bytes).map(TensorFile::Named),
    }
}
