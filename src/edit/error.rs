//! Errors of taking a file apart, changing it and writing it again.

use std::io;

use edgepack_format::FileKind;
use edgepack_format::finding::Findings;
use edgepack_format::room::NoRoom;
use edgepack_format::tensor::LayoutError;
use edgepack_format::wire::ReadError;

/// Reason for which an edit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing failed.
    #[error("{what}: {error}")]
    Io {
        /// Name of the file or part.
        what: String,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file's structure is broken, so there are no rows to edit.
    #[error("the file is not valid:\n{0}")]
    Invalid(Findings),
    /// The result would not be valid.
    #[error("the result is not valid, so nothing is written:\n{0}")]
    Unsound(Findings),
    /// There is no memory for what the file asks for.
    #[error(transparent)]
    Memory(#[from] NoRoom),
    /// A row cannot be read.
    #[error("unreadable: {0}")]
    Read(#[from] ReadError),
    /// The rows cannot be written.
    #[error(transparent)]
    Write(#[from] edgepack_builder::Error),
    /// The JSON is not a dump.
    #[error("this is not a dump: {0}")]
    Document(String),
    /// The bytes are not text, as JSON is.
    #[error("this is not text")]
    NotText,
    /// Sizes, dim order and element type do not describe a tensor.
    #[error("{place}: {error}")]
    Layout {
        /// Key, name or path of the tensor.
        place: String,
        /// The error of the layout.
        error: LayoutError,
    },
    /// A file of another kind than the edit is for.
    #[error("{wanted} is wanted here, not this {found}")]
    Kind {
        /// Kind that was found.
        found: FileKind,
        /// Kind that is wanted.
        wanted: &'static str,
    },
    /// There is no such thing.
    #[error("there is no {what} {name:?}")]
    NotFound {
        /// Kind of the thing that was looked for.
        what: &'static str,
        /// Name of the thing that was looked for.
        name: String,
    },
    /// A tensor that does not fit the one it replaces.
    #[error("{name} wants {want}, got {have}")]
    Mismatch {
        /// Name of the tensor.
        name: String,
        /// Description of the tensor in the file.
        want: String,
        /// Description of the tensor that was given.
        have: String,
    },
    /// Something that cannot be; the message names both sides.
    #[error("{place}: {message}")]
    Refused {
        /// Place in the file.
        place: String,
        /// Description of the error, with its reason.
        message: String,
    },
}

impl Error {
    pub(crate) fn refused(place: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Refused { place: place.into(), message: message.into() }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Error::Io { what, error }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io { what: "writing the file".to_owned(), error }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::Document(error.to_string())
    }
}

impl From<edgepack_loader::Error> for Error {
    fn from(error: edgepack_loader::Error) -> Self {
        match error {
            edgepack_loader::Error::Io { what, error } => Error::Io { what, error },
            edgepack_loader::Error::Invalid(findings) => Error::Invalid(findings),
            edgepack_loader::Error::Memory { bytes, .. } => Error::Memory(NoRoom { bytes }),
            other => Error::refused("the file", other.to_string()),
        }
    }
}
