//! The graph that the graph executor interprets: nodes in the order of execution, and per entry (tensor) its shape,
//! element type and storage.
//!
//! A [`Graph`] from [`Graph::parse`] keeps every rule: references point backwards and inside, lists have one element
//! per entry, products fit, and no entry is read after its storage was written again.

use alloc::string::String;
use alloc::vec::Vec;

use super::data_type::DataType;
use super::json::Json;
use super::params::byte_count;

/// The function that does nothing: its result is its argument in another shape.
pub const NOP: &str = "__nop";
/// The function that copies its argument, from one device to another.
pub const COPY: &str = "__copy";

/// Computation of a module, as its graph file has it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Graph {
    /// Inputs, parameters and calls, in the order of execution.
    pub nodes: Vec<Node>,
    /// The nodes that are inputs or parameters.
    pub arg_nodes: Vec<u32>,
    /// Results of the graph, in order.
    pub heads: Vec<Reference>,
    /// The first entry of each node, and the number of entries.
    pub row_ptr: Vec<u32>,
    /// Tensors of the graph; nodes name them by their index.
    pub entries: Vec<Entry>,
    /// Further attributes of the graph, which runtimes skip.
    pub other: Vec<(String, Json)>,
}

/// Input, parameter or call; its index in [`Graph::nodes`] is its number.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Node {
    /// Name, unique only among inputs and parameters.
    pub name: String,
    /// Entries the node reads.
    pub inputs: Vec<Reference>,
    /// Nodes that are to run before it; runtimes ignore them.
    pub control_deps: Vec<u32>,
    /// Call of an operator; an input or parameter calls nothing.
    pub call: Option<Call>,
}

/// Call of an operator node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Call {
    /// The symbol, or [`NOP`] or [`COPY`].
    pub function: String,
    /// Arguments it says it has.
    pub inputs: u32,
    /// Results, and so entries of the node.
    pub outputs: u32,
    /// True if arguments are passed without their shapes.
    pub flatten: bool,
    /// Further attributes: layouts, a hash.
    pub attrs: Vec<(String, String)>,
}

/// An output of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Reference {
    /// Index into [`Graph::nodes`].
    pub node: u32,
    /// Index among the node's outputs.
    pub index: u32,
    /// Always 0 in practice.
    pub version: u32,
}

/// A tensor of the graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Number of the storage: entries of one number share memory.
    pub storage: u32,
    /// Elements along each dimension; empty for one element.
    pub shape: Vec<u64>,
    /// Element type, with bits and lanes.
    pub data_type: DataType,
    /// The type of the device it is on.
    pub device: Option<i32>,
    /// In which memory of the device.
    pub scope: Option<String>,
}

impl Entry {
    /// Its bytes in memory; `None` beyond 63 bits.
    pub fn bytes(&self) -> Option<u64> {
        byte_count(&self.shape, self.data_type.bytes())
    }
}

impl Node {
    /// Returns the number of the node's entries.
    pub fn outputs(&self) -> u32 {
        self.call.as_ref().map_or(1, |call| call.outputs)
    }
}

impl Graph {
    /// The entry that a reference is to.
    pub fn entry_id(&self, reference: Reference) -> Option<u32> {
        let node = self.nodes.get(reference.node as usize)?;
        if reference.index >= node.outputs() {
            return None;
        }
        self.row_ptr.get(reference.node as usize)?.checked_add(reference.index)
    }

    /// The tensor that a reference is to.
    pub fn entry(&self, reference: Reference) -> Option<&Entry> {
        self.entries.get(self.entry_id(reference)? as usize)
    }

    /// The outputs of a node, by number.
    pub fn outputs_of(&self, node: u32) -> core::ops::Range<u32> {
        let first = self.row_ptr.get(node as usize).copied().unwrap_or_default();
        let count = self.nodes.get(node as usize).map_or(0, Node::outputs);
        first..first.saturating_add(count)
    }

    /// Inputs and parameters in order: their nodes, names and tensors.
    pub fn args(&self) -> impl Iterator<Item = (u32, &str, &Entry)> {
        self.arg_nodes.iter().filter_map(|&id| {
            let node = self.nodes.get(id as usize)?;
            let entry = self.entry(Reference { node: id, index: 0, version: 0 })?;
            Some((id, node.name.as_str(), entry))
        })
    }

    /// The calls in order: their nodes.
    pub fn calls(&self) -> impl Iterator<Item = (u32, &Node, &Call)> {
        let nodes = (0u32..).zip(&self.nodes);
        nodes.filter_map(|(id, node)| Some((id, node, node.call.as_ref()?)))
    }
}
