//! Allocations whose size comes from a file: they can fail, and say so.

use edgepack_format::finding::ErrorCode;
use edgepack_format::room::{self, NoRoom};

use super::error::KernelError;

/// Memory that a file asks for and does not get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OutOfMemory(String);

impl OutOfMemory {
    /// An error with this message.
    pub fn new(message: String) -> Self {
        OutOfMemory(message)
    }

    /// What there is no memory for.
    pub fn into_message(self) -> String {
        self.0
    }
}

impl From<NoRoom> for OutOfMemory {
    fn from(error: NoRoom) -> Self {
        no_room("tables", error.bytes)
    }
}

impl From<OutOfMemory> for KernelError {
    fn from(error: OutOfMemory) -> Self {
        KernelError::new(ErrorCode::MemoryAllocationFailed, error.0)
    }
}

/// The system has no such piece of memory.
pub(crate) fn no_room(what: &str, bytes: u64) -> OutOfMemory {
    OutOfMemory(format!("there is no memory for {bytes} bytes of {what}"))
}

/// Room in a list whose length comes from the file.
pub(crate) fn grow<T>(list: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    Ok(room::grow(list, more)?)
}

/// That many of a value, in a list whose length comes from the file.
pub(crate) fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>, OutOfMemory> {
    Ok(room::filled(value, count)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_too_long_are_refused() {
        assert!(grow(&mut Vec::<u64>::new(), usize::MAX / 8).is_err());
        assert!(filled(0u64, usize::MAX / 2).is_err());
        assert_eq!(filled(7u8, 3).unwrap(), [7, 7, 7]);
    }
}
