//! Graphs of a file, whatever its format: nodes in the order in which they run, and the values between them.
//!
//! Invariant: memory is in proportion to the file. What a node names twice is named by number; texts are cut off.

use std::collections::HashMap;

use edgepack_format::finding::{CutShort, Finding, Findings};
use serde::Serialize;

use super::modules::Modules;
use crate::profile::Arenas;
use crate::spelling::short;

/// Graphs of a file, and what its verifier says.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct View {
    /// Name of the file, as the command line has it.
    pub file: String,
    /// Kind of the file.
    pub kind: &'static str,
    /// Graphs, each before those that its nodes contain.
    pub graphs: Vec<Graph>,
    /// Findings, each with the node that it is about.
    pub findings: Vec<Marked>,
    /// Number of findings that were counted but not stored.
    pub more_findings: usize,
    /// Lengths of a file that was cut short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<CutShort>,
}

/// A finding and the node that it is about.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Marked {
    /// Content of the finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// Indices of the graph and of the node in it; absent where it is about the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<(usize, usize)>,
}

/// Graph of a method, of a delegate, of a module.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Graph {
    /// Name of the graph.
    pub name: String,
    /// Kind and extent of the graph, in a few words.
    pub about: String,
    /// Place of the graph in the file, as findings name it.
    #[serde(skip)]
    pub path: String,
    /// Index of the graph with the node that contains this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    /// Modules that nodes are in.
    pub modules: Modules,
    /// Nodes in the order in which they run.
    pub nodes: Vec<Node>,
    /// Values that nodes read and write.
    pub values: Vec<Value>,
    /// Nodes that write and that read a value: indices of both nodes and of the value.
    pub edges: Vec<[usize; 3]>,
    /// Memory over the nodes, where the file plans it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Arenas>,
}

/// Kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Value that goes in.
    Input,
    /// Value that was there before: state that is retained from run to run.
    State,
    /// Value that comes out.
    Output,
    /// Call of an operator or function.
    #[default]
    Call,
    /// Call of a delegate, or what is compiled for a device.
    Delegate,
    /// Jump, move, or end of a value.
    Control,
}

/// Node of a graph.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Node {
    /// Kind of the node.
    pub kind: Kind,
    /// Operator, backend or name of the value.
    pub name: String,
    /// Place of the node in its graph, as other commands print it: `12`, `1:12`; empty for inputs and outputs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Index of the module that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<usize>,
    /// Names of arguments and indices of their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<(String, usize)>,
    /// Indices of values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<usize>,
    /// Names and texts of what is no tensor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, String)>,
    /// Indices of graphs inside of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<usize>,
    /// Place of the node in the file, as findings name it.
    #[serde(skip)]
    pub path: String,
}

/// Value of a graph.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Value {
    /// Name of the value.
    pub name: String,
    /// Type of the value: `f32[1, 3]`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Place of the elements: `memory 1 at 0x40`, `constant.3`; empty if nothing is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// True if it is the same in every run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub constant: bool,
    /// Name that the value has in the model, of which the file may know: `layers.0.weight`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// Bytes in a memory that the file plans.
    #[serde(skip)]
    pub stored: Option<Stored>,
    /// Place of the value in the file, as findings name it.
    #[serde(skip)]
    pub path: String,
}

/// Bytes in a planned memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Number of the memory.
    pub memory: u32,
    /// Bytes from the start of the memory.
    pub offset: u64,
    /// Bytes that the greatest sizes take.
    pub bytes: u64,
}

impl Graph {
    /// Adds a value and returns its index.
    pub fn value(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len() - 1
    }
}

/// A graph while its nodes are added in the order in which they run.
pub struct Writer {
    /// The graph so far.
    pub graph: Graph,
    /// Node that wrote a value last, by value.
    writers: HashMap<usize, usize>,
    /// Node that wrote the first byte of a memory last, by number of the memory and offset.
    stored: HashMap<(u32, u64), usize>,
}

impl Writer {
    /// Goes on with a graph that has values.
    pub fn new(graph: Graph) -> Self {
        Writer { graph, writers: HashMap::new(), stored: HashMap::new() }
    }

    /// Returns whether some node wrote a value.
    pub fn is_written(&self, value: usize) -> bool {
        self.writers.contains_key(&value)
    }

    /// Adds a node that writes one value out of nothing.
    pub fn source(&mut self, kind: Kind, value: usize, path: String) {
        let name = |value: &Value| if value.origin.is_empty() { value.name.clone() } else { value.origin.clone() };
        let name = self.graph.values.get(value).map(name).unwrap_or_default();
        self.node(Node { kind, name, outputs: vec![value], path, ..Node::default() });
    }

    /// Adds a node that reads one value, which comes out.
    pub fn output(&mut self, name: String, value: usize, path: String) {
        self.node(Node { kind: Kind::Output, name, inputs: vec![(String::new(), value)], path, ..Node::default() });
    }

    /// Adds a node behind those that write what it reads, and returns its index. A value that nobody wrote and that is not
    /// constant is another one in another shape, if one was written to its place in memory, and otherwise state.
    pub fn node(&mut self, node: Node) -> usize {
        for &(_, value) in &node.inputs {
            let Some(read) = self.graph.values.get(value).filter(|_| !self.is_written(value)) else { continue };
            let place = read.stored.map(|stored| (stored.memory, stored.offset));
            if let Some(&writer) = place.and_then(|place| self.stored.get(&place)) {
                self.writers.insert(value, writer);
            } else if !read.constant {
                self.source(Kind::State, value, String::new());
                if let Some(state) = self.graph.nodes.last_mut() {
                    state.module = node.module;
                }
            }
        }
        let index = self.graph.nodes.len();
        for &(_, value) in &node.inputs {
            if let Some(&writer) = self.writers.get(&value) {
                self.graph.edges.push([writer, index, value]);
            }
        }
        self.writers.extend(node.outputs.iter().map(|&value| (value, index)));
        let stored = node.outputs.iter().filter_map(|&value| self.graph.values.get(value)?.stored);
        self.stored.extend(stored.map(|stored| ((stored.memory, stored.offset), index)));
        self.graph.nodes.push(node);
        index
    }

    /// Ends the graph.
    pub fn finish(self) -> Graph {
        self.graph
    }
}

impl View {
    /// Puts graphs and findings together.
    pub fn new(file: &str, kind: &'static str, graphs: Vec<Graph>, findings: &Findings) -> View {
        let places = places(&graphs);
        let marked =
            findings.iter().map(|finding| Marked { node: find(&places, &finding.path), finding: finding.clone() });
        View {
            file: short(file),
            kind,
            findings: marked.collect(),
            more_findings: findings.dropped(),
            cut_short: findings.cut_short(),
            graphs,
        }
    }
}

/// Nodes by the paths of what they stand for: their own, those of the values they write or read first, and of the graphs
/// inside of them.
fn places(graphs: &[Graph]) -> HashMap<&str, (usize, usize)> {
    let mut places = HashMap::new();
    for (graph, content) in graphs.iter().enumerate() {
        let value = |index: usize| content.values.get(index).map_or("", |value| &value.path);
        let nodes = || (0..).zip(&content.nodes).map(|(index, node): (usize, &Node)| ((graph, index), node));
        let inside = |node: &Node| node.graphs.clone().into_iter().filter_map(|inner| graphs.get(inner));
        let own = nodes().map(|(place, node)| (node.path.as_str(), place));
        let written = nodes().flat_map(|(place, node)| node.outputs.iter().map(move |&id| (value(id), place)));
        let read = nodes().flat_map(|(place, node)| node.inputs.iter().map(move |&(_, id)| (value(id), place)));
        let inner = nodes().flat_map(|(place, node)| inside(node).map(move |inner| (inner.path.as_str(), place)));
        for (path, place) in own.chain(written).chain(read).chain(inner).filter(|(path, _)| !path.is_empty()) {
            places.entry(path).or_insert(place);
        }
    }
    places
}

/// The node whose path a path begins with: the longest of them.
fn find(places: &HashMap<&str, (usize, usize)>, path: &str) -> Option<(usize, usize)> {
    let ends = path.char_indices().rev().filter(|(_, c)| matches!(c, '.' | '[')).map(|(end, _)| end);
    std::iter::once(path.len()).chain(ends).find_map(|end| places.get(&path[..end]).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, path: &str) -> Value {
        Value { name: name.to_owned(), path: path.to_owned(), ..Value::default() }
    }

    fn call(inputs: &[usize], outputs: &[usize], path: &str) -> Node {
        let inputs = inputs.iter().map(|&input| (String::new(), input)).collect();
        Node { inputs, outputs: outputs.to_vec(), path: path.to_owned(), ..Node::default() }
    }

    /// A value `x` that goes in, `s` that is state and is written again, and what comes of both.
    fn graph() -> Graph {
        let values = vec![value("x", "values[0]"), value("s", "values[1]"), value("y", "values[2]")];
        let mut writer = Writer::new(Graph { values, path: "plan".to_owned(), ..Graph::default() });
        writer.source(Kind::Input, 0, "inputs[0]".to_owned());
        writer.node(call(&[0, 1], &[1], "calls[0]"));
        writer.node(call(&[1], &[2], "calls[1]"));
        writer.finish()
    }

    #[test]
    fn edges_lead_from_the_last_writer_and_state_comes_from_before() {
        let graph = graph();
        let kinds: Vec<Kind> = graph.nodes.iter().map(|node| node.kind).collect();
        assert_eq!(kinds, [Kind::Input, Kind::State, Kind::Call, Kind::Call]);
        assert_eq!(graph.edges, [[0, 2, 0], [1, 2, 1], [2, 3, 1]]);
    }

    #[test]
    fn a_value_in_the_place_of_another_is_that_one_in_another_shape() {
        let stored = |offset| Some(Stored { memory: 1, offset, bytes: 4 });
        let mut values = vec![value("x", ""), value("view", ""), value("state", "")];
        for (value, offset) in values.iter_mut().zip([16, 16, 32]) {
            value.stored = stored(offset);
        }
        let mut writer = Writer::new(Graph { values, ..Graph::default() });
        writer.node(call(&[], &[0], ""));
        writer.node(call(&[1, 2], &[], ""));
        let graph = writer.finish();
        assert_eq!((graph.edges, graph.nodes[1].kind), (vec![[0, 2, 1], [1, 2, 2]], Kind::State));
    }

    #[test]
    fn findings_are_about_the_node_with_the_longest_path() {
        let mut outer = graph();
        outer.nodes[3].graphs.push(1);
        let inner = Graph { path: "delegates[0]".to_owned(), ..Graph::default() };
        let graphs = [outer, inner];
        let places = places(&graphs);
        for (path, node) in [
            ("calls[0]", Some(2)),
            ("calls[0].args[3]", Some(2)),
            // Not `calls[0]`.
            ("calls[01]", None),
            ("values[2].sizes", Some(3)),
            ("values[1]", Some(1)),
            ("delegates[0].nodes[7]", Some(3)),
            ("plan.name", None),
            ("", None),
        ] {
            assert_eq!(find(&places, path), node.map(|node| (0, node)), "{path}");
        }
    }
}
