//! A map of memory: which tensor wrote each byte last.

use std::collections::BTreeMap;

use crate::api::storage::Region;

/// Memory as disjoint ranges with their last writers, by address.
pub(super) struct Content {
    /// Start, and end with writer.
    ranges: BTreeMap<u64, (u64, u32)>,
    /// Ranges that may still be looked at. Real methods take one or two per access.
    steps: usize,
}

/// Ranges looked at per access of a method, at most, on average.
const STEPS_PER_ACCESS: usize = 32;

/// Result of looking up a read.
pub(super) struct Found {
    /// Last writers of the bytes by address; one that another has written into is there twice.
    pub owners: Vec<u32>,
    /// True if some of it was not written before.
    pub gaps: bool,
}

impl Found {
    /// The writer of all of it, if there is one.
    pub fn only(&self) -> Option<u32> {
        let first = *self.owners.first()?;
        self.owners.iter().all(|&owner| owner == first).then_some(first)
    }
}

impl Content {
    /// For a method of so many accesses.
    pub fn new(accesses: usize) -> Self {
        Content { ranges: BTreeMap::new(), steps: accesses.saturating_mul(STEPS_PER_ACCESS) }
    }

    fn step(&mut self) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        Some(())
    }

    /// Notes a writer. `None` if the budget of ranges is spent.
    pub fn write(&mut self, region: &Region, tensor: u32) -> Option<()> {
        let range = region.addresses();
        if range.is_empty() {
            return Some(());
        }
        // The range that reaches into this one from the left keeps its left part, and its right part if it has one.
        if let Some((&start, &(end, owner))) = self.ranges.range(..range.start).next_back()
            && end > range.start
        {
            self.ranges.insert(start, (range.start, owner));
            if end > range.end {
                self.ranges.insert(range.end, (end, owner));
            }
        }
        while let Some((&start, &(end, owner))) = self.ranges.range(range.clone()).next() {
            self.step()?;
            self.ranges.remove(&start);
            if end > range.end {
                self.ranges.insert(range.end, (end, owner));
            }
        }
        self.ranges.insert(range.start, (range.end, tensor));
        self.step()
    }

    /// Finds the writers of the bytes that are read. `None` if the budget of ranges is spent.
    pub fn read(&mut self, region: &Region) -> Option<Found> {
        let range = region.addresses();
        let mut found = Found { owners: Vec::new(), gaps: false };
        let mut covered = range.start;
        let left = self.ranges.range(..range.start).next_back().filter(|(_, (end, _))| *end > range.start);
        let inside = left.into_iter().chain(self.ranges.range(range.clone()));
        let mut steps = 1;
        for (&start, &(end, owner)) in inside {
            steps += 1;
            found.gaps |= start > covered;
            covered = covered.max(end);
            if found.owners.last() != Some(&owner) {
                found.owners.push(owner);
            }
            if steps > self.steps {
                return None;
            }
        }
        self.steps = self.steps.checked_sub(steps)?;
        found.gaps |= covered < range.end;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::storage::Block;

    #[test]
    fn reads_find_the_last_writers() {
        let block = Block::zeroed(100).unwrap();
        let at = |start, len| block.region(start, len).unwrap();
        let mut content = Content::new(100);
        let found = |content: &mut Content, start, len| {
            let found = content.read(&at(start, len)).unwrap();
            (found.owners, found.gaps)
        };
        assert_eq!(found(&mut content, 0, 10), (vec![], true));
        content.write(&at(0, 40), 1).unwrap();
        content.write(&at(10, 10), 2).unwrap();
        assert_eq!(found(&mut content, 0, 40), (vec![1, 2, 1], false));
        assert_eq!(found(&mut content, 10, 10), (vec![2], false));
        assert_eq!(found(&mut content, 30, 20), (vec![1], true));
        content.write(&at(5, 95), 3).unwrap();
        assert_eq!(found(&mut content, 0, 100), (vec![1, 3], false));
        content.write(&at(0, 100), 4).unwrap();
        assert_eq!(content.ranges.len(), 1);
    }

    #[test]
    fn work_is_bounded() {
        let block = Block::zeroed(1000).unwrap();
        let mut content = Content::new(40);
        for byte in 0..200 {
            content.write(&block.region(byte * 2, 1).unwrap(), byte as u32).unwrap();
        }
        let all = block.region(0, 1000).unwrap();
        assert!((0..10).any(|_| content.read(&all).is_none()));
    }
}
