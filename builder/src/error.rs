//! Errors while a file is written.

use edgepack_format::wire::ReadError;

/// Reason rows could not be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A row that is borrowed from another file could not be read from it.
    #[error("a row to be written cannot be read from the file it comes from: {0}")]
    Read(#[from] ReadError),
    /// A flatbuffer would grow beyond what its signed 32-bit offsets reach.
    #[error("the flatbuffer would have {bytes} bytes or more, at most {most} are possible")]
    TooLarge {
        /// Bytes it would have at least.
        bytes: u64,
        /// The most possible.
        most: u64,
    },
    /// The inline part or the vtable of a table does not fit 16-bit offsets.
    #[error("a table of {fields} fields up to slot {slot} does not fit its 16-bit offsets")]
    WideTable {
        /// Fields that are present.
        fields: usize,
        /// The highest slot.
        slot: u16,
    },
    /// An alignment inside a flatbuffer is not a power of two or above [`MAX_ALIGNMENT`](crate::sink::MAX_ALIGNMENT), or
    /// that of segments is zero.
    #[error("{0} is not a possible alignment")]
    Alignment(usize),
    /// The bytes of a vector are not a whole number of its elements.
    #[error("{bytes} bytes are no whole number of elements of {size}")]
    Elements {
        /// Bytes there are.
        bytes: usize,
        /// Bytes of one element.
        size: usize,
    },
    /// Offsets in the file overflow 64 bits, or the file the address space.
    #[error("the file's size overflows")]
    Overflow,
}
