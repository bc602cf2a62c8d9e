//! Rows of files that may be broken: one that cannot be read is left out, and the rest is still shown. What is broken is
//! for the findings to say.

use edgepack_format::row::{Rows, Table};

/// The rows of a list, each `None` where one cannot be read.
pub fn rows<'a, T: Table<'a> + Clone>(rows: &Option<Rows<'a, T>>) -> Vec<Option<T>> {
    rows.iter().flat_map(|rows| rows.iter().map(Result::ok).collect::<Vec<_>>()).collect()
}

/// The rows of a list that can be read.
pub fn sound_rows<'a, T: Table<'a> + Clone>(rows: &Option<Rows<'a, T>>) -> Vec<T> {
    rows.iter().flat_map(|rows| rows.iter().flatten().collect::<Vec<_>>()).collect()
}
