//! A new plan for a program that has one.
//!
//! Only offsets and sizes of planned memory change. Tensors that lie over each other while both live, such as views and
//! their bases, keep lying so. A memory whose new plan would not be smaller stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::pte::{AllocationDetails, EValue, ExecutionPlan, KernelTypes, Program};
use edgepack_memory_plan::MANY;

use super::access::byte_len;
use super::lifetimes::{is_state, lifetimes, root, values_of};
use super::{ALIGNMENT, Block, Lifetime, OVER_READ, Strategy, place};
use crate::{BuildError, Error};

/// Options of [`replan`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReplanOptions {
    /// Packing strategy for the blocks.
    pub strategy: Strategy,
    /// Alignment of the offsets.
    pub alignment: u64,
    /// Memory ids that stay as they are, because the caller shares them between methods.
    pub keep: BTreeSet<u32>,
}

impl Default for ReplanOptions {
    fn default() -> Self {
        ReplanOptions { strategy: Strategy::Smallest, alignment: ALIGNMENT, keep: BTreeSet::new() }
    }
}

impl ReplanOptions {
    /// The same with another strategy.
    pub fn strategy(self, strategy: Strategy) -> Self {
        ReplanOptions { strategy, ..self }
    }

    /// The same with offsets at multiples of `alignment`.
    pub fn alignment(self, alignment: u64) -> Self {
        ReplanOptions { alignment, ..self }
    }

    /// The same, leaving this memory as it is.
    pub fn keep(mut self, memory: u32) -> Self {
        self.keep.insert(memory);
        self
    }
}

/// Change of one planned memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArenaChange {
    /// Name of the method.
    pub method: String,
    /// Id of the memory, from 1.
    pub memory: u32,
    /// Bytes before.
    pub before: u64,
    /// Bytes now.
    pub after: u64,
}

/// Plans every memory of every method again. The program must be one that verifies.
pub fn replan(program: &mut Program<'_>, options: &ReplanOptions) -> Result<Vec<ArenaChange>, BuildError> {
    crate::build_error::check_alignment("planned memory", options.alignment)?;
    let Some(plans) = &mut program.execution_plan else { return Ok(Vec::new()) };
    let plans = plans.to_mut().map_err(Error::Read)?;
    let mut keep = options.keep.clone();
    keep.extend(shared_memories(plans)?);
    let mut changes = Vec::new();
    for plan in plans {
        method(plan, options, &keep, &mut changes)?;
    }
    Ok(changes)
}

/// A planned tensor.
struct Planned {
    value: usize,
    offset: u64,
    bytes: u64,
    lifetime: Lifetime,
}

impl Planned {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

fn method(
    plan: &mut ExecutionPlan<'_>,
    options: &ReplanOptions,
    keep: &BTreeSet<u32>,
    changes: &mut Vec<ArenaChange>,
) -> Result<(), BuildError> {
    let lifetimes = lifetimes(plan).map_err(Error::Read)?;
    let mut memories: BTreeMap<u32, Vec<Planned>> = BTreeMap::new();
    for (value, (row, lifetime)) in values_of(plan).map_err(Error::Read)?.iter().zip(lifetimes).enumerate() {
        if let Some(KernelTypes::Tensor(tensor)) = row
            && let Some(at) = tensor.allocation_info
            && let Some(bytes) = byte_len(tensor)
        {
            // What nothing touches needs a place, but no time.
            let lifetime = lifetime.unwrap_or(Lifetime { first: 0, last: 0 });
            let tensor = Planned { value, offset: at.memory_offset(), bytes, lifetime };
            memories.entry(at.memory_id).or_default().push(tensor);
        }
    }
    let sizes: Vec<i64> = plan.non_const_buffer_sizes.iter().flat_map(|sizes| sizes.iter()).collect();
    let over_read = match &plan.delegates {
        Some(delegates) => delegates.iter().flatten().any(|delegate| delegate.id.as_deref() == Some(OVER_READ.0)),
        None => false,
    };
    let extra = if over_read { OVER_READ.1 } else { 0 };
    for (index, &size) in sizes.iter().enumerate().skip(1) {
        let (Ok(memory), Ok(before)) = (u32::try_from(index), u64::try_from(size)) else { continue };
        let tensors = memories.remove(&memory).unwrap_or_default();
        let mut after = before;
        if !keep.contains(&memory) && tensors.len() <= MANY {
            let groups = overlapping(&tensors);
            let blocks: Vec<Block> = groups.iter().map(|group| group.block).collect();
            let new = place(&blocks, options.alignment, options.strategy);
            if let Some(new) = new.ok().filter(|new| new.bytes.saturating_add(extra) < before) {
                after = new.bytes.saturating_add(extra);
                for (group, start) in groups.iter().zip(&new.offsets) {
                    for (value, within) in &group.members {
                        set_offset(plan, *value, start.saturating_add(*within))?;
                    }
                }
                if let Some(sizes) = &mut plan.non_const_buffer_sizes
                    && let (Some(size), Ok(after)) = (sizes.to_mut().get_mut(index), i64::try_from(after))
                {
                    *size = after;
                }
            }
        }
        let method = plan.name.as_deref().unwrap_or_default().to_owned();
        changes.push(ArenaChange { method, memory, before, after });
    }
    Ok(())
}

fn set_offset(plan: &mut ExecutionPlan<'_>, value: usize, offset: u64) -> Result<(), BuildError> {
    let Some(values) = &mut plan.values else { return Ok(()) };
    let values = values.to_mut().map_err(Error::Read)?;
    if let Some(EValue { val: Some(KernelTypes::Tensor(tensor)) }) = values.get_mut(value)
        && let Some(at) = &mut tensor.allocation_info
    {
        *at = details(at.memory_id, offset);
    }
    Ok(())
}

/// A place in planned memory as a row.
pub(crate) fn details(memory_id: u32, offset: u64) -> AllocationDetails {
    let low = u32::try_from(offset & u64::from(u32::MAX)).unwrap_or(0);
    AllocationDetails {
        memory_id,
        memory_offset_low: low,
        memory_offset_high: u32::try_from(offset >> 32).unwrap_or(0),
    }
}

/// Tensors that keep their places relative to each other.
struct Group {
    block: Block,
    /// Value, and its offset in the block.
    members: Vec<(usize, u64)>,
}

/// Groups tensors that lie over each other while both live.
fn overlapping(tensors: &[Planned]) -> Vec<Group> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|&index| tensors.get(index).map(|tensor| (tensor.offset, tensor.value)));
    let mut parent: Vec<usize> = (0..tensors.len()).collect();
    // Those that reach beyond the offset of the current one.
    let mut open: Vec<usize> = Vec::new();
    for &index in &order {
        let Some(tensor) = tensors.get(index) else { continue };
        open.retain(|other| tensors.get(*other).is_some_and(|other| other.end() > tensor.offset));
        for &other in &open {
            if tensor.bytes > 0 && tensors.get(other).is_some_and(|other| other.lifetime.meets(&tensor.lifetime)) {
                let (a, b) = (root(&mut parent, index), root(&mut parent, other));
                if let Some(place) = parent.get_mut(a.max(b)) {
                    *place = a.min(b);
                }
            }
        }
        open.push(index);
    }
    let mut groups: BTreeMap<usize, Vec<&Planned>> = BTreeMap::new();
    for (index, tensor) in tensors.iter().enumerate() {
        groups.entry(root(&mut parent, index)).or_default().push(tensor);
    }
    groups
        .into_values()
        .filter_map(|members| {
            let start = members.iter().map(|tensor| tensor.offset).min()?;
            let end = members.iter().map(|tensor| tensor.end()).max()?;
            let lifetime = members.iter().map(|tensor| tensor.lifetime).reduce(|all, one| all.hull(&one))?;
            let block = Block { bytes: end.saturating_sub(start), lifetime, fixed: None };
            let members = members.iter().map(|tensor| (tensor.value, tensor.offset.saturating_sub(start))).collect();
            Some(Group { block, members })
        })
        .collect()
}

/// Memories that hold the same state at the same place in several methods: their arenas are meant to be shared.
fn shared_memories(plans: &[ExecutionPlan<'_>]) -> Result<BTreeSet<u32>, BuildError> {
    let mut seen: BTreeMap<(String, u32, u64), usize> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for (number, plan) in plans.iter().enumerate() {
        for value in values_of(plan).map_err(Error::Read)? {
            if !is_state(&value) {
                continue;
            }
            let Some(KernelTypes::Tensor(tensor)) = value else { continue };
            let name = tensor.extra_tensor_info.and_then(|extra| extra.fully_qualified_name);
            if let (Some(name), Some(at)) = (name, tensor.allocation_info) {
                let first = *seen.entry((name.into_owned(), at.memory_id, at.memory_offset())).or_insert(number);
                if first != number {
                    shared.insert(at.memory_id);
                }
            }
        }
    }
    Ok(shared)
}
