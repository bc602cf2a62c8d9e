//! Makes on-device model packages: rows go in, files come out.
//!
//! The crate has two floors. The lower one is here: [`sink`] turns [rows](edgepack_format::row) into flatbuffers,
//! [`envelope`] puts the root word, identifier and extended header in front, and [`raw`] writes whole files from rows
//! *as they are*, wrong ones too: that is what tests of verifiers, `build FILE.json` and mutators need. The upper
//! floor are the checked builders, one module per format family next to `raw`, named as in `edgepack-format` (`pte`,
//! `ptd`, `bundle`, `trace`, `darwinn`, `tflite`, `mlf`, `xnnpack`); they promise that what they finish verifies clean.
//!
//! Same rows, same bytes, always: vtables and strings are shared by content, nothing depends on addresses, hashes or
//! time. Contents of segments are references until the file is written, and then stream.
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

mod buffer;
mod build_error;
mod concurrent;
mod error;
mod finished;
mod layout;
mod pool;

pub mod bundle;
pub mod content;
pub mod darwinn;
pub mod envelope;
pub mod flat_layout;
pub mod mlf;
pub mod named_data;
pub mod plan;
pub mod preprocess;
pub mod ptd;
pub mod pte;
pub mod raw;
pub mod sink;
pub mod tflite;
pub mod trace;
pub mod write_file;
pub mod xnnpack;

pub use build_error::{BuildError, MAX_SEGMENT_ALIGNMENT};
pub use error::Error;
pub use finished::FinishedFile;
pub use named_data::NamedDataStore;
