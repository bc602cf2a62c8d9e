//! Programs bundled with recorded runs: `.bpte` files, identifier `BP08`.

mod tables;

pub use tables::*;
