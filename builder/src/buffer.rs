//! The growing flatbuffer: bytes are put in front of what is there, aligned for where they end up.
//!
//! A position is a distance from the *end* of the buffer, so it stays true while the buffer grows. Everything in front
//! of what was written is zero, so padding is a matter of stepping over it.

use crate::Error;

/// The largest alignment that can be asked for: 64 KiB, the largest page of common systems.
pub const MAX_ALIGNMENT: usize = 1 << 16;

/// The most bytes of one flatbuffer: a table points at its vtable with a signed 32-bit distance.
pub const MAX_LEN: usize = i32::MAX as usize;

/// Bytes of the first allocation.
const FIRST_CAPACITY: usize = 1024;

/// A flatbuffer under construction.
pub struct Buffer {
    /// Zeros up to `head`, from there on what was written.
    storage: Vec<u8>,
    head: usize,
    /// The largest alignment asked for so far, less one.
    mask: usize,
    /// For all alignments to hold, what is still to be put in front must be so many bytes, or any multiple of the
    /// largest alignment more.
    owed: usize,
}

impl Buffer {
    pub fn new() -> Self {
        Buffer { storage: Vec::new(), head: 0, mask: 0, owed: 0 }
    }

    /// The largest alignment asked for so far, at least 4.
    pub fn alignment(&self) -> usize {
        self.mask.saturating_add(1).max(4)
    }

    /// Everything written so far. Alignments hold relative to its start once the last write was aligned to
    /// [`Buffer::alignment`].
    pub fn into_vec(mut self) -> Vec<u8> {
        self.storage.drain(..self.head);
        self.storage.shrink_to_fit();
        self.storage
    }

    /// Puts `len` zeros in front, after padding as needed to align the first of them, and returns their position and
    /// the bytes themselves, to be filled.
    #[inline]
    pub fn put(&mut self, len: usize, align: usize) -> Result<(u32, &mut [u8]), Error> {
        if !align.is_power_of_two() || align > MAX_ALIGNMENT {
            return Err(Error::Alignment(align));
        }
        // Padding stays below the largest alignment, so this bounds the length after the write.
        let written = self.storage.len().saturating_sub(self.head);
        let worst = (written as u64).saturating_add(len as u64).saturating_add(MAX_ALIGNMENT as u64);
        if worst > MAX_LEN as u64 {
            return Err(Error::TooLarge { bytes: worst, most: MAX_LEN as u64 });
        }
        let mask = align.wrapping_sub(1);
        let owed = self.owed.wrapping_sub(len) & self.mask;
        let padding = owed & mask;
        let more = len.saturating_add(padding);
        if more > self.head {
            self.grow(more);
        }
        self.owed = owed.saturating_sub(padding);
        self.mask |= mask;
        let end = self.head.saturating_sub(padding);
        self.head = end.saturating_sub(len);
        // Fits: the length is below 2^31.
        let position = self.storage.len().saturating_sub(self.head) as u32;
        Ok((position, self.storage.get_mut(self.head..end).unwrap_or_default()))
    }

    /// Makes room for `more` bytes in front. The caller made sure that they and what is there are at most [`MAX_LEN`].
    #[cold]
    fn grow(&mut self, more: usize) {
        let written = self.storage.get(self.head..).unwrap_or_default();
        let needed = written.len().saturating_add(more);
        let capacity = self.storage.len().saturating_mul(2).clamp(FIRST_CAPACITY, MAX_LEN).max(needed);
        let mut storage = vec![0; capacity];
        let head = capacity.saturating_sub(written.len());
        storage.get_mut(head..).unwrap_or_default().copy_from_slice(written);
        self.storage = storage;
        self.head = head;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(buffer: &mut Buffer, align: usize, bytes: &[u8]) -> usize {
        let (position, out) = buffer.put(bytes.len(), align).unwrap();
        out.copy_from_slice(bytes);
        position as usize
    }

    #[test]
    fn bytes_are_aligned_for_where_they_end_up() {
        let mut buffer = Buffer::new();
        put(&mut buffer, 1, b"xyz");
        let wide = put(&mut buffer, 64, b"hello");
        put(&mut buffer, 1, b"-");
        let align = buffer.alignment();
        put(&mut buffer, align, &[0; 8]);
        let bytes = buffer.into_vec();
        let at = bytes.len() - wide;
        assert_eq!(&bytes[at..at + 5], b"hello");
        assert_eq!(at % 64, 0);
    }

    #[test]
    fn every_alignment_holds_and_what_is_between_is_zero() {
        let mut buffer = Buffer::new();
        let mut written = Vec::new();
        // Lengths and alignments in an order that has no period worth speaking of.
        for step in 0..2000u32 {
            let mixed = step.wrapping_mul(2_654_435_761) >> 16;
            let (len, align) = (mixed as usize % 97, 1 << (mixed / 97 % 8));
            let bytes = vec![1 + step as u8 % 255; len];
            written.push((put(&mut buffer, align, &bytes), align, bytes));
        }
        let align = buffer.alignment();
        put(&mut buffer, align, &[]);
        let mut left = buffer.into_vec();
        let len = left.len();
        for (position, align, bytes) in written {
            let at = len - position;
            assert_eq!(at % align, 0);
            assert_eq!(left[at..at + bytes.len()], bytes);
            left[at..at + bytes.len()].fill(0);
        }
        assert!(left.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_is_not_filled_is_zero() {
        let mut buffer = Buffer::new();
        put(&mut buffer, 4, b"tail");
        buffer.put(4, 4).unwrap().1[0] = b'a';
        assert_eq!(buffer.into_vec(), b"a\0\0\0tail");
    }

    #[test]
    fn what_is_too_large_or_crooked_is_refused_before_anything_is_allocated() {
        let mut buffer = Buffer::new();
        for len in [MAX_LEN, u32::MAX as usize, usize::MAX] {
            assert!(matches!(buffer.put(len, 1), Err(Error::TooLarge { .. })), "{len}");
        }
        for align in [0, 3, 24, MAX_ALIGNMENT * 2] {
            assert_eq!(buffer.put(1, align), Err(Error::Alignment(align)));
        }
        assert_eq!(buffer.into_vec().capacity(), 0);
    }
}
