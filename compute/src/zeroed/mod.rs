//! Memory that starts as zeros: bytes, and lists of numbers.
//!
//! Memory is zeroed by the system, so that it is touched only where something is written, by the threads that write it.
//! What is long begins at a large page and is in large pages as far as it fills them, where the system has them: there are
//! fewer faults when it is filled, and fewer misses when it is read. Invariant: the first byte is aligned as was asked, and
//! there are as many as were asked for.

mod row;

use std::marker::PhantomData;

use row::Place;

use crate::error::{Error, ErrorKind};

/// Bytes of a large page.
const LARGE: usize = 2 << 20;

/// Aligned bytes that are zeros until something is written.
///
/// ```
/// use edgepack_compute::zeroed::Zeros;
///
/// let mut zeros = Zeros::new(3 << 20, 64).unwrap();
/// assert_eq!((zeros.bytes().len(), zeros.bytes().as_ptr().align_offset(64)), (3 << 20, 0));
/// zeros.bytes_mut()[7] = 1;
/// assert!(zeros.bytes().iter().map(|byte| u64::from(*byte)).sum::<u64>() == 1);
/// ```
pub struct Zeros {
    memory: Memory,
    /// Bytes in front of the first.
    start: usize,
    len: usize,
}

/// Whole words.
enum Memory {
    Heap(Vec<u64>),
    #[cfg(all(target_os = "linux", not(miri)))]
    Pages(memmap2::MmapMut),
}

impl Zeros {
    /// Returns so many zeros from a multiple of `align` on; `None` if there is no memory for them.
    ///
    /// # Panics
    ///
    /// If `align` is not a power of two.
    pub fn new(len: usize, align: usize) -> Option<Self> {
        assert!(align.is_power_of_two(), "an alignment of {align}");
        // Without memory for pages, the heap may still have some.
        #[cfg(all(target_os = "linux", not(miri)))]
        if align <= LARGE
            && let Some(pages) = Self::pages(len)
        {
            return Some(pages);
        }
        let words = len.checked_add(align)?.div_ceil(size_of::<u64>());
        let words: Vec<u64> = bytemuck::allocation::try_zeroed_vec(words).ok()?;
        let start = words.as_ptr().cast::<u8>().align_offset(align);
        (start <= align).then_some(Zeros { memory: Memory::Heap(words), start, len })
    }

    /// Returns so many zeros from the start of a large page on, if they fill one.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn pages(len: usize) -> Option<Self> {
        if len < LARGE {
            return None;
        }
        let pages = memmap2::MmapMut::map_anon(len.checked_add(LARGE)?).ok()?;
        let start = Some(pages.as_ptr().align_offset(LARGE)).filter(|start| *start <= LARGE)?;
        // What they do not fill stays in small pages, of which no more are taken than there are. A system without large
        // pages refuses: then all are small.
        let _ = pages.advise_range(memmap2::Advice::HugePage, start, len - len % LARGE);
        Some(Zeros { memory: Memory::Pages(pages), start, len })
    }

    /// Asks the system for pages that will soon be written, each of which it gives at the latest when that is done.
    #[cfg_attr(
        not(all(target_os = "linux", not(miri))),
        expect(unused_variables, reason = "a heap has no pages to ask for")
    )]
    fn expect(&self, at: usize, len: usize) {
        #[cfg(all(target_os = "linux", not(miri)))]
        if let Memory::Pages(pages) = &self.memory {
            let _ = pages.advise_range(memmap2::Advice::PopulateWrite, self.start + at, len);
        }
    }

    /// The bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        let all = match &self.memory {
            Memory::Heap(words) => bytemuck::cast_slice(words),
            #[cfg(all(target_os = "linux", not(miri)))]
            Memory::Pages(pages) => &pages[..],
        };
        &all[self.start..][..self.len]
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let all = match &mut self.memory {
            Memory::Heap(words) => bytemuck::cast_slice_mut(words),
            #[cfg(all(target_os = "linux", not(miri)))]
            Memory::Pages(pages) => &mut pages[..],
        };
        &mut all[self.start..][..self.len]
    }
}

/// A list of zeros, or of what was written there.
pub(crate) struct Zeroed<T> {
    /// `None` of a list without elements.
    place: Option<Place>,
    element: PhantomData<T>,
}

impl<T: bytemuck::Pod> Zeroed<T> {
    /// Returns so many zeros, or an error if the memory is not there.
    pub fn new(count: usize) -> Result<Self, Error> {
        Self::place(count, false)
    }

    /// Returns so many elements that will all be written: some may be what an older list left.
    pub fn overwritten(count: usize) -> Result<Self, Error> {
        Self::place(count, true)
    }

    fn place(count: usize, is_overwritten: bool) -> Result<Self, Error> {
        if count == 0 {
            return Ok(Self::default());
        }
        let len = count.checked_mul(size_of::<T>());
        let place = len.and_then(|len| Place::new(len, align_of::<T>(), is_overwritten));
        let place = place.ok_or_else(|| {
            let message = format!("there is no memory for {count} x {} bytes of packed weights", size_of::<T>());
            Error::new(ErrorKind::Memory, message)
        })?;
        Ok(Zeroed { place: Some(place), element: PhantomData })
    }

    /// All elements.
    #[inline(always)]
    pub fn all(&self) -> &[T] {
        self.place.as_ref().map_or(&[], |place| bytemuck::cast_slice(place.bytes()))
    }

    /// All elements, to write.
    pub fn all_mut(&mut self) -> &mut [T] {
        self.place.as_mut().map_or(&mut [], |place| bytemuck::cast_slice_mut(place.bytes_mut()))
    }

    /// Number of bytes of all elements.
    pub fn byte_len(&self) -> usize {
        self.place.as_ref().map_or(0, |place| place.bytes().len())
    }
}

impl<T> Default for Zeroed<T> {
    fn default() -> Self {
        Zeroed { place: None, element: PhantomData }
    }
}
