//! Tensors that consist of others: each part that a program asks for becomes an input of its own.
//!
//! Quantised weights are such tensors. Their class is Python's business; what a program computes with are the parts, which
//! it takes by the name of an attribute.

use std::collections::BTreeMap;

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
        // What is a part, and the tensor and way to it.
        let mut parts: BTreeMap<ValueId, (String, String)> = BTreeMap::new();
        for spec in &self.inputs {
            if let (Some(name), Some(value)) = (spec.kind.tensor(), spec.arg.value())
                && self.weights.subclasses.contains_key(name)
            {
                parts.insert(value, (name.to_owned(), String::new()));
            }
        }
        let wholes: Vec<ValueId> = parts.keys().copied().collect();
        let mut taken: BTreeMap<(String, String), ValueId> = BTreeMap::new();
        let mut replaced: BTreeMap<ValueId, Argument> = BTreeMap::new();
        let mut nodes = Vec::with_capacity(self.graph.nodes.len());
        for node in std::mem::take(&mut self.graph.nodes) {
            let Some((result, tensor, way)) = part(&node, &parts) else {
                nodes.push(node);
                continue;
            };
            let found = self.weights.subclasses.get(&tensor).and_then(|whole| whole.tensors.get(&way));
            parts.insert(result, (tensor.clone(), way.clone()));
            match (found, taken.get(&(tensor.clone(), way.clone()))) {
                (Some(_), Some(first)) => drop(replaced.insert(result, Argument::Value(*first))),
                (Some(_), None) => drop(taken.insert((tensor, way), result)),
                // A part that has parts of its own.
                (None, _) => nodes.push(node),
            }
        }
        self.graph.nodes = nodes;
        self.graph.replace_all(&replaced);
        // Whatever leads to parts and is read by nothing else is gone.
        let reads = |nodes: &[Node], value: ValueId| {
            let mut read = false;
            nodes.iter().for_each(|node| node.each_input(&mut |id| read |= id == value));
            read
        };
        while let Some(index) = self
            .graph
            .nodes
            .iter()
            .position(|node| is_part(node) && node.result().is_some_and(|id| !reads(&self.graph.nodes, id)))
        {
            self.graph.nodes.remove(index);
        }
        for whole in wholes {
            let Some(at) = self.inputs.iter().position(|spec| spec.arg.value() == Some(whole)) else { continue };
            let mut given = false;
            self.graph.outputs.iter().for_each(|output| output.each_value(&mut |id| given |= id == whole));
            let whole_kind = match self.inputs.get(at).filter(|_| !given && !reads(&self.graph.nodes, whole)) {
                Some(_) => self.inputs.remove(at).kind,
                None => continue,
            };
            if at < self.graph.inputs.len() {
                self.graph.inputs.remove(at);
            }
            let Some(name) = whole_kind.tensor().map(str::to_owned) else { continue };
            let own: Vec<_> = taken.iter().filter(|((tensor, _), _)| *tensor == name).collect();
            for ((_, way), value) in own.into_iter().rev() {
                let part = format!("{name}.{way}");
                let kind = InputKind::Buffer { name: part.clone(), persistent: true };
                let weight = self.weights.subclasses.get(&name).and_then(|whole| whole.tensors.get(way)).cloned();
                if let Some(weight) = weight {
                    self.weights.state.insert(part, weight);
                }
                let arg = Argument::Value(*value);
                self.graph.inputs.insert(at.min(self.graph.inputs.len()), arg.clone());
                self.inputs.insert(at, InputSpec { kind, arg });
            }
            self.weights.subclasses.remove(&name);
        }
    }
}

fn is_part(node: &Node) -> bool {
    node.calls(PART)
}

/// The part that a node takes: its value, the tensor, and the way to it.
fn part(node: &Node, parts: &BTreeMap<ValueId, (String, String)>) -> Option<(ValueId, String, String)> {
    let from = node.value_arg("src_subclass_tensor").filter(|_| is_part(node))?;
    let (tensor, way) = parts.get(&from)?;
    let Some(Argument::Text(attribute)) = node.arg("attr") else { return None };
    let way = if way.is_empty() { attribute.clone() } else { format!("{way}.{attribute}") };
    Some((node.result()?, tensor.clone(), way))
}
