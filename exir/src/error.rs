//! Reasons an archive or program is not read, checked or lowered.

use std::io;

use edgepack_builder::BuildError;
use edgepack_format::finding::Rule;
use edgepack_format::room::NoRoom;
use edgepack_format::rules::exir as rules;

/// Error, with its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The container is not an archive that can be read.
    #[error("archive: {0}")]
    Archive(String),
    /// There is not enough memory for a table that the file asks for.
    #[error(transparent)]
    Memory(#[from] NoRoom),
    /// A record is missing.
    #[error("the archive has no record `{0}`")]
    NoRecord(String),
    /// A record is not what its place asks for.
    #[error("{record}: {message}")]
    Record {
        /// Path of the record in the archive.
        record: String,
        /// Description of the problem.
        message: String,
    },
    /// A record is a pickle of an object that only Python knows; nothing is made of those.
    #[error(
        "{record}: {what} is an object that only Python knows, in a pickle; tensors are read from pickles, nothing else"
    )]
    Pickle {
        /// Path of the record in the archive.
        record: String,
        /// Name of the object in the program.
        what: String,
    },
    /// The program does not hang together.
    #[error("{place}: {message}")]
    Program {
        /// Place in the program.
        place: String,
        /// Description of the problem.
        message: String,
    },
    /// A tensor is described with a size, stride or offset that no tensor has.
    #[error("{place}: {message}")]
    Size {
        /// Value or record.
        place: String,
        /// Name of the number (size, stride or offset), and its value.
        message: String,
    },
    /// A formula over symbols makes no sense.
    #[error("`{text}`: {message}")]
    Expression {
        /// Formula as the document writes it, shortened if it is long.
        text: String,
        /// Description of the problem.
        message: String,
    },
    /// The program uses what cannot be lowered.
    #[error("{place}: {message}")]
    Unsupported {
        /// Node or value.
        place: String,
        /// Description of the construct, and a supported alternative.
        message: String,
    },
    /// Operators that would have to be decomposed first, all of them.
    #[error("these operators have no form that a program can hold: {}", .0.join(", "))]
    Operators(Vec<String>),
    /// A size without an upper bound.
    #[error("{place}: the size {expression} has no upper bound; give its dimension a `max` when exporting")]
    Unbounded {
        /// Value.
        place: String,
        /// Formula of the size, or a number that no file can hold.
        expression: String,
    },
    /// The program could not be written.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl Error {
    pub(crate) fn program(place: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Program { place: place.into(), message: message.into() }
    }

    pub(crate) fn unsupported(place: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Unsupported { place: place.into(), message: message.into() }
    }

    /// Assigns the error to a record. A lack of memory is not assigned to any.
    pub(crate) fn of_record(self, record: impl Into<String>) -> Self {
        match self {
            Error::Memory(error) => Error::Memory(error),
            other => Error::record(record, other),
        }
    }

    /// Makes the error of a document that could not be read.
    pub(crate) fn json(record: impl Into<String>, error: serde_json::Error, bytes: usize) -> Self {
        match crate::json::is_memory(&error) {
            true => Error::Memory(NoRoom { bytes: bytes as u64 }),
            false => Error::record(record, error),
        }
    }

    pub(crate) fn record(record: impl Into<String>, message: impl ToString) -> Self {
        Error::Record { record: record.into(), message: message.to_string() }
    }

    /// Prefixes the place of the error with the place around it.
    pub(crate) fn within(self, place: String) -> Self {
        match self {
            Error::Size { place: inner, message } => Error::Size { place: format!("{place}: {inner}"), message },
            Error::Memory(error) => Error::Memory(error),
            other => Error::Program { place, message: other.to_string() },
        }
    }

    /// The rule of the catalogue that an archive breaks if it cannot be read for this reason.
    pub(crate) fn rule(&self) -> &'static Rule {
        match self {
            Error::Size { .. } => &rules::SIZES,
            _ => &rules::ARCHIVE,
        }
    }

    pub(crate) fn zip(error: rawzip::Error) -> Self {
        // The directory is the last thing in an archive: without it the end is missing, however the file got so.
        match error.kind() {
            rawzip::ErrorKind::MissingEndOfCentralDirectory => {
                Error::Archive("cut short: the directory at the end of the archive is missing".to_owned())
            }
            _ => Error::Archive(error.to_string()),
        }
    }
}
