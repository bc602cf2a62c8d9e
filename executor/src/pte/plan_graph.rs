//! A method between file and plan: values with their storage, and instructions that can still be changed.
//!
//! Rewrites work on this form. Everything in it has been checked: ids are in range, kinds fit, regions are inside their
//! memory. The methods that change it keep that so: storage is made here and given to tensors here, and no code outside
//! this crate sees an address. What a rewrite leaves is proven again when the plan is frozen.

use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

use edgepack_format::finding::ErrorCode;
use edgepack_format::notation::ValueName;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, is_permutation};
use edgepack_loader::Bytes;

use crate::api::error::KernelError;
use crate::api::kernel::{OperatorRef, Prepare};
use crate::api::operator::OperatorInfo;
use crate::api::room::{OutOfMemory, filled, grow};
use crate::api::state::{Dynamism, Span, State, TensorState, Value, ValueId};
use crate::api::storage::{BLOCK_ALIGN, Block, Region};
use crate::api::tensor::TensorRef;
use crate::pte::account::Account;
use crate::pte::arena::Arenas;

/// A method that can still be changed.
pub struct PlanGraph<'r> {
    /// All values.
    pub(crate) state: State,
    /// Operators that instructions call by index.
    pub(crate) operators: Vec<PlanOperator<'r>>,
    /// Chains, run one after another.
    pub(crate) chains: Vec<Vec<PlanInstruction>>,
    /// Argument ids of all instructions.
    pub(crate) args: Vec<ValueId>,
    /// Inputs of the method.
    pub(crate) inputs: Vec<ValueId>,
    /// Outputs of the method.
    pub(crate) outputs: Vec<ValueId>,
    /// By value id: an instruction writes it, or it is an input.
    pub(crate) variable: Vec<bool>,
    /// Owners of the memory that regions point into.
    pub(crate) memory: Memory,
    /// Memory that the method was charged.
    pub(crate) account: Account,
    /// Facts that rewrites found out about the graph as it is now.
    pub(crate) found: Found,
}

/// Something that was found out about a graph, or that it cannot be. Whatever changes instructions, values or memory
/// forgets it.
pub(crate) type Found = OnceCell<Option<Rc<dyn Any>>>;

/// A tensor of a graph: what is fixed about it.
#[derive(Clone, Copy)]
pub struct PlanTensor<'g> {
    state: &'g State,
    tensor: &'g TensorState,
}

impl<'g> PlanTensor<'g> {
    /// Element type.
    pub fn dtype(&self) -> ScalarType {
        self.tensor.dtype
    }

    /// Elements along each dimension; upper bounds if it is dynamic.
    pub fn bounds(&self) -> &'g [usize] {
        self.state.bounds(self.tensor)
    }

    /// Dimensions from outermost to innermost in memory.
    pub fn dim_order(&self) -> &'g [u8] {
        self.state.dim_order(self.tensor)
    }

    /// Returns the extent to which sizes may change.
    pub fn dynamism(&self) -> Dynamism {
        self.tensor.dynamism
    }

    /// Returns whether the data are known at load and never change.
    pub fn is_constant(&self) -> bool {
        self.tensor.constant
    }

    /// Returns whether any byte of one is a byte of the other.
    pub fn overlaps(&self, other: &PlanTensor<'_>) -> bool {
        self.tensor.region.overlaps(&other.tensor.region)
    }
}

/// An operator the program names, resolved.
#[derive(Clone)]
pub struct PlanOperator<'r> {
    /// `namespace::op.overload`.
    pub name: Arc<str>,
    /// Kernel that the operator resolved to.
    pub kernel: OperatorRef<'r>,
    /// Facts that its schema states about arguments.
    pub info: Arc<OperatorInfo>,
}

/// Call that a rewrite puts in the place of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Nothing.
    Nothing,
    /// A call of an operator.
    Kernel {
        /// Index into [`PlanGraph::operators`].
        operator: u32,
        /// Its arguments, with what a program repeats after those of the schema.
        args: &'a [ValueId],
    },
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct PlanInstruction {
    /// Action of the instruction.
    pub kind: PlanInstructionKind,
    /// Position in the file, which errors and observers report.
    pub origin: u32,
    /// Part of a delegate that it is, if it stands for a delegate call.
    pub node: Option<Node>,
}

/// A part of a delegate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// Index into the delegates of the method.
    pub delegate: u32,
    /// Number that its backend gives the part; `u32::MAX` for copies of arguments.
    pub node: u32,
}

/// Action of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum PlanInstructionKind {
    /// Calls an operator.
    Kernel {
        /// Index into [`PlanGraph::operators`].
        operator: u32,
        /// Its arguments, for [`PlanGraph::args`].
        args: Span,
    },
    /// Calls a delegate.
    Delegate {
        /// Index into the plan's delegates.
        delegate: u32,
        /// Its arguments, for [`PlanGraph::args`].
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
        /// Value id of a tensor; reading it before it is written again is an error.
        value: ValueId,
    },
    /// Does nothing: what a rewrite leaves where it removed an instruction, so that jump targets stay.
    Nop,
}

impl<'r> PlanGraph<'r> {
    /// Forgets what was found out: something is about to change, or has changed.
    pub(crate) fn changed(&mut self) {
        self.found = Found::new();
    }

    /// Number of values.
    pub fn value_count(&self) -> usize {
        self.state.values.len()
    }

    /// A value. Ids of the graph are always in range.
    pub fn value(&self, id: ValueId) -> Value {
        self.state.values[id as usize]
    }

    /// Returns whether an instruction writes this value, or it is an input.
    pub fn is_variable(&self, id: ValueId) -> bool {
        self.variable[id as usize]
    }

    /// Value ids of a list of values ([`Value::IntList`], [`Value::TensorList`], [`Value::OptionalTensorList`]).
    pub fn items(&self, list: Span) -> &[ValueId] {
        &self.state.ids[list.range()]
    }

    /// Number of tensors.
    pub fn tensor_count(&self) -> usize {
        self.state.tensors.len()
    }

    /// A tensor by its index, as in [`Value::Tensor`].
    pub fn tensor(&self, index: u32) -> PlanTensor<'_> {
        PlanTensor { state: &self.state, tensor: &self.state.tensors[index as usize] }
    }

    /// Operators that instructions call by index.
    pub fn operators(&self) -> &[PlanOperator<'r>] {
        &self.operators
    }

    /// Chains, run one after another.
    pub fn chains(&self) -> &[Vec<PlanInstruction>] {
        &self.chains
    }

    /// Value ids of the arguments of a call.
    pub fn args(&self, args: Span) -> &[ValueId] {
        &self.args[args.range()]
    }

    /// Inputs of the method.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// Outputs of the method.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    pub(crate) fn push_value(&mut self, value: Value) -> ValueId {
        self.changed();
        self.state.values.push(value);
        self.variable.push(false);
        (self.state.values.len() - 1) as ValueId
    }

    /// Adds text.
    pub(crate) fn push_text(&mut self, text: &str) -> ValueId {
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

    /// Adds a list of tensors. `None` if one is not a tensor, or there is no memory for it.
    pub fn push_tensors(&mut self, items: &[ValueId]) -> Option<ValueId> {
        let is_tensor = |&id: &ValueId| matches!(self.state.values.get(id as usize), Some(Value::Tensor(_)));
        if !items.iter().all(is_tensor) {
            return None;
        }
        let span = Span { start: u32::try_from(self.state.ids.len()).ok()?, len: u32::try_from(items.len()).ok()? };
        grow(&mut self.state.ids, items.len()).ok()?;
        self.state.ids.extend_from_slice(items);
        Some(self.push_value(Value::TensorList(span)))
    }

    /// Adds a contiguous constant. `None` if its bytes are not as many as its sizes say, or there is no memory for it.
    pub fn push_constant(&mut self, dtype: ScalarType, sizes: &[usize], bytes: &[u8]) -> Option<ValueId> {
        let layout = TensorLayout::contiguous(dtype, sizes).ok().filter(|layout| layout.byte_len() == bytes.len())?;
        let mut block = self.account.block("constants", layout.byte_len()).ok()?;
        block.bytes_mut().copy_from_slice(bytes);
        let region = self.own(block)?.frozen();
        let tensor = self.state.push_tensor(dtype, layout.sizes(), layout.dim_order(), Dynamism::Static, region, true);
        Some(self.push_value(Value::Tensor(tensor)))
    }

    /// Adds a constant of bytes that stay where they are, or are copied if they are not aligned. `Err(None)` if they are
    /// not as many as the layout says.
    pub(crate) fn push_borrowed_constant(
        &mut self,
        layout: &TensorLayout,
        bytes: &Bytes,
    ) -> Result<ValueId, Option<KernelError>> {
        if layout.byte_len() != bytes.len() {
            return Err(None);
        }
        let room = |error: OutOfMemory| Some(error.into());
        let borrowed = Region::read_only(bytes);
        let region = if borrowed.is_aligned(layout.scalar_type().size().unwrap_or(1)) {
            grow(&mut self.memory.constants, 1).map_err(room)?;
            self.memory.constants.push(bytes.clone());
            borrowed
        } else {
            let mut block = self.account.block("constants", bytes.len()).map_err(room)?;
            block.bytes_mut().copy_from_slice(bytes);
            self.own(block).ok_or(None)?.frozen()
        };
        self.state.grow_by_one().map_err(room)?;
        let (dtype, sizes, order) = (layout.scalar_type(), layout.sizes(), layout.dim_order());
        let tensor = self.state.push_tensor(dtype, sizes, order, Dynamism::Static, region, true);
        Ok(self.push_value(Value::Tensor(tensor)))
    }

    /// Takes a block into the graph's memory and gives the region of all of it. From then on the region is alive whatever
    /// happens, a panic included.
    pub(crate) fn own(&mut self, block: Block) -> Option<Region> {
        let region = block.region(0, block.len());
        self.memory.private.push(block);
        region
    }

    /// Adds an operator that instructions can call.
    pub fn push_operator(&mut self, operator: impl Into<OperatorRef<'r>>) -> Result<u32, KernelError> {
        let kernel = operator.into();
        let info = Arc::new(OperatorInfo::parse(&*kernel)?);
        self.operators.push(PlanOperator { name: kernel.name().into(), kernel, info });
        Ok((self.operators.len() - 1) as u32)
    }

    /// Looks at arguments as an operator does at those of its call when it is prepared; `None` if there is no such value.
    /// Nothing is charged to the method.
    pub fn look<R>(&self, args: &[ValueId], look: impl FnOnce(&Prepare<'_>) -> R) -> Option<R> {
        let exist = args.iter().all(|&id| (id as usize) < self.state.values.len());
        let retained = Cell::new(0);
        exist.then(|| look(&Prepare::new(&self.state, args, &self.variable, true, &retained)))
    }

    /// Replaces an instruction; it keeps its place in the file for errors and observers. A call must fit the schema of
    /// its operator.
    pub fn replace(&mut self, chain: usize, index: usize, call: Call<'_>) -> Result<(), KernelError> {
        let refused = |message: String| Err(KernelError::new(ErrorCode::Internal, message));
        if self.chains.get(chain).is_none_or(|instructions| index >= instructions.len()) {
            return refused(format!("there is no instruction {index} in chain {chain}"));
        }
        let kind = match call {
            Call::Nothing => PlanInstructionKind::Nop,
            Call::Kernel { operator, args } => {
                let values = self.state.values.len();
                if let Some(id) = args.iter().find(|&&id| id as usize >= values) {
                    return refused(format!("an argument is {id} of {values}", id = ValueName(id)));
                }
                let Some(called) = self.operators.get(operator as usize) else {
                    return refused(format!("operator {operator} of {}", self.operators.len()));
                };
                called.info.check(args, &self.state, &self.variable)?;
                called.info.mark_written(args, &mut self.variable);
                let start = self.args.len() as u32;
                self.args.extend_from_slice(args);
                PlanInstructionKind::Kernel { operator, args: Span { start, len: args.len() as u32 } }
            }
        };
        self.chains[chain][index].kind = kind;
        self.changed();
        Ok(())
    }

    /// Lays a tensor out in another order: a permutation of its dimensions. `false`, and nothing changed, if it is none.
    pub fn reorder(&mut self, tensor: u32, dim_order: &[u8]) -> bool {
        let rank = self.tensor(tensor).dim_order().len();
        let fits = dim_order.len() == rank && is_permutation(dim_order, rank);
        if fits {
            self.state.reorder(tensor, dim_order);
        }
        fits
    }

    /// Lets a tensor value, which is not an input, show the bytes of the constant `from`, from its first on, as a constant
    /// of its own sizes. `false`, and nothing changed, if `from` is not constant or has fewer bytes.
    pub fn show_constant(&mut self, value: ValueId, from: u32) -> bool {
        let Value::Tensor(to) = self.value(value) else { return false };
        let (source, target) = (self.state.tensors[from as usize], &mut self.state.tensors[to as usize]);
        let len = target.region.len();
        if !source.constant || source.region.len() < len {
            return false;
        }
        target.region = source.region.prefix(len).frozen();
        target.constant = true;
        self.variable[value as usize] = false;
        self.changed();
        true
    }

    /// Lets a temporary tensor and its `views`, of all [`Uses::views_by_base`], show the bytes of another temporary, for the
    /// instruction that wrote it to be left out. `false`, and nothing changed, if one is none, or they have other sizes in bytes.
    ///
    /// [`Uses::views_by_base`]: crate::rewrite::Uses::views_by_base
    pub fn show_temporary(&mut self, views: &[(u32, u32)], to: u32, from: u32) -> bool {
        let [source, target] = [from, to].map(|tensor| self.state.tensors[tensor as usize]);
        let temporary = [source, target].iter().all(|tensor| tensor.region.is_temporary() && !tensor.constant);
        if !temporary || source.region.len() != target.region.len() {
            return false;
        }
        self.show(views, to, source.region);
        self.state.tensors[to as usize].region = source.region;
        self.changed();
        true
    }

    /// Lets the views of a tensor, of all views by what they show, show the first bytes of a region.
    pub(crate) fn show(&mut self, views: &[(u32, u32)], of: u32, region: Region) {
        let first = views.partition_point(|&(base, _)| base < of);
        for &(_, view) in views[first..].iter().take_while(|&&(base, _)| base == of) {
            let view = &mut self.state.tensors[view as usize];
            view.region = region.prefix(view.region.len());
        }
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
                PlanInstructionKind::Kernel { operator, args } => {
                    let outs = self.operators[operator as usize].info.outs();
                    let ids = self.args[args.range()].iter().enumerate();
                    for (_, &id) in ids.filter(|(arg, _)| outs >> arg & 1 == 1) {
                        written[id as usize] = true;
                    }
                }
                // What a delegate writes is known only to it.
                PlanInstructionKind::Delegate { args, .. } => {
                    self.args[args.range()].iter().for_each(|&id| written[id as usize] = true);
                }
                PlanInstructionKind::Move { to, .. } => written[to as usize] = true,
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
pub(crate) struct Memory {
    /// Planned memories.
    pub arenas: Arenas,
    /// Storage of values that the program gives none, and constants that were realigned or copied.
    pub private: Vec<Block>,
    /// Constants of the program and of data files.
    pub constants: Vec<Bytes>,
    /// Bytes of all temporaries so far, as if none shared memory: their offsets.
    temporaries: usize,
}

impl Memory {
    /// A region for one more temporary; `None` if there would be more bytes of them than addresses.
    pub(crate) fn temporary(&mut self, bytes: usize) -> Option<Region> {
        let region = Region::temporary(self.temporaries, bytes)?;
        self.temporaries = self.temporaries.checked_add(bytes.checked_next_multiple_of(BLOCK_ALIGN)?)?;
        Some(region)
    }

    /// Returns the bytes of constants that were read into memory, and of those borrowed from their source. Bytes that
    /// several tensors share count once.
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
/// "constant" and "read by no other instruction" are drawn over storage ranges and within a basic block, never over
/// value ids alone.
pub trait Rewrite: Send + Sync {
    /// A name for traces.
    fn name(&self) -> &'static str;

    /// Changes the graph. Returns how many instructions it changed.
    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize;
}
