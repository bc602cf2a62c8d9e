//! Instructions that are added to a graph: copies of outputs.

use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::TensorLayout;

use crate::api::context::bit;
use crate::api::error::KernelError;
use crate::api::room::grow;
use crate::api::state::{Dynamism, Value, ValueId};
use crate::pte::plan_graph::{Call, PlanGraph, PlanInstruction, PlanInstructionKind};

use super::uses::Uses;

impl PlanGraph<'_> {
    /// Makes an output of the method a copy, which the operator makes, with the arguments `self` and `out`, right behind the
    /// instruction that writes it: instructions work on a temporary, which can be stored in another order. `None`, and nothing
    /// changed, unless it [is an output, and nothing else](crate::rewrite::Use::is_only_output), of sizes that never change.
    pub fn copy_output(&mut self, output: u32, operator: u32) -> Option<()> {
        let uses = Uses::of(self)?;
        let views = uses.views_by_base()?;
        let (chain, index) = self.writer(output)?;
        let state = *self.state.tensors.get(output as usize)?;
        let is_output = |&id: &ValueId| self.state.tensors_of(id).any(|tensor| tensor == output);
        let is_itself = |id: ValueId| matches!(self.value(id), Value::Tensor(tensor) if tensor == output);
        let named = self.outputs.iter().filter(|id| is_output(id)).all(|&id| is_itself(id));
        if !uses.of_tensor(output).is_only_output() || state.dynamism != Dynamism::Static || !named {
            return None;
        }
        let id = *self.outputs.iter().find(|id| is_output(id))?;
        let layout = TensorLayout::new(state.dtype, self.state.sizes(&state), self.state.dim_order(&state)).ok()?;
        let region = self.memory.temporary(state.region.len())?;
        self.state.grow_by_one().ok()?;
        grow(&mut self.variable, 1).ok()?;
        let (sizes, order) = (layout.sizes(), layout.dim_order());
        let copy = self.state.push_tensor(state.dtype, sizes, order, Dynamism::Static, state.region, false);
        let copy = self.push_value(Value::Tensor(copy));
        let call = Call::Kernel { operator, args: &[id, copy, copy] };
        self.insert_behind(chain, index, call).ok()?;
        self.show(&views, output, region);
        self.state.tensors[output as usize].region = region;
        for at in 0..self.outputs.len() {
            if matches!(self.value(self.outputs[at]), Value::Tensor(tensor) if tensor == output) {
                self.outputs[at] = copy;
            }
        }
        self.changed();
        Some(())
    }

    /// The first instruction whose result is a tensor: it writes the whole of it, and does not read it.
    fn writer(&self, tensor: u32) -> Option<(usize, usize)> {
        let writes = |instruction: &PlanInstruction| {
            let PlanInstructionKind::Kernel { operator, args } = instruction.kind else { return false };
            let results = self.operators[operator as usize].info.results();
            let written = self.args[args.range()].iter().enumerate().filter(|(arg, _)| results & bit(*arg) != 0);
            written.flat_map(|(_, &id)| self.state.tensors_of(id)).any(|written| written == tensor)
        };
        let places = self.chains.iter().enumerate();
        places.filter_map(|(chain, all)| Some((chain, all.iter().position(writes)?))).next()
    }

    /// Puts a call behind an instruction, as a part of it for errors and observers. Jumps go where they went. An error if there is
    /// no such instruction, or no memory, or the call does not fit its operator.
    fn insert_behind(&mut self, chain: usize, index: usize, call: Call<'_>) -> Result<(), KernelError> {
        let Some(before) = self.chains.get(chain).and_then(|chain| chain.get(index)).copied() else {
            let message = format!("there is no instruction {index} in chain {chain}");
            return Err(KernelError::new(ErrorCode::Internal, message));
        };
        let instructions = &mut self.chains[chain];
        grow(instructions, 1)?;
        instructions.insert(index + 1, PlanInstruction { kind: PlanInstructionKind::Nop, ..before });
        for instruction in instructions {
            if let PlanInstructionKind::JumpFalse { target, .. } = &mut instruction.kind {
                *target += u32::from(*target as usize > index);
            }
        }
        self.changed();
        self.replace(chain, index + 1, call)
    }
}
