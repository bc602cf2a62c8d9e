//! Archives of exported programs: ZIPs of stored records.
//!
//! `torch.export.save` writes one [layout](Layout); `exir.serde` writes another one, and an ETRecord holds several
//! programs of that kind. [`Archive::parse`] reads bytes in memory; [`Archive::open`] reads a file, of which it loads
//! the directory, the JSON records and the pickles only. In both cases tensors are not copied until they are written
//! out. Pickles are [interpreted as data](crate::pickle): no name in them is looked up or called.
//!
//! Invariant: every [`Record`] is inside the archive, and no two have the same name.

mod container;
mod gather;
mod older;
mod saved;
mod serde_write;
mod tensors;
mod write;
mod zip;

pub use container::{Archive, Layout};
pub(crate) use older::quoted;
pub(crate) use serde_write::original;
pub(crate) use tensors::contiguous_strides;
pub use tensors::{Storage, Subclass, Weight, Weights};
pub use write::{ArchiveWriter, write_records};
pub use zip::{MAX_RECORDS, Record, records};
