//! Texts that say something in one form only: of another form they say nothing.

use crate::room::{self, NoRoom};

/// Cause for which a text says nothing.
pub(super) enum Silent {
    /// It has another form.
    Form,
    /// There is no memory for what it says.
    Memory(NoRoom),
}

impl From<NoRoom> for Silent {
    fn from(error: NoRoom) -> Self {
        Silent::Memory(error)
    }
}

/// Returns what a text says; `None` if it has another form.
pub(super) fn said<T>(read: Result<T, Silent>) -> room::Result<Option<T>> {
    match read {
        Ok(said) => Ok(Some(said)),
        Err(Silent::Form) => Ok(None),
        Err(Silent::Memory(error)) => Err(error),
    }
}
