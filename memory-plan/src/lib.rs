//! Places blocks of memory: lifetimes in, offsets out.
//!
//! A [`Block`] needs a number of bytes from one position of a program to another; [`place`] packs blocks into as few
//! bytes as it can. Two blocks share bytes only if their lifetimes do not meet, and a plan is never larger than the one
//! each [`Strategy`] finds alone. Nothing here knows what the blocks hold.
//!
//! ```
//! use edgepack_memory_plan::{Block, Lifetime, Strategy, place};
//!
//! let block = |bytes, first, last| Block { bytes, lifetime: Lifetime { first, last }, fixed: None };
//! // The first and the third are never needed at the same time.
//! let plan = place(&[block(64, 0, 1), block(32, 1, 2), block(64, 2, 3)], 16, Strategy::Smallest).unwrap();
//! assert_eq!(plan.bytes, 96);
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

extern crate alloc;

mod best_fit;
mod greedy;

use alloc::vec::Vec;

/// Beyond this many blocks the strategies that compare all pairs of blocks are left out.
pub const MANY: usize = 20_000;

/// Packing strategy for the blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Shelves of fixed size, largest block first: what the reference exporter does.
    Greedy,
    /// The tightest gap between blocks that live at the same time.
    BestFit,
    /// The tightest gap, blocks in the order in which they begin to live: in time by their number and by how many live at
    /// once.
    Quick,
    /// Whichever of them, and of several orders, needs the fewest bytes; of equal plans the one of the first strategy.
    #[default]
    Smallest,
    /// As few bytes as `Smallest`; of equal plans the one that is found soonest. That is the quick one where no plan can be
    /// smaller.
    Tight,
}

/// Something that needs bytes for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Number of bytes.
    pub bytes: u64,
    /// For how long.
    pub lifetime: Lifetime,
    /// Offset it has to have, if that is decided.
    pub fixed: Option<u64>,
}

/// Placement of the blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// One offset per block.
    pub offsets: Vec<u64>,
    /// Bytes of the whole memory.
    pub bytes: u64,
}

/// From one position to another, both included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lifetime {
    /// Position that needs the bytes first.
    pub first: u32,
    /// Position that needs the bytes last; it may be `first`.
    pub last: u32,
}

impl Lifetime {
    /// Returns whether a position is in both.
    pub fn meets(&self, other: &Lifetime) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns the shortest lifetime that holds both.
    pub fn hull(&self, other: &Lifetime) -> Lifetime {
        Lifetime { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// Cause for which there is no plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoPlan {
    /// The sizes overflow in sum.
    Overflow,
    /// There is no memory for the tables of the planning itself.
    Memory,
}

impl core::fmt::Display for NoPlan {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            NoPlan::Overflow => "the sizes overflow in sum",
            NoPlan::Memory => "there is no memory to plan in",
        })
    }
}

impl core::error::Error for NoPlan {}

/// Packs blocks into one memory; offsets are multiples of `align`.
///
/// # Errors
///
/// [`NoPlan`] if the sizes overflow, or an allocation fails: no number of blocks aborts.
pub fn place(blocks: &[Block], align: u64, strategy: Strategy) -> Result<Placement, NoPlan> {
    let align = align.max(1);
    let blocks = rounded(blocks, align)?;
    // No sum of sizes below overflows if the sum of all does not.
    let fixed = blocks.iter().filter_map(|block| block.fixed?.checked_add(block.bytes)).max().unwrap_or(0);
    let sum = fixed.checked_add(align).ok_or(NoPlan::Overflow)?;
    blocks.iter().try_fold(sum, |sum, block| sum.checked_add(block.bytes)).ok_or(NoPlan::Overflow)?;

    let many = blocks.len() > MANY;
    let found = match strategy {
        Strategy::Greedy => greedy::place(&blocks, align, u64::MAX)?,
        Strategy::BestFit if !many => best_fit::place(&blocks, align, best_fit::Order::Size, u64::MAX)?,
        _ => best_fit::place(&blocks, align, best_fit::Order::Time, u64::MAX)?,
    };
    // Without a ceiling there is always one.
    let found = found.ok_or(NoPlan::Overflow)?;
    match strategy {
        Strategy::Smallest | Strategy::Tight if !many => smallest(&blocks, align, found, strategy == Strategy::Tight),
        _ => Ok(found),
    }
}

/// The smallest plan of all strategies, of which one is the quick one; of equal ones the first, or the quick one if that is
/// `enough`. A strategy ends where it needs more than another did.
fn smallest(blocks: &[Block], align: u64, quick: Placement, enough: bool) -> Result<Placement, NoPlan> {
    let (floor, mut most) = (least(blocks)?, quick.bytes);
    let mut best = quick;
    if enough && best.bytes <= floor {
        return Ok(best);
    }
    for order in [None, Some(best_fit::Order::Size), Some(best_fit::Order::Area), Some(best_fit::Order::Duration)] {
        let found = match order {
            None => greedy::place(blocks, align, most)?,
            Some(order) => best_fit::place(blocks, align, order, most)?,
        };
        let Some(found) = found else { continue };
        best = found;
        if best.bytes <= floor {
            break;
        }
        most = best.bytes.saturating_sub(1);
    }
    Ok(best)
}

/// An empty list with room for so many items.
fn with_room<T>(count: usize) -> Result<Vec<T>, NoPlan> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| NoPlan::Memory)?;
    Ok(list)
}

/// Indices of so many blocks.
fn indices(count: usize) -> Result<Vec<usize>, NoPlan> {
    let mut list = with_room(count)?;
    list.extend(0..count);
    Ok(list)
}

/// The placement of blocks before any has been placed: offsets that are decided, and 0.
fn unplaced(blocks: &[Block]) -> Result<Placement, NoPlan> {
    let mut offsets = with_room(blocks.len())?;
    offsets.extend(blocks.iter().map(|block| block.fixed.unwrap_or(0)));
    Ok(Placement { offsets, bytes: 0 })
}

/// The blocks, each as long as it is in a plan.
fn rounded(blocks: &[Block], align: u64) -> Result<Vec<Block>, NoPlan> {
    let mut rounded = with_room(blocks.len())?;
    for block in blocks {
        let bytes = block.bytes.checked_next_multiple_of(align).ok_or(NoPlan::Overflow)?;
        rounded.push(Block { bytes, ..*block });
    }
    Ok(rounded)
}

/// Bytes that no plan can do without: the most that are needed at one moment, and besides those of fixed blocks that are there at
/// all times. Others that are fixed may share bytes with each other, so they count for where they end.
fn least(blocks: &[Block]) -> Result<u64, NoPlan> {
    let mut changes: Vec<(u32, bool, u64)> = with_room(blocks.len().saturating_mul(2))?;
    let mut all: Option<Lifetime> = None;
    for Block { bytes, lifetime, .. } in blocks.iter().filter(|block| block.fixed.is_none() && block.bytes > 0) {
        changes.push((lifetime.first, true, *bytes));
        changes.push((lifetime.last.saturating_add(1), false, *bytes));
        all = Some(all.map_or(*lifetime, |all| all.hull(lifetime)));
    }
    // What ends makes room before what begins takes it.
    changes.sort_unstable();
    let (mut now, mut most) = (0u64, 0u64);
    for (_, begins, bytes) in changes {
        now = if begins { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        most = most.max(now);
    }
    let mut always: Vec<(u64, u64)> = with_room(blocks.len())?;
    let mut end = 0;
    for Block { bytes, lifetime, fixed } in blocks {
        let Some(start) = *fixed else { continue };
        end = end.max(start.saturating_add(*bytes));
        if all.is_some_and(|all| lifetime.hull(&all) == *lifetime) {
            always.push((start, start.saturating_add(*bytes)));
        }
    }
    always.sort_unstable();
    let (mut covered, mut taken) = (0u64, 0u64);
    for (start, end) in always {
        taken = taken.saturating_add(end.saturating_sub(start.max(covered)));
        covered = covered.max(end);
    }
    Ok(end.max(most.saturating_add(taken)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    fn block(bytes: u64, first: u32, last: u32) -> Block {
        Block { bytes, lifetime: Lifetime { first, last }, fixed: None }
    }

    /// Every pair, byte by byte: slow and obvious.
    fn check(blocks: &[Block], plan: &Placement, align: u64) {
        assert_eq!(blocks.len(), plan.offsets.len());
        for (i, (a, at)) in blocks.iter().zip(&plan.offsets).enumerate() {
            assert!(at % align == 0 || a.fixed == Some(*at));
            assert!(at + a.bytes <= plan.bytes);
            if let Some(fixed) = a.fixed {
                assert_eq!(fixed, *at);
            }
            for (b, other) in blocks.iter().zip(&plan.offsets).take(i) {
                if a.fixed.is_some() && b.fixed.is_some() || a.bytes == 0 || b.bytes == 0 {
                    continue;
                }
                let together = a.lifetime.first <= b.lifetime.last && b.lifetime.first <= a.lifetime.last;
                let apart = at + a.bytes <= *other || other + b.bytes <= *at;
                assert!(!together || apart, "{a:?} at {at}, {b:?} at {other}");
            }
        }
    }

    const STRATEGIES: [Strategy; 5] =
        [Strategy::Greedy, Strategy::BestFit, Strategy::Smallest, Strategy::Quick, Strategy::Tight];

    #[test]
    fn blocks_that_do_not_meet_share() {
        let blocks = [block(32, 0, 1), block(32, 1, 2), block(32, 2, 3), block(32, 3, 4)];
        for strategy in STRATEGIES {
            assert_eq!(place(&blocks, 16, strategy).unwrap().bytes, 64, "{strategy:?}");
        }
    }

    #[test]
    fn the_tightest_gap_wins_where_shelves_waste() {
        // A shelf of 96 holds one block at a time; two of 48 fit side by side.
        let blocks = [block(96, 0, 1), block(48, 2, 3), block(48, 2, 4), block(16, 4, 5)];
        assert_eq!(place(&blocks, 16, Strategy::Smallest).unwrap().bytes, 96);
    }

    #[test]
    fn what_is_fixed_for_all_time_leaves_that_much_less() {
        let always = |bytes, at| Block { fixed: Some(at), ..block(bytes, 0, 9) };
        let blocks = [always(32, 0), always(32, 16), always(16, 96), block(64, 1, 2), block(32, 2, 3)];
        // 48 bytes and 16 are never free, 96 are needed at once.
        assert_eq!(least(&blocks), Ok(160));
        assert_eq!(place(&blocks, 16, Strategy::Smallest).unwrap().bytes, 176);
        // Fixed for a while only: it may be where others are before and after.
        let briefly = Block { lifetime: Lifetime { first: 1, last: 1 }, ..always(32, 256) };
        assert_eq!(least(&[briefly, block(64, 1, 2)]), Ok(288));
        assert_eq!((least(&[]), least(&[always(32, 16)])), (Ok(0), Ok(48)));
    }

    #[test]
    fn the_reference_s_layouts() {
        // `add` of two inputs: 24 bytes each are rounded to 32.
        let blocks = [block(24, 0, 1), block(24, 0, 1), block(24, 1, 2)];
        assert_eq!(place(&blocks, 16, Strategy::Greedy).unwrap(), Placement { offsets: vec![64, 32, 0], bytes: 96 });
    }

    #[test]
    fn sizes_that_overflow_are_no_plan() {
        let huge = block(u64::MAX - 4, 0, 1);
        assert_eq!(place(&[huge], 16, Strategy::Smallest), Err(NoPlan::Overflow));
        let halves = [block(u64::MAX / 2, 0, 1), block(u64::MAX / 2 + 64, 2, 3)];
        assert_eq!(place(&halves, 16, Strategy::Smallest), Err(NoPlan::Overflow));
        assert_eq!(place(&[], 16, Strategy::Smallest).unwrap().bytes, 0);
    }

    proptest! {
        #[test]
        fn what_lives_together_lies_apart(
            items in proptest::collection::vec((0u64..200, 0u32..20, 0u32..8, proptest::option::weighted(0.1, 0u64..40)), 0..40),
        ) {
            let blocks: Vec<_> = items
                .into_iter()
                .map(|(bytes, first, len, fixed)| Block { fixed: fixed.map(|at| at * 16), ..block(bytes, first, first + len) })
                .collect();
            let plans = STRATEGIES.map(|strategy| place(&blocks, 16, strategy).unwrap());
            for plan in &plans {
                check(&blocks, plan, 16);
            }
            prop_assert!(plans[2].bytes <= plans[0].bytes && plans[2].bytes <= plans[1].bytes);
            let least = least(&rounded(&blocks, 16).unwrap()).unwrap();
            prop_assert!(plans.iter().all(|plan| least <= plan.bytes), "{least}: {plans:?}");
            prop_assert!(plans[4].bytes == plans[2].bytes);
            prop_assert!(plans[3].bytes > least || plans[4] == plans[3]);
            prop_assert_eq!(&plans[2], &place(&blocks, 16, Strategy::Smallest).unwrap());
        }

        #[test]
        fn many_blocks_are_planned_too(seed in 0u64..1000) {
            let blocks: Vec<_> = (0..64u64).map(|i| block((i * 37 + seed) % 97, (i * 13 % 50) as u32, (i * 13 % 50 + i % 7) as u32)).collect();
            let quick = place(&blocks, 1, Strategy::Quick).unwrap();
            check(&blocks, &quick, 1);
        }
    }
}
