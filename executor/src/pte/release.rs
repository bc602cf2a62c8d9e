//! Memory that no instruction reads any more is given back once a method has been rewritten.
//!
//! Rewrites make constants of other constants: folded weights, transposed ones. What they were made of stays behind in
//! segments that were read into memory as a whole. A segment of which less than half is still read is left for a copy of
//! that part. Memory that is borrowed from a source stays, but for small constants of one that gives memory back: they are
//! copied, since what is around them would come back with them.

use std::collections::HashSet;
use std::ops::Range;

use edgepack_format::room::push;
use edgepack_loader::Bytes;

use crate::api::room::{OutOfMemory, filled, grow};
use crate::api::state::{State, ValueId};
use crate::api::storage::{BLOCK_ALIGN, Block, Region};
use crate::pte::plan_graph::{Memory, PlanGraph, PlanInstructionKind};

/// Drops memory that no instruction reads. A tensor in that memory has no bytes afterwards.
/// If there is not enough memory to find out, everything stays.
pub(crate) fn release_unread(graph: &mut PlanGraph<'_>) {
    let _ = try_release(graph);
}

/// Tells the sources of constants that loading has read all it wanted: kernels have what they packed, and of a mapped file
/// the pages that runs read come back one by one. Small constants, which are between large ones that nobody reads again, are
/// copied before.
pub(crate) fn release_pages(graph: &mut PlanGraph<'_>) {
    // Without memory for copies they stay where they are.
    let _ = copy_small(graph);
    Bytes::release_all(graph.memory.constants.iter());
}

/// The most bytes of a constant that is copied: a fraction of what a system brings into memory around a byte that is read.
const SMALL: usize = 16 << 10;

fn copy_small(graph: &mut PlanGraph<'_>) -> Result<(), OutOfMemory> {
    let used = used_tensors(graph)?;
    let PlanGraph { state, memory: Memory { constants, private, .. }, account, .. } = graph;
    let mut sources: Vec<&[u8]> = Vec::new();
    grow(&mut sources, constants.len())?;
    sources.extend(constants.iter().filter(|bytes| bytes.gives_back()).map(|bytes| &**bytes));
    if sources.is_empty() {
        return Ok(());
    }
    sources.sort_unstable_by_key(|bytes| bytes.as_ptr());
    let bytes = |start: u64, len: usize| {
        let after = sources.partition_point(|bytes| bytes.as_ptr() as u64 <= start);
        let source = sources.get(after.checked_sub(1)?)?;
        let first = (start - source.as_ptr() as u64) as usize;
        source.get(first..first.checked_add(len)?)
    };
    let mut small: Vec<(u64, u32)> = Vec::new();
    for (index, (tensor, _)) in (0..).zip(state.tensors.iter().zip(used)).filter(|(_, (_, used))| *used) {
        let (start, len) = (tensor.region.addresses().start, tensor.region.len());
        if tensor.constant && (1..=SMALL).contains(&len) && bytes(start, len).is_some() {
            push(&mut small, (start, index))?;
        }
    }
    if small.is_empty() {
        return Ok(());
    }
    small.sort_unstable();
    let (offsets, total) = side_by_side(state, &small)?;
    grow(private, 1)?;
    let mut block = account.block("small constants", total)?;
    if move_into(state, &mut block, &small, &offsets, bytes).is_some() {
        private.push(block);
    }
    Ok(())
}

fn try_release(graph: &mut PlanGraph<'_>) -> Result<(), OutOfMemory> {
    let used = used_tensors(graph)?;
    let start = |tensor: u32| graph.state.tensors[tensor as usize].region.addresses().start;
    let mut by_place: Vec<(u64, u32)> = Vec::new();
    grow(&mut by_place, used.len())?;
    by_place.extend((0..).zip(&used).filter(|(_, used)| **used).map(|(t, _)| (start(t), t)));
    by_place.sort_unstable();
    // A region is inside of its owner, so those that start there are all that are there.
    let inside = |owner: &Range<u64>| {
        let first = by_place.partition_point(|&(start, _)| start < owner.start);
        let end = by_place.partition_point(|&(start, _)| start < owner.end);
        by_place.get(first..end).unwrap_or_default()
    };
    let PlanGraph { state, memory, .. } = graph;
    let mut gone: Vec<Range<u64>> = Vec::new();
    grow(&mut gone, memory.constants.len() + memory.private.len())?;
    grow(&mut memory.private, memory.constants.len())?;
    let (mut seen, mut copies) = (HashSet::new(), Vec::new());
    for bytes in memory.constants.iter().filter(|bytes| bytes.is_heap()) {
        let owner = Region::read_only(bytes).addresses();
        // External tensors of one key hold the same bytes.
        if seen.insert(owner.start)
            && let Some(copy) = leave(state, bytes, &owner, inside(&owner))
        {
            copies.push(copy);
            gone.push(owner);
        }
    }
    let blocks = memory.private.iter().filter_map(|block| Some(block.region(0, block.len())?.addresses()));
    gone.extend(blocks.filter(|owner| !owner.is_empty() && inside(owner).is_empty()));
    gone.sort_unstable_by_key(|owner| owner.start);
    let is_gone = |start: u64| {
        let after = gone.partition_point(|owner| owner.end <= start);
        gone.get(after).is_some_and(|owner| owner.contains(&start))
    };
    for (tensor, _) in state.tensors.iter_mut().zip(used).filter(|(_, used)| !used) {
        if is_gone(tensor.region.addresses().start) {
            tensor.region = Region::empty();
        }
    }
    memory.constants.retain(|bytes| !bytes.is_heap() || !is_gone(Region::read_only(bytes).addresses().start));
    memory.private.retain(|block| !block.region(0, block.len()).is_some_and(|block| is_gone(block.addresses().start)));
    memory.private.extend(copies.into_iter().filter(|copy| !copy.is_empty()));
    Ok(())
}

/// Copies what is read of some bytes, in order of their places, if that is less than half of them. `None`, and nothing
/// changed, if it is more.
fn leave(state: &mut State, bytes: &[u8], owner: &Range<u64>, inside: &[(u64, u32)]) -> Option<Block> {
    let (offsets, total) = side_by_side(state, inside).ok()?;
    if total > bytes.len() / 2 {
        return None;
    }
    let mut block = Block::zeroed(total)?;
    move_into(state, &mut block, inside, &offsets, |start, len| {
        bytes.get((start - owner.start) as usize..)?.get(..len)
    })?;
    Some(block)
}

/// Returns offsets for tensors in order of their places, one behind another, and the bytes of all. Tensors that show the same
/// bytes go on doing so.
fn side_by_side(state: &State, tensors: &[(u64, u32)]) -> Result<(Vec<usize>, usize), OutOfMemory> {
    let mut total = 0usize;
    let mut offsets = Vec::new();
    grow(&mut offsets, tensors.len())?;
    let mut last: Option<Range<u64>> = None;
    for &(_, tensor) in tensors {
        let place = state.tensors[tensor as usize].region.addresses();
        match &last {
            Some(last) if *last == place => {}
            _ => total += last.map_or(0, |last| length(&last).next_multiple_of(BLOCK_ALIGN)),
        }
        offsets.push(total);
        last = Some(place);
    }
    Ok((offsets, total + last.map_or(0, |last| length(&last))))
}

/// Copies tensors into a block, of the bytes that `bytes` finds at an address, and lets them have their place there. `None`, and
/// no tensor moved, if one has no bytes or no room.
fn move_into<'b>(
    state: &mut State,
    block: &mut Block,
    tensors: &[(u64, u32)],
    offsets: &[usize],
    bytes: impl Fn(u64, usize) -> Option<&'b [u8]>,
) -> Option<()> {
    for (&(start, tensor), &offset) in tensors.iter().zip(offsets) {
        let len = state.tensors[tensor as usize].region.len();
        block.region(offset, len)?;
        block.bytes_mut().get_mut(offset..offset + len)?.copy_from_slice(bytes(start, len)?);
    }
    for (&(_, tensor), &offset) in tensors.iter().zip(offsets) {
        let region = &mut state.tensors[tensor as usize].region;
        *region = block.region(offset, region.len())?.frozen();
    }
    Some(())
}

/// By tensor: whether an instruction or the caller may look at it.
fn used_tensors(graph: &PlanGraph<'_>) -> Result<Vec<bool>, OutOfMemory> {
    let mut used = filled(false, graph.state.tensors.len())?;
    let mut mark = |id: ValueId| graph.state.tensors_of(id).for_each(|tensor| used[tensor as usize] = true);
    for instruction in graph.chains.iter().flatten() {
        match instruction.kind {
            PlanInstructionKind::Kernel { args, .. } | PlanInstructionKind::Delegate { args, .. } => {
                graph.args[args.range()].iter().for_each(|&id| mark(id));
            }
            PlanInstructionKind::Move { from, to } => [from, to].into_iter().for_each(&mut mark),
            PlanInstructionKind::JumpFalse { condition, .. } => mark(condition),
            PlanInstructionKind::Free { value } => mark(value),
            PlanInstructionKind::Nop => {}
        }
    }
    graph.inputs.iter().chain(&graph.outputs).for_each(|&id| mark(id));
    Ok(used)
}

/// Bytes between two addresses of one region.
fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}
