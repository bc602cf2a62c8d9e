//! Values leave the places that the exporter planned for them.
//!
//! A plan puts a value where an earlier one ended. What is computed in one pass instead of two may then write its result
//! over what it still reads, and would not be computed in one pass. So a value whose bytes nobody else reads becomes a
//! temporary; where temporaries are is decided after all rewrites, in the planned memory if there is room.

use std::collections::HashMap;
use std::ops::Range;

use crate::api::context::bit;
use crate::api::kernel::Alias;
use crate::api::room::{filled, grow};
use crate::api::storage::Region;
use crate::pte::plan_graph::{PlanGraph, PlanInstructionKind, Rewrite};

use super::uses::Uses;

/// Makes temporaries of planned values that are written whole before they are read. Values stay together where an
/// instruction works in place, and views stay views.
pub struct DetachPlanned;

impl Rewrite for DetachPlanned {
    fn name(&self) -> &'static str {
        "detach planned values"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        detach(graph).unwrap_or(0)
    }
}

/// Returns how many values moved; `None`, and nothing changed, if the method jumps or there is no memory to find out.
fn detach(graph: &mut PlanGraph<'_>) -> Option<usize> {
    let uses = Uses::of(graph)?;
    let tensors = graph.state.tensors.len();
    let own = own_memories(graph)?;
    let is_own = |region: &Region| {
        let range = region.addresses();
        let after = own.partition_point(|own| own.end < range.end);
        own.get(after).is_some_and(|own| own.start <= range.start)
    };
    let mut stays = filled(false, tensors).ok()?;
    let mut groups = Groups(filled(0, tensors).ok()?);
    groups.0.iter_mut().zip(0..).for_each(|(group, tensor)| *group = tensor);
    for (stays, tensor) in stays.iter_mut().zip(0..) {
        let (state, used) = (&graph.state.tensors[tensor as usize], uses.of_tensor(tensor));
        let has_bytes = !state.constant && !state.region.is_empty() && !state.region.is_temporary();
        let is_known = used.writes > 0 || used.view_of.is_some();
        *stays = used.pinned || !is_known || !has_bytes || !is_own(&state.region);
        if let Some(base) = used.view_of {
            groups.join(tensor, base);
        }
    }
    for instruction in graph.chains.iter().flatten() {
        let PlanInstructionKind::Kernel { operator, args } = instruction.kind else { continue };
        let called = graph.operators.get(operator as usize)?;
        let (outs, results) = (called.info.outs(), called.info.results());
        let ids = graph.args.get(args.range())?;
        let outputs = ids.iter().enumerate().filter(|(arg, _)| (outs | results) & bit(*arg) != 0);
        for (arg, output) in outputs.flat_map(|(arg, &id)| graph.state.tensors_of(id).map(move |out| (arg, out))) {
            // It may be read first, or keep a part of what it was.
            stays[output as usize] |= results & bit(arg) == 0;
            if called.kernel.alias() != Alias::SameRange {
                continue;
            }
            let region = graph.state.tensors[output as usize].region;
            let inputs = ids.iter().take(called.info.arity()).enumerate();
            let inputs = inputs.filter(|(arg, _)| (outs | results) & bit(*arg) == 0);
            for input in inputs.flat_map(|(_, &id)| graph.state.tensors_of(id)) {
                let input_region = graph.state.tensors[input as usize].region;
                if !region.is_empty() && !input_region.is_empty() && region.same_start(&input_region) {
                    groups.join(output, input);
                }
            }
        }
    }
    // Of a group all or none.
    let mut lengths: HashMap<u32, usize> = HashMap::new();
    lengths.try_reserve(tensors).ok()?;
    for tensor in 0..tensors as u32 {
        let group = groups.of(tensor);
        stays[group as usize] |= stays[tensor as usize];
        let longest = lengths.entry(group).or_default();
        *longest = graph.state.tensors[tensor as usize].region.len().max(*longest);
    }
    let mut places: HashMap<u32, Region> = HashMap::new();
    places.try_reserve(lengths.len()).ok()?;
    for group in 0..tensors as u32 {
        if let Some(&bytes) = lengths.get(&group).filter(|_| !stays[group as usize]) {
            places.insert(group, graph.memory.temporary(bytes)?);
        }
    }
    graph.changed();
    let mut moved = 0;
    for tensor in 0..tensors as u32 {
        if let Some(place) = places.get(&groups.of(tensor)) {
            let region = &mut graph.state.tensors[tensor as usize].region;
            *region = place.prefix(region.len());
            moved += 1;
        }
    }
    Some(moved)
}

/// Planned memories that no other method has, in order.
fn own_memories(graph: &PlanGraph<'_>) -> Option<Vec<Range<u64>>> {
    let own = graph.memory.arenas.own().filter_map(|arena| Some(arena.region(0, arena.len())?.addresses()));
    let mut list = Vec::new();
    grow(&mut list, graph.memory.arenas.len()).ok()?;
    list.extend(own);
    list.sort_unstable_by_key(|range| range.start);
    Some(list)
}

/// Tensors that start at one place: by tensor, another one of its group, or itself.
struct Groups(Vec<u32>);

impl Groups {
    /// Returns the tensor that stands for a group.
    fn of(&mut self, tensor: u32) -> u32 {
        let mut at = tensor;
        while self.0[at as usize] != at {
            // Every second step on the way is left out the next time.
            let over = self.0[self.0[at as usize] as usize];
            self.0[at as usize] = over;
            at = over;
        }
        at
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}
