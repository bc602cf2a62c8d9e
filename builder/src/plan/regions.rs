//! Loops: stretches of instructions that may run again.
//!
//! Backward jumps that overlap are one region, so regions are disjoint and in order. Inside a region whose only jump is
//! the one that closes it, instructions run in order each time; in any other a value may be needed wherever the region is.

use edgepack_memory_plan::Lifetime;

/// A jump, by position of the instruction and of its destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Jump {
    pub(super) from: u32,
    pub(super) to: u32,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    first: u32,
    last: u32,
    straight: bool,
}

/// The loops of a method.
pub(super) struct Regions(Vec<Region>);

impl Regions {
    pub(super) fn of(mut jumps: Vec<Jump>) -> Self {
        let mut regions: Vec<Region> = Vec::new();
        // By first instruction of what they span.
        jumps.sort_unstable_by_key(|jump| (jump.to.min(jump.from), jump.from));
        for jump in jumps.iter().filter(|jump| jump.to <= jump.from) {
            match regions.last_mut() {
                Some(region) if jump.to <= region.last => {
                    region.last = region.last.max(jump.from);
                    region.straight = false;
                }
                _ => regions.push(Region { first: jump.to, last: jump.from, straight: true }),
            }
        }
        let mut all = Regions(regions);
        for jump in jumps.iter().filter(|jump| jump.to > jump.from) {
            for end in [jump.from, jump.to] {
                if let Some(region) = all.at_mut(end) {
                    region.straight = false;
                }
            }
        }
        all
    }

    fn index(&self, position: u32) -> Option<usize> {
        let next = self.0.partition_point(|region| region.first <= position);
        let index = next.checked_sub(1)?;
        self.0.get(index).filter(|region| position <= region.last).map(|_| index)
    }

    fn at(&self, position: u32) -> Option<Region> {
        self.0.get(self.index(position)?).copied()
    }

    fn at_mut(&mut self, position: u32) -> Option<&mut Region> {
        let index = self.index(position)?;
        self.0.get_mut(index)
    }

    /// The lifetime as it must be for the loops it meets. `carried` values keep something from one turn to the next.
    pub(super) fn extend(&self, lifetime: Lifetime, carried: bool) -> Lifetime {
        let mut longer = lifetime;
        if let Some(region) = self.at(lifetime.first)
            && (carried || !region.straight)
        {
            longer.first = region.first;
            longer.last = longer.last.max(region.last);
        }
        if let Some(region) = self.at(lifetime.last)
            && (carried || !region.straight || lifetime.first < region.first)
        {
            longer.first = longer.first.min(region.first);
            longer.last = longer.last.max(region.last);
        }
        longer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extend(jumps: &[(u32, u32)], first: u32, last: u32, carried: bool) -> (u32, u32) {
        let regions = Regions::of(jumps.iter().map(|&(from, to)| Jump { from, to }).collect());
        let longer = regions.extend(Lifetime { first, last }, carried);
        (longer.first, longer.last)
    }

    #[test]
    fn a_loop_keeps_what_comes_from_before_it() {
        let jumps = [(10, 5)];
        assert_eq!(extend(&jumps, 2, 7, false), (2, 10));
        assert_eq!(extend(&jumps, 6, 7, false), (6, 7));
        assert_eq!(extend(&jumps, 6, 12, false), (6, 12));
        assert_eq!(extend(&jumps, 6, 7, true), (5, 10));
        assert_eq!(extend(&jumps, 11, 12, true), (11, 12));
        assert_eq!(extend(&jumps, 2, 20, false), (2, 20));
    }

    #[test]
    fn branches_in_a_loop_make_it_one_stretch() {
        for jumps in [vec![(10, 5), (6, 8)], vec![(10, 5), (6, 12)], vec![(10, 5), (8, 6)], vec![(3, 7), (10, 5)]] {
            assert_eq!(extend(&jumps, 7, 7, false), (5, 10), "{jumps:?}");
        }
        assert_eq!(extend(&[(10, 5), (1, 3)], 7, 7, false), (7, 7));
    }

    #[test]
    fn overlapping_loops_are_one() {
        let jumps = [(10, 5), (14, 8), (20, 18)];
        assert_eq!(extend(&jumps, 6, 6, false), (5, 14));
        assert_eq!(extend(&jumps, 19, 19, false), (19, 19));
        assert_eq!(extend(&jumps, 6, 19, false), (5, 20));
    }
}
