//! Division of a graph into parts that delegates run.
//!
//! Every node has a level: a call that is taken is not below what it reads, any other node is one above the calls taken
//! that it reads. The calls of one level are one part. No path can leave a part and come back, and there are no more
//! parts than the longest path changes sides.

use std::collections::BTreeMap;

use super::facts::Facts;
use super::op::Op;
use super::plan::Plan;
use super::quant;
use super::reason::Reason;
use crate::error::Error;
use crate::graph::{Argument, ExportedProgram, Graph, Node};
use crate::lower::{Part, Partitioner};

/// Outcome for a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Explained {
    /// Name of the node.
    pub node: String,
    /// Target of its call.
    pub operator: String,
    /// Reason it stays outside of delegates; `None` if it is in one.
    pub reason: Option<Reason>,
}

impl Explained {
    fn new(node: &Node, reason: Option<Reason>) -> Self {
        let operator = node.target.operator().map_or_else(|| node.target.to_string(), ToString::to_string);
        Explained { node: node.name.clone(), operator, reason }
    }
}

/// Chooses the nodes that the library computes. Graphs inside of others stay.
#[derive(Clone, Copy, Default, Debug)]
pub struct XnnpackPartitioner;

impl Partitioner for XnnpackPartitioner {
    fn partition(&self, program: &ExportedProgram<'_>) -> Result<Vec<Part>, Error> {
        let (levels, _) = divide(&Facts::of(program));
        let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, level) in levels.into_iter().enumerate() {
            if let Some(level) = level {
                parts.entry(level).or_default().push(index);
            }
        }
        Ok(parts.into_values().map(|nodes| Part { nodes, ..Part::default() }).collect())
    }
}

impl XnnpackPartitioner {
    /// Says of each node, those of graphs inside included, whether a delegate computes it, and why not.
    pub fn explain(&self, program: &ExportedProgram<'_>) -> Vec<Explained> {
        let (_, reasons) = divide(&Facts::of(program));
        let nodes = program.graph.nodes.iter().zip(reasons);
        let mut explained: Vec<Explained> = nodes.map(|(node, reason)| Explained::new(node, reason)).collect();
        inner(&program.graph, &mut explained);
        explained
    }
}

/// Adds the nodes of graphs inside, which stay.
fn inner(graph: &Graph, explained: &mut Vec<Explained>) {
    for node in &graph.nodes {
        for input in &node.inputs {
            let Argument::Graph(_, inside) = &input.arg else { continue };
            explained.extend(inside.nodes.iter().map(|node| Explained::new(node, Some(Reason::Inner))));
            inner(inside, explained);
        }
    }
}

/// Returns the level of each node that is taken, and the reason of each that is not.
fn divide(facts: &Facts<'_, '_>) -> (Vec<Option<usize>>, Vec<Option<Reason>>) {
    let plan = Plan::of(facts);
    let mut reasons: Vec<Option<Reason>> = plan.calls.iter().map(|call| call.as_ref().err().cloned()).collect();
    loop {
        let levels = levels(facts, &plan, &reasons);
        let alone = alone(&plan, &levels);
        if alone.is_empty() {
            return (levels, reasons);
        }
        // What stays now may lie between other parts, so they are divided again.
        for index in alone {
            if let Some(reason) = reasons.get_mut(index) {
                *reason = Some(Reason::Alone);
            }
        }
    }
}

/// Returns the nodes of parts that move no numbers.
fn alone(plan: &Plan, levels: &[Option<usize>]) -> Vec<usize> {
    let mut works: BTreeMap<usize, bool> = BTreeMap::new();
    let view = |index: usize| {
        plan.call(index).is_none_or(|op| op.is_view() || matches!(op, Op::Dequantize(..) | Op::Quantize(..)))
    };
    for (index, level) in levels.iter().enumerate() {
        if let Some(level) = level {
            *works.entry(*level).or_default() |= !view(index);
        }
    }
    let idle = |level: &Option<usize>| level.is_some_and(|level| works.get(&level) == Some(&false));
    levels.iter().enumerate().filter(|(_, level)| idle(level)).map(|(index, _)| index).collect()
}

fn levels(facts: &Facts<'_, '_>, plan: &Plan, reasons: &[Option<Reason>]) -> Vec<Option<usize>> {
    let nodes = &facts.graph.nodes;
    let taken = |index: usize| reasons.get(index).is_some_and(Option::is_none);
    let mut levels = vec![0usize; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        let mut level = 0;
        node.each_input(&mut |value| {
            let Some(maker) = facts.maker(value) else { return };
            let below = levels.get(maker).copied().unwrap_or(0);
            let leaves = taken(maker) && !taken(index);
            level = level.max(below.saturating_add(usize::from(leaves)));
        });
        if let Some(slot) = levels.get_mut(index) {
            *slot = level;
        }
    }
    // A call that nothing of its own part makes operands for goes to the part that reads it first, if all its readers
    // are in parts; so do calls that go back to floats, which are cheaper to give as bytes.
    for (index, node) in nodes.iter().enumerate().rev() {
        let level = levels.get(index).copied().unwrap_or(0);
        let at = |index: usize| levels.get(index).copied().unwrap_or(0);
        let mut bound = false;
        node.each_input(&mut |value| {
            bound |= facts.maker(value).is_some_and(|maker| taken(maker) && at(maker) == level)
        });
        let free = !bound || quant::is_dequantize(node) && matches!(plan.call(index), Some(Op::Dequantize(..)));
        let results = node.results();
        let readers = || results.iter().flat_map(|result| facts.readers(*result)).copied();
        let given = results.iter().any(|result| facts.is_output(*result)) || !readers().all(taken);
        if let (true, true, false, Some(first)) = (taken(index), free, given, readers().map(at).min())
            && let Some(slot) = levels.get_mut(index)
        {
            *slot = first.max(level);
        }
    }
    (0..nodes.len()).map(|index| levels.get(index).copied().filter(|_| taken(index))).collect()
}
