//! The `.pt2` archive: a ZIP of stored records under one folder.
//!
//! [`Archive::parse`] looks at bytes in memory, [`Archive::open`] at a file of which it reads the directory and the JSON
//! records only. Either way tensors stay where they are until somebody writes them out. Records that are pickles are
//! never read: unpickling can run any code.
//!
//! Invariant: every [`Record`] lies inside the archive, and no two have the same name.

mod container;
mod tensors;
mod write;

pub use container::{Archive, MAX_RECORDS, Record};
pub(crate) use tensors::contiguous_strides;
pub use tensors::{Storage, Weight, Weights};
pub use write::ArchiveWriter;
