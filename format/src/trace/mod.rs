//! Execution traces: `.etdp` files, identifier `ED00`, size-prefixed.

mod json;
mod tables;

pub use tables::*;
