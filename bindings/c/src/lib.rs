//! The C interface: opens, verifies, loads and runs on-device model packages for programs in C, C++, and whatever calls C.
//!
//! `include/edgepack.h` is made of this crate, and says of each function whose the memory is and which threads may call it.
//! Objects are numbers (`handles.rs`), pointers become references in one file (`pointer.rs`), panics end in one other
//! (`entry.rs`). Nothing is thread-local or global that a caller sees: errors are objects.
// Names that a linker sees are stated by an attribute that may be wrong; those of this crate begin with `edgepack_`.
#![allow(unsafe_code, reason = "exported names; code that is unsafe is in `pointer`, `borrowed` and `call`")]

pub mod arguments;
pub mod backend;
pub mod borrowed;
pub mod call;
pub mod data;
mod entry;
pub mod error;
mod failure;
pub mod file;
pub mod findings;
mod handles;
pub mod init;
pub mod kernel;
pub mod limits;
pub mod method;
pub mod options;
pub mod pointer;
pub mod program;
pub mod report;
pub mod signature;
pub mod text;
pub mod value;
pub mod version;
