//! A method between file and plan: values with their storage, and instructions that can still be changed.
//!
//! Rewrites work on this form. Everything in it has been checked: ids are in range, kinds fit, regions lie inside
//! their memory. What a rewrite leaves is checked again when the plan is frozen.

use std::sync::Arc;

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;
use edgepack_loader::Bytes;

use crate::account::{Account, OutOfMemory, filled};
use crate::kernel::{KernelError, Operator, Prepare};
use crate::operator::OperatorInfo;
use crate::options::Arena;
use crate::state::{Dynamism, Span, State, Value, ValueId};
use crate::storage::Block;
use crate::tensor::TensorRef;

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
    /// What the method was charged for memory.
    pub(crate) account: Account,
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

impl<'r> Graph<'r> {
    /// Adds a value that nothing writes.
    pub fn push_value(&mut self, value: Value) -> ValueId {
        self.state.values.push(value);
        self.variable.push(false);
        (self.state.values.len() - 1) as ValueId
    }

    /// Adds text.
    pub fn push_text(&mut self, text: &str) -> ValueId {
        let span = Span { start: self.state.text.len() as u32, len: text.len() as u32 };
        self.state.text.push_str(text);
        self.push_value(Value::Str(span))
    }

    /// The text of a value that is text.
    pub fn text(&self, id: ValueId) -> Option<&str> {
        match self.state.values[id as usize] {
            Value::Str(span) => self.state.text.get(span.range()),
            _ => None,
        }
    }

    /// Adds a contiguous constant. `None` if its bytes are not as many as its sizes say, or there is no memory for it.
    pub fn push_constant(&mut self, dtype: ScalarType, sizes: &[usize], bytes: &[u8]) -> Option<ValueId> {
        let layout = TensorLayout::contiguous(dtype, sizes).ok().filter(|layout| layout.byte_len() == bytes.len())?;
        let mut block = self.account.block("constants", bytes.len()).ok()?;
        block.bytes_mut().copy_from_slice(bytes);
        let region = block.region(0, bytes.len())?.frozen();
        self.memory.private.push(block);
        let tensor = self.state.push_tensor(dtype, layout.sizes(), layout.dim_order(), Dynamism::Static, region, true);
        Some(self.push_value(Value::Tensor(tensor)))
    }

    /// Adds an operator that instructions can call.
    pub fn push_operator(&mut self, kernel: &'r dyn Operator) -> Result<u32, KernelError> {
        let info = OperatorInfo::parse(kernel)?;
        self.operators.push(GraphOperator { name: kernel.name().into(), kernel, info });
        Ok((self.operators.len() - 1) as u32)
    }

    /// Adds a list of arguments.
    pub fn push_args(&mut self, ids: impl IntoIterator<Item = ValueId>) -> Span {
        let start = self.args.len();
        self.args.extend(ids);
        Span { start: start as u32, len: (self.args.len() - start) as u32 }
    }

    /// The data of a value that is a constant tensor.
    pub fn constant(&self, id: ValueId) -> Option<TensorRef<'_>> {
        match self.state.values[id as usize] {
            Value::Tensor(tensor) => Prepare::known(&self.state, &self.state.tensors[tensor as usize]).constant,
            _ => None,
        }
    }

    /// By value id: whether any instruction writes it. In time by instructions and lists.
    pub(crate) fn written(&self) -> Result<Vec<bool>, OutOfMemory> {
        let mut written = filled(false, self.state.values.len())?;
        for instruction in self.chains.iter().flatten() {
            match instruction.kind {
                InstructionKind::Kernel { operator, args } => {
                    let outs = self.operators[operator as usize].info.outs();
                    let ids = self.args[args.range()].iter().enumerate();
                    for (_, &id) in ids.filter(|(arg, _)| outs >> arg & 1 == 1) {
                        written[id as usize] = true;
                    }
                }
                // What a delegate writes is known only to it.
                InstructionKind::Delegate { args, .. } => {
                    self.args[args.range()].iter().for_each(|&id| written[id as usize] = true);
                }
                InstructionKind::Move { to, .. } => written[to as usize] = true,
                _ => {}
            }
        }
        // Whoever writes a list writes what is in it; a list is looked through once, whoever writes it.
        for (id, value) in self.state.values.iter().enumerate() {
            if let Value::TensorList(span) = value
                && written[id]
            {
                self.state.ids[span.range()].iter().for_each(|&item| written[item as usize] = true);
            }
        }
        Ok(written)
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

impl Memory {
    /// Bytes of constants that were read into memory, and of those that their source lends. What several tensors share
    /// counts once.
    pub(crate) fn constant_bytes(&self) -> (usize, usize) {
        let mut ranges: Vec<_> =
            self.constants.iter().map(|bytes| (bytes.as_ptr(), bytes.len(), bytes.is_heap())).collect();
        ranges.sort_unstable();
        ranges.dedup();
        let sum = |heap| ranges.iter().filter(|range| range.2 == heap).map(|range| range.1).sum();
        (sum(true), sum(false))
    }
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
