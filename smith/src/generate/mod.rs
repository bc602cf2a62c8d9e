//! Valid files out of any input.

mod built;
mod data;
mod llm_shape_hints;
mod program;
mod row;
mod shape_hints;

pub use built::{BuiltProgram, built_program};
pub use data::DataFile;
pub use program::{DelegateCall, Delegates, Generator, ProgramFile};
pub use row::{Row, Values, row};
