//! Data files: named data next to a program. `.ptd` files with identifier `FT01` in three generations, and FlatData.

mod data;
mod generation;
mod legacy;
mod missing;
mod tables;
pub mod verify;

pub use data::*;
pub use generation::*;
pub use legacy::*;
pub use missing::{MissingData, external_key};
pub use tables::*;
