//! ExecuTorch programs: `.pte` files, identifier `ET12`.

pub mod backends;
pub mod fast;
pub mod metadata;
pub mod notation;
mod program;
pub mod releases;
mod tables;
pub mod verify;

pub use program::*;
pub use tables::*;
