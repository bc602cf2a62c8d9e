//! A method between file and plan: values with their storage, and instructions that can still be changed.
//!
//! Rewrites work on this form. Everything in it has been checked: ids are in range, kinds fit, regions lie inside
//! their memory. What a rewrite leaves is checked again when the plan is frozen.

use std::sync::Arc;

use edgepack_loader::Bytes;

use crate::kernel::Operator;
use crate::operator::OperatorInfo;
use crate::options::Arena;
use crate::state::{Span, State, Value, ValueId};
use crate::storage::Block;

/// A method that can still be changed.
pub struct Graph<'r> {
    /// All values.
    pub state: State,
    /// Operators that instructions call by index.
    pub operators: Vec<GraphOperator<'r>>,
    /// Chains, run one after another.
    pub chains: Vec<Vec<Instruction>>,
    /// Argument ids of all instructions.
    pub args: Vec<ValueId>,
    /// Inputs of the method.
    pub inputs: Vec<ValueId>,
    /// Outputs of the method.
    pub outputs: Vec<ValueId>,
    /// By value id: an instruction writes it, or it is an input.
    pub variable: Vec<bool>,
    /// What keeps the regions of the state alive.
    pub memory: Memory,
}

/// An operator the program names, resolved.
#[derive(Clone)]
pub struct GraphOperator<'r> {
    /// `namespace::op.overload`.
    pub name: Arc<str>,
    /// Its kernel.
    pub kernel: &'r dyn Operator,
    /// What its schema says about arguments.
    pub info: OperatorInfo,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// What it does.
    pub kind: InstructionKind,
    /// Where it stands in the file: what errors and observers report.
    pub origin: u32,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug)]
pub enum InstructionKind {
    /// Calls an operator.
    Kernel {
        /// Index into [`Graph::operators`].
        operator: u32,
        /// Its arguments, in [`Graph::args`].
        args: Span,
    },
    /// Calls a delegate.
    Delegate {
        /// Index into the plan's delegates.
        delegate: u32,
        /// Its arguments, in [`Graph::args`].
        args: Span,
    },
    /// Copies one value into another of the same kind.
    Move {
        /// Source.
        from: ValueId,
        /// Destination.
        to: ValueId,
    },
    /// Goes on elsewhere if a value is false.
    JumpFalse {
        /// A bool, or a BOOL tensor (false if any element is).
        condition: ValueId,
        /// Index of an instruction of the same chain, or their number.
        target: u32,
    },
    /// Gives up a tensor's data until something writes it.
    Free {
        /// The tensor.
        value: ValueId,
    },
    /// Does nothing: what a rewrite leaves where it removed an instruction, so that jump targets stay.
    Nop,
}

impl Graph<'_> {
    /// Whether any instruction writes this value.
    pub fn is_written(&self, value: ValueId) -> bool {
        self.chains.iter().flatten().any(|instruction| match instruction.kind {
            InstructionKind::Kernel { operator, args } => {
                let outs = self.operators[operator as usize].info.outs();
                let ids = self.args[args.range()].iter().enumerate();
                ids.filter(|(arg, _)| outs >> arg & 1 == 1).any(|(_, &id)| id == value || self.in_list(id, value))
            }
            // What a delegate writes is known only to it.
            InstructionKind::Delegate { args, .. } => self.args[args.range()].contains(&value),
            InstructionKind::Move { to, .. } => to == value,
            _ => false,
        })
    }

    fn in_list(&self, list: ValueId, value: ValueId) -> bool {
        match self.state.values[list as usize] {
            Value::TensorList(span) => self.state.ids[span.range()].contains(&value),
            _ => false,
        }
    }
}

/// The owners of all memory that regions point into.
#[derive(Default)]
pub struct Memory {
    /// Planned memories, by memory id - 1.
    pub arenas: Vec<Arena>,
    /// Storage of values that the program gives none, and realigned constants.
    pub private: Vec<Block>,
    /// Constants of the program and of data files.
    pub constants: Vec<Bytes>,
}

/// A change of the graph that keeps what the caller can observe.
///
/// Rewrites are values, supplied by the operator library and run in order when a method is loaded. Conclusions such as
/// "constant" and "read by nobody else" are drawn over storage ranges and within a basic block, never over value ids
/// alone.
pub trait Rewrite: Send + Sync {
    /// A name for traces.
    fn name(&self) -> &'static str;

    /// Changes the graph. Returns how many instructions it changed.
    fn apply(&self, graph: &mut Graph<'_>) -> usize;
}
