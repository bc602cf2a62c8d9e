//! The reference exporter's algorithm: shelves.
//!
//! Blocks come by decreasing size. Each goes on the first shelf that is free for its lifetime, or has room behind all its
//! tenants of that time, or on a new shelf of its own size. Shelves never grow and stand one after another, behind
//! whatever has a fixed place.

use alloc::vec::Vec;

use super::{Block, Lifetime, NoPlan, Placement, indices, unplaced};

struct Shelf {
    bytes: u64,
    tenants: Vec<Tenant>,
}

struct Tenant {
    /// The block.
    index: usize,
    /// From where to where on the shelf.
    at: u64,
    end: u64,
    lifetime: Lifetime,
}

impl Shelf {
    /// The end of the tenants that live while another would.
    fn taken(&self, lifetime: Lifetime) -> u64 {
        let met = self.tenants.iter().filter(|tenant| tenant.lifetime.meets(&lifetime));
        met.map(|tenant| tenant.end).max().unwrap_or(0)
    }
}

/// Places rounded blocks whose sizes do not overflow in sum; none where that takes more than `most` bytes.
pub(super) fn place(blocks: &[Block], align: u64, most: u64) -> Result<Option<Placement>, NoPlan> {
    let mut order = indices(blocks.len())?;
    // Equal sizes in reverse, as the reference pops them.
    order.sort_unstable_by_key(|&index| (blocks.get(index).map(|block| block.bytes), index));
    let mut shelves: Vec<Shelf> = Vec::new();
    let fixed = blocks.iter().filter_map(|block| Some(block.fixed?.saturating_add(block.bytes))).max().unwrap_or(0);
    let base = fixed.checked_next_multiple_of(align).unwrap_or(fixed);
    let mut bytes = base;
    for index in order.into_iter().rev() {
        let Some(block) = blocks.get(index).filter(|block| block.fixed.is_none()) else { continue };
        let mut found = None;
        for (number, shelf) in shelves.iter().enumerate() {
            let taken = shelf.taken(block.lifetime);
            if taken == 0 {
                found = Some((number, 0));
                break;
            }
            if found.is_none() && taken.saturating_add(block.bytes) <= shelf.bytes {
                found = Some((number, taken));
            }
        }
        let (number, at) = found.unwrap_or((shelves.len(), 0));
        if number == shelves.len() {
            bytes = bytes.saturating_add(block.bytes);
            if bytes > most {
                return Ok(None);
            }
            push(&mut shelves, Shelf { bytes: block.bytes, tenants: Vec::new() })?;
        }
        if let Some(shelf) = shelves.get_mut(number) {
            let end = at.saturating_add(block.bytes);
            push(&mut shelf.tenants, Tenant { index, at, end, lifetime: block.lifetime })?;
        }
    }
    let mut placement = unplaced(blocks)?;
    let mut start = base;
    for shelf in shelves {
        for tenant in shelf.tenants {
            if let Some(offset) = placement.offsets.get_mut(tenant.index) {
                *offset = start.saturating_add(tenant.at);
            }
        }
        start = start.saturating_add(shelf.bytes);
    }
    placement.bytes = start;
    Ok((start <= most).then_some(placement))
}

/// Adds an item to a list, which may need memory.
fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), NoPlan> {
    list.try_reserve(1).map_err(|_| NoPlan::Memory)?;
    list.push(item);
    Ok(())
}
