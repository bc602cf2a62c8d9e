//! Equal calls of one value are made once.
//!
//! Delegates of one method often start alike: each quantises, converts or turns what another one was given too. A call is
//! left out if an earlier one has an operator that is a function of its arguments, equal arguments, and wrote temporaries
//! that nothing else writes. Readers of the later result read the earlier one; where temporaries are is decided
//! afterwards, so nothing that is elsewhere gets under it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use edgepack_format::scalar::ScalarType;

use crate::api::state::{Dynamism, Span, Value, ValueId};
use crate::pte::plan_graph::{PlanGraph, PlanInstructionKind, Rewrite};

use super::uses::Uses;

/// Makes equal calls of [pure](crate::kernel::Operator::is_pure) operators once.
pub struct ShareEqual;

/// An argument, so that equal ones are equal; that of a result says only what the result is.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Argument {
    Null,
    Bool(bool),
    Int(i64),
    Double(u64),
    Text(String),
    Ints(Vec<i64>),
    Tensor(u32),
    Result(ScalarType, Vec<usize>, Vec<u8>, bool),
}

/// The operator of a call by name, and its arguments.
type Call = (Arc<str>, Vec<Argument>);

impl Rewrite for ShareEqual {
    fn name(&self) -> &'static str {
        "share equal calls"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        // Only what came out of delegates is in temporaries.
        if graph.chains.iter().flatten().all(|instruction| instruction.node.is_none()) {
            return 0;
        }
        // Without jumps, the instructions in front have run.
        let Some(uses) = Uses::of(graph) else { return 0 };
        let Some(views) = uses.views_by_base() else { return 0 };
        let steady = steady_inputs(graph, &uses);
        // Equal calls read the same first tensor: one that is the only reader of it waits here until another tensor is
        // replaced by that one.
        let mut only: HashMap<u32, (u32, Span)> = HashMap::new();
        let mut known: HashMap<Call, Vec<u32>> = HashMap::new();
        // By tensor, the one that replaces it now; and all that replace others.
        let mut same: HashMap<u32, u32> = HashMap::new();
        let mut kept: HashSet<u32> = HashSet::new();
        let mut shared = 0;
        for chain in 0..graph.chains.len() {
            for index in 0..graph.chains[chain].len() {
                let instruction = graph.chains[chain][index];
                let PlanInstructionKind::Kernel { operator, args } = instruction.kind else { continue };
                let called = &graph.operators[operator as usize];
                if instruction.node.is_none() || !called.kernel.is_pure() {
                    continue;
                }
                if let Some(first) = first_read(graph, operator, args)
                    && uses.of_tensor(first).reads == 1
                    && !same.contains_key(&first)
                    && !kept.contains(&first)
                {
                    only.insert(first, (operator, args));
                    continue;
                }
                let Some((call, results)) = described(graph, &uses, &steady, &same, operator, args) else { continue };
                match known.entry(call) {
                    Entry::Occupied(earlier) => {
                        let earlier = earlier.get().clone();
                        for (&later, &earlier) in results.iter().zip(&earlier) {
                            let region = graph.state.tensors[earlier as usize].region;
                            graph.show(&views, later, region);
                            same.insert(later, earlier);
                            kept.insert(earlier);
                        }
                        graph.chains[chain][index].kind = PlanInstructionKind::Nop;
                        shared += 1;
                        let now_known = earlier.iter().filter_map(|earlier| only.remove(earlier));
                        for (operator, args) in now_known {
                            known.extend(described(graph, &uses, &steady, &same, operator, args));
                        }
                    }
                    Entry::Vacant(first) => {
                        first.insert(results);
                    }
                }
            }
        }
        if shared > 0 {
            graph.changed();
            for value in &mut graph.state.values {
                if let Value::Tensor(tensor) = value
                    && let Some(earlier) = same.get(tensor)
                {
                    *tensor = *earlier;
                }
            }
        }
        shared
    }
}

/// The first tensor that a call reads as an argument.
fn first_read(graph: &PlanGraph<'_>, operator: u32, args: Span) -> Option<u32> {
    let info = &graph.operators[operator as usize].info;
    let (ids, outs) = (graph.args[args.range()].get(..info.arity())?, info.outs());
    ids.iter().enumerate().find_map(|(arg, &id)| match graph.state.values[id as usize] {
        Value::Tensor(tensor) if outs >> arg & 1 == 0 => Some(tensor),
        _ => None,
    })
}

/// A call, and the tensors it writes. `None` if it is not one to share.
fn described(
    graph: &PlanGraph<'_>,
    uses: &Uses,
    steady: &[u32],
    same: &HashMap<u32, u32>,
    operator: u32,
    args: Span,
) -> Option<(Call, Vec<u32>)> {
    let called = &graph.operators[operator as usize];
    let info = &called.info;
    let ids = graph.args[args.range()].get(..info.arity())?;
    let (mut arguments, mut results) = (Vec::new(), Vec::new());
    for (arg, &id) in ids.iter().enumerate() {
        let argument = match (graph.state.values[id as usize], info.outs() >> arg & 1 == 1) {
            (Value::Tensor(tensor), true) => {
                let (state, how) = (&graph.state.tensors[tensor as usize], uses.of_tensor(tensor));
                if how.writes != 1 || how.pinned || how.view_of.is_some() || !state.region.is_temporary() {
                    return None;
                }
                results.push(tensor);
                let sizes = graph.state.bounds(state).to_vec();
                let order = graph.state.dim_order(state).to_vec();
                Argument::Result(state.dtype, sizes, order, state.dynamism == Dynamism::Bound)
            }
            (Value::Tensor(tensor), false) => Argument::Tensor(unchanged(graph, uses, steady, same, tensor)?),
            (_, true) => return None,
            (value, false) => plain(graph, id, value)?,
        };
        arguments.push(argument);
    }
    (!results.is_empty()).then(|| ((Arc::clone(&called.name), arguments), results))
}

/// Up to so many inputs of a method are compared with what is written.
const INPUTS: usize = 16;

/// Inputs whose memory nothing writes while the method runs.
fn steady_inputs(graph: &PlanGraph<'_>, uses: &Uses) -> Vec<u32> {
    let tensors = |id: &ValueId| graph.state.tensors_of(*id).collect::<Vec<_>>();
    let is_steady = |tensor: &u32| {
        let region = graph.state.tensors[*tensor as usize].region;
        let others = graph.state.tensors.iter().zip(0..).filter(|(_, other)| other != tensor);
        let mut written = others.filter(|(_, other)| uses.of_tensor(*other).writes > 0);
        uses.of_tensor(*tensor).writes == 1 && !written.any(|(other, _)| other.region.overlaps(&region))
    };
    graph.inputs.iter().take(INPUTS).flat_map(tensors).filter(is_steady).collect()
}

/// A tensor that has the same bytes at every read: a constant, a steady input, or one that is written once.
fn unchanged(graph: &PlanGraph<'_>, uses: &Uses, steady: &[u32], same: &HashMap<u32, u32>, tensor: u32) -> Option<u32> {
    let tensor = same.get(&tensor).copied().unwrap_or(tensor);
    let how = uses.of_tensor(tensor);
    // Reads of one that is not pinned find its own bytes and no other's.
    let once = how.writes == 1 && !how.pinned && how.view_of.is_none();
    (graph.state.tensors[tensor as usize].constant || once || steady.contains(&tensor)).then_some(tensor)
}

/// An argument that is not a tensor and does not change.
fn plain(graph: &PlanGraph<'_>, id: ValueId, value: Value) -> Option<Argument> {
    if graph.variable[id as usize] {
        return None;
    }
    Some(match value {
        Value::Null => Argument::Null,
        Value::Bool(value) => Argument::Bool(value),
        Value::Int(value) => Argument::Int(value),
        Value::Double(value) => Argument::Double(value.to_bits()),
        Value::Str(_) => Argument::Text(graph.text(id)?.to_owned()),
        Value::IntList(span) => {
            let items = graph.state.ids[span.range()].iter().map(|&id| match graph.state.values[id as usize] {
                Value::Int(value) if !graph.variable[id as usize] => Some(value),
                _ => None,
            });
            Argument::Ints(items.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
