//! What is in a file, in one small structure per kind: the body of `inspect --json`, and what `inspect` prints.

pub mod bundle;
pub mod data;
pub mod library;
pub mod model;
pub mod package;
pub mod program;
pub mod trace;
