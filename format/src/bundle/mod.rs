//! Programs bundled with recorded runs: `.bpte` files, identifier `BP08`.

mod file;
mod tables;
mod value;
pub mod verify;

pub use file::*;
pub use tables::*;
