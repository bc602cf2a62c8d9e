//! The tightest gap: each block goes between blocks that live at the same time, where it leaves the least room over.

use alloc::vec::Vec;

use super::{Block, Lifetime, NoPlan, Placement, unplaced, with_room};

/// Order of the blocks. Which order packs best depends on the method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// The largest first.
    Size,
    /// The largest product of bytes and instructions first.
    Area,
    /// The longest-lived first, then the largest.
    Duration,
    /// As they begin to live. Needs no comparison of all pairs: what has ended is removed.
    Time,
}

impl Order {
    /// The blocks that need a place, in this order.
    fn sort(self, blocks: &[Block]) -> Result<Vec<(u128, u64, usize)>, NoPlan> {
        let mut order = with_room(blocks.len())?;
        for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.fixed.is_none() && block.bytes > 0) {
            let length = u64::from(block.lifetime.last.saturating_sub(block.lifetime.first)).saturating_add(1);
            let size = block.bytes;
            // Ascending order of what is subtracted from the largest number.
            let (first, second) = match self {
                Order::Size => (u128::MAX.saturating_sub(size.into()), u64::MAX.saturating_sub(length)),
                Order::Area => {
                    let area = u128::from(size).saturating_mul(length.into());
                    (u128::MAX.saturating_sub(area), u64::MAX.saturating_sub(size))
                }
                Order::Duration => (u128::MAX.saturating_sub(length.into()), u64::MAX.saturating_sub(size)),
                Order::Time => (u128::from(block.lifetime.first), u64::MAX.saturating_sub(size)),
            };
            order.push((first, second, index));
        }
        order.sort_unstable();
        Ok(order)
    }
}

/// A block that has a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    start: u64,
    end: u64,
    lifetime: Lifetime,
}

/// Places rounded blocks whose sizes do not overflow in sum; none where that takes more than `most` bytes.
pub(super) fn place(blocks: &[Block], align: u64, order: Order, most: u64) -> Result<Option<Placement>, NoPlan> {
    let mut placement = unplaced(blocks)?;
    // What has a place, by offset. Blocks without bytes are in nobody's way.
    let mut placed: Vec<Placed> = with_room(blocks.len())?;
    for block in blocks {
        if let Some(start) = block.fixed {
            let end = start.saturating_add(block.bytes);
            placement.bytes = placement.bytes.max(end);
            if block.bytes > 0 {
                placed.push(Placed { start, end, lifetime: block.lifetime });
            }
        }
    }
    placed.sort_unstable();
    for (_, _, index) in order.sort(blocks)? {
        let Some(block) = blocks.get(index) else { continue };
        if order == Order::Time {
            placed.retain(|other| other.lifetime.last >= block.lifetime.first);
        }
        let start = tightest(block, &placed, align);
        let entry = Placed { start, end: start.saturating_add(block.bytes), lifetime: block.lifetime };
        placement.bytes = placement.bytes.max(entry.end);
        if placement.bytes > most {
            return Ok(None);
        }
        if let Some(offset) = placement.offsets.get_mut(index) {
            *offset = start;
        }
        let place = placed.partition_point(|other| *other < entry);
        placed.insert(place, entry);
    }
    Ok((placement.bytes <= most).then_some(placement))
}

/// The start of the smallest gap that holds the block, or the end of all it meets.
fn tightest(block: &Block, placed: &[Placed], align: u64) -> u64 {
    let next = |end: u64| end.checked_next_multiple_of(align);
    let mut end = 0u64;
    let mut best: Option<(u64, u64)> = None;
    for other in placed.iter().filter(|other| other.lifetime.meets(&block.lifetime)) {
        if other.start > end {
            let from = next(end).unwrap_or(u64::MAX);
            let gap = other.start.saturating_sub(from);
            if gap >= block.bytes && gap > 0 && best.is_none_or(|(smallest, _)| gap < smallest) {
                best = Some((gap, from));
            }
        }
        end = end.max(other.end);
    }
    best.map_or(next(end).unwrap_or(end), |(_, at)| at)
}
