//! The proof that every tensor's bytes are memory the method keeps alive, made when a plan is frozen.
//!
//! It trusts neither the file, nor the loader of memory, nor a rewrite. It sees the owners as they are and the regions
//! as they will be used.

use std::ops::Range;

use edgepack_format::finding::ErrorCode;
use edgepack_loader::Program;

use crate::api::error::KernelError;
use crate::api::storage::{Block, Region};
use crate::pte::plan_graph::{Memory, PlanGraph};

/// One owner: its addresses, and what is known of them.
struct Owner {
    range: Range<u64>,
    /// Instructions may write there.
    writable: bool,
    /// Some tensor in it is for reading only, or for writing.
    read: bool,
    written: bool,
}

/// An error unless every region of the graph is inside one owner, regions for writing inside one that may be written,
/// and no owner holds both constants and what instructions may write.
pub(crate) fn check(graph: &PlanGraph<'_>, program: &Program) -> Result<(), KernelError> {
    let mut owners = Owners::of(&graph.memory, program);
    for (index, tensor) in graph.state.tensors.iter().enumerate() {
        let region = &tensor.region;
        let wrong = |what: &str| {
            let message = format!("tensor {index} has {} bytes {what}", region.len());
            Err(KernelError::new(ErrorCode::Internal, message))
        };
        if region.is_empty() {
            continue;
        }
        let Some(owner) = owners.find(region) else {
            return wrong("outside of all memory of the method");
        };
        let writable = region.is_writable();
        *(if writable { &mut owner.written } else { &mut owner.read }) = true;
        if (writable && (tensor.constant || !owner.writable)) || (owner.read && owner.written) {
            return wrong("of constants that may be written");
        }
    }
    Ok(())
}

impl Owner {
    fn new(range: Range<u64>, writable: bool) -> Self {
        Owner { range, writable, read: false, written: false }
    }
}

/// Owners by address.
struct Owners {
    list: Vec<Owner>,
}

impl Owners {
    fn of(memory: &Memory, program: &Program) -> Self {
        let block = |block: &Block| block.region(0, block.len()).map(|region| region.addresses());
        let arenas = memory.arenas.iter().filter_map(|arena| arena.region(0, arena.len()));
        let private = memory.private.iter().filter_map(block);
        let writable = arenas.map(|region| region.addresses()).chain(private);
        // Constants of older files are inside the flatbuffer.
        let constants = memory.constants.iter().map(|bytes| &**bytes).chain([program.flatbuffer()]);
        let read_only = constants.map(|bytes| Region::read_only(bytes).addresses());
        let mut list: Vec<Owner> = writable
            .map(|range| Owner::new(range, true))
            .chain(read_only.map(|range| Owner::new(range, false)))
            .filter(|owner| !owner.range.is_empty())
            .collect();
        // Handles of one memory repeat: of those with the same start the longest comes first, and counts.
        list.sort_unstable_by_key(|owner| (owner.range.start, std::cmp::Reverse(owner.range.end)));
        let mut end = 0;
        list.retain(|owner| {
            let inside = owner.range.end <= end;
            end = end.max(owner.range.end);
            !inside
        });
        Owners { list }
    }

    /// The owner that all of a region is in.
    fn find(&mut self, region: &Region) -> Option<&mut Owner> {
        let range = region.addresses();
        // No owner is inside another one, so both starts and ends rise.
        let after = self.list.partition_point(|owner| owner.range.end < range.end);
        self.list.get_mut(after).filter(|owner| owner.range.start <= range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_loader::AlignedBytes;

    fn owners(ranges: &[(u64, u64, bool)]) -> Owners {
        let list = ranges.iter().map(|&(start, end, writable)| Owner::new(start..end, writable));
        Owners { list: list.collect() }
    }

    #[test]
    fn a_region_is_found_in_the_owner_that_has_all_of_it() {
        let bytes = AlignedBytes::zeroed(64).unwrap();
        let start = bytes.as_ptr() as u64;
        let region = |from: usize, to: usize| Region::read_only(bytes.get(from..to).unwrap());
        let mut owners = owners(&[(start, start + 16, true), (start + 16, start + 48, false)]);
        let mut writable = |from, to| owners.find(&region(from, to)).map(|owner| owner.writable);
        assert_eq!(writable(0, 16), Some(true));
        assert_eq!(writable(4, 5), Some(true));
        assert_eq!(writable(16, 48), Some(false));
        assert_eq!(writable(15, 17), None);
        assert_eq!(writable(40, 49), None);
        assert_eq!(writable(60, 64), None);
    }
}
