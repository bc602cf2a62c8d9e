//! The inputs of a method: where each is put, and how long it stays.

use std::ops::Range;

use crate::api::room::{filled, grow};
use crate::api::state::{Value, ValueId};
use crate::api::storage::Region;
use crate::pte::error::LoadError;
use crate::pte::freeze::{Plan, PlannedAction};
use crate::pte::plan_graph::PlanGraph;

/// An input of a method.
pub(crate) struct InputSlot {
    pub value: ValueId,
    /// True if it may be read: a caller has set it and nothing has written over it since.
    pub set: bool,
    /// True if memory of the caller stands in for its own.
    pub lent: bool,
    /// The tensor's own memory, if a caller's may stand in for it: the program gives it none, nothing writes it, and it is
    /// not an output.
    pub own: Option<Region>,
    /// True if instructions read it: the caller then chooses a number. One that none reads has been traced into the
    /// program.
    pub read: bool,
    /// Index of the shared memory it is in.
    pub shared: Option<usize>,
    /// True if its bytes are still there after a run. Exporters use the memory of an input again once it has been read.
    pub survives: bool,
}

/// The inputs of a graph. `unplanned` are the tensors that the program gives no memory, `frozen` is its plan.
pub(crate) fn inputs(graph: &PlanGraph<'_>, unplanned: &[u32], frozen: &Plan) -> Result<Vec<InputSlot>, LoadError> {
    let mut pinned = graph.written()?;
    graph.outputs.iter().for_each(|&output| pinned[output as usize] = true);
    let mut is_unplanned = filled(false, graph.state.tensors.len())?;
    unplanned.iter().for_each(|&tensor| is_unplanned[tensor as usize] = true);
    let written = written(graph, frozen)?;
    let read = read(graph, frozen)?;
    let slot = |&value: &ValueId| {
        let place = match graph.state.values[value as usize] {
            Value::Tensor(tensor) => Some((tensor, graph.state.tensors[tensor as usize].region)),
            _ => None,
        };
        InputSlot {
            value,
            set: matches!(graph.state.values[value as usize], Value::Null),
            lent: false,
            own: place
                .filter(|(tensor, _)| is_unplanned[*tensor as usize] && !pinned[value as usize])
                .map(|(_, own)| own),
            read: read[value as usize],
            shared: place.and_then(|(_, region)| graph.memory.arenas.shared_at(&region)),
            survives: place.is_none_or(|(_, region)| {
                let range = region.addresses();
                let after = written.partition_point(|written| written.end <= range.start);
                written.get(after).is_none_or(|written| range.end <= written.start)
            }),
        }
    };
    let mut inputs = Vec::new();
    grow(&mut inputs, graph.inputs.len())?;
    inputs.extend(graph.inputs.iter().map(slot));
    Ok(inputs)
}

/// Returns, for each value, whether instructions read it, also as an item of a list.
fn read(graph: &PlanGraph<'_>, frozen: &Plan) -> Result<Vec<bool>, LoadError> {
    let mut read = filled(false, graph.state.values.len())?;
    for step in frozen.chains.iter().flatten() {
        match &step.action {
            PlannedAction::Kernel { call, .. } | PlannedAction::Delegate { call, .. } => {
                graph.args[call.args.range()].iter().for_each(|&id| read[id as usize] = true);
            }
            PlannedAction::MoveNumber { from, .. } => read[*from as usize] = true,
            PlannedAction::JumpFalse { condition, .. } => read[*condition as usize] = true,
            _ => {}
        }
    }
    for id in 0..read.len() {
        if let (true, Value::IntList(span)) = (read[id], graph.state.values[id]) {
            graph.state.ids[span.range()].iter().for_each(|&item| read[item as usize] = true);
        }
    }
    Ok(read)
}

/// The addresses that instructions write, disjoint and rising.
fn written(graph: &PlanGraph<'_>, frozen: &Plan) -> Result<Vec<Range<u64>>, LoadError> {
    let mut values = filled(false, graph.state.values.len())?;
    let mut tensors = filled(false, graph.state.tensors.len())?;
    for step in frozen.chains.iter().flatten() {
        match &step.action {
            PlannedAction::Kernel { call, .. } | PlannedAction::Delegate { call, .. } => {
                let ids = graph.args[call.args.range()].iter().enumerate();
                ids.filter(|&(arg, _)| call.access.is_out(arg)).for_each(|(_, &id)| values[id as usize] = true);
            }
            PlannedAction::MoveTensor { to, .. } => tensors[*to as usize] = true,
            _ => {}
        }
    }
    // A list is looked through once, however many instructions write it.
    for (id, _) in (0..).zip(values).filter(|(_, written)| *written) {
        graph.state.tensors_of(id).for_each(|tensor| tensors[tensor as usize] = true);
    }
    let mut ranges = Vec::new();
    grow(&mut ranges, tensors.iter().filter(|written| **written).count())?;
    let written = graph.state.tensors.iter().zip(tensors).filter(|(_, written)| *written);
    ranges.extend(written.map(|(tensor, _)| tensor.region.addresses()));
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    Ok(ranges)
}
