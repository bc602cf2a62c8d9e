//! Outputs that become copies: instructions work on temporaries in their place.

use std::collections::{HashMap, HashSet};

use edgepack_format::tensor::TensorLayout;

use crate::api::context::bit;
use crate::api::room::{filled, grow};
use crate::api::state::{Dynamism, Value, ValueId};
use crate::pte::plan_graph::{Call, PlanGraph, PlanInstruction, PlanInstructionKind};

use super::uses::Uses;

/// An output, and the instruction whose result it is.
struct Written {
    chain: usize,
    index: usize,
    tensor: u32,
    id: ValueId,
}

impl PlanGraph<'_> {
    /// Makes outputs of the method copies, which the operator makes, with the arguments `self` and `out`, right behind the
    /// instructions that write them: these work on temporaries, which can be stored in another order. Those stay as they are that
    /// are more than [outputs](crate::rewrite::Use::is_only_output), that are in a list, or whose sizes may change. In time by
    /// instructions and outputs. Returns how many became copies.
    pub fn copy_outputs(&mut self, outputs: &[u32], operator: u32) -> usize {
        self.copied_outputs(outputs, operator).unwrap_or(0)
    }

    /// [`PlanGraph::copy_outputs`]; `None`, and nothing changed, if there is no memory to find out, or the method jumps.
    fn copied_outputs(&mut self, outputs: &[u32], operator: u32) -> Option<usize> {
        let uses = Uses::of(self)?;
        let views = uses.views_by_base()?;
        let written = self.results(self.only_outputs(&uses, outputs)?)?;
        let mut copies: HashMap<u32, ValueId> = HashMap::new();
        copies.try_reserve(written.len()).ok()?;
        for of_chain in written.chunk_by(|a, b| a.chain == b.chain) {
            let Some(places) = self.make_room(of_chain) else { break };
            for (Written { chain, tensor, id, .. }, place) in of_chain.iter().zip(places) {
                if let Some(copy) = self.copy_behind([*chain, place], *tensor, *id, operator, &views) {
                    copies.insert(*tensor, copy);
                }
            }
        }
        for at in 0..self.outputs.len() {
            if let Value::Tensor(tensor) = self.value(self.outputs[at])
                && let Some(copy) = copies.get(&tensor)
            {
                self.outputs[at] = *copy;
            }
        }
        self.changed();
        Some(copies.len())
    }

    /// Those of some tensors that are outputs and nothing else, by themselves and in sizes that never change, with their values.
    fn only_outputs(&self, uses: &Uses, tensors: &[u32]) -> Option<HashMap<u32, ValueId>> {
        let (mut wanted, mut found) = (HashSet::<u32>::new(), HashMap::new());
        wanted.try_reserve(tensors.len()).ok()?;
        found.try_reserve(self.outputs.len()).ok()?;
        wanted.extend(tensors);
        for &id in &self.outputs {
            match self.value(id) {
                Value::Tensor(tensor) => {
                    let is_static = self.tensor(tensor).dynamism() == Dynamism::Static;
                    if wanted.contains(&tensor) && is_static && uses.of_tensor(tensor).is_only_output() {
                        found.insert(tensor, id);
                    }
                }
                _ => self.state.tensors_of(id).for_each(|tensor| {
                    wanted.remove(&tensor);
                }),
            }
        }
        found.retain(|tensor, _| wanted.contains(tensor));
        Some(found)
    }

    /// The instructions whose results the tensors are, in order: those that write the whole of them, and do not read them.
    fn results(&self, mut tensors: HashMap<u32, ValueId>) -> Option<Vec<Written>> {
        let mut written = Vec::new();
        for (chain, instructions) in self.chains.iter().enumerate() {
            for (index, instruction) in instructions.iter().enumerate() {
                let PlanInstructionKind::Kernel { operator, args } = instruction.kind else { continue };
                let results = self.operators[operator as usize].info.results();
                let ids = self.args[args.range()].iter().enumerate().filter(|(arg, _)| results & bit(*arg) != 0);
                for tensor in ids.flat_map(|(_, &id)| self.state.tensors_of(id)) {
                    if let Some(id) = tensors.remove(&tensor) {
                        grow(&mut written, 1).ok()?;
                        written.push(Written { chain, index, tensor, id });
                    }
                }
            }
        }
        Some(written)
    }

    /// Puts an instruction that does nothing behind each of these of one chain, as a part of it for errors and observers. Returns
    /// where they are; `None`, and nothing changed, if there is no memory. The method has no jumps.
    fn make_room(&mut self, behind: &[Written]) -> Option<Vec<usize>> {
        let chain = behind.first()?.chain;
        let (mut places, mut new) = (filled(0, behind.len()).ok()?, Vec::new());
        grow(&mut new, self.chains[chain].len().saturating_add(behind.len())).ok()?;
        let mut next = behind.iter().zip(&mut places).peekable();
        for (index, instruction) in self.chains[chain].iter().enumerate() {
            new.push(*instruction);
            while let Some((_, place)) = next.next_if(|(written, _)| written.index == index) {
                *place = new.len();
                new.push(PlanInstruction { kind: PlanInstructionKind::Nop, ..*instruction });
            }
        }
        self.chains[chain] = new;
        self.changed();
        Some(places)
    }

    /// Gives a tensor a temporary, and its memory to a new value, which an instruction copies it into.
    fn copy_behind(
        &mut self,
        [chain, place]: [usize; 2],
        tensor: u32,
        id: ValueId,
        operator: u32,
        views: &[(u32, u32)],
    ) -> Option<ValueId> {
        let state = self.state.tensors[tensor as usize];
        let layout = TensorLayout::new(state.dtype, self.state.sizes(&state), self.state.dim_order(&state)).ok()?;
        let region = self.memory.temporary(state.region.len())?;
        self.state.grow_by_one().ok()?;
        grow(&mut self.variable, 1).ok()?;
        let (sizes, order) = (layout.sizes(), layout.dim_order());
        let copy = self.state.push_tensor(state.dtype, sizes, order, Dynamism::Static, state.region, false);
        let copy = self.push_value(Value::Tensor(copy));
        self.replace(chain, place, Call::Kernel { operator, args: &[id, copy, copy] }).ok()?;
        self.show(views, tensor, region);
        self.state.tensors[tensor as usize].region = region;
        Some(copy)
    }
}
