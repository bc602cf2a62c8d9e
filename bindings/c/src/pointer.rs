//! Pointers of C. This is where they become references, and nowhere else.
//!
//! Invariant: a pointer is looked at only after it was found to be aligned and not null, and for no more elements than fit
//! the address space. That there are so many of them is the caller's promise, made by [`In::new`] and [`Out::new`], or by
//! calling a function of the header, which states it.
#![allow(unsafe_code, reason = "pointers of C become references here; each block says by whose promise")]

use std::ffi::{CStr, c_char, c_void};

use crate::failure::Failure;

/// Types of which every bit pattern is a value.
///
/// # Safety
/// As the first line says, and the type has a C layout.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {
        $(
            // SAFETY: a number.
            unsafe impl Plain for $type {}
        )*
    };
}

plain!(u8, i32, u32, i64, u64, usize, f64);

macro_rules! plain_rows {
    ($($type:path),* $(,)?) => {
        $(
            // SAFETY: a row of C: numbers, pointers and optional functions. Of the functions it is the caller's promise that
            // they are functions of the type that the header gives them.
            unsafe impl Plain for $type {}
        )*
    };
}

plain_rows!(
    crate::value::EdgepackValue,
    crate::file::EdgepackFile,
    crate::kernel::EdgepackKernel,
    crate::backend::EdgepackBackend,
    In<c_char>,
);

/// A pointer that is read from.
#[repr(transparent)]
pub struct In<T>(*const T);

/// A pointer that is written to.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T> In<T> {
    /// A pointer of the caller's.
    ///
    /// # Safety
    /// It is null, or leads to as many elements as the function that it is given to says, which nobody changes until that
    /// function returns, or for as long as the function says.
    pub const unsafe fn new(pointer: *const T) -> Self {
        In(pointer)
    }

    /// A pointer into memory of ours that is handed out, or null. What it leads to is read by C only.
    pub(crate) const fn to(pointer: *const T) -> Self {
        In(pointer)
    }

    /// The null pointer.
    pub const NULL: In<T> = In(std::ptr::null());

    /// Returns whether it is the null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the address.
    pub fn as_ptr(self) -> *const T {
        self.0
    }
}

impl<T: Plain> In<T> {
    /// As many elements. The null pointer leads to none.
    pub(crate) fn slice(&self, count: usize, what: &str) -> Result<&[T], Failure> {
        check(self.0.cast(), count, size_of::<T>(), align_of::<T>(), what)?;
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: not null, aligned, and not longer than memory can be, as was checked; that there are so many elements, which
        // nobody changes, is the promise of `new`. Every bit pattern is a value. The slice lives as long as this pointer is
        // borrowed, which is no longer than the function runs.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }

    /// One element.
    pub(crate) fn one(&self, what: &str) -> Result<&T, Failure> {
        self.slice(1, what)?.first().ok_or_else(|| Failure::argument(format!("{what} is not there")))
    }
}

impl In<c_void> {
    /// As many bytes. The null pointer leads to none.
    pub(crate) fn bytes(&self, count: usize, what: &str) -> Result<&[u8], Failure> {
        check(self.0, count, 1, 1, what)?;
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: as in `slice`; bytes have every bit pattern and any alignment.
        Ok(unsafe { std::slice::from_raw_parts(self.0.cast(), count) })
    }
}

impl In<c_char> {
    /// Text that ends with a zero byte.
    pub(crate) fn text(&self, what: &str) -> Result<&str, Failure> {
        match self.c_str(what)?.to_str() {
            Ok(text) => Ok(text),
            Err(error) => Err(Failure::argument(format!("{what} is not UTF-8: {error}"))),
        }
    }

    /// As many bytes of text. The null pointer leads to none.
    pub(crate) fn text_of(&self, len: usize, what: &str) -> Result<&str, Failure> {
        check(self.0.cast(), len, 1, 1, what)?;
        if len == 0 {
            return Ok("");
        }
        // SAFETY: as in `slice`; bytes have every bit pattern and any alignment.
        let bytes = unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), len) };
        std::str::from_utf8(bytes).map_err(|error| Failure::argument(format!("{what} is not UTF-8: {error}")))
    }

    /// Bytes of a name of a file, which end with a zero byte.
    pub(crate) fn c_str(&self, what: &str) -> Result<&CStr, Failure> {
        check(self.0.cast(), 1, 1, 1, what)?;
        // SAFETY: not null; that it ends with a zero byte, and that nobody changes it, is the promise of `new`.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }
}

impl<T> Out<T> {
    /// A pointer of the caller's.
    ///
    /// # Safety
    /// It is null, or leads to memory for as many elements as the function that it is given to says, which nobody else
    /// touches until that function returns.
    pub const unsafe fn new(pointer: *mut T) -> Self {
        Out(pointer)
    }

    /// A pointer into memory of ours that C may write to.
    pub(crate) const fn to(pointer: *mut T) -> Self {
        Out(pointer)
    }

    /// The null pointer.
    pub const NULL: Out<T> = Out(std::ptr::null_mut());

    /// Returns whether it is the null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the address.
    pub fn as_ptr(self) -> *mut T {
        self.0
    }

    /// An error unless so many elements can be written.
    pub(crate) fn check(self, count: usize, what: &str) -> Result<(), Failure> {
        check(self.0.cast(), count, size_of::<T>(), align_of::<T>(), what)
    }

    /// Writes one element.
    pub(crate) fn write(self, value: T, what: &str) -> Result<(), Failure>
    where
        T: Copy,
    {
        self.write_at(0, 1, value, what)
    }

    /// Writes one of `count` elements.
    pub(crate) fn write_at(self, index: usize, count: usize, value: T, what: &str) -> Result<(), Failure>
    where
        T: Copy,
    {
        self.check(count, what)?;
        if index >= count {
            return Err(Failure::argument(format!("{what} has room for {count} elements")));
        }
        // SAFETY: not null and aligned, as was checked; that there is memory for `count` elements is the promise of `new`, and
        // `index` is below that. Nothing is dropped: the type is `Copy`.
        unsafe { self.0.add(index).write(value) };
        Ok(())
    }

    /// Writes one element if there is a place for it.
    pub(crate) fn write_if_wanted(self, value: T, what: &str) -> Result<(), Failure>
    where
        T: Copy,
    {
        if self.is_null() { Ok(()) } else { self.write(value, what) }
    }
}

impl Out<c_void> {
    /// Room for so many bytes, zeroed before it is lent out.
    pub(crate) fn bytes(&mut self, count: usize, what: &str) -> Result<&mut [u8], Failure> {
        check(self.0, count, 1, 1, what)?;
        if count == 0 {
            return Ok(&mut []);
        }
        // SAFETY: not null and no longer than memory can be, as was checked; that there is memory for so many bytes, which
        // nobody else touches, is the promise of `new`. They are written before they are part of a slice. The slice lives no
        // longer than the function runs, and the function asks once for each pointer.
        unsafe {
            self.0.write_bytes(0, count);
            Ok(std::slice::from_raw_parts_mut(self.0.cast(), count))
        }
    }
}

/// Checks an address before anything is read there. No elements are anywhere.
fn check(pointer: *const c_void, count: usize, size: usize, align: usize, what: &str) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is null")));
    }
    if !pointer.addr().is_multiple_of(align) {
        return Err(Failure::argument(format!("{what} is not aligned to {align} bytes")));
    }
    match count.checked_mul(size).filter(|&bytes| bytes <= isize::MAX as usize) {
        Some(bytes) if pointer.addr().checked_add(bytes).is_some() => Ok(()),
        _ => Err(Failure::argument(format!("{what}: {count} elements are more than memory can have"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_looked_at_only_where_they_can_be_right() {
        let numbers = [1i64, 2, 3];
        let whole = In::to(numbers.as_ptr());
        assert_eq!(whole.slice(3, "numbers").unwrap(), numbers);
        assert!(whole.slice(usize::MAX, "numbers").is_err() && whole.slice(usize::MAX / 8, "numbers").is_err());
        assert!(In::<i64>::NULL.slice(0, "numbers").unwrap().is_empty());
        assert_eq!(In::<i64>::NULL.one("numbers").unwrap_err().message, "numbers is null");
        let odd = In::<i64>::to(numbers.as_ptr().cast::<u8>().wrapping_add(1).cast());
        assert_eq!(odd.slice(1, "numbers").unwrap_err().message, "numbers is not aligned to 8 bytes");
        let end = In::<c_void>::to(std::ptr::without_provenance(usize::MAX - 3));
        assert!(end.bytes(8, "bytes").is_err());
    }

    #[test]
    fn texts_are_utf8() {
        assert_eq!(In::to(c"a\xff".as_ptr()).text("a name").unwrap_err().message.find("is not UTF-8"), Some(7));
        assert_eq!(In::to(c"abc".as_ptr()).text("a name").unwrap(), "abc");
        assert!(In::<c_char>::NULL.text("a name").is_err());
    }

    #[test]
    fn results_are_written_in_their_room() {
        let mut room = [7u64; 2];
        let out = Out::to(room.as_mut_ptr());
        out.write_at(1, 2, 9, "results").unwrap();
        assert!(out.write_at(2, 2, 9, "results").is_err());
        assert_eq!(room, [7, 9]);
        Out::<u64>::NULL.write_if_wanted(1, "results").unwrap();
        assert!(Out::<u64>::NULL.write(1, "results").is_err());
    }
}
