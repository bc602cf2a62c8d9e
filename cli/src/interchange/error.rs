//! Reasons a file of tensors cannot be read or written.

use std::fmt;

use edgepack_format::tensor::LayoutError;

/// Reason a file of tensors cannot be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum InterchangeError {
    /// The file is of a kind that holds no tensors to give.
    Other(String),
    /// The safetensors file is broken.
    Safetensors(safetensors::SafeTensorError),
    /// The array is broken.
    Npy(String),
    /// The archive of arrays is broken, or has more bytes than are allowed.
    Npz(String),
    /// The picture is broken, or has more pixels than are allowed.
    Picture(String),
    /// An element type that the other side does not have.
    Type(String),
    /// Shape and bytes do not fit.
    Layout(LayoutError),
}

impl fmt::Display for InterchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterchangeError::Other(message) => f.write_str(message),
            InterchangeError::Safetensors(error) => write!(f, "this is not a valid safetensors file: {error}"),
            InterchangeError::Npy(message) => write!(f, "no valid NumPy array: {message}"),
            InterchangeError::Npz(message) => write!(f, "no valid archive of NumPy arrays: {message}"),
            InterchangeError::Picture(message) => write!(f, "no picture that can be decoded: {message}"),
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
