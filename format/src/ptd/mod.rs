//! Data files: named data beside a program. `.ptd` files with identifier `FT01` in three generations, and FlatData.

mod legacy;
mod tables;

pub use legacy::*;
pub use tables::*;
