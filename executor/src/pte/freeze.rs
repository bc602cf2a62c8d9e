//! From a graph to a plan that only needs to be run.
//!
//! For every instruction the memory of its arguments is compared once: an output must not overlap another output; an
//! input that overlaps an output is read from a copy in scratch memory, unless it starts where the output starts and
//! the kernel works in place. Then the kernel is prepared.

use std::cell::Cell;
use std::collections::HashSet;

use edgepack_format::finding::ErrorCode;

use crate::api::context::{Access, Rerouted, bit};
use crate::api::error::KernelError;
use crate::api::kernel::{Alias, Prepare, Run};
use crate::api::room::{OutOfMemory, grow};
use crate::api::state::{NONE, Span, State, Value, ValueId};
use crate::api::storage::{BLOCK_ALIGN, Block, Region};
use crate::pte::plan_graph::{PlanGraph, PlanInstructionKind};

/// One instruction of a frozen plan.
pub(crate) struct PlannedInstruction {
    pub action: PlannedAction,
    /// Where it stands in the file.
    pub origin: u32,
}

/// What a step does.
pub(crate) enum PlannedAction {
    /// Runs a prepared kernel.
    Kernel {
        run: Box<dyn Run>,
        /// Index of its operator, for names.
        operator: u32,
        call: Call,
    },
    /// Runs a delegate.
    Delegate { delegate: u32, call: Call },
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

/// What is run.
pub(crate) struct Plan {
    pub chains: Vec<Vec<PlannedInstruction>>,
    /// Inputs read from copies: which tensor, and where its copy is.
    pub rerouted: Vec<Rerouted>,
    /// Scratch memory of kernels, and behind it the copies. Both regions point into it.
    pub scratch: Block,
    /// The part for kernels.
    pub kernel_scratch: Region,
    /// Whether any instruction frees a tensor, so that writing has to take it back.
    pub frees: bool,
}

impl Plan {
    /// Bytes of the plan, scratch memory apart.
    pub fn heap_bytes(&self) -> usize {
        let kernels = self.chains.iter().flatten().map(|planned| match &planned.action {
            PlannedAction::Kernel { run, .. } => size_of_val(&**run),
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

/// Freezes a graph. `delegate_access` tells, by delegate, which of so many arguments it writes.
pub(crate) fn freeze(
    graph: &mut PlanGraph<'_>,
    options: &FreezeOptions,
    delegate_access: &dyn Fn(u32, usize) -> std::ops::Range<usize>,
) -> Result<Plan, Refused> {
    let mut overlaps = Overlaps::default();
    let whole = |error: OutOfMemory| Refused { chain: 0, instruction: 0, operator: None, error: error.into() };
    let mut chains = Vec::new();
    grow(&mut chains, graph.chains.len()).map_err(whole)?;
    let scratch = Cell::new(0);
    let mut frees = false;
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
                    let prepare = Prepare {
                        state: &graph.state,
                        args: ids,
                        variable: &graph.variable,
                        scratch: Cell::new(scratch.get()),
                        optimize: options.optimize,
                    };
                    let run = info.kernel.prepare(&prepare).map_err(|error| refused(Some(operator), error))?;
                    scratch.set(prepare.scratch.get());
                    PlannedAction::Kernel { run, operator, call: Call { args, access, rerouted: span } }
                }
                PlanInstructionKind::Delegate { delegate, args } => {
                    let ids = &graph.args[args.range()];
                    let outs = delegate_access(delegate, ids.len());
                    let mask = (outs.start..outs.end.min(ids.len())).fold(0u128, |mask, index| mask | bit(index));
                    let (access, span) = overlaps
                        .arrange(&graph.state, ids, mask, ids.len(), Alias::Disjoint, &mut rerouted, &mut copies)
                        .map_err(|error| refused(None, error))?;
                    PlannedAction::Delegate { delegate, call: Call { args, access, rerouted: span } }
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
            planned.push(PlannedInstruction { action, origin: instruction.origin });
        }
        chains.push(planned);
    }

    let kernel_bytes = scratch.get().checked_next_multiple_of(BLOCK_ALIGN).unwrap_or(usize::MAX);
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

/// A copy whose place in scratch is known before the block is.
struct Placed {
    rerouted: Rerouted,
    offset: usize,
}

/// Compares the memory of one instruction's arguments; the lists are kept to be reused.
#[derive(Default)]
struct Overlaps {
    /// Tensor index and region of every output.
    outs: Vec<(u32, Region)>,
    /// Argument, tensor index and region of every input.
    ins: Vec<(usize, u32, Region)>,
    /// Tensors that are read from copies.
    copied: HashSet<u32>,
}

/// Up to this many outputs are compared pair by pair; beyond, they are sorted first.
const FEW: usize = 8;

impl Overlaps {
    #[expect(clippy::too_many_arguments, reason = "one instruction's facts and what they add to")]
    fn arrange(
        &mut self,
        state: &State,
        ids: &[ValueId],
        outs: u128,
        arity: usize,
        alias: Alias,
        rerouted: &mut Vec<Placed>,
        copies: &mut usize,
    ) -> Result<(Access, Span), KernelError> {
        let mut access = Access::of(outs, arity, ids.len());
        self.collect(state, ids.get(..arity).unwrap_or(ids), &access);
        if self.outs.is_empty() {
            return Ok((access, Span::default()));
        }
        self.check_outs(state)?;

        self.copied.clear();
        let (start, mut offset) = (rerouted.len(), 0usize);
        for &(arg, tensor, region) in &self.ins {
            let Some((out, other)) = self.overlapping(&region) else { continue };
            if out == tensor {
                access.kept |= bit(arg);
            }
            if alias == Alias::SameRange && region.same_start(&other) {
                access.in_place |= bit(arg);
                continue;
            }
            if !self.copied.insert(tensor) {
                continue;
            }
            // The copy's place is filled in once all instructions are known; its length is what counts now.
            rerouted.push(Placed { rerouted: Rerouted { tensor, copy: region }, offset });
            offset = offset.saturating_add(region.len().next_multiple_of(BLOCK_ALIGN));
        }
        // By tensor, so that a run finds one among many.
        rerouted[start..].sort_unstable_by_key(|placed| placed.rerouted.tensor);
        *copies = (*copies).max(offset);
        Ok((access, Span { start: start as u32, len: (rerouted.len() - start) as u32 }))
    }

    fn collect(&mut self, state: &State, ids: &[ValueId], access: &Access) {
        self.outs.clear();
        self.ins.clear();
        for (arg, &id) in ids.iter().enumerate() {
            let out = access.is_out(arg);
            let mut add = |id: ValueId| {
                if id != NONE
                    && let Value::Tensor(tensor) = state.values[id as usize]
                {
                    let region = state.tensors[tensor as usize].region;
                    if out {
                        self.outs.push((tensor, region));
                    } else {
                        self.ins.push((arg, tensor, region));
                    }
                }
            };
            match state.values[id as usize] {
                Value::Tensor(_) => add(id),
                Value::TensorList(span) | Value::OptionalTensorList(span) => {
                    state.ids[span.range()].iter().copied().for_each(add);
                }
                _ => {}
            }
        }
    }

    /// No output may be a constant or lent memory, none may overlap another.
    fn check_outs(&mut self, state: &State) -> Result<(), KernelError> {
        if let Some((tensor, _)) = self.outs.iter().find(|(_, region)| !region.is_writable()) {
            let what = if state.tensors[*tensor as usize].constant { "a constant" } else { "read-only memory" };
            return Err(KernelError::new(ErrorCode::InvalidProgram, format!("an output is {what}")));
        }
        if self.outs.len() > 1 {
            self.outs.sort_unstable_by_key(|(_, region)| region.addresses().start);
            let mut end = 0;
            for (_, region) in self.outs.iter().filter(|(_, region)| !region.is_empty()) {
                let range = region.addresses();
                if range.start < end {
                    return Err(KernelError::new(ErrorCode::InvalidProgram, "two outputs share memory"));
                }
                end = range.end;
            }
        }
        Ok(())
    }

    /// An output that overlaps this input. The outputs are sorted and disjoint if there are several.
    fn overlapping(&self, region: &Region) -> Option<(u32, Region)> {
        if self.outs.len() <= FEW {
            return self.outs.iter().find(|(_, out)| out.overlaps(region)).copied();
        }
        let range = region.addresses();
        let after = self.outs.partition_point(|(_, out)| out.addresses().end <= range.start);
        self.outs[after..].iter().find(|(_, out)| !out.is_empty()).filter(|(_, out)| out.overlaps(region)).copied()
    }
}
