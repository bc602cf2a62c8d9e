//! The error of a computation that is refused.

use std::borrow::Cow;

use edgepack_format::room::with_room;

/// The reason for which a computation is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The fault as text, with both of the things that do not fit.
    pub message: Cow<'static, str>,
}

/// Kinds of errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Slices are shorter than their geometry says: a mistake of the caller.
    Geometry,
    /// More than what was prepared for.
    Unsupported,
    /// The memory is not there.
    Memory,
    /// Data that are not of the form they are said to be of, or numbers out of their range.
    Data,
}

impl Error {
    /// Returns an error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Error { kind, message: message.into() }
    }
}

/// Returns an error unless a slice has the elements its geometry says.
pub(crate) fn expect_elements(name: &str, have: usize, need: usize) -> Result<(), Error> {
    if have >= need {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Geometry, format!("{name} has {have} elements, its geometry says {need}")))
}

/// Returns an empty list with room for so many elements, or an error if the memory is not there.
pub(crate) fn room<T>(count: usize) -> Result<Vec<T>, Error> {
    with_room(count).map_err(|error| Error::new(ErrorKind::Memory, format!("{error} of tables")))
}
