//! Files that are in memory.

use std::io;
use std::ops::Range;

use crate::bytes::Bytes;
use crate::source::{Source, read_slice, slice};

/// Bytes in memory, borrowed without a copy.
#[derive(Clone)]
pub struct MemorySource(Bytes);

impl MemorySource {
    /// Takes the bytes over: a vector and shared bytes are not copied.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        MemorySource(bytes.into())
    }
}

impl Source for MemorySource {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        read_slice(&self.0, offset, into)
    }
    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        slice(&self.0, range)
    }
    fn name(&self) -> String {
        "bytes in memory".to_owned()
    }
}
