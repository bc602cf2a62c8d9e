//! From exported programs to a file that runtimes load.
//!
//! Composite operators are [written out](crate::decompose) first. Then a program goes through [`edge`](to_edge): views become copies, scalars become tensors, element types agree, layouts
//! are said. Then it is emitted through the builder: each call becomes that of the operator's out variant, sub-graphs
//! become jumps, state is written back, memory is planned. Weights are not read before the file is written.
//!
//! Invariant: what is lowered computes what the exported program computes; what cannot be is refused by name.

mod affine;
mod by_name;
mod cache;
mod call;
mod casts;
mod control;
mod dim_order;
mod edge;
mod emit;
mod fold;
mod follow;
mod manager;
mod origin;
mod partition;
mod scalars;
mod spec;
mod state;
mod symbols;

pub use affine::is_written_out;
pub use by_name::ByName;
pub use manager::{Lowered, Pass, ProgramManager};
pub use origin::{MethodOrigins, Origin};
pub use partition::{ByOperator, LoweredModule, Part, Partitioner};
pub(crate) use spec::bounds;
pub use state::{State, begin_with};

use std::sync::Arc;

use edgepack_builder::plan::Strategy;
use edgepack_builder::pte::{Arg, BuiltProgram};
use edgepack_format::limits::Limits;

use crate::dtype::Table;
use crate::error::Error;
use crate::graph::ExportedProgram;
use crate::operators::Operators;

/// Options of lowering.
#[derive(Clone)]
pub struct Options {
    /// The operators there are.
    pub operators: Operators,
    /// Strategy of memory planning.
    pub strategy: Strategy,
    /// The data file that each weight goes to, by tag; without one it stays in the program. Asked by the name of the
    /// weight; for one that is stored rearranged by its new name first.
    pub external_weights: ByName<String>,
    /// Methods that take nothing and give these values, by name: what runners ask a model for, such as `get_max_seq_len`.
    pub constant_methods: Vec<(String, Vec<Arg>)>,
    /// True if instructions get the stack traces of their nodes.
    pub stack_traces: bool,
    /// True if inputs have planned memory; otherwise the caller provides it.
    pub plan_inputs: bool,
    /// True if outputs have planned memory; otherwise the caller provides it.
    pub plan_outputs: bool,
    /// Alignments of the parts of the file.
    pub alignments: Alignments,
    /// Index of the planned memory of a tensor, counted from 1, by the name of its value. An index for an input or
    /// output also plans one that would otherwise be left to the caller.
    pub pools: ByName<u32>,
    /// Combinations of element types: programs of the Edge dialect are checked against this table before they are
    /// emitted.
    pub edge_table: Option<Arc<Table>>,
    /// True to write the instructions of the reference exporter, instead of leaving out those that can be computed now.
    pub like_reference: bool,
    /// Selects the buffers that the program changes and that begin with the values they were exported with.
    pub initial_state: InitialState,
    /// Limits of what lowering may write ([`crate::decompose::decompose`]): a composite may expand to any number of
    /// calls.
    pub limits: Limits,
    /// Initial values of buffers that the program changes, instead of their exported values.
    pub state: State,
}

/// Alignments of the parts of a file; one that is not given is that of the reference exporter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alignments {
    /// Segments: any number.
    pub segment: Option<u64>,
    /// Constant tensors: a power of two.
    pub tensor: Option<u64>,
    /// Payloads of delegates inside the flatbuffer: a power of two.
    pub delegate: Option<u64>,
    /// Planned memory: a power of two from 16 on.
    pub memory: Option<u64>,
}

/// Selects the state that begins with its exported values; other state begins with whatever memory holds, zeros
/// usually.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InitialState {
    /// State in which any value is not zero.
    #[default]
    NonZero,
    /// All of it.
    All,
    /// None.
    Nothing,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            operators: Operators::new(),
            strategy: Strategy::default(),
            external_weights: ByName::default(),
            constant_methods: Vec::new(),
            stack_traces: false,
            plan_inputs: true,
            plan_outputs: true,
            alignments: Alignments::default(),
            pools: ByName::default(),
            edge_table: None,
            like_reference: false,
            initial_state: InitialState::default(),
            state: State::default(),
            limits: Limits::DEFAULT,
        }
    }
}

/// Lowers programs into one file, each under the name of its method.
pub fn lower<'d>(programs: Vec<(String, ExportedProgram<'d>)>, options: &Options) -> Result<BuiltProgram<'d>, Error> {
    let mut manager = ProgramManager::new(options.clone());
    for (name, program) in programs {
        manager.add(&name, program)?;
    }
    manager.finish()
}

/// Turns a program into the Edge dialect.
pub fn to_edge<'d>(mut program: ExportedProgram<'d>, options: &Options) -> Result<ExportedProgram<'d>, Error> {
    if program.trains() {
        let message = "it is a training graph, with gradients or a loss among its outputs; only inference is lowered";
        return Err(Error::unsupported("program", message));
    }
    program.graph.name_arguments(&options.operators);
    affine::write_out(&mut program.graph, options)?;
    crate::decompose::decompose(&mut program, &options.operators, &options.limits)?;
    edge::convert(&mut program, options)?;
    Ok(program)
}
