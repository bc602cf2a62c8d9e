//! How `inspect` shows each summary to people.

pub mod bundle;
pub mod data;
pub mod program;
pub mod trace;
