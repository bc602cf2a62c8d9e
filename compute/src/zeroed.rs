//! Lists of aligned numbers that start as zeros.
//!
//! Memory is zeroed by the system, so that it is touched only where something is written, by the threads that write it.
//! Invariant: elements are aligned, and there are as many as were asked for.

use std::marker::PhantomData;

use crate::error::{Error, ErrorKind};

/// A list of zeros, or of what was written there. Elements are whole words of eight bytes.
pub(crate) struct Zeroed<T> {
    words: Vec<u64>,
    /// The first word of the first element.
    start: usize,
    count: usize,
    element: PhantomData<T>,
}

impl<T: bytemuck::Pod> Zeroed<T> {
    /// Words of an element.
    const WORDS: usize = size_of::<T>() / size_of::<u64>();

    /// Returns so many zeros, or an error if the memory is not there.
    pub fn new(count: usize) -> Result<Self, Error> {
        const { assert!(Self::WORDS > 0 && size_of::<T>().is_multiple_of(size_of::<u64>())) };
        let words = count.checked_mul(Self::WORDS).and_then(|words| words.checked_add(Self::WORDS - 1));
        let words = words.and_then(|words| bytemuck::allocation::try_zeroed_vec::<u64>(words).ok());
        let words = words.ok_or_else(|| {
            let message = format!("there is no memory for {count} x {} bytes of packed weights", size_of::<T>());
            Error::new(ErrorKind::Memory, message)
        })?;
        let start = words.as_ptr().align_offset(align_of::<T>());
        match start < Self::WORDS {
            true => Ok(Zeroed { words, start, count, element: PhantomData }),
            false => Err(Error::new(ErrorKind::Memory, "memory that cannot be aligned")),
        }
    }

    /// All elements.
    #[inline(always)]
    pub fn all(&self) -> &[T] {
        // An empty list may be nowhere.
        if self.count == 0 { &[] } else { bytemuck::cast_slice(&self.words[self.start..][..self.count * Self::WORDS]) }
    }

    /// All elements, to write.
    pub fn all_mut(&mut self) -> &mut [T] {
        if self.count == 0 {
            return &mut [];
        }
        bytemuck::cast_slice_mut(&mut self.words[self.start..][..self.count * Self::WORDS])
    }

    /// Number of bytes of all elements.
    pub fn byte_len(&self) -> usize {
        self.count * size_of::<T>()
    }
}

impl<T> Default for Zeroed<T> {
    fn default() -> Self {
        Zeroed { words: Vec::new(), start: 0, count: 0, element: PhantomData }
    }
}
