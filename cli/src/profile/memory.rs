//! Memory of a method over its plan: what is alive when, and where it is most.

use edgepack_executor::{Lifetime, MemoryBytes, MemoryPart};
use edgepack_format::notation::ValueName;
use serde::Serialize;

/// Memories over time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Arenas {
    /// Memories that values are in.
    pub parts: Vec<Part>,
    /// Values with a place in a memory.
    pub values: Vec<Alive>,
    /// Bytes of all memories that hold a value, by place in the plan.
    pub alive_bytes: Vec<u64>,
    /// The greatest of these.
    pub peak_bytes: u64,
    /// The first place in the plan where it is reached.
    pub peak_position: usize,
}

/// Memory of a method that was loaded, over time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MemoryUse {
    /// Memories that values are in.
    #[serde(flatten)]
    pub arenas: Arenas,
    /// Scratch memory of kernels.
    pub scratch_bytes: usize,
    /// Constants, in memory or borrowed from the file.
    pub constant_bytes: usize,
    /// Weights that were packed.
    pub packed_bytes: usize,
}

/// A memory.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Part {
    /// Name of it.
    pub name: String,
    /// Bytes up to the last one that a value uses.
    pub bytes: u64,
}

/// A value, and when it is needed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Alive {
    /// Name of the value.
    pub name: String,
    /// Index of its memory.
    pub part: usize,
    /// Bytes from the start of the memory.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// Place in the plan of the first use.
    pub first: usize,
    /// Place in the plan of the last use.
    pub last: usize,
}

impl Arenas {
    /// Puts together what values are where and when. Parts become as long as their values want.
    pub fn new(names: impl IntoIterator<Item = String>, values: Vec<Alive>) -> Arenas {
        let mut parts: Vec<Part> = names.into_iter().map(|name| Part { name, bytes: 0 }).collect();
        for value in &values {
            let end = value.offset.saturating_add(value.bytes);
            parts[value.part].bytes = parts[value.part].bytes.max(end);
        }
        let alive_bytes = alive(&values);
        let peak_bytes = alive_bytes.iter().copied().max().unwrap_or(0);
        let peak_position = alive_bytes.iter().position(|bytes| *bytes == peak_bytes).unwrap_or(0);
        Arenas { parts, values, alive_bytes, peak_bytes, peak_position }
    }
}

impl MemoryUse {
    /// Puts together what lifetimes say.
    pub fn of(lifetimes: &[Lifetime], memory: MemoryBytes) -> MemoryUse {
        let mut ids: Vec<MemoryPart> = lifetimes.iter().map(|lifetime| lifetime.memory).collect();
        ids.sort_unstable();
        ids.dedup();
        let value = |lifetime: &Lifetime| {
            let part = ids.binary_search(&lifetime.memory).ok()?;
            let (offset, bytes) = (lifetime.offset as u64, lifetime.bytes as u64);
            let (first, last) = (lifetime.first, lifetime.last);
            Some(Alive { name: ValueName(lifetime.value).to_string(), part, offset, bytes, first, last })
        };
        let values = lifetimes.iter().filter_map(value).collect();
        MemoryUse {
            arenas: Arenas::new(ids.iter().map(|id| name(*id)), values),
            scratch_bytes: memory.scratch,
            constant_bytes: memory.constants + memory.lent,
            packed_bytes: memory.packed,
        }
    }
}

fn name(part: MemoryPart) -> String {
    match part {
        MemoryPart::Planned(id) => format!("planned {id}"),
        MemoryPart::Private(index) => format!("private {index}"),
        _ => "other".to_owned(),
    }
}

/// Bytes of all memories that hold a value, by place: of a byte that several values share one counts. In time by values,
/// and the logarithm of their number.
fn alive(values: &[Alive]) -> Vec<u64> {
    let end = values.iter().map(|value| value.last + 1).max().unwrap_or(0);
    // Memories one after another, so that the ranges of all of them are ranges of numbers.
    let mut starts: Vec<u64> = Vec::new();
    for value in values {
        starts.resize(starts.len().max(value.part + 2), 0);
        starts[value.part + 1] = starts[value.part + 1].max(value.offset.saturating_add(value.bytes));
    }
    for part in 1..starts.len() {
        starts[part] = starts[part].saturating_add(starts[part - 1]);
    }
    let range = |value: &Alive| {
        let start = starts[value.part].saturating_add(value.offset);
        (start, start.saturating_add(value.bytes))
    };
    let mut bounds: Vec<u64> = values.iter().map(range).flat_map(|(start, end)| [start, end]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    // A beginning or an end of a value, at a place.
    let mut changes: Vec<(usize, bool, usize)> = Vec::with_capacity(2 * values.len());
    for (index, value) in values.iter().enumerate() {
        changes.push((value.first, true, index));
        changes.push((value.last + 1, false, index));
    }
    changes.sort_unstable();
    let mut covered = Covered::new(&bounds);
    let mut next = 0;
    let mut alive = Vec::with_capacity(end);
    for position in 0..end {
        while let Some(&(_, begins, index)) = changes.get(next).filter(|change| change.0 <= position) {
            let (start, end) = range(&values[index]);
            let place = |bound: u64| bounds.partition_point(|&known| known < bound);
            covered.change(place(start), place(end), if begins { 1 } else { -1 });
            next += 1;
        }
        alive.push(covered.total());
    }
    alive
}

/// Length of what a changing set of ranges covers: a tree of segments between all bounds.
struct Covered<'b> {
    bounds: &'b [u64],
    /// Ranges that cover all of a segment.
    counts: Vec<i64>,
    /// Length that is covered in a segment.
    lengths: Vec<u64>,
}

impl<'b> Covered<'b> {
    fn new(bounds: &'b [u64]) -> Self {
        let nodes = bounds.len().next_power_of_two() * 2;
        Covered { bounds, counts: vec![0; nodes], lengths: vec![0; nodes] }
    }

    fn total(&self) -> u64 {
        self.lengths.get(1).copied().unwrap_or(0)
    }

    /// Adds a range between two bounds, or takes one away.
    fn change(&mut self, from: usize, to: usize, by: i64) {
        let segments = self.bounds.len().saturating_sub(1);
        if from < to && to <= segments {
            self.visit(1, 0, segments, (from, to), by);
        }
    }

    /// Visits the segments from `low` to `high`: as deep as the logarithm of their number.
    fn visit(&mut self, node: usize, low: usize, high: usize, (from, to): (usize, usize), by: i64) {
        if from >= high || to <= low {
            return;
        }
        if from <= low && high <= to {
            self.counts[node] += by;
        } else {
            let middle = low + (high - low) / 2;
            self.visit(2 * node, low, middle, (from, to), by);
            self.visit(2 * node + 1, middle, high, (from, to), by);
        }
        self.lengths[node] = if self.counts[node] > 0 {
            self.bounds[high] - self.bounds[low]
        } else if high - low == 1 {
            0
        } else {
            self.lengths[2 * node] + self.lengths[2 * node + 1]
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(part: usize, offset: u64, bytes: u64, first: usize, last: usize) -> Alive {
        Alive { name: String::new(), part, offset, bytes, first, last }
    }

    #[test]
    fn shared_bytes_count_once() {
        let values = [value(0, 0, 100, 0, 1), value(0, 50, 100, 1, 2), value(1, 0, 7, 2, 2), value(0, 60, 10, 1, 1)];
        assert_eq!(alive(&values), [100, 150, 107]);
        assert_eq!(alive(&[]), [0; 0]);
    }

    #[test]
    fn the_tree_counts_as_a_count_of_bytes_does() {
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for count in 1..40 {
            let values: Vec<Alive> = (0..count)
                .map(|_| {
                    let first = random(20) as usize;
                    value(random(3) as usize, random(50), random(30), first, first + random(6) as usize)
                })
                .collect();
            let have = alive(&values);
            for (position, bytes) in have.iter().enumerate() {
                let mut used = std::collections::BTreeSet::new();
                for value in values.iter().filter(|value| value.first <= position && position <= value.last) {
                    used.extend((value.offset..value.offset + value.bytes).map(|byte| (value.part, byte)));
                }
                assert_eq!(*bytes, used.len() as u64, "place {position} of {values:?}");
            }
        }
    }
}
