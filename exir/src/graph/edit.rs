//! Building and changing graphs, so that they stay valid: values are made with names of their own, nodes are put where
//! everything they read exists.

use std::collections::BTreeMap;

use super::value::{Meta, TensorMeta, Value, ValueId};
use super::{Argument, Graph, NamedArgument, Node, OpName, Target};

impl Graph {
    /// A value by id.
    pub fn value(&self, id: ValueId) -> Option<&Value> {
        self.values.get(id.index())
    }

    /// All values, with their ids.
    pub fn values(&self) -> impl Iterator<Item = (ValueId, &Value)> {
        (0u32..).map(ValueId).zip(&self.values)
    }

    /// The value of this name.
    pub fn find(&self, name: &str) -> Option<ValueId> {
        self.names.get(name).copied()
    }

    /// The name of a value.
    pub fn name(&self, id: ValueId) -> &str {
        self.value(id).map_or("?", |value| &value.name)
    }

    /// Returns the metadata of a tensor.
    pub fn tensor(&self, id: ValueId) -> Option<&TensorMeta> {
        self.value(id).and_then(|value| value.meta.tensor())
    }

    /// Returns the metadata of the tensor of an argument.
    pub fn tensor_of(&self, arg: &Argument) -> Option<&TensorMeta> {
        arg.value().and_then(|id| self.tensor(id))
    }

    /// Says what a value is.
    pub fn set_meta(&mut self, id: ValueId, meta: Meta) {
        if let Some(value) = self.values.get_mut(id.index()) {
            value.meta = meta;
        }
    }

    /// A new value. If the name is taken, a number is put behind it.
    pub fn add_value(&mut self, name: &str, meta: impl Into<Meta>) -> ValueId {
        let name = self.free_name(name);
        let id = ValueId(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        self.names.insert(name.clone(), id);
        self.values.push(Value { name, meta: meta.into() });
        id
    }

    /// The name, with a number behind it if it is taken: the first free one where numbers were given out in order, found
    /// in a logarithm of their count.
    fn free_name(&self, name: &str) -> String {
        if !self.names.contains_key(name) {
            return name.to_owned();
        }
        let taken = |number: usize| self.names.contains_key(&format!("{name}_{number}"));
        let mut free = 1usize;
        while taken(free) {
            free = free.saturating_mul(2);
        }
        let mut used = free / 2;
        while free.saturating_sub(used) > 1 {
            let middle = used.saturating_add(free.saturating_sub(used) / 2);
            if taken(middle) { used = middle } else { free = middle }
        }
        format!("{name}_{free}")
    }

    /// A new input tensor, behind the others.
    pub fn add_input(&mut self, name: &str, meta: TensorMeta) -> ValueId {
        let id = self.add_value(name, meta);
        self.inputs.push(Argument::Value(id));
        id
    }

    /// Appends a call of an operator, such as `aten::add.Tensor`, with one result.
    pub fn call<const N: usize>(&mut self, operator: &str, args: [(&str, Argument); N], meta: TensorMeta) -> ValueId {
        let node = self.make(operator, args, meta);
        let result = node.result().unwrap_or(ValueId(u32::MAX));
        self.nodes.push(node);
        result
    }

    /// A call with one result that is not in the graph yet.
    pub fn make<const N: usize>(&mut self, operator: &str, args: [(&str, Argument); N], meta: impl Into<Meta>) -> Node {
        let op = OpName::parse(operator).unwrap_or(OpName {
            namespace: String::new(),
            name: operator.to_owned(),
            overload: String::new(),
        });
        let result = self.add_value(&op.name, meta);
        let input = |(name, arg): (&str, Argument)| NamedArgument { name: name.to_owned(), arg, keyword: false };
        Node {
            name: self.name(result).to_owned(),
            target: Target::Operator(op),
            inputs: args.into_iter().map(input).collect(),
            outputs: vec![Argument::Value(result)],
            metadata: BTreeMap::new(),
            is_hop_single_tensor_return: None,
        }
    }

    /// Counts the reads of each value, by nodes and as an output.
    pub fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0usize; self.values.len()];
        let mut count = |id: ValueId| {
            if let Some(uses) = uses.get_mut(id.index()) {
                *uses = uses.saturating_add(1);
            }
        };
        self.nodes.iter().for_each(|node| node.each_input(&mut count));
        self.outputs.iter().for_each(|output| output.each_value(&mut count));
        uses
    }

    /// Lets everything that reads a value read something else.
    pub fn replace(&mut self, from: ValueId, to: &Argument) {
        self.replace_all(&BTreeMap::from([(from, to.clone())]));
    }

    /// Replaces many values at once; replacements may name replaced values.
    pub fn replace_all(&mut self, replacements: &BTreeMap<ValueId, Argument>) {
        if replacements.is_empty() {
            return;
        }
        let mut change = |id: ValueId| {
            let mut now = Argument::Value(id);
            // A chain of replacements is at most as long as their number.
            for _ in 0..=replacements.len() {
                match now.value().and_then(|id| replacements.get(&id)) {
                    Some(next) => now = next.clone(),
                    None => break,
                }
            }
            now
        };
        for node in &mut self.nodes {
            node.inputs.iter_mut().for_each(|input| input.arg.map_values(&mut change));
        }
        self.outputs.iter_mut().for_each(|output| output.map_values(&mut change));
    }

    /// Removes nodes whose results are not read, except those that `keep` names.
    pub fn remove_unused(&mut self, keep: impl Fn(&Node) -> bool) {
        let mut live = vec![false; self.values.len()];
        let mark = |live: &mut Vec<bool>, id: ValueId| {
            if let Some(live) = live.get_mut(id.index()) {
                *live = true;
            }
        };
        self.outputs.iter().for_each(|output| output.each_value(&mut |id| mark(&mut live, id)));
        let mut kept: Vec<Node> = Vec::with_capacity(self.nodes.len());
        while let Some(node) = self.nodes.pop() {
            let mut used = keep(&node);
            node.each_output(&mut |id| used |= live.get(id.index()).copied().unwrap_or(false));
            if used {
                node.each_input(&mut |id| mark(&mut live, id));
                kept.push(node);
            }
        }
        kept.reverse();
        self.nodes = kept;
    }

    /// Rebuilds the list of nodes: `change` is given each one in turn and puts what takes its place into the list. New nodes
    /// without metadata take over that of the node.
    pub fn rewrite<E>(
        &mut self,
        mut change: impl FnMut(&mut Self, Node, &mut Vec<Node>) -> Result<(), E>,
    ) -> Result<(), E> {
        let nodes = std::mem::take(&mut self.nodes);
        let mut rewritten = Vec::with_capacity(nodes.len());
        for node in nodes {
            let (metadata, before) = (node.metadata.clone(), rewritten.len());
            change(self, node, &mut rewritten)?;
            for new in rewritten.iter_mut().skip(before).filter(|new: &&mut Node| new.metadata.is_empty()) {
                new.metadata.clone_from(&metadata);
            }
        }
        self.nodes = rewritten;
        Ok(())
    }

    /// Does something to every sub-graph that nodes are given.
    pub fn each_subgraph<E>(&mut self, mut change: impl FnMut(&mut Graph) -> Result<(), E>) -> Result<(), E> {
        for input in self.nodes.iter_mut().flat_map(|node| &mut node.inputs) {
            if let Argument::Graph(_, graph) = &mut input.arg {
                change(graph)?;
            }
        }
        Ok(())
    }
}

impl From<TensorMeta> for Meta {
    fn from(meta: TensorMeta) -> Self {
        Meta::Tensor(meta)
    }
}
