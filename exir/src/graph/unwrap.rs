//! Tensors that consist of others: each part that a program asks for becomes an input of its own.
//!
//! Quantised weights are such tensors. Their class is Python's business; what a program computes with are the parts, which
//! it takes by the name of an attribute.

use std::collections::{BTreeMap, BTreeSet};

use super::program::{InputKind, InputSpec};
use super::{Argument, ExportedProgram, Node, ValueId};

/// The operator that takes a part out of such a tensor.
const PART: &str = "export::access_subclass_inner_tensor";

impl ExportedProgram<'_> {
    /// Lets the program take the parts of its tensors instead of the tensors. One that is used as a whole stays.
    pub(super) fn unwrap_tensors(&mut self) {
        if self.weights.subclasses.is_empty() {
            return;
        }
        // Values that are parts, each with the tensor and the path to the part.
        let mut parts: BTreeMap<ValueId, (String, String)> = BTreeMap::new();
        for spec in &self.inputs {
            if let (Some(name), Some(value)) = (spec.kind.tensor(), spec.arg.value())
                && self.weights.subclasses.contains_key(name)
            {
                parts.insert(value, (name.to_owned(), String::new()));
            }
        }
        let mut taken: BTreeMap<String, BTreeMap<String, ValueId>> = BTreeMap::new();
        let mut replaced: BTreeMap<ValueId, Argument> = BTreeMap::new();
        let mut nodes = Vec::with_capacity(self.graph.nodes.len());
        for node in std::mem::take(&mut self.graph.nodes) {
            let Some((result, tensor, way)) = part(&node, &parts) else {
                nodes.push(node);
                continue;
            };
            let whole = self.weights.subclasses.get(&tensor);
            let found = whole.is_some_and(|whole| whole.tensors.contains_key(&way));
            parts.insert(result, (tensor.clone(), way.clone()));
            if !found {
                // A part that has parts of its own.
                nodes.push(node);
                continue;
            }
            let own = taken.entry(tensor).or_default();
            match own.get(&way) {
                Some(first) => drop(replaced.insert(result, Argument::Value(*first))),
                None => drop(own.insert(way, result)),
            }
        }
        self.graph.nodes = nodes;
        self.graph.replace_all(&replaced);
        // Whatever leads to parts and is read by nothing else is gone.
        self.graph.remove_unused(|node| !is_part(node));
        let mut read: BTreeSet<ValueId> = BTreeSet::new();
        self.graph.nodes.iter().for_each(|node| {
            node.each_input(&mut |id| {
                read.insert(id);
            });
        });
        self.graph.outputs.iter().for_each(|output| {
            output.each_value(&mut |id| {
                read.insert(id);
            });
        });
        self.take_parts(&taken, &read);
    }

    /// Puts the parts of tensors in the places of those that nothing reads as a whole.
    fn take_parts(&mut self, taken: &BTreeMap<String, BTreeMap<String, ValueId>>, read: &BTreeSet<ValueId>) {
        if self.inputs.len() != self.graph.inputs.len() {
            return;
        }
        let none = BTreeMap::new();
        let mut specs = Vec::with_capacity(self.inputs.len());
        for spec in std::mem::take(&mut self.inputs) {
            let name = spec.kind.tensor().filter(|name| self.weights.subclasses.contains_key(*name));
            let unread = spec.arg.value().is_some_and(|value| !read.contains(&value));
            let Some(name) = name.filter(|_| unread).map(str::to_owned) else {
                specs.push(spec);
                continue;
            };
            let Some(mut whole) = self.weights.subclasses.remove(&name) else { continue };
            for (way, value) in taken.get(&name).unwrap_or(&none) {
                let Some(weight) = whole.tensors.remove(way) else { continue };
                let part = format!("{name}.{way}");
                self.weights.state.insert(part.clone(), weight);
                let kind = InputKind::Buffer { name: part, persistent: true };
                specs.push(InputSpec { kind, arg: Argument::Value(*value) });
            }
        }
        self.graph.inputs = specs.iter().map(|spec| spec.arg.clone()).collect();
        self.inputs = specs;
    }
}

fn is_part(node: &Node) -> bool {
    node.calls(PART)
}

/// Returns the part that a node takes: its value, the tensor, and the path to it.
fn part(node: &Node, parts: &BTreeMap<ValueId, (String, String)>) -> Option<(ValueId, String, String)> {
    let from = node.value_arg("src_subclass_tensor").filter(|_| is_part(node))?;
    let (tensor, way) = parts.get(&from)?;
    let Some(Argument::Text(attribute)) = node.arg("attr") else { return None };
    let way = if way.is_empty() { attribute.clone() } else { format!("{way}.{attribute}") };
    Some((node.result()?, tensor.clone(), way))
}
