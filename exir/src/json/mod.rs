//! The program as an archive's `models/NAME.json` spells it: one Rust type per record, read and written by serde.
//!
//! Unknown keys are skipped, as newer exporters only add some; an unknown tag of a union is an error, since what it means
//! cannot be guessed. Nothing here checks whether names are defined: that is [`graph`](crate::graph)'s work.
//!
//! Invariant: what is read and written again reads the same.

mod argument;
mod list;
mod program;
mod real;
mod weights;

pub use argument::{
    Argument, ComplexValue, CustomObjArgument, Device, GraphArgument, Name, OptionalTensor, SymBoolArgument,
    SymFloatArgument, SymIntArgument,
};
pub(crate) use list::is_memory;
pub use program::{
    ConstantValue, ExportedProgram, Expression, Graph, GraphModule, GraphSignature, Hint, InputSpec, ModuleCallEntry,
    ModuleCallSignature, NamedArgument, NamedTupleDef, Node, OutputSpec, RangeConstraint, SchemaVersion, SymBool,
    SymFloat, SymInt, TensorMeta,
};
pub use real::Real;
pub use weights::{PayloadConfig, PayloadMeta};
