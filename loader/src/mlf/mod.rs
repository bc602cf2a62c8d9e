//! Model Library Format packages: the archive taken apart in memory, and the package in it.

mod archive;
mod gzip;
mod library;

pub use archive::{Archive, Unpacked};
pub use gzip::inflate;
pub use library::{Library, LibraryModule, Linked, Verdict, verify};
