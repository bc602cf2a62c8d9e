//! Opens ExecuTorch programs and data files: sources of bytes, verified programs, segments on demand, named data.
//!
//! The flatbuffer of a file is always an aligned copy on the heap, so that what was verified cannot change. Segments
//! are read when they are asked for and released when the last handle to them is dropped; a source that can lend its
//! bytes (memory, a mapped file) lends them instead.
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
mod data_file;
mod error;
mod held_data;
mod live;
mod machine;
mod meta;
mod metadata;
pub mod mlf;
mod named_data;
mod program;
mod source;

pub use aligned::AlignedBytes;
pub use bytes::Bytes;
#[cfg(feature = "signatures")]
pub use darwinn::PublicKey;
pub use darwinn::{RegisterError, Registration, Registry, Residency, Submission};
pub use data_file::DataFile;
pub use error::Error;
pub use held_data::HeldData;
pub use machine::machine_limits;
pub use meta::{MethodMeta, TensorMeta, ValueMeta};
pub use metadata::{METADATA_PREFIX, Metadata};
pub use named_data::{MergedData, NamedDataMap, ProgramData};
pub use program::{OpenOptions, Program, ProgramMethod};
#[cfg(feature = "mmap")]
pub use source::MappedFile;
pub use source::{FileSource, MemorySource, Source, StaticSource};

/// The result of opening and reading.
pub type Result<T> = std::result::Result<T, Error>;
