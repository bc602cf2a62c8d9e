//! Files taken apart and put together again: rows and segments of any file of the ExecuTorch family, and of compiled Edge
//! TPU models, changed and written.
//!
//! [`Opened`] holds the head of a file; [`Package`] is what is in it, with rows borrowed from the head and segments as
//! references to where their bytes are. What is not changed is written as it was: legacy header forms, constants inside
//! the flatbuffer, older data files, alignments. A package writes the same bytes every time, and a file that
//! `edgepack-builder` wrote comes back byte for byte. With its [`Places`] any file does.
//!
//! ```
//! use edgepack::edit::{self, Opened, Root};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/models/mlp_portable.pte");
//! let file = Opened::open(path)?;
//! let mut package = file.package()?;
//! if let Root::Program(program) = &mut package.root {
//!     program.execution_plan.as_mut().unwrap().to_mut()?[0].name = Some("renamed".into());
//! }
//! let bytes = package.to_bytes()?;
//!
//! // The same through JSON.
//! let json = edit::dump(&package)?;
//! assert_eq!(edit::build(&json)?.to_bytes()?, bytes);
//! # Ok(())
//! # }
//! ```
//!
//! Packages of the Model Library Format are no flatbuffers: their parts are `builder::mlf::LibraryParts`, which
//! [`dump_library`], [`build_library`] and [`diff_libraries`] take.
//!
//! [`split`], [`join`], [`merge`] and [`patch()`] move and replace tensors, [`named`] lists them; [`change_metadata`] sets what a program says of itself; [`diff`] says what differs between two packages.

mod base64;
mod compiled;
mod content;
mod diff;
mod dump;
mod error;
mod file_places;
mod flat;
mod level_places;
mod library;
mod listing;
mod merge;
mod model_rows;
mod names;
mod open;
mod origin;
mod package;
mod places;
mod program;
mod reading;
mod root;
mod write;

#[cfg(feature = "safetensors")]
mod convert;
mod join;
mod patch;
mod payload;
mod settings;
mod sharing;
mod split;

pub use compiled::{CompiledModel, CompiledPackage};
pub use content::Content;
#[cfg(feature = "safetensors")]
pub use convert::{from_safetensors, write_safetensors};
pub use diff::{Comparison, DiffOptions, Difference, DifferenceKind, compare, diff};
pub(crate) use dump::plain_name;
pub use dump::{Blobs, Document, build, build_document, build_from, build_with, dump, dump_described, dump_with};
#[cfg(feature = "safetensors")]
pub use edgepack_format::tensor::safetensors::{dtype_of, scalar_type_of};
pub use error::Error;
pub use join::join;
pub use library::{
    build_library, build_library_from, diff_libraries, dump_library, dump_library_of, is_library_dump, library_parts,
    write_library,
};
pub use listing::{Named, named};
pub use merge::merge;
pub use model_rows::{ModelRows, OperatorOptions};
pub use names::Glob;
pub use open::Opened;
pub use origin::{Likeness, Origin};
pub use package::{Layout, Package};
pub use patch::{NewTensor, patch, patch_in_place};
pub use places::Places;
pub use reading::DocumentText;
pub use root::Root;
pub use settings::change_metadata;
pub use sharing::sharers;
pub use split::{Split, SplitOptions, split};
pub use write::Ready;
