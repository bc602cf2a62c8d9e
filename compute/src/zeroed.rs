//! Lists of aligned numbers that start as zeros.
//!
//! Memory is zeroed by the system, so that it is touched only where something is written, by the threads that write it.
//! Long lists are in large pages where the system has them: there are fewer faults when they are filled, and fewer misses
//! when they are read. Invariant: elements are aligned, and there are as many as were asked for.

use std::marker::PhantomData;

use crate::error::{Error, ErrorKind};

/// A list of zeros, or of what was written there. Elements are whole words of eight bytes.
pub(crate) struct Zeroed<T> {
    memory: Memory,
    /// The first word of the first element.
    start: usize,
    count: usize,
    element: PhantomData<T>,
}

/// Words of memory.
enum Memory {
    Heap(Vec<u64>),
    #[cfg(all(target_os = "linux", not(miri)))]
    Pages(memmap2::MmapMut),
}

impl Memory {
    /// Returns so many zeros, if they are there.
    fn zeroed(words: usize) -> Option<Memory> {
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            /// Twice the size of a large page: one of them fits, wherever the list starts.
            const LONG: usize = 4 << 20;
            let bytes = words.checked_mul(size_of::<u64>())?;
            // Without memory for pages, the heap may still have some.
            if bytes >= LONG
                && let Ok(pages) = memmap2::MmapMut::map_anon(bytes)
            {
                // A system without large pages refuses: then they are small.
                let _ = pages.advise(memmap2::Advice::HugePage);
                return Some(Memory::Pages(pages));
            }
        }
        bytemuck::allocation::try_zeroed_vec(words).ok().map(Memory::Heap)
    }

    #[inline(always)]
    fn words(&self) -> &[u64] {
        match self {
            Memory::Heap(words) => words,
            #[cfg(all(target_os = "linux", not(miri)))]
            Memory::Pages(pages) => bytemuck::cast_slice(pages),
        }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        match self {
            Memory::Heap(words) => words,
            #[cfg(all(target_os = "linux", not(miri)))]
            Memory::Pages(pages) => bytemuck::cast_slice_mut(pages),
        }
    }
}

impl<T: bytemuck::Pod> Zeroed<T> {
    /// Words of an element.
    const WORDS: usize = size_of::<T>() / size_of::<u64>();

    /// Returns so many zeros, or an error if the memory is not there.
    pub fn new(count: usize) -> Result<Self, Error> {
        const { assert!(Self::WORDS > 0 && size_of::<T>().is_multiple_of(size_of::<u64>())) };
        let words = count.checked_mul(Self::WORDS).and_then(|words| words.checked_add(Self::WORDS - 1));
        let memory = words.and_then(Memory::zeroed).ok_or_else(|| {
            let message = format!("there is no memory for {count} x {} bytes of packed weights", size_of::<T>());
            Error::new(ErrorKind::Memory, message)
        })?;
        let start = memory.words().as_ptr().align_offset(align_of::<T>());
        match start < Self::WORDS {
            true => Ok(Zeroed { memory, start, count, element: PhantomData }),
            false => Err(Error::new(ErrorKind::Memory, "memory that cannot be aligned")),
        }
    }

    /// All elements.
    #[inline(always)]
    pub fn all(&self) -> &[T] {
        // An empty list may be nowhere.
        if self.count == 0 {
            &[]
        } else {
            bytemuck::cast_slice(&self.memory.words()[self.start..][..self.count * Self::WORDS])
        }
    }

    /// All elements, to write.
    pub fn all_mut(&mut self) -> &mut [T] {
        if self.count == 0 {
            return &mut [];
        }
        bytemuck::cast_slice_mut(&mut self.memory.words_mut()[self.start..][..self.count * Self::WORDS])
    }

    /// Number of bytes of all elements.
    pub fn byte_len(&self) -> usize {
        self.count * size_of::<T>()
    }
}

impl<T> Default for Zeroed<T> {
    fn default() -> Self {
        Zeroed { memory: Memory::Heap(Vec::new()), start: 0, count: 0, element: PhantomData }
    }
}
