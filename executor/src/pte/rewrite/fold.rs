//! Instructions whose inputs are all constants run once, when the method is loaded.
//!
//! Exported programs transpose the weight of every linear layer in every run. The result gets storage of its own, so
//! nothing that shares the planned memory of the value is touched; a value is left alone if its memory outlives a run,
//! if the caller sees it, or if anything else writes it.

use std::cell::Cell;

use crate::api::context::{Access, KernelContext, MAX_ARGS};
use crate::api::kernel::{Operator, Prepare};
use crate::api::room::grow;
use crate::api::state::{Dynamism, NONE, Span, Value, ValueId};
use crate::api::storage::{Block, Region};
use crate::pte::plan_graph::{PlanGraph, PlanInstructionKind, Rewrite};

use super::uses::Uses;

/// Runs at load what depends on constants alone, if its operator [is pure](Operator::is_pure): those that draw random
/// numbers, or count calls, are not.
pub struct FoldConstants;

/// Ceiling of the growth of all results together over the constants they are made from: 8-bit weights become `f32`.
const GROWTH: usize = 4;

impl Rewrite for FoldConstants {
    fn name(&self) -> &'static str {
        "fold constants"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(uses) = Uses::of(graph) else { return 0 };
        let constants = graph.state.tensors.iter().filter(|tensor| tensor.constant);
        let mut room = constants.map(|tensor| tensor.region.len()).sum::<usize>().saturating_mul(GROWTH);
        let mut views: Vec<(u32, u32)> = Vec::new();
        for (view, base) in uses.views() {
            if grow(&mut views, 1).is_err() {
                return 0;
            }
            views.push((base, view));
        }
        views.sort_unstable();
        let mut folded = 0;
        for chain in 0..graph.chains.len() {
            for index in 0..graph.chains[chain].len() {
                let PlanInstructionKind::Kernel { operator, args } = graph.chains[chain][index].kind else { continue };
                if !graph.operators[operator as usize].kernel.is_pure() {
                    continue;
                }
                let Some(out) = foldable(graph, &uses, operator, args, room) else { continue };
                if let Some(bytes) = fold(graph, operator, args, out) {
                    graph.changed();
                    room -= bytes;
                    follow(graph, &views, out);
                    graph.chains[chain][index].kind = PlanInstructionKind::Nop;
                    folded += 1;
                }
            }
        }
        folded
    }
}

/// Moves the views of a tensor to where it is now; they show constants too.
fn follow(graph: &mut PlanGraph<'_>, views: &[(u32, u32)], out: ValueId) {
    let Value::Tensor(base) = graph.state.values[out as usize] else { return };
    let first = views.partition_point(|&(of, _)| of < base);
    let data = graph.state.tensors[base as usize].region;
    for &(_, view) in views[first..].iter().take_while(|&&(of, _)| of == base) {
        let tensor = &mut graph.state.tensors[view as usize];
        // Found inside the base by `Uses`, at its start.
        tensor.region = data.prefix(tensor.region.len());
        tensor.constant = true;
    }
}

/// The one tensor an instruction writes, if it reads constants only and the result can be one.
fn foldable(graph: &PlanGraph<'_>, uses: &Uses, operator: u32, args: Span, room: usize) -> Option<ValueId> {
    let info = &graph.operators[operator as usize].info;
    let ids = graph.args[args.range()].get(..info.arity())?;
    if ids.len() > MAX_ARGS || info.outs().count_ones() != 1 {
        return None;
    }
    let out = *ids.get(info.outs().trailing_zeros() as usize)?;
    let Value::Tensor(tensor) = graph.state.values[out as usize] else { return None };
    let (state, how) = (&graph.state.tensors[tensor as usize], uses.of_tensor(tensor));
    if how.writes != 1
        || how.pinned
        || how.view_of.is_some()
        || state.dynamism != Dynamism::Static
        || state.region.len() > room
    {
        return None;
    }
    let mut tensors = 0;
    for &id in ids.iter().filter(|&&id| id != out) {
        tensors += constant_tensors(graph, id)?;
    }
    (tensors > 0).then_some(out)
}

/// Returns the number of tensors that a value is or lists, if everything in it is constant.
fn constant_tensors(graph: &PlanGraph<'_>, id: ValueId) -> Option<usize> {
    let fixed = |id: ValueId| !graph.variable[id as usize];
    match graph.state.values[id as usize] {
        Value::Tensor(tensor) => graph.state.tensors[tensor as usize].constant.then_some(1),
        Value::TensorList(span) | Value::OptionalTensorList(span) => {
            let mut items = graph.state.ids[span.range()].iter().filter(|&&id| id != NONE);
            items.try_fold(0, |sum, &id| match graph.state.values[id as usize] {
                Value::Tensor(tensor) if graph.state.tensors[tensor as usize].constant => Some(sum + 1),
                _ => None,
            })
        }
        Value::IntList(span) => graph.state.ids[span.range()].iter().all(|&id| fixed(id)).then_some(0),
        _ => fixed(id).then_some(0),
    }
}

/// Runs an instruction into storage of its own. `None`, and nothing changed, if it fails: it then fails in its place.
fn fold(graph: &mut PlanGraph<'_>, operator: u32, args: Span, out: ValueId) -> Option<usize> {
    let Value::Tensor(tensor) = graph.state.values[out as usize] else { return None };
    let planned = graph.state.tensors[tensor as usize].region;
    // The graph owns the block before a tensor has it, so that a kernel that panics leaves nothing that points nowhere.
    let fresh = graph.own(Block::zeroed(planned.len())?)?;
    graph.state.tensors[tensor as usize].region = fresh;
    let mut attempt = Attempt { graph, tensor, otherwise: planned };
    call(attempt.graph, operator, args)?;
    // Nothing writes the block again: from here on it is a constant like those of the program.
    attempt.otherwise = fresh.frozen();
    drop(attempt);
    graph.state.tensors[tensor as usize].constant = true;
    graph.variable[out as usize] = false;
    Some(planned.len())
}

/// A call whose result is elsewhere meanwhile. However it ends, the tensor has `otherwise` then.
struct Attempt<'a, 'r> {
    graph: &'a mut PlanGraph<'r>,
    tensor: u32,
    otherwise: Region,
}

impl Drop for Attempt<'_, '_> {
    fn drop(&mut self) {
        self.graph.state.tensors[self.tensor as usize].region = self.otherwise;
        if self.otherwise.is_writable() {
            // It failed, and its block is the last one.
            self.graph.memory.private.pop();
        }
    }
}

/// Runs an instruction. `None` if it fails.
fn call(graph: &mut PlanGraph<'_>, operator: u32, args: Span) -> Option<()> {
    let PlanGraph { state, operators, args: all, variable, .. } = graph;
    let (operator, ids) = (&operators[operator as usize], &all[args.range()]);
    let kernel: &dyn Operator = &*operator.kernel;
    let retained = Cell::new(u64::MAX);
    let access = Access::of(operator.info.outs(), operator.info.arity(), ids.len());
    let prepare = Prepare::new(state, ids, variable, false, &retained);
    let mut run = kernel.prepare(&prepare).ok()?;
    let scratch = Block::zeroed(prepare.scratch.get())?;
    let whole = scratch.region(0, scratch.len())?;
    run.run(&mut KernelContext { state, args: ids, access, rerouted: &[], scratch: whole, retained: &retained }).ok()
}
