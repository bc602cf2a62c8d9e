//! Errors of opening and reading.

use edgepack_format::finding::{ErrorCode, Findings};
use edgepack_format::room::NoRoom;
use edgepack_format::tensor::LayoutError;
use edgepack_format::wire::{ReadError, ReadErrorKind};

/// Reason for which a file could not be opened or a part of it could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source failed.
    #[error("cannot read {what}: {error}")]
    Io {
        /// Name of the file or part.
        what: String,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// A range is not inside the source.
    #[error("{what}: bytes {offset}..{offset}+{len} of a source of {source_len}")]
    Range {
        /// Name of the part that was to be read.
        what: String,
        /// Start of the range, in bytes.
        offset: u64,
        /// Length of the range, in bytes.
        len: u64,
        /// Length of the source, in bytes.
        source_len: u64,
    },
    /// The file breaks rules.
    #[error("the file is not valid:\n{0}")]
    Invalid(Findings),
    /// A place that verification accepted could not be read: the bytes are others than those verified.
    #[error("unreadable: {0}")]
    Read(#[from] ReadError),
    /// There is no such thing in the file.
    #[error("there is no {what} {name}")]
    NotFound {
        /// Kind of the thing that was looked for.
        what: &'static str,
        /// Its name or number.
        name: String,
    },
    /// A key is in two data maps.
    #[error("the key {key} is in two data maps")]
    DuplicateKey {
        /// Key that both maps have.
        key: String,
    },
    /// More memory than the limits allow.
    #[error("{what} needs {bytes} bytes, the limits allow {limit}")]
    Limit {
        /// Purpose of the memory.
        what: String,
        /// Bytes needed.
        bytes: u64,
        /// Bytes that the limits allow.
        limit: u64,
    },
    /// Memory that is not there.
    #[error("{what}: there is no memory for {bytes} bytes")]
    Memory {
        /// Purpose of the memory.
        what: String,
        /// Bytes needed.
        bytes: u64,
    },
    /// A buffer is longer or shorter than what it is to be filled with.
    #[error("{key} has {have} bytes, the buffer {want}")]
    Length {
        /// Key that was asked for.
        key: String,
        /// Bytes of the data.
        have: u64,
        /// Bytes of the buffer.
        want: u64,
    },
    /// A tensor's layout makes no sense.
    #[error("{what}: {error}")]
    Layout {
        /// Name of the tensor, or its place in the program.
        what: String,
        /// The error of the layout.
        error: LayoutError,
    },
}

impl From<NoRoom> for Error {
    fn from(error: NoRoom) -> Self {
        Error::Memory { what: "tables".to_owned(), bytes: error.bytes }
    }
}

impl Error {
    /// The ExecuTorch error this corresponds to.
    pub fn code(&self) -> ErrorCode {
        match self {
            Error::Io { .. } => ErrorCode::AccessFailed,
            Error::Range { .. } | Error::DuplicateKey { .. } | Error::Length { .. } => ErrorCode::InvalidArgument,
            Error::Invalid(findings) => findings.code().unwrap_or(ErrorCode::InvalidProgram),
            Error::Read(ReadError { kind: ReadErrorKind::Memory, .. }) => ErrorCode::MemoryAllocationFailed,
            Error::Read(_) | Error::Layout { .. } => ErrorCode::InvalidProgram,
            Error::NotFound { .. } => ErrorCode::NotFound,
            Error::Limit { .. } | Error::Memory { .. } => ErrorCode::MemoryAllocationFailed,
        }
    }
}
