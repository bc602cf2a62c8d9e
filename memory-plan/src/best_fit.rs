//! The tightest gap: each block goes between blocks that live at the same time, where it leaves the least room over.

use alloc::vec::Vec;

use super::{Block, NoPlan, Placement, indices, unplaced, with_room};

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
    pub(super) const ALL: [Order; 4] = [Order::Size, Order::Area, Order::Duration, Order::Time];

    pub(super) fn is_quick(self) -> bool {
        self == Order::Time
    }

    fn sort(self, blocks: &[Block]) -> Result<Vec<usize>, NoPlan> {
        let mut order = indices(blocks.len())?;
        order.sort_unstable_by_key(|&index| {
            let Some(block) = blocks.get(index) else { return (0, 0, index) };
            let length = u128::from(block.lifetime.last.saturating_sub(block.lifetime.first)).saturating_add(1);
            let size = u128::from(block.bytes);
            // Ascending order of what is subtracted from the largest number.
            let (first, second) = match self {
                Order::Size => (u128::MAX.saturating_sub(size), u128::MAX.saturating_sub(length)),
                Order::Area => (u128::MAX.saturating_sub(size.saturating_mul(length)), u128::MAX.saturating_sub(size)),
                Order::Duration => (u128::MAX.saturating_sub(length), u128::MAX.saturating_sub(size)),
                Order::Time => (u128::from(block.lifetime.first), u128::MAX.saturating_sub(size)),
            };
            (first, second, index)
        });
        Ok(order)
    }
}

/// Places rounded blocks whose sizes do not overflow in sum.
pub(super) fn place(blocks: &[Block], align: u64, order: Order) -> Result<Placement, NoPlan> {
    let mut placement = unplaced(blocks)?;
    // What has a place, by offset: (offset, end, block).
    let mut placed: Vec<(u64, u64, usize)> = with_room(blocks.len())?;
    for (index, block) in blocks.iter().enumerate() {
        if let Some(at) = block.fixed {
            placed.push((at, at.saturating_add(block.bytes), index));
        }
    }
    placed.sort_unstable();
    placement.bytes = placed.iter().map(|(_, end, _)| *end).max().unwrap_or(0);
    for index in order.sort(blocks)? {
        let Some(block) = blocks.get(index).filter(|block| block.fixed.is_none() && block.bytes > 0) else { continue };
        if order.is_quick() {
            placed.retain(|(_, _, other)| {
                blocks
                    .get(*other)
                    .is_some_and(|other| other.fixed.is_some() || other.lifetime.last >= block.lifetime.first)
            });
        }
        let at = tightest(block, blocks, &placed, align);
        let entry = (at, at.saturating_add(block.bytes), index);
        placement.bytes = placement.bytes.max(entry.1);
        if let Some(offset) = placement.offsets.get_mut(index) {
            *offset = at;
        }
        let place = placed.partition_point(|other| *other < entry);
        placed.insert(place, entry);
    }
    Ok(placement)
}

/// The start of the smallest gap that holds the block, or the end of all it meets.
fn tightest(block: &Block, blocks: &[Block], placed: &[(u64, u64, usize)], align: u64) -> u64 {
    let mut end = 0u64;
    let mut best: Option<(u64, u64)> = None;
    for (start, stop, other) in placed {
        if !blocks.get(*other).is_some_and(|other| other.bytes > 0 && other.lifetime.meets(&block.lifetime)) {
            continue;
        }
        let from = end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        let gap = start.saturating_sub(from);
        if gap >= block.bytes && *start > from && best.is_none_or(|(smallest, _)| gap < smallest) {
            best = Some((gap, from));
        }
        end = end.max(*stop);
    }
    best.map_or(end.checked_next_multiple_of(align).unwrap_or(end), |(_, at)| at)
}
