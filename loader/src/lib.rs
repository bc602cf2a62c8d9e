//! Opens ExecuTorch programs and data files: sources of bytes, verified programs, segments on demand, named data.
//!
//! The flatbuffer of a file is always an aligned copy on the heap, so that what was verified cannot change. Segments
//! are read when they are asked for and released when the last handle to them is dropped; bytes that can be borrowed
//! from a source (memory, a mapped file) are borrowed instead.
//!
//! Every kind of file is opened in one way: its kind is detected, its head located and read ([`FileHead`]). Families sit
//! next to each other, in a folder each.
//!
//! A [`Registry`] is the counterpart for Edge TPU packages: it registers them as the driver does. An [`mlf::Library`] is a
//! package of the Model Library Format.
#![deny(unsafe_code)]
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

mod aligned;
mod bytes;
mod darwinn;
mod error;
mod live;
mod machine;
mod memory_source;
pub mod mlf;
mod named_data;
mod open;
mod ptd;
mod pte;
mod read;
mod source;

pub use aligned::AlignedBytes;
pub use bytes::Bytes;
#[cfg(feature = "signatures")]
pub use darwinn::PublicKey;
pub use darwinn::{
    OperatorTensor, RegisterError, RegisteredModel, RegisteredOperator, Registration, Registry, Residency, Submission,
};
pub use error::Error;
pub use machine::machine_limits;
pub use memory_source::MemorySource;
pub use named_data::{MergedData, NamedDataMap};
pub use open::FileHead;
pub use ptd::{DataFile, HeldData};
pub use pte::{
    METADATA_PREFIX, Metadata, MethodMeta, OpenOptions, Program, ProgramData, ProgramMethod, TensorSignature, ValueMeta,
};
#[cfg(feature = "mmap")]
pub use source::MappedFile;
pub use source::{FileSource, Source, StaticSource};

/// The result of opening and reading.
pub type Result<T> = std::result::Result<T, Error>;
