//! Compiles the C code of Model Library Format packages with the system's compiler, loads it and calls it.
//!
//! **This runs code from the package, with all rights of the process.** Nothing here happens unless
//! [`Options::allow_native_code`] was called, which is `unsafe`; verification says nothing about what compiled code does. See `SECURITY.md`.
//!
//! [`NativeLibrary::compile`] makes a shared library of a module; [`NativeLibrary`] is a function table for the graph
//! executor, [`AotModule`] calls modules of the ahead-of-time executor and single operators. The runtime that generated
//! code expects is a few small headers and one C file of our own, compiled with it.
#![deny(unsafe_code)]

mod abi;
mod aot;
mod cache;
mod compile;
mod error;
mod interface;
mod library;
mod shim;

pub use abi::TensorArg;
pub use aot::{AotModule, IoSpec};
pub use compile::Options;
pub use error::Error;
pub use interface::{CInterface, Pool};
pub use library::NativeLibrary;
