//! The stages that a program goes through before composites are written out, a file or folder each, numbered in the order
//! in which they run.

#[path = "01_inline.rs"]
mod inline;

#[path = "02_statistics.rs"]
mod statistics;

#[path = "03_functionalise/mod.rs"]
mod functionalise;

pub(crate) use functionalise::functionalise;
pub(crate) use inline::inline;
pub(crate) use statistics::statistics;
