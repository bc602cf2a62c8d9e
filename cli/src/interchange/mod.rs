//! Tensors in files of others: safetensors, NumPy arrays and archives of them, and pictures, told apart by content.

mod error;
mod npy;
mod npz;
mod picture;

use edgepack::edit::{dtype_of, scalar_type_of};
use edgepack_format::detect::{DETECT_LEN, FileKind, detect};
use edgepack_format::foreign::{TAIL_LEN, foreign};
use edgepack_format::tensor::{LayoutError, TensorBuf, TensorLayout};
use safetensors::tensor::{SafeTensors, TensorView};

pub use error::InterchangeError;
pub use npy::{read as read_npy, write as write_npy};
pub use npz::write as write_npz;
pub use picture::Picture;

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

/// Returns the metadata entry `key` of a safetensors file; `None` if there is no such entry, or no such file.
pub fn safetensors_metadata(bytes: &[u8], key: &str) -> Option<String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    metadata.metadata().as_ref()?.get(key).cloned()
}

/// Writes these tensors as a safetensors file. Memory order is not preserved: all tensors are contiguous.
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

/// Content of a file of tensors.
pub enum TensorFile {
    /// Named tensors.
    Named(Vec<(String, TensorBuf)>),
    /// One array.
    Single(TensorBuf),
}

/// Reads a safetensors file, a NumPy array or an archive of such arrays; what is compressed may have `most` bytes.
pub fn read(bytes: &[u8], most: u64) -> Result<TensorFile, InterchangeError> {
    match bytes {
        _ if bytes.starts_with(npy::MAGIC) => npy::read(bytes).map(TensorFile::Single),
        _ if npz::MAGIC.iter().any(|magic| bytes.starts_with(magic)) => npz::read(bytes, most).map(TensorFile::Named),
        _ => match other(bytes) {
            Some(message) => Err(InterchangeError::Other(message)),
            None => read_safetensors(bytes).map(TensorFile::Named),
        },
    }
}

/// Says what a file is that holds no tensors to give, if that is known.
fn other(bytes: &[u8]) -> Option<String> {
    let kind = detect(bytes);
    let advice = match kind {
        FileKind::Safetensors => return None,
        FileKind::Unknown => {
            let tail = bytes.get(bytes.len().saturating_sub(TAIL_LEN)..)?;
            let foreign = foreign(bytes.get(..bytes.len().min(DETECT_LEN))?, tail)?;
            return Some(format!("this is {}, not a file of tensors", foreign.name));
        }
        FileKind::Data | FileKind::FlatData => "; `edgepack convert` makes a safetensors file of it",
        _ => "",
    };
    let article = if kind.name().starts_with('E') { "an" } else { "a" };
    Some(format!("this is {article} {}, not a file of tensors{advice}", kind.name()))
}

/// Decodes a picture; `None` if the content is none.
pub fn read_picture(bytes: &[u8], most_pixels: u64) -> Option<Result<Picture, InterchangeError>> {
    let known = picture::MAGIC.iter().any(|magic| bytes.starts_with(magic));
    known.then(|| picture::read(bytes, most_pixels))
}
