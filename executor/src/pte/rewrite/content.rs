//! A map of memory: which tensor wrote each byte last.
//!
//! Most tensors share bytes with none, or with those alone that have the same ones: such bytes have one writer, which is
//! noted as it is. Ranges that meet in any other way are in a map by address.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::api::room::{filled, grow};

/// Memory as disjoint ranges with their last writers, by address.
pub(super) struct Content {
    /// Bytes of each tensor.
    places: Vec<Place>,
    /// Writers of the ranges that meet no other.
    alone: Vec<Option<u32>>,
    /// Start, and end with writer, of all others.
    ranges: BTreeMap<u64, (u64, u32)>,
    /// Ranges that may still be looked at. Real methods take one or two per access.
    steps: usize,
}

/// Bytes of a tensor.
#[derive(Clone)]
enum Place {
    None,
    /// A range that meets no other, by index.
    Alone(u32),
    Among(Range<u64>),
}

/// Ranges looked at per access of a method, at most, on average.
const STEPS_PER_ACCESS: usize = 32;

/// Result of looking up a read.
#[derive(Default)]
pub(super) struct Found {
    /// The last writer of the first bytes that have one.
    first: Option<u32>,
    /// Further writers by address, where they change; one that another has written into is there twice.
    others: Vec<u32>,
    /// True if some of it was not written before.
    pub gaps: bool,
}

impl Found {
    /// The writer of all of it, if there is one.
    pub fn only(&self) -> Option<u32> {
        self.first.filter(|first| self.others.iter().all(|owner| owner == first))
    }

    /// All last writers.
    pub fn owners(&self) -> impl Iterator<Item = u32> {
        self.first.into_iter().chain(self.others.iter().copied())
    }
}

impl Content {
    /// For the bytes of all tensors by address, and so many accesses. `None` without memory for it.
    pub fn new(tensors: impl ExactSizeIterator<Item = Range<u64>>, accesses: usize) -> Option<Self> {
        let mut places = filled(Place::None, tensors.len()).ok()?;
        let mut order: Vec<(u64, u64, u32)> = Vec::new();
        grow(&mut order, tensors.len()).ok()?;
        order.extend(
            (0..).zip(tensors).filter(|(_, range)| !range.is_empty()).map(|(t, range)| (range.start, range.end, t)),
        );
        order.sort_unstable();
        let mut count = 0;
        let mut rest = &order[..];
        while let Some(&(start, mut end, _)) = rest.first() {
            // Those that meet, one after another.
            let meets = |(other, stop, _): &&(u64, u64, u32)| {
                let meets = *other < end;
                end = end.max(if meets { *stop } else { end });
                meets
            };
            let (cluster, others) = rest.split_at(rest.iter().take_while(meets).count());
            rest = others;
            let are_equal = cluster.iter().all(|(other, stop, _)| (*other, *stop) == (start, cluster[0].1));
            for (start, end, tensor) in cluster {
                places[*tensor as usize] = if are_equal { Place::Alone(count) } else { Place::Among(*start..*end) };
            }
            count += u32::from(are_equal);
        }
        let alone = filled(None, count as usize).ok()?;
        Some(Content { places, alone, ranges: BTreeMap::new(), steps: accesses.saturating_mul(STEPS_PER_ACCESS) })
    }

    fn step(&mut self) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        Some(())
    }

    /// Notes a writer. `None` if the budget of ranges is spent.
    pub fn write(&mut self, tensor: u32) -> Option<()> {
        let range = match &self.places[tensor as usize] {
            Place::None => return Some(()),
            Place::Alone(place) => {
                self.alone[*place as usize] = Some(tensor);
                return Some(());
            }
            Place::Among(range) => range.clone(),
        };
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

    /// Finds the writers of the bytes that a tensor has. `None` if the budget of ranges is spent.
    pub fn read(&mut self, tensor: u32) -> Option<Found> {
        let mut found = Found::default();
        let range = match &self.places[tensor as usize] {
            Place::None => return Some(found),
            Place::Alone(place) => {
                found.first = self.alone[*place as usize];
                found.gaps = found.first.is_none();
                return Some(found);
            }
            Place::Among(range) => range.clone(),
        };
        let mut covered = range.start;
        let left = self.ranges.range(..range.start).next_back().filter(|(_, (end, _))| *end > range.start);
        let inside = left.into_iter().chain(self.ranges.range(range.clone()));
        let mut steps = 1;
        for (&start, &(end, owner)) in inside {
            steps += 1;
            found.gaps |= start > covered;
            covered = covered.max(end);
            match found.first {
                None => found.first = Some(owner),
                Some(first) if *found.others.last().unwrap_or(&first) != owner => {
                    grow(&mut found.others, 1).ok()?;
                    found.others.push(owner);
                }
                Some(_) => {}
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

    #[test]
    fn reads_find_the_last_writers() {
        let places = [0..40u64, 10..20, 5..100, 0..100, 0..10, 30..50, 200..210, 200..210, 300..300];
        let mut content = Content::new(places.into_iter(), 100).unwrap();
        let found = |content: &mut Content, tensor| {
            let found = content.read(tensor).unwrap();
            (found.owners().collect::<Vec<_>>(), found.gaps)
        };
        assert_eq!(found(&mut content, 4), (vec![], true));
        content.write(0).unwrap();
        content.write(1).unwrap();
        assert_eq!(found(&mut content, 0), (vec![0, 1, 0], false));
        assert_eq!(content.read(0).unwrap().only(), None);
        assert_eq!(found(&mut content, 1), (vec![1], false));
        assert_eq!(found(&mut content, 5), (vec![0], true));
        content.write(2).unwrap();
        assert_eq!(found(&mut content, 3), (vec![0, 2], false));
        content.write(3).unwrap();
        assert_eq!(content.ranges.len(), 1);
        // Equal ranges that meet no others.
        assert_eq!(content.alone.len(), 1);
        assert_eq!(found(&mut content, 7), (vec![], true));
        content.write(6).unwrap();
        assert_eq!((found(&mut content, 7), content.read(6).unwrap().only()), ((vec![6], false), Some(6)));
        content.write(7).unwrap();
        assert_eq!(found(&mut content, 6), (vec![7], false));
        // No bytes.
        content.write(8).unwrap();
        assert_eq!(found(&mut content, 8), (vec![], false));
    }

    #[test]
    fn work_is_bounded() {
        let places = (0..200u64).map(|byte| byte * 2..byte * 2 + 1).chain(std::iter::once(0..1000)).collect::<Vec<_>>();
        let mut content = Content::new(places.into_iter(), 40).unwrap();
        (0..200).for_each(|tensor| content.write(tensor).unwrap());
        assert!((0..10).any(|_| content.read(200).is_none()));
    }
}
