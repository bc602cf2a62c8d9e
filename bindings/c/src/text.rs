//! Text that C reads: with its length, and with a zero byte behind it.

use std::ffi::c_char;

use crate::pointer::In;

/// Text in UTF-8. `data` is never null, and `data[len]` is a zero byte; names in files may have zero bytes in them, so
/// that `len` is what counts.
///
/// It belongs to the handle that it was asked of, and is valid until that handle is closed, or for as long as the function
/// says that gave it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackText {
    /// The bytes.
    pub data: In<c_char>,
    /// Number of bytes, without the zero byte.
    pub len: usize,
}

impl EdgepackText {
    /// No text.
    pub(crate) const EMPTY: EdgepackText = EdgepackText { data: In::to(c"".as_ptr()), len: 0 };
}

/// Text with a zero byte behind it.
#[derive(Clone, Debug)]
pub(crate) struct Terminated(Box<[u8]>);

impl Terminated {
    /// A copy of a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self::of_bytes(text.into().into_bytes())
    }

    /// Bytes that are text in all likelihood.
    pub fn of_bytes(mut bytes: Vec<u8>) -> Self {
        bytes.push(0);
        Terminated(bytes.into())
    }

    /// As C sees it; it has to live as long.
    pub fn text(&self) -> EdgepackText {
        EdgepackText { data: In::to(self.0.as_ptr().cast()), len: self.0.len().saturating_sub(1) }
    }

    /// The text without its zero byte.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split_last().map_or(&[], |(_, text)| text)
    }
}
