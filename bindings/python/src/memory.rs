//! Memory that Python and files share: the one file with `unsafe`.
//!
//! Invariant: what is handed out is read-only, stays where it is, and is held by whoever looks at it.
#![expect(unsafe_code, reason = "buffers are handed out as pointers, and mapping a file is unsafe by nature")]

use std::ffi::{c_int, c_void};
use std::io;
use std::path::Path;
use std::sync::Arc;

use edgepack::loader::{self, MappedFile, Source};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Read-only bytes of a file: borrowed from the bytes or the mapping that it was opened from, or read for this object alone. They stay
/// until nothing refers to them any more, whatever becomes of the program.
#[pyclass(frozen, module = "edgepack")]
pub struct Bytes {
    bytes: loader::Bytes,
}

impl From<loader::Bytes> for Bytes {
    fn from(bytes: loader::Bytes) -> Self {
        Bytes { bytes }
    }
}

#[pymethods]
impl Bytes {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    fn __repr__(&self) -> String {
        format!("<edgepack.Bytes of {} bytes>", self.bytes.len())
    }

    /// Fills in a view of the bytes.
    ///
    /// # Safety
    /// Called by the interpreter: `view` points to a view that may be written, and the interpreter's lock is held.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill in"));
        }
        let bytes: &[u8] = &slf.get().bytes;
        let Ok(len) = ffi::Py_ssize_t::try_from(bytes.len()) else {
            return Err(PyBufferError::new_err("more bytes than a view can have"));
        };
        let start = bytes.as_ptr().cast_mut().cast::<c_void>();
        // SAFETY: `view` is the interpreter's and not null. The bytes do not move or change while the `loader::Bytes` lives, which
        // a frozen object holds for as long as it lives, and the view holds the object: the call takes a reference for it.
        // The view is read-only (the fifth argument): a request to write is refused by the call, so nobody writes there.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, 1, flags) };
        match filled {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// Maps a file.
pub fn map(path: &Path) -> io::Result<Arc<dyn Source>> {
    // SAFETY: who asks for a mapping answers for the file, as the documentation of `mmap=True` says: it does not change and
    // is not shortened while the program, or any view of its weights, is in use.
    Ok(Arc::new(unsafe { MappedFile::open(path) }?))
}
