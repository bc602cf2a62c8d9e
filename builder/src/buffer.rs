//! The growing flatbuffer: bytes are put in front of what is there, aligned for where they end up.
//!
//! A position is a distance from the *end* of the buffer, so it stays true while the buffer grows. Storage and padding
//! are planus's [`Builder`]; its `finish`, byte vectors and tables are not used (see `sink` and `envelope`). This is the
//! only file of the crate with `unsafe`.
#![allow(unsafe_code)]

use planus::Builder;

use crate::Error;
use crate::sink::MAX_ALIGNMENT;

/// The most bytes of one flatbuffer: a table points at its vtable with a signed 32-bit distance.
pub const MAX_LEN: usize = i32::MAX as usize;

/// A flatbuffer under construction.
pub struct Buffer {
    builder: Builder,
    /// The largest alignment asked for so far.
    alignment: usize,
}

impl Buffer {
    pub fn new() -> Self {
        Buffer { builder: Builder::new(), alignment: 4 }
    }

    /// The largest alignment asked for so far, at least 4.
    pub fn alignment(&self) -> usize {
        self.alignment
    }

    /// Everything written so far. Alignments hold relative to its start once the last write was aligned to
    /// [`Buffer::alignment`].
    pub fn as_slice(&self) -> &[u8] {
        self.builder.as_slice()
    }

    /// Puts `len` bytes in front, after zeros as needed to align the first of them, and returns its position.
    ///
    /// `content` is told the position. What it returns beyond `len` bytes is cut off, what is missing is zero.
    pub fn put<B: AsRef<[u8]>>(
        &mut self,
        len: usize,
        align: usize,
        content: impl FnOnce(u32) -> B,
    ) -> Result<u32, Error> {
        if !align.is_power_of_two() || align > MAX_ALIGNMENT {
            return Err(Error::Alignment(align));
        }
        // Padding stays below the largest alignment, so this bounds the length after the write. planus itself narrows
        // lengths to 32 bits without a check.
        let worst = (self.builder.len() as u64).saturating_add(len as u64).saturating_add(MAX_ALIGNMENT as u64);
        if worst > MAX_LEN as u64 {
            return Err(Error::TooLarge { bytes: worst, most: MAX_LEN as u64 });
        }
        self.alignment = self.alignment.max(align);
        let mut position = 0;
        // SAFETY: `write_with` requires that the closure initialise every byte of the slice. The slice is split in
        // two; each byte of `head` is written by the zip (`head` is no longer than `content`), each of `tail` by the
        // loop. If `content` unwinds, planus has not yet counted the bytes as written.
        unsafe {
            self.builder.write_with(len, align.wrapping_sub(1), |at, out| {
                position = at;
                let content = content(at);
                let content = content.as_ref();
                let (head, tail) = out.split_at_mut(content.len().min(out.len()));
                for (out, byte) in head.iter_mut().zip(content) {
                    out.write(*byte);
                }
                for out in tail {
                    out.write(0);
                }
            });
        }
        Ok(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_for_where_they_end_up() {
        let mut buffer = Buffer::new();
        buffer.put(3, 1, |_| b"xyz").unwrap();
        let wide = buffer.put(5, 64, |_| b"hello").unwrap();
        buffer.put(1, 1, |_| b"-").unwrap();
        let align = buffer.alignment();
        buffer.put(8, align, |_| [0; 8]).unwrap();
        let bytes = buffer.as_slice();
        let at = bytes.len() - wide as usize;
        assert_eq!(&bytes[at..at + 5], b"hello");
        assert_eq!(at % 64, 0);
    }

    #[test]
    fn short_content_is_filled_and_long_content_cut() {
        let mut buffer = Buffer::new();
        buffer.put(4, 4, |_| b"toolong").unwrap();
        buffer.put(4, 4, |_| b"a").unwrap();
        assert_eq!(buffer.as_slice(), b"a\0\0\0tool");
    }

    #[test]
    fn what_is_too_large_or_crooked_is_refused_before_anything_is_allocated() {
        let mut buffer = Buffer::new();
        for len in [MAX_LEN, u32::MAX as usize, usize::MAX] {
            assert!(matches!(buffer.put(len, 1, |_| b""), Err(Error::TooLarge { .. })), "{len}");
        }
        for align in [0, 3, 24, MAX_ALIGNMENT * 2] {
            assert_eq!(buffer.put(1, align, |_| b""), Err(Error::Alignment(align)));
        }
        assert!(buffer.as_slice().is_empty());
    }
}
