//! The interface as C uses it: called from Rust with good and bad arguments, and from programs in C and C++.

mod bad_arguments;
mod callbacks;
mod compiled;
mod fixtures;
mod header;
mod hostile;
mod running;
mod support;
