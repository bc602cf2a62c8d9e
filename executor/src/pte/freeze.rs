//! From a graph to a plan that only needs to be run.
//!
//! For every instruction the memory of its arguments is compared once: an output must not overlap another output; an
//! input that overlaps an output is read from a copy in scratch memory, unless it starts where the output starts and
//! the kernel works in place. Then the kernel is prepared.

use std::cell::Cell;
use std::sync::Arc;

use edgepack_format::finding::ErrorCode;

use crate::api::context::{Access, Rerouted};
use crate::api::error::KernelError;
use crate::api::kernel::{Alias, Prepare, Run};
use crate::api::packing::Packer;
use crate::api::packing::constants::Constants;
use crate::api::room::{OutOfMemory, grow};
use crate::api::state::{Span, Value, ValueId};
use crate::api::storage::{BLOCK_ALIGN, Block, Region};
use crate::pte::load::LoadedDelegate;
use crate::pte::overlap::{Overlaps, Placed, delegate_outs};
use crate::pte::plan_graph::{Node, PlanGraph, PlanInstructionKind};

/// One instruction of a frozen plan.
pub(crate) struct PlannedInstruction {
    pub action: PlannedAction,
    /// Position of the instruction in the file.
    pub origin: u32,
    /// Part of a delegate that it is, if it came from one.
    pub node: Option<Node>,
}

/// Action of an instruction.
pub(crate) enum PlannedAction {
    /// Runs a prepared kernel.
    Kernel {
        run: Box<dyn Run>,
        /// Index of its operator, for names.
        operator: u32,
        call: Call,
    },
    /// Runs a delegate.
    Delegate {
        run: Box<dyn Run>,
        /// Its index, for names.
        delegate: u32,
        call: Call,
    },
    /// Copies a tensor.
    MoveTensor { from: u32, to: u32 },
    /// Copies a number.
    MoveNumber { from: ValueId, to: ValueId },
    /// Goes on elsewhere if false.
    JumpFalse { condition: ValueId, target: u32 },
    /// Marks a tensor as given up.
    Free { tensor: u32 },
    /// Nothing.
    Nop,
}

/// The arguments of a call and how their memory is treated.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub args: Span,
    pub access: Access,
    /// Inputs read from copies, in [`Plan::rerouted`].
    pub rerouted: Span,
}

/// A frozen method: instructions and the memory of their calls.
pub(crate) struct Plan {
    pub chains: Vec<Vec<PlannedInstruction>>,
    /// Inputs read from copies: which tensor, and where its copy is.
    pub rerouted: Vec<Rerouted>,
    /// Scratch memory of kernels, and behind it the copies. Both regions point into it.
    pub scratch: Block,
    /// The part for kernels.
    pub kernel_scratch: Region,
    /// True if any instruction frees a tensor, so that writing has to take it back.
    pub frees: bool,
}

impl Plan {
    /// Bytes that kernels retain: packed weights.
    pub fn retained_bytes(&self) -> usize {
        let runs = self.chains.iter().flatten().map(|planned| match &planned.action {
            PlannedAction::Kernel { run, .. } | PlannedAction::Delegate { run, .. } => run.retained_bytes(),
            _ => 0,
        });
        runs.sum()
    }

    /// Place of the first instruction of a chain among those of all.
    pub fn start_of(&self, chain: usize) -> usize {
        self.chains.iter().take(chain).map(Vec::len).sum()
    }

    /// Bytes of the plan, scratch memory apart.
    pub fn heap_bytes(&self) -> usize {
        let kernels = self.chains.iter().flatten().map(|planned| match &planned.action {
            PlannedAction::Kernel { run, .. } | PlannedAction::Delegate { run, .. } => size_of_val(&**run),
            _ => 0,
        });
        let lists = self.chains.iter().map(|list| list.capacity() * size_of::<PlannedInstruction>());
        kernels.chain(lists).sum::<usize>() + self.rerouted.capacity() * size_of::<Rerouted>()
    }
}

/// A kernel that could not be prepared, or whose memory cannot be arranged.
pub(crate) struct Refused {
    pub chain: usize,
    pub instruction: usize,
    pub operator: Option<u32>,
    pub error: KernelError,
}

pub(crate) struct FreezeOptions {
    pub optimize: bool,
}

/// Freezes a graph whose delegate calls, as far as they are left, these delegates run. Constants that kernels retain in
/// another layout are packed, or found, by what `packer` gives.
pub(crate) fn freeze(
    graph: &mut PlanGraph<'_>,
    options: &FreezeOptions,
    delegates: &[LoadedDelegate],
    retained: &Cell<u64>,
    packer: &dyn Fn() -> Arc<Packer>,
) -> Result<Plan, Refused> {
    let constants = Constants::new(&graph.memory.constants, packer);
    let mut overlaps = Overlaps::default();
    let whole = |error: OutOfMemory| Refused { chain: 0, instruction: 0, operator: None, error: error.into() };
    let mut chains = Vec::new();
    grow(&mut chains, graph.chains.len()).map_err(whole)?;
    let mut scratch = 0usize;
    let mut frees = false;
    // Instructions that constants in another layout are made for.
    let mut asking = Vec::new();
    // Copies of different instructions share memory: `copies` is what the neediest one takes.
    let (mut rerouted, mut copies) = (Vec::new(), 0usize);

    for (chain, instructions) in graph.chains.iter().enumerate() {
        let mut planned = Vec::new();
        grow(&mut planned, instructions.len()).map_err(whole)?;
        for (index, instruction) in instructions.iter().enumerate() {
            let refused = |operator, error| Refused { chain, instruction: index, operator, error };
            let action = match instruction.kind {
                PlanInstructionKind::Kernel { operator, args } => {
                    let info = &graph.operators[operator as usize];
                    let ids = &graph.args[args.range()];
                    let outs = info.info.outs();
                    let (access, span) = overlaps
                        .arrange(
                            &graph.state,
                            ids,
                            outs,
                            info.info.arity(),
                            info.kernel.alias(),
                            &mut rerouted,
                            &mut copies,
                        )
                        .map_err(|error| refused(Some(operator), error))?;
                    let prepare = Prepare::new(&graph.state, ids, &graph.variable, options.optimize, retained)
                        .of_constants(&constants);
                    let run = info.kernel.prepare(&prepare).map_err(|error| refused(Some(operator), error))?;
                    scratch = scratch.max(prepare.scratch.get());
                    let asked = constants.waiting() - asking.len();
                    grow(&mut asking, asked).map_err(whole)?;
                    asking.extend(std::iter::repeat_n((chain, index, operator), asked));
                    PlannedAction::Kernel { run, operator, call: Call { args, access, rerouted: span } }
                }
                PlanInstructionKind::Delegate { delegate, args } => {
                    let Some(loaded) = delegates.get(delegate as usize) else {
                        let error = KernelError::new(ErrorCode::Internal, "there is no such delegate");
                        return Err(refused(None, error));
                    };
                    let ids = &graph.args[args.range()];
                    let outs = delegate_outs(&*loaded.delegate, ids.len());
                    let (access, span) = overlaps
                        .arrange(&graph.state, ids, outs, ids.len(), Alias::Disjoint, &mut rerouted, &mut copies)
                        .map_err(|error| refused(None, error))?;
                    let prepare = Prepare::new(&graph.state, ids, &graph.variable, options.optimize, retained);
                    let run = loaded.delegate.prepare(&prepare).map_err(|error| refused(None, error))?;
                    scratch = scratch.max(prepare.scratch.get());
                    PlannedAction::Delegate { run, delegate, call: Call { args, access, rerouted: span } }
                }
                PlanInstructionKind::Move { from, to } => {
                    match (graph.state.values[from as usize], graph.state.values[to as usize]) {
                        (Value::Tensor(from), Value::Tensor(to)) => PlannedAction::MoveTensor { from, to },
                        _ => PlannedAction::MoveNumber { from, to },
                    }
                }
                PlanInstructionKind::JumpFalse { condition, target } => PlannedAction::JumpFalse { condition, target },
                PlanInstructionKind::Free { value } => match graph.state.values[value as usize] {
                    Value::Tensor(tensor) => {
                        frees = true;
                        PlannedAction::Free { tensor }
                    }
                    _ => PlannedAction::Nop,
                },
                PlanInstructionKind::Nop => PlannedAction::Nop,
            };
            planned.push(PlannedInstruction { action, origin: instruction.origin, node: instruction.node });
        }
        chains.push(planned);
    }
    constants.make().map_err(|(number, error)| {
        let (chain, instruction, operator) = asking[number];
        Refused { chain, instruction, operator: Some(operator), error }
    })?;

    let kernel_bytes = scratch.checked_next_multiple_of(BLOCK_ALIGN).unwrap_or(usize::MAX);
    let block = graph.account.block("scratch memory", kernel_bytes.saturating_add(copies)).map_err(whole)?;
    for Placed { rerouted: Rerouted { copy, .. }, offset } in &mut rerouted {
        *copy = block.region(kernel_bytes + *offset, copy.len()).unwrap_or_else(Region::empty);
    }
    Ok(Plan {
        chains,
        rerouted: rerouted.into_iter().map(|placed| placed.rerouted).collect(),
        kernel_scratch: block.region(0, kernel_bytes).unwrap_or_else(Region::empty),
        scratch: block,
        frees,
    })
}
