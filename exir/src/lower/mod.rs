//! From exported programs to a file that runtimes load.
//!
//! Composite operators are [written out](crate::decompose) first. Then a program goes through [`edge`](to_edge): views become copies, scalars become tensors, element types agree, layouts
//! are said. Then it is emitted through the builder: each call becomes that of the operator's out variant, sub-graphs
//! become jumps, state is written back, memory is planned. Weights are not read before the file is written.
//!
//! Invariant: what is lowered computes what the exported program computes; what cannot be is refused by name.

mod affine;
mod call;
mod casts;
mod control;
mod dim_order;
mod edge;
mod emit;
mod fold;
mod manager;
mod partition;
mod scalars;
mod spec;
mod symbols;

pub use affine::is_written_out;
pub use manager::{Pass, ProgramManager};
pub use partition::{ByOperator, LoweredModule, Part, Partitioner};

use edgepack_builder::plan::Strategy;
use edgepack_builder::pte::BuiltProgram;
use edgepack_format::limits::Limits;

use crate::error::Error;
use crate::graph::ExportedProgram;
use crate::operators::Operators;

/// How programs are lowered.
#[derive(Clone)]
pub struct Options {
    /// The operators there are.
    pub operators: Operators,
    /// How memory is planned.
    pub strategy: Strategy,
    /// The data file that constants go to, by tag; without one they stay in the program.
    pub external_weights: Option<String>,
    /// Whether to keep to the instructions of the reference exporter, instead of leaving out what can be computed now.
    pub like_reference: bool,
    /// Which buffers that the program changes begin with the values they were exported with.
    pub initial_state: InitialState,
    /// How much lowering may write ([`crate::decompose::decompose`]): composites may stand for any number of calls.
    pub limits: Limits,
    /// Operators outside the core set that are wanted, by full name: verifiers say nothing about them.
    pub preserved: Vec<String>,
}

/// Which state begins with its exported values; other state begins with whatever memory holds, zeros usually.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InitialState {
    /// Where any of them is not zero.
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
            external_weights: None,
            like_reference: false,
            initial_state: InitialState::default(),
            limits: Limits::DEFAULT,
            preserved: Vec::new(),
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
