//! Allocations whose size comes from a file: they can fail, and say so. What kernels retain from run to run is charged to
//! the method's account first.

use std::cell::Cell;

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

    /// Returns the message, which names the purpose of the memory.
    pub fn into_message(self) -> String {
        self.0
    }
}

impl From<NoRoom> for OutOfMemory {
    fn from(error: NoRoom) -> Self {
        no_room("tables", error.bytes)
    }
}

impl From<NoRoom> for KernelError {
    fn from(error: NoRoom) -> Self {
        OutOfMemory::from(error).into()
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

/// Returns a list of `count` copies of a value, where the count comes from the file.
pub(crate) fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>, OutOfMemory> {
    Ok(room::filled(value, count)?)
}

/// Returns an empty list with room for so many elements, or an error if the memory is not there.
pub fn room<T>(count: usize) -> Result<Vec<T>, KernelError> {
    Ok(room::with_room(count).map_err(|error| no_room("packed weights and tables", error.bytes))?)
}

/// Bytes that a method's kernels may still retain besides the memory the executor gives them: mostly packed weights.
#[derive(Clone, Copy)]
pub struct Retained<'r>(pub(crate) &'r Cell<u64>);

impl Retained<'_> {
    /// Takes so many bytes, which the kernel retains from now on: an error if the limits of the method, or its machine,
    /// have not as many. To be asked before they are allocated by something that cannot say no.
    pub fn reserve(&self, bytes: usize) -> Result<(), KernelError> {
        let before = self.0.get();
        self.charge(bytes)?;
        room::<u8>(bytes).inspect_err(|_| self.0.set(before))?;
        Ok(())
    }

    /// Takes so many bytes like [`Retained::reserve`], for something that says no itself where the machine has not as many.
    pub fn charge(&self, bytes: usize) -> Result<(), KernelError> {
        let left = self.0.get();
        let Some(rest) = left.checked_sub(bytes as u64) else {
            let message = format!("{bytes} bytes of packed weights and tables, the limits leave {left}");
            return Err(KernelError::new(ErrorCode::MemoryAllocationFailed, message));
        };
        self.0.set(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_had_beyond_the_limits() {
        let left = Cell::new(100);
        let retained = Retained(&left);
        retained.reserve(60).unwrap();
        assert!(retained.reserve(41).is_err());
        retained.reserve(40).unwrap();
        assert!(retained.reserve(1).is_err() && retained.reserve(0).is_ok() && left.get() == 0);
        let all = Cell::new(u64::MAX);
        assert!(Retained(&all).reserve(usize::MAX).is_err() && room::<u64>(usize::MAX / 4).is_err());
    }

    #[test]
    fn lists_that_are_too_long_are_refused() {
        assert!(grow(&mut Vec::<u64>::new(), usize::MAX / 8).is_err());
        assert!(filled(0u64, usize::MAX / 2).is_err());
        assert_eq!(filled(7u8, 3).unwrap(), [7, 7, 7]);
    }
}
