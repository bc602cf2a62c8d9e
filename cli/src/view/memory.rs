//! Memory that a file plans, over the nodes of a graph: which values are where and when.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::graph::{Graph, Kind};
use crate::profile::{Alive, Arenas};

/// Adds the memories of a graph's values. `loops` are the nodes between which runs go back: what is alive across one is
/// alive in all of it.
pub fn add(graph: &mut Graph, loops: Vec<RangeInclusive<usize>>) {
    let mut uses: Vec<Option<(usize, usize)>> = vec![None; graph.values.len()];
    let last = graph.nodes.len().saturating_sub(1);
    for (index, node) in graph.nodes.iter().enumerate() {
        let ends = if node.kind == Kind::State { last } else { index };
        for &value in node.inputs.iter().map(|(_, value)| value).chain(&node.outputs) {
            if let Some(found) = uses.get_mut(value) {
                let (first, last) = found.get_or_insert((if ends == index { index } else { 0 }, ends));
                (*first, *last) = ((*first).min(index), (*last).max(ends));
            }
        }
    }
    let loops = merged(loops);
    let memories = graph.values.iter().filter_map(|value| Some((value.stored?.memory, ())));
    let memories: BTreeMap<u32, ()> = memories.collect();
    let places: BTreeMap<u32, usize> = memories.keys().copied().zip(0..).collect();
    let alive = graph.values.iter().zip(&uses).filter_map(|(value, uses)| {
        let (stored, (first, last)) = value.stored.zip(*uses)?;
        let (first, last) = stretched(first, last, &loops);
        let part = *places.get(&stored.memory)?;
        Some(Alive { name: value.name.clone(), part, offset: stored.offset, bytes: stored.bytes, first, last })
    });
    let alive: Vec<Alive> = alive.collect();
    if !alive.is_empty() {
        graph.memory = Some(Arenas::new(places.keys().map(|id| format!("planned {id}")), alive));
    }
}

/// Loops that overlap, as one.
fn merged(mut loops: Vec<RangeInclusive<usize>>) -> Vec<RangeInclusive<usize>> {
    loops.sort_by_key(|range| *range.start());
    let mut merged: Vec<RangeInclusive<usize>> = Vec::new();
    for range in loops {
        match merged.last_mut() {
            Some(last) if last.end() >= range.start() => *last = *last.start()..=*last.end().max(range.end()),
            _ => merged.push(range),
        }
    }
    merged
}

/// A lifetime that takes in the loops in which it begins or ends, but those that it is within.
fn stretched(first: usize, last: usize, loops: &[RangeInclusive<usize>]) -> (usize, usize) {
    let around = |at: usize| {
        let index = loops.partition_point(|range| *range.end() < at);
        loops.get(index).filter(|range| range.contains(&at))
    };
    let (begin, end) = (around(first), around(last));
    if begin == end {
        return (first, last);
    }
    (begin.map_or(first, |range| *range.start()), end.map_or(last, |range| *range.end()))
}

#[cfg(test)]
mod tests {
    use super::super::graph::{Node, Stored, Value, Writer};
    use super::*;

    fn value(name: &str, memory: u32, offset: u64) -> Value {
        let stored = Some(Stored { memory, offset, bytes: 8 });
        Value { name: name.to_owned(), stored, ..Value::default() }
    }

    #[test]
    fn values_are_alive_from_first_to_last_use() {
        let values = vec![value("x", 1, 0), value("cache", 3, 0), value("y", 1, 8), Value::default()];
        let mut writer = Writer::new(Graph { values, ..Graph::default() });
        let call = |inputs: &[usize], outputs: &[usize]| Node {
            inputs: inputs.iter().map(|&value| (String::new(), value)).collect(),
            outputs: outputs.to_vec(),
            ..Node::default()
        };
        writer.source(Kind::Input, 0, String::new());
        writer.node(call(&[0], &[2]));
        writer.node(call(&[2, 1], &[3]));
        writer.node(call(&[3], &[]));
        let mut graph = writer.finish();
        add(&mut graph, Vec::new());
        let memory = graph.memory.unwrap();
        let lives: Vec<_> = memory.values.iter().map(|one| (&*one.name, one.part, one.first, one.last)).collect();
        // State is there before and behind.
        assert_eq!(lives, [("x", 0, 0, 1), ("cache", 1, 0, 4), ("y", 0, 1, 3)]);
        assert_eq!((memory.alive_bytes.as_slice(), memory.peak_bytes), (&[16, 24, 16, 16, 8][..], 24));
        assert_eq!(memory.parts.iter().map(|part| part.bytes).collect::<Vec<_>>(), [16, 8]);
    }

    #[test]
    fn what_is_alive_across_a_loop_is_alive_in_all_of_it() {
        let loops = merged(vec![12..=14, 2..=5, 4..=8]);
        assert_eq!(loops, [2..=8, 12..=14]);
        for ((first, last), want) in [
            ((0, 1), (0, 1)),
            ((0, 4), (0, 8)),
            ((3, 4), (3, 4)),
            ((3, 9), (2, 9)),
            ((6, 13), (2, 14)),
            ((0, 20), (0, 20)),
        ] {
            assert_eq!(stretched(first, last, &loops), want, "{first} to {last}");
        }
    }
}
