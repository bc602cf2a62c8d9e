//! Bytes on the heap at a 64-byte boundary.
//!
//! Their number comes from files, so memory that is not there is an answer and never an abort. Zeros are the system's
//! own: a page that is never written is never touched.

use std::fmt;
use std::ops::Deref;

use bytemuck::{Pod, Zeroable};

/// Alignment that an allocator gives every block, so that it can ask the system for zeros.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Piece([u8; PIECE]);

const PIECE: usize = 16;
const ALIGN: usize = 64;
const PAGE: usize = 4096;

/// A fixed number of bytes, the first of which is 64-byte aligned: enough for every tensor alignment exporters use by
/// default and for every vector instruction.
#[derive(Default)]
pub struct AlignedBytes {
    /// The bytes, and what is before the first aligned one and behind the last.
    pieces: Vec<Piece>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// Returns `len` zeros; `None` if there is not enough memory.
    pub fn zeroed(len: usize) -> Option<Self> {
        Self::zeroed_at(len, ALIGN)
    }

    /// Returns `len` zeros that start at a page of 4096 bytes, so that a device can be given them; `None` if there is not
    /// enough memory.
    pub fn paged(len: usize) -> Option<Self> {
        Self::zeroed_at(len, PAGE)
    }

    fn zeroed_at(len: usize, align: usize) -> Option<Self> {
        if len == 0 {
            return Some(Self::default());
        }
        let room = len.checked_add(align)?.div_ceil(PIECE);
        let pieces: Vec<Piece> = bytemuck::try_zeroed_vec(room).ok()?;
        let at = pieces.as_ptr().addr();
        let start = at.checked_next_multiple_of(align)?.checked_sub(at)?;
        Some(AlignedBytes { pieces, start, len })
    }

    /// A copy of a slice; `None` if there is no memory for it.
    pub fn copy_of(bytes: &[u8]) -> Option<Self> {
        let mut copy = Self::zeroed(bytes.len())?;
        copy.as_mut_slice().copy_from_slice(bytes);
        Some(copy)
    }

    /// A copy of a slice that starts at a page; `None` if there is no memory for it.
    pub fn copy_to_pages(bytes: &[u8]) -> Option<Self> {
        let mut copy = Self::paged(bytes.len())?;
        copy.as_mut_slice().copy_from_slice(bytes);
        Some(copy)
    }

    /// The bytes, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut self.pieces);
        let (_, from) = all.split_at_mut_checked(self.start).unwrap_or_default();
        from.split_at_mut_checked(self.len).map_or(&mut [], |(bytes, _)| bytes)
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let all: &[u8] = bytemuck::cast_slice(&self.pieces);
        all.get(self.start..).and_then(|from| from.get(..self.len)).unwrap_or_default()
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_and_exact() {
        for len in [0, 1, 63, 64, 65, 1000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let copy = AlignedBytes::copy_of(&bytes).unwrap();
            assert_eq!(&*copy, &*bytes);
            assert!(copy.is_empty() || (copy.as_ptr() as usize).is_multiple_of(64));
            let paged = AlignedBytes::copy_to_pages(&bytes).unwrap();
            assert_eq!(&*paged, &*bytes);
            assert!(paged.is_empty() || (paged.as_ptr() as usize).is_multiple_of(4096));
        }
    }

    #[test]
    fn more_than_there_is_is_refused() {
        for len in [usize::MAX, usize::MAX - 64, isize::MAX as usize, isize::MAX as usize - 4096] {
            assert!(AlignedBytes::zeroed(len).is_none(), "{len}");
        }
    }
}
