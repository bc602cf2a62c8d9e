//! How `inspect` shows each summary to people.

pub mod bundle;
pub mod compiled;
pub mod data;
pub mod library;
pub mod program;
pub mod trace;
