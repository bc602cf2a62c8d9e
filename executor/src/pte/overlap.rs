//! Overlaps of memory between the arguments of one call, and their treatment.
//!
//! An output must not overlap another output; an input that overlaps an output is read from a copy, unless it starts where
//! the output starts and the kernel works in place.

use std::collections::HashSet;

use edgepack_format::finding::ErrorCode;

use crate::api::context::{Access, Rerouted, bit};
use crate::api::delegate::Delegate;
use crate::api::error::KernelError;
use crate::api::kernel::Alias;
use crate::api::state::{Span, State, ValueId};
use crate::api::storage::{BLOCK_ALIGN, Region};

/// Bit per argument: a delegate writes it.
pub(crate) fn delegate_outs(delegate: &dyn Delegate, count: usize) -> u128 {
    let outs = delegate.outputs(count);
    (outs.start..outs.end.min(count)).fold(0, |mask, index| mask | bit(index))
}

/// A copy whose place in scratch is known before the block is.
pub(crate) struct Placed {
    pub rerouted: Rerouted,
    pub offset: usize,
}

/// Compares the memory of one instruction's arguments; the lists are reused.
#[derive(Default)]
pub(crate) struct Overlaps {
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
    pub fn arrange(
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

    /// The tensors among the inputs of a call whose memory an output shares, in part or whole.
    pub fn shared_inputs(&mut self, state: &State, ids: &[ValueId], outs: u128) -> Result<&HashSet<u32>, KernelError> {
        self.copied.clear();
        self.arrange(state, ids, outs, ids.len(), Alias::Disjoint, &mut Vec::new(), &mut 0)?;
        Ok(&self.copied)
    }

    fn collect(&mut self, state: &State, ids: &[ValueId], access: &Access) {
        self.outs.clear();
        self.ins.clear();
        for (arg, &id) in ids.iter().enumerate() {
            let out = access.is_out(arg);
            for tensor in state.tensors_of(id) {
                let region = state.tensors[tensor as usize].region;
                if out {
                    self.outs.push((tensor, region));
                } else {
                    self.ins.push((arg, tensor, region));
                }
            }
        }
    }

    /// No output may be a constant or borrowed memory, none may overlap another.
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
