//! Gives temporary tensors their memory, once a method was rewritten.
//!
//! They lie in the planned memory of the method as far as values that stay where they are leave room, and else in memory
//! of their own. Temporaries that share bytes are placed as one. One that is used within one straight stretch of
//! instructions, written first, needs its bytes from its first use to its last; any other for the whole method. Nothing
//! is assumed of jumps beyond that.

use std::ops::Range;

use edgepack_memory_plan::{Block, Lifetime, NoPlan, Placement, Strategy, place};

use crate::api::room::{filled, grow, no_room};
use crate::api::state::ValueId;
use crate::api::storage::{BLOCK_ALIGN, Region};
use crate::pte::error::LoadError;
use crate::pte::plan_graph::{PlanGraph, PlanInstructionKind};

/// Up to this many are packed as tightly as all strategies together can; beyond, in time by their number.
const FEW: usize = 1000;

/// Temporaries that share bytes, one after another in their common offsets.
struct Cluster {
    start: u64,
    end: u64,
    uses: Option<Uses>,
}

/// Instructions between which a cluster is used.
#[derive(Clone, Copy)]
struct Uses {
    first: u32,
    last: u32,
    /// The straight stretch of the first use.
    stretch: u32,
    /// All uses are in it, and the first one writes.
    simple: bool,
}

pub(crate) fn place_temporaries(graph: &mut PlanGraph<'_>) -> Result<(), LoadError> {
    let mut tensors: Vec<u32> = Vec::new();
    for (index, _) in (0..).zip(&graph.state.tensors).filter(|(_, tensor)| tensor.region.is_temporary()) {
        grow(&mut tensors, 1)?;
        tensors.push(index);
    }
    if tensors.is_empty() {
        return Ok(());
    }
    let range = |graph: &PlanGraph<'_>, tensor: u32| graph.state.tensors[tensor as usize].region.addresses();
    tensors.sort_unstable_by_key(|&tensor| range(graph, tensor).start);
    let (mut clusters, mut cluster_of) = (Vec::<Cluster>::new(), filled(u32::MAX, graph.state.tensors.len())?);
    for &tensor in &tensors {
        let range = range(graph, tensor);
        match clusters.last_mut().filter(|last| range.start < last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => {
                grow(&mut clusters, 1)?;
                clusters.push(Cluster { start: range.start, end: range.end, uses: None });
            }
        }
        cluster_of[tensor as usize] = (clusters.len() - 1) as u32;
    }
    let positions = find_uses(graph, &cluster_of, &mut clusters)?;

    let whole = Lifetime { first: 0, last: positions };
    let mut blocks = Vec::new();
    grow(&mut blocks, clusters.len())?;
    blocks.extend(clusters.iter().map(|cluster| match cluster.uses {
        Some(uses) => {
            let lifetime = if uses.simple { Lifetime { first: uses.first, last: uses.last } } else { whole };
            Block { bytes: cluster.end - cluster.start, lifetime, fixed: None }
        }
        // Rewritten away.
        None => Block { bytes: 0, lifetime: whole, fixed: None },
    }));
    let home = Home::of(graph)?;
    let places = home.place(&blocks, graph)?;
    for &tensor in &tensors {
        let index = cluster_of[tensor as usize] as usize;
        let region = &mut graph.state.tensors[tensor as usize].region;
        let inside = (region.addresses().start - clusters[index].start) as usize;
        *region = places[index].after(inside).prefix(region.len());
    }
    Ok(())
}

/// Planned memory of the method's own, and the part of it that values have which stay where they are.
struct Home {
    memory: Option<Region>,
    taken: Vec<Range<u64>>,
}

/// Up to this many pieces of planned memory are kept apart; of more, all up to the last one counts as taken.
const PIECES: usize = 64;

impl Home {
    /// The largest of the planned memories.
    fn of(graph: &PlanGraph<'_>) -> Result<Self, LoadError> {
        let memories = graph.memory.arenas.own().filter_map(|arena| arena.region(0, arena.len()));
        let Some(memory) = memories.max_by_key(Region::len) else {
            return Ok(Home { memory: None, taken: Vec::new() });
        };
        let start = memory.addresses().start;
        let mut taken: Vec<Range<u64>> = Vec::new();
        for tensor in graph.state.tensors.iter().filter(|tensor| !tensor.region.is_empty()) {
            if memory.contains(&tensor.region) {
                grow(&mut taken, 1)?;
                let range = tensor.region.addresses();
                taken.push(range.start - start..range.end - start);
            }
        }
        taken.sort_unstable_by_key(|range| range.start);
        taken.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        if taken.len() > PIECES {
            taken = taken.last().map(|last| 0..last.end).into_iter().collect();
        }
        Ok(Home { memory: Some(memory), taken })
    }

    /// Bytes of it that no value has which stays where it is.
    fn free(&self) -> u64 {
        let taken: u64 = self.taken.iter().map(|range| range.end - range.start).sum();
        self.memory.map_or(0, |memory| (memory.len() as u64).saturating_sub(taken))
    }

    /// Gives every block a place: in this memory if it is free there, in new memory what does not fit.
    fn place(&self, blocks: &[Block], graph: &mut PlanGraph<'_>) -> Result<Vec<Region>, LoadError> {
        let mut places = filled(Region::empty(), blocks.len())?;
        let whole = Lifetime { first: 0, last: u32::MAX };
        let fixed = self.taken.iter().map(|range| (range.end - range.start, range.start));
        let mut all = Vec::new();
        grow(&mut all, self.taken.len().saturating_add(blocks.len()))?;
        all.extend(fixed.map(|(bytes, start)| Block { bytes, lifetime: whole, fixed: Some(start) }));
        all.extend_from_slice(blocks);
        let least = blocks.iter().map(|block| block.bytes).filter(|bytes| *bytes > 0).min().unwrap_or(u64::MAX);
        if let Some(memory) = self.memory.filter(|_| least <= self.free()) {
            let plan = packed(&all)?;
            for ((place, block), &offset) in places.iter_mut().zip(blocks).zip(&plan.offsets[self.taken.len()..]) {
                let end = offset.saturating_add(block.bytes);
                if block.bytes > 0 && end <= memory.len() as u64 {
                    *place = memory.after(offset as usize).prefix(block.bytes as usize);
                }
            }
        }
        let mut rest = all.split_off(self.taken.len());
        for (block, _) in rest.iter_mut().zip(&places).filter(|(_, place)| !place.is_empty()) {
            block.bytes = 0;
        }
        if rest.iter().all(|block| block.bytes == 0) {
            return Ok(places);
        }
        let plan = packed(&rest)?;
        let bytes = usize::try_from(plan.bytes).map_err(|_| no_room("temporaries", plan.bytes))?;
        let memory = graph.account.block("temporaries", bytes)?;
        for ((place, block), &offset) in places.iter_mut().zip(&rest).zip(&plan.offsets) {
            if block.bytes > 0 {
                let region = usize::try_from(offset).ok().and_then(|at| memory.region(at, block.bytes as usize));
                *place = region.ok_or_else(|| no_room("temporaries", plan.bytes))?;
            }
        }
        graph.memory.private.push(memory);
        Ok(places)
    }
}

/// A plan of blocks, of which those without bytes are left out: they are at 0.
fn packed(blocks: &[Block]) -> Result<Placement, LoadError> {
    let mut some = Vec::new();
    grow(&mut some, blocks.len())?;
    some.extend(blocks.iter().filter(|block| block.bytes > 0));
    let strategy = if some.len() <= FEW { Strategy::Tight } else { Strategy::Quick };
    let Placement { offsets, bytes } = place(&some, BLOCK_ALIGN as u64, strategy).map_err(|cause| match cause {
        NoPlan::Memory => no_room("the plan of temporaries", size_of_val(blocks) as u64),
        _ => no_room("temporaries", u64::MAX),
    })?;
    let mut all = filled(0, blocks.len())?;
    let places = all.iter_mut().zip(blocks).filter(|(_, block)| block.bytes > 0);
    places.zip(offsets).for_each(|((place, _), offset)| *place = offset);
    Ok(Placement { offsets: all, bytes })
}

/// Notes where each cluster is used. Returns the number of positions.
fn find_uses(graph: &PlanGraph<'_>, cluster_of: &[u32], clusters: &mut [Cluster]) -> Result<u32, LoadError> {
    let (mut position, mut stretch) = (0u32, 0u32);
    for chain in &graph.chains {
        let mut targets = filled(false, chain.len().saturating_add(1))?;
        for instruction in chain {
            if let PlanInstructionKind::JumpFalse { target, .. } = instruction.kind
                && let Some(target) = targets.get_mut(target as usize)
            {
                *target = true;
            }
        }
        for (instruction, is_target) in chain.iter().zip(&targets) {
            stretch += u32::from(*is_target);
            let mut touch = |id: ValueId, writes: bool| {
                for tensor in graph.state.tensors_of(id) {
                    let Some(cluster) = clusters.get_mut(cluster_of[tensor as usize] as usize) else { continue };
                    // Bytes that a first write through a shorter view leaves out have no defined value.
                    match &mut cluster.uses {
                        Some(uses) => {
                            uses.last = position;
                            uses.simple &= uses.stretch == stretch;
                        }
                        None => cluster.uses = Some(Uses { first: position, last: position, stretch, simple: writes }),
                    }
                }
            };
            match instruction.kind {
                PlanInstructionKind::Kernel { operator, args } => {
                    let info = &graph.operators[operator as usize].info;
                    let ids = graph.args[args.range()].iter().enumerate();
                    let is_out = |arg: usize| arg < 128 && info.outs() >> arg & 1 == 1;
                    // Inputs first: what an instruction reads and writes is read before. What a call repeats behind the
                    // arguments are its outputs.
                    for (_, &id) in ids.clone().filter(|(arg, _)| *arg < info.arity() && !is_out(*arg)) {
                        touch(id, false);
                    }
                    for (_, &id) in ids.filter(|(arg, _)| is_out(*arg)) {
                        touch(id, true);
                    }
                }
                PlanInstructionKind::Delegate { args, .. } => {
                    graph.args[args.range()].iter().for_each(|&id| touch(id, false));
                }
                PlanInstructionKind::Move { from, to } => {
                    touch(from, false);
                    touch(to, true);
                }
                PlanInstructionKind::JumpFalse { condition, .. } => {
                    touch(condition, false);
                    stretch += 1;
                }
                PlanInstructionKind::Free { value } => touch(value, false),
                PlanInstructionKind::Nop => {}
            }
            position = position.saturating_add(1);
        }
        stretch += 1;
    }
    for tensor in graph.inputs.iter().chain(&graph.outputs).flat_map(|&id| graph.state.tensors_of(id)) {
        if let Some(cluster) = clusters.get_mut(cluster_of[tensor as usize] as usize) {
            cluster.uses = Some(Uses { first: 0, last: position, stretch: 0, simple: false });
        }
    }
    Ok(position)
}
