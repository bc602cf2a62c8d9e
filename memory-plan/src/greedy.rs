//! The reference exporter's algorithm: shelves.
//!
//! Blocks come by decreasing size. Each goes on the first shelf that is free for its lifetime, or has room behind all its
//! tenants of that time, or on a new shelf of its own size. Shelves never grow and stand one after another, behind
//! whatever has a fixed place.

use alloc::vec::Vec;

use super::{Block, NoPlan, Placement, indices, unplaced};

struct Shelf {
    bytes: u64,
    /// Block and offset on the shelf.
    tenants: Vec<(usize, u64)>,
}

/// Places rounded blocks whose sizes do not overflow in sum.
pub(super) fn place(blocks: &[Block], align: u64) -> Result<Placement, NoPlan> {
    let mut order = indices(blocks.len())?;
    // Equal sizes in reverse, as the reference pops them.
    order.sort_unstable_by_key(|&index| (blocks.get(index).map(|block| block.bytes), index));
    let mut shelves: Vec<Shelf> = Vec::new();
    let mut base = 0u64;
    for index in order.into_iter().rev() {
        let Some(block) = blocks.get(index) else { continue };
        if let Some(fixed) = block.fixed {
            base = base.max(fixed.saturating_add(block.bytes));
            continue;
        }
        let found = shelves.iter().enumerate().find_map(|(number, shelf)| {
            let taken = taken(shelf, block, blocks);
            (taken == 0).then_some((number, 0))
        });
        let found = found.or_else(|| {
            shelves.iter().enumerate().find_map(|(number, shelf)| {
                let taken = taken(shelf, block, blocks);
                (taken.saturating_add(block.bytes) <= shelf.bytes).then_some((number, taken))
            })
        });
        let (number, at) = found.unwrap_or((shelves.len(), 0));
        if number == shelves.len() {
            push(&mut shelves, Shelf { bytes: block.bytes, tenants: Vec::new() })?;
        }
        if let Some(shelf) = shelves.get_mut(number) {
            push(&mut shelf.tenants, (index, at))?;
        }
    }
    let mut placement = unplaced(blocks)?;
    let mut start = base.checked_next_multiple_of(align).unwrap_or(base);
    for shelf in shelves {
        for (index, at) in shelf.tenants {
            if let Some(offset) = placement.offsets.get_mut(index) {
                *offset = start.saturating_add(at);
            }
        }
        start = start.saturating_add(shelf.bytes);
    }
    placement.bytes = start;
    Ok(placement)
}

/// Adds an item to a list, which may need memory.
fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), NoPlan> {
    list.try_reserve(1).map_err(|_| NoPlan::Memory)?;
    list.push(item);
    Ok(())
}

/// Returns the end of the shelf's tenants that live while the block does.
fn taken(shelf: &Shelf, block: &Block, blocks: &[Block]) -> u64 {
    let tenants = shelf.tenants.iter().filter_map(|&(index, at)| Some((blocks.get(index)?, at)));
    let met = tenants.filter(|(tenant, _)| tenant.lifetime.meets(&block.lifetime));
    met.map(|(tenant, at)| at.saturating_add(tenant.bytes)).max().unwrap_or(0)
}
