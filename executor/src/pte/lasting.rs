//! Memory whose content one run leaves to the next: state.
//!
//! An instruction that reads bytes which none before it in the run has written reads what an earlier run left there, or
//! initial data. Those bytes are state; all other memory is written before it is read, so that its content between runs
//! changes nothing. Of methods with jumps every byte that may be written counts as state.

use std::ops::Range;

use crate::api::context::bit;
use crate::api::room::{OutOfMemory, filled, grow};
use crate::api::state::ValueId;
use crate::api::storage::Region;
use crate::pte::freeze::{Call, PlannedAction};
use crate::pte::load::Covered;
use crate::pte::method::Method;

/// State of a method, in an order that depends on its plan alone.
#[derive(Default)]
pub(crate) struct Lasting {
    /// Pieces of memory of its own; none overlaps another.
    pub pieces: Vec<Region>,
    /// Tensors whose sizes, or having been freed, a run finds as the last one left them.
    pub tensors: Vec<u32>,
    /// Tensors in state, shared memories included, that instructions write.
    pub written: Vec<u32>,
}

impl Lasting {
    /// The state in memory that belongs to the method alone.
    pub fn of(method: &Method) -> Result<Self, OutOfMemory> {
        let count = method.state.tensors.len();
        let mut search = Search {
            method,
            seen: Covered::default(),
            settled: filled(false, count)?,
            ranges: Vec::new(),
            found: Lasting::default(),
        };
        let mut written = filled(false, count)?;
        let mut jumps = false;
        for step in method.frozen.chains.iter().flatten() {
            jumps |= matches!(step.action, PlannedAction::JumpFalse { .. });
            match &step.action {
                PlannedAction::Kernel { call, .. } | PlannedAction::Delegate { call, .. } => {
                    let args = method.args[call.args.range()].iter().enumerate();
                    let results = results(method, &step.action).1;
                    let outs = args.filter(|(place, _)| call.access.is_out(*place) || results & bit(*place) != 0);
                    let tensors = outs.flat_map(|(_, &value)| method.state.tensors_of(value));
                    tensors.for_each(|tensor| written[tensor as usize] = true);
                }
                PlannedAction::MoveTensor { to, .. } => written[*to as usize] = true,
                _ => {}
            }
        }
        if jumps {
            (0..count as u32).try_for_each(|tensor| search.read(tensor))?;
        } else {
            search.run()?;
        }
        let Search { mut ranges, mut found, .. } = search;
        ranges.sort_unstable_by_key(|range| range.start);
        found.tensors.retain(|&tensor| written[tensor as usize]);
        for (index, tensor) in method.state.tensors.iter().enumerate() {
            let range = tensor.region.addresses();
            let after = ranges.partition_point(|state| state.end <= range.start);
            if written[index] && !range.is_empty() && ranges.get(after).is_some_and(|state| state.start < range.end) {
                grow(&mut found.written, 1)?;
                found.written.push(index as u32);
            }
        }
        Ok(found)
    }
}

/// Number of arguments of a call, and those that are only there to receive results.
fn results(method: &Method, action: &PlannedAction) -> (usize, u128) {
    match action {
        PlannedAction::Kernel { operator, .. } => method.results[*operator as usize],
        PlannedAction::Delegate { call, .. } => (usize::MAX, call.access.outs),
        _ => (0, 0),
    }
}

/// A walk over the instructions of a run.
struct Search<'m> {
    method: &'m Method,
    /// Addresses that were written in the run, or found to be state.
    seen: Covered,
    /// By tensor: it was written in the run, or found to be state.
    settled: Vec<bool>,
    /// Addresses of state, in shared memories too.
    ranges: Vec<Range<u64>>,
    found: Lasting,
}

impl Search<'_> {
    /// Follows a run from its first instruction to its last.
    fn run(&mut self) -> Result<(), OutOfMemory> {
        let method = self.method;
        for slot in &method.inputs {
            self.written(slot.value)?;
        }
        for step in method.frozen.chains.iter().flatten() {
            match &step.action {
                PlannedAction::Kernel { call, .. } | PlannedAction::Delegate { call, .. } => {
                    let (arity, results) = results(method, &step.action);
                    self.call(*call, arity, results)?;
                }
                PlannedAction::MoveTensor { from, to } => {
                    self.read(*from)?;
                    self.overwrite(*to)?;
                }
                PlannedAction::MoveNumber { .. }
                | PlannedAction::JumpFalse { .. }
                | PlannedAction::Free { .. }
                | PlannedAction::Nop => {}
            }
        }
        Ok(())
    }

    /// Looks at a call: all of its `arity` arguments are read first, but for those that `results` marks, which are only
    /// written. What follows the arguments repeats a result, or is one.
    fn call(&mut self, call: Call, arity: usize, results: u128) -> Result<(), OutOfMemory> {
        let method = self.method;
        let args = &method.args[call.args.range()];
        let is_result = |place: usize| results & bit(place) != 0;
        for (place, &value) in args.iter().enumerate().take(arity) {
            if !is_result(place) {
                method.state.tensors_of(value).try_for_each(|tensor| self.read(tensor))?;
            }
        }
        let mut written = args.iter().enumerate().filter(|(place, _)| is_result(*place));
        written.try_for_each(|(_, &value)| self.written(value))
    }

    fn written(&mut self, value: ValueId) -> Result<(), OutOfMemory> {
        let method = self.method;
        method.state.tensors_of(value).try_for_each(|tensor| self.overwrite(tensor))
    }

    fn overwrite(&mut self, tensor: u32) -> Result<(), OutOfMemory> {
        let range = self.method.state.tensors[tensor as usize].region.addresses();
        if self.settle(tensor) || range.is_empty() { Ok(()) } else { self.seen.cover(range, |_| Ok(())) }
    }

    /// Returns whether all bytes of a tensor were seen before; from now on they are. So a list of many tensors costs no more
    /// than a look at each, however many instructions name it.
    fn settle(&mut self, tensor: u32) -> bool {
        std::mem::replace(&mut self.settled[tensor as usize], true)
    }

    fn read(&mut self, tensor: u32) -> Result<(), OutOfMemory> {
        let facts = &self.method.state.tensors[tensor as usize];
        if self.settle(tensor) || facts.constant {
            return Ok(());
        }
        grow(&mut self.found.tensors, 1)?;
        self.found.tensors.push(tensor);
        let region = facts.region;
        if region.is_empty() || !region.is_writable() {
            return Ok(());
        }
        // What is in a shared memory belongs to no method, and is saved as a whole.
        let own = self.method.memory.arenas.shared_at(&region).is_none();
        let Search { seen, ranges, found, .. } = self;
        let range = region.addresses();
        seen.cover(range.clone(), |gap| {
            grow(ranges, 1)?;
            ranges.push(gap.clone());
            if own {
                grow(&mut found.pieces, 1)?;
                let from = (gap.start - range.start) as usize;
                found.pieces.push(region.after(from).prefix((gap.end - gap.start) as usize));
            }
            Ok(())
        })
    }
}
