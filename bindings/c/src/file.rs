//! Files that C names or has in memory.

use std::ffi::{CStr, OsString, c_char, c_void};
use std::path::PathBuf;

use crate::failure::Failure;
use crate::pointer::In;

/// A file: a path, or bytes in memory. If `path` is not null, `data` and `len` do not count.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackFile {
    /// Path, which ends with a zero byte; in UTF-8 where paths are not bytes. Null for bytes in memory.
    pub path: In<c_char>,
    /// Bytes of the file.
    pub data: In<c_void>,
    /// Number of bytes.
    pub len: usize,
}

/// A file, looked at.
pub(crate) enum File<'a> {
    Path(PathBuf),
    Bytes(&'a [u8]),
}

impl EdgepackFile {
    pub(crate) fn file(&self) -> Result<File<'_>, Failure> {
        if self.path.is_null() {
            return self.data.bytes(self.len, "the file's data").map(File::Bytes);
        }
        path(&self.path).map(File::Path)
    }
}

/// A path of C.
pub(crate) fn path(path: &In<c_char>) -> Result<PathBuf, Failure> {
    os_string(path.c_str("the path")?).map(PathBuf::from)
}

/// An argument or a path as the system has it.
#[cfg(unix)]
pub(crate) fn os_string(text: &CStr) -> Result<OsString, Failure> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::OsStr::from_bytes(text.to_bytes()).to_owned())
}

/// An argument or a path as the system has it.
#[cfg(not(unix))]
pub(crate) fn os_string(text: &CStr) -> Result<OsString, Failure> {
    let text = text.to_str().map_err(|error| Failure::argument(format!("the path is not UTF-8: {error}")))?;
    Ok(text.into())
}
