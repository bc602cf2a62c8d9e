//! Length of a file when only its head is in memory.

/// Length of the file that a head of bytes was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileExtent {
    /// Bytes of the whole file.
    pub len: u64,
}

impl FileExtent {
    /// Of a file that is all in memory.
    pub fn of(bytes: &[u8]) -> Self {
        FileExtent { len: bytes.len() as u64 }
    }
}
