//! Compiles the C code of Model Library Format packages with the system's compiler, loads it and calls it.
//!
//! **This runs code from the package, with all rights of the process.** Nothing here happens unless
//! [`Options::allow_native_code`] was called, which is `unsafe`; verification says nothing about what compiled code does. See `SECURITY.md`.
//!
//! [`NativeLibrary::compile`] makes a shared library of a module; [`NativeLibrary`] is a function table for the graph
//! executor, [`AotModule`] calls modules of the ahead-of-time executor and single operators, and a [`Runner`] is either.
//! The runtime that generated code and compiled objects expect is a few small files of our own in C, compiled with it.
//!
//! With a [`Child`] the code runs in a process of its own, so that a crash of it is an error. That process is not a
//! sandbox.
#![deny(unsafe_code)]

mod abi;
mod aot;
mod cache;
#[cfg(unix)]
pub mod child;
mod compile;
mod error;
mod in_process;
mod library;
mod runner;
mod shim;
mod spec;

pub use abi::TensorArg;
pub use aot::AotModule;
#[cfg(unix)]
pub use child::{Child, ChildModule};
pub use compile::Options;
pub use error::Error;
pub use in_process::InProcess;
pub use library::NativeLibrary;
pub use runner::Runner;
pub use spec::IoSpec;
