//! planus: its own owned rows, written by its builder.

use planus::ReadAsRoot as _;

pub use crate::readers::planus::generated::program::Program;
use crate::readers::planus::generated::program::ProgramRef;

/// The rows of a file.
pub fn owned(bytes: &[u8]) -> Program {
    let root = ProgramRef::read_as_root(bytes).expect("a valid program");
    root.try_into().expect("a valid program")
}

/// The flatbuffer of rows.
pub fn write(program: &Program) -> Vec<u8> {
    planus::Builder::new().finish(program, Some(*b"ET12")).to_vec()
}
