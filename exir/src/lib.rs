//! Export IR: programs that `torch.export` saved are read, checked against the dialects, and lowered to ExecuTorch
//! programs, without Python.
//!
//! - [`archive`] opens and writes `.pt2` files; [`json`] is the document inside, word for word.
//! - [`graph`] is the program as a typed graph that can be walked, edited and printed.
//! - [`operators`] knows the operators: schemas, and the operator of a program that replaces each.
//! - [`decompose`] writes composite operators out in core ones.
//! - [`verify`] holds programs against the dialects, [`dtype`] element types against tables.
//! - [`pattern`] finds small graphs in a program and replaces them.
//! - [`lower`] turns programs into files that runtimes load, [`backends`] make the payloads of delegates.
//! - [`language`] finds the attention of language models with its caches.
//!
//! ```no_run
//! # fn main() -> Result<(), edgepack_exir::Error> {
//! let archive = edgepack_exir::archive::Archive::open("model.pt2")?;
//! let program = archive.program()?;
//! println!("{program}");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod archive;
pub mod backends;
pub mod decompose;
pub mod dtype;
mod error;
pub mod graph;
pub mod json;
pub mod language;
pub mod lower;
pub mod operators;
mod passes;
pub mod pattern;
pub mod pickle;
pub mod verify;

pub use error::Error;

/// The examples of the page, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/exir.md")]
struct Page;

/// The example of the page about XNNPACK, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../docs/lowering-xnnpack.md")]
struct XnnpackPage;
