//! Files as Python gives them: paths, bytes and whatever else has a buffer, and objects with `read`.

use std::path::PathBuf;
use std::sync::Arc;

use edgepack::loader::{FileSource, MemorySource, Source};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::memory;
use crate::problem::{Problem, detached};

/// A file to read.
pub enum Given {
    /// Its name.
    Path(PathBuf),
    /// Its content.
    Bytes(Vec<u8>),
}

impl Given {
    /// Takes a path, bytes or an object with `read`, which is read from where it is to its end.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Given> {
        if let Some(bytes) = content(object)? {
            return Ok(Given::Bytes(bytes));
        }
        if object.hasattr("read")? {
            let read = object.call_method0("read")?;
            return match content(&read)? {
                Some(bytes) => Ok(Given::Bytes(bytes)),
                None => Err(PyTypeError::new_err("the file is open as text: open it with mode \"rb\"")),
            };
        }
        match object.extract::<PathBuf>() {
            Ok(path) => Ok(Given::Path(path)),
            Err(_) => {
                let kind = object.get_type().name()?;
                Err(PyTypeError::new_err(format!("a path, bytes or a file opened for reading is wanted, not {kind}")))
            }
        }
    }

    /// Opens it as a source. With `mmap` a file is mapped instead of read.
    pub fn open(self, py: Python<'_>, mmap: bool) -> PyResult<Arc<dyn Source>> {
        match self {
            Given::Bytes(bytes) => Ok(Arc::new(MemorySource::new(bytes))),
            Given::Path(path) => detached(py, move || {
                let failed = |error| Problem::io(&path.display().to_string(), &error);
                if path.is_dir() {
                    let error = std::io::Error::from(std::io::ErrorKind::IsADirectory);
                    return Err(failed(error));
                }
                match mmap {
                    true => memory::map(&path).map_err(failed),
                    false => Ok(Arc::new(FileSource::open(&path).map_err(failed)?) as Arc<dyn Source>),
                }
            }),
        }
    }
}

impl Given {
    /// Reads it whole, unless it has more bytes than that.
    pub fn read(self, py: Python<'_>, most: u64) -> PyResult<Vec<u8>> {
        let source = self.open(py, false)?;
        detached(py, move || {
            let (name, len) = (source.name(), source.len());
            let Some(room) = usize::try_from(len).ok().filter(|_| len <= most) else {
                return Err(Problem::new("LimitError", format!("{name} has {len} bytes, at most {most} are read")));
            };
            let mut bytes = vec![0; room];
            source.read_at(0, &mut bytes).map_err(|error| Problem::io(&name, &error))?;
            Ok(bytes)
        })
    }
}

/// The bytes of an object that has a buffer of bytes.
fn content(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    match PyBuffer::<u8>::get(object) {
        Ok(buffer) => Ok(Some(buffer.to_vec(object.py())?)),
        Err(_) => Ok(None),
    }
}
