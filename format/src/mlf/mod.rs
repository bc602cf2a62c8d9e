//! Model Library Format: what TVM exported for microcontrollers, one file per piece of compiler output.
//!
//! The archive itself is opened elsewhere; here are its [`Member`]s. [`package::verify`] is all of it: metadata of
//! versions 1 to 7 ([`Metadata`]), the graph ([`Graph`]) with the memory it needs ([`StoragePlan`]), the parameters
//! ([`Params`]), and whether they fit together and to the code.

mod c_interface;
mod c_metadata;
mod c_source;
mod data_type;
mod dataflow;
mod files;
pub mod graph;
pub mod interface;
pub mod json;
mod layout;
mod metadata;
mod object;
pub mod package;
pub mod params;
pub mod place;
mod read_graph;
mod read_json;
mod read_metadata;
pub mod relay;
mod report;
mod silent;
mod storage;
mod structure;

pub use c_interface::{CInterface, Pool};
pub use c_source::{Definition, definitions, has_function_macros};
pub use data_type::{Class, DataType, DataTypeError};
pub use files::{Member, ModuleFiles};
pub use graph::{COPY, Call, Entry, Graph, NOP, Node, Reference};
pub use layout::{ArchiveEntry, ArchiveLayout};
pub use metadata::{
    BufferInfo, MainMemory, Memory, Metadata, Module, NEWEST, NamedBuffer, OLDEST, OperatorMemory, Others, Sid, Style,
    Targets,
};
pub use object::{ElfMachine, ObjectCode};
pub use package::Package;
pub use params::{Param, Params};
pub use place::Role;
pub use read_graph::verify as verify_graph;
pub use storage::{ALIGNMENT, Storage, StoragePlan};
