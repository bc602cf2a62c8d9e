//! ExecuTorch programs: `.pte` files, identifier `ET12`.

pub mod backends;
pub mod fast;
pub mod notation;
mod program;
mod tables;
pub mod verify;

pub use program::*;
pub use tables::*;
