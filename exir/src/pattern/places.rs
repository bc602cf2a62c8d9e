//! The nodes of a graph while patterns are replaced in it: who makes each value, and how often it is read.
//!
//! Invariant: counts are those of the nodes that are there, of those still to come, and of the outputs.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;
use crate::graph::{Argument, Graph, Node, Size, Target, ValueId};

/// The nodes so far, by place; replaced ones are gone.
pub(super) struct Places {
    nodes: Vec<Option<Node>>,
    /// The place of the node that makes a value, and which of its results it is.
    makers: BTreeMap<ValueId, (usize, usize)>,
    uses: Vec<usize>,
    replaced: BTreeMap<ValueId, Argument>,
}

impl Places {
    pub(super) fn new(graph: &Graph) -> Self {
        Places {
            nodes: Vec::with_capacity(graph.nodes.len()),
            makers: BTreeMap::new(),
            uses: graph.uses(),
            replaced: BTreeMap::new(),
        }
    }

    /// Replaces inputs of a node that are gone by their replacements.
    pub(super) fn substitute(&self, node: &mut Node) {
        node.inputs.iter_mut().for_each(|input| self.substitute_in(&mut input.arg));
    }

    fn substitute_in(&self, argument: &mut Argument) {
        argument.map_values(&mut |id| self.replaced.get(&id).cloned().unwrap_or(Argument::Value(id)));
    }

    pub(super) fn push(&mut self, node: Node) {
        let place = self.nodes.len();
        self.makers.extend(node.results().into_iter().enumerate().map(|(index, id)| (id, (place, index))));
        self.nodes.push(Some(node));
    }

    pub(super) fn node(&self, place: usize) -> Option<&Node> {
        self.nodes.get(place)?.as_ref()
    }

    /// The place of the node that makes a value, and which of its results it is.
    pub(super) fn maker(&self, value: ValueId) -> Option<(usize, usize)> {
        self.makers.get(&value).copied()
    }

    fn count(&mut self, value: ValueId, change: impl FnOnce(usize) -> usize) {
        let index = value.index();
        if index >= self.uses.len() {
            self.uses.resize(index.saturating_add(1), 0);
        }
        if let Some(uses) = self.uses.get_mut(index) {
            *uses = change(*uses);
        }
    }

    /// Returns whether the results of these nodes are read only by these nodes and the root.
    pub(super) fn alone(&self, inside: &[usize], root: &Node) -> bool {
        let mut read: BTreeMap<ValueId, usize> = BTreeMap::new();
        let mut note = |id: ValueId| {
            let count = read.entry(id).or_default();
            *count = count.saturating_add(1);
        };
        root.each_input(&mut note);
        inside.iter().filter_map(|place| self.node(*place)).for_each(|node| node.each_input(&mut note));
        inside.iter().filter_map(|place| self.node(*place)).flat_map(Node::results).all(|result| {
            let uses = self.uses.get(result.index()).copied().unwrap_or(0);
            uses == read.get(&result).copied().unwrap_or(0)
        })
    }

    /// Puts new nodes in the place of a match, and these results in that of its root's.
    pub(super) fn replace(
        &mut self,
        graph: &Graph,
        inside: &[usize],
        root: &Node,
        made: Vec<Node>,
        results: Vec<Argument>,
    ) -> Result<(), Error> {
        let old = root.results();
        let error = |message: String| Error::program(format!("node `{}`", root.name), message);
        if old.len() != results.len() {
            return Err(error(format!("it has {} results, {} are to replace them", old.len(), results.len())));
        }
        for (old, new) in old.iter().zip(&results) {
            same(graph, *old, new).map_err(error)?;
        }
        let mut needed: BTreeSet<ValueId> = BTreeSet::new();
        for node in &made {
            node.each_input(&mut |id| {
                needed.insert(id);
                self.count(id, |uses| uses.saturating_add(1));
            });
        }
        for (old, new) in old.iter().zip(&results) {
            let uses = self.uses.get(old.index()).copied().unwrap_or(0);
            new.each_value(&mut |id| {
                needed.insert(id);
                self.count(id, |known| known.saturating_add(uses));
            });
            self.replaced.insert(*old, new.clone());
        }
        root.each_input(&mut |id| self.count(id, |uses| uses.saturating_sub(1)));
        // What the new nodes still read of the old ones stays.
        for place in inside.iter().rev() {
            let Some(node) = self.node(*place).cloned() else { continue };
            if node.results().iter().any(|result| needed.contains(result)) {
                node.each_input(&mut |id| {
                    needed.insert(id);
                });
            } else {
                node.each_input(&mut |id| self.count(id, |uses| uses.saturating_sub(1)));
                if let Some(slot) = self.nodes.get_mut(*place) {
                    *slot = None;
                }
            }
        }
        let edge = matches!(root.target, Target::Edge(_));
        for mut node in made {
            if node.metadata.is_empty() {
                node.metadata.clone_from(&root.metadata);
            }
            node.target = match node.target {
                Target::Operator(op) if edge => Target::Edge(op),
                other => other,
            };
            self.push(node);
        }
        Ok(())
    }

    /// Gives the graph its nodes back.
    pub(super) fn finish(mut self, graph: &mut Graph) {
        graph.nodes = std::mem::take(&mut self.nodes).into_iter().flatten().collect();
        graph.outputs.iter_mut().for_each(|output| self.substitute_in(output));
    }
}

/// Checks that the replacement of a value has the metadata of that value.
fn same(graph: &Graph, old: ValueId, new: &Argument) -> Result<(), String> {
    let Some(old) = graph.tensor(old) else { return Ok(()) };
    let Some(new) = graph.tensor_of(new) else { return Err(format!("a tensor is to become {new:?}")) };
    let hints = |sizes: &[Size]| sizes.iter().map(Size::hint).collect::<Vec<_>>();
    let (have, want) = (hints(&new.sizes), hints(&old.sizes));
    let differ = |(have, want): (&Option<i64>, &Option<i64>)| have.is_some() && want.is_some() && have != want;
    if new.scalar_type != old.scalar_type || have.len() != want.len() || have.iter().zip(&want).any(differ) {
        return Err(format!("{} {want:?} is to become {} {have:?}", old.scalar_type, new.scalar_type));
    }
    Ok(())
}
