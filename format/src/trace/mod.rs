//! Execution traces: `.etdp` files, identifier `ED00`, size-prefixed.

mod file;
mod json;
mod tables;
mod value;
pub mod verify;

pub use file::*;
pub use tables::*;
