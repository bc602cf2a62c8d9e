//! Origins of instructions: the nodes of the exported program, and the lines of source that made these.
//!
//! Every node has a debug handle, a number above 0 that what is made of the node inherits with its metadata.

use std::collections::BTreeMap;

use edgepack_format::pte::Frame;
use serde::Serialize;

use crate::graph::{Argument, Graph, Node};

/// The metadata of a node that is its debug handle.
const HANDLE: &str = "debug_handle";
/// The metadata of a node that is where it was written.
const TRACE: &str = "stack_trace";

/// Origin of an instruction.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Origin {
    /// Index of the instruction in the chain.
    pub index: usize,
    /// The operator it calls, as the program names it; or what else it does.
    pub operator: String,
    /// The node of the Edge program it was emitted for; none for one that writes results back.
    pub node: Option<String>,
    /// The nodes of the exported program that this node was made of.
    pub from: Vec<String>,
    /// Debug handles of those nodes.
    pub debug_handles: Vec<u32>,
}

/// Origins of the instructions of a method.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MethodOrigins {
    /// Name under which the program has the method.
    pub method: String,
    /// Instructions of the method, in order.
    pub instructions: Vec<Origin>,
}

/// Current place of emission: the node, and the lines of source that made it.
#[derive(Clone, Default)]
pub(super) struct Place {
    pub(super) origin: Origin,
    pub(super) frames: Vec<Frame<'static>>,
}

/// The nodes of a program by debug handle.
pub(super) type Names = BTreeMap<u32, String>;

/// Gives every node a debug handle, in order; those that have one keep it.
pub(super) fn number(graph: &mut Graph) -> Names {
    let mut names = Names::new();
    gather(graph, &mut names);
    let mut next = names.keys().next_back().copied().unwrap_or(0);
    assign(graph, &mut next, &mut names);
    names
}

fn gather(graph: &Graph, names: &mut Names) {
    for node in &graph.nodes {
        if let Some(handle) = handle(node) {
            names.entry(handle).or_insert_with(|| node.name.clone());
        }
        for input in &node.inputs {
            if let Argument::Graph(_, inner) = &input.arg {
                gather(inner, names);
            }
        }
    }
}

fn assign(graph: &mut Graph, next: &mut u32, names: &mut Names) {
    for node in &mut graph.nodes {
        if handle(node).is_none() {
            *next = next.saturating_add(1);
            node.metadata.insert(HANDLE.to_owned(), next.to_string());
            names.insert(*next, node.name.clone());
        }
        for input in &mut node.inputs {
            if let Argument::Graph(_, inner) = &mut input.arg {
                assign(inner, next, names);
            }
        }
    }
}

/// The debug handle of a node.
pub(super) fn handle(node: &Node) -> Option<u32> {
    node.metadata.get(HANDLE)?.parse().ok().filter(|handle| *handle > 0)
}

/// The lines of source that a node was made by, outermost first; nothing if it does not say.
pub(super) fn frames(node: &Node) -> Vec<Frame<'static>> {
    node.metadata.get(TRACE).map(|trace| read(trace)).unwrap_or_default()
}

/// Reads a stack trace as Python prints it.
fn read(trace: &str) -> Vec<Frame<'static>> {
    let mut frames: Vec<Frame<'static>> = Vec::new();
    for line in trace.lines().map(str::trim) {
        if let Some(frame) = place(line) {
            frames.push(frame);
        } else if let Some(frame) = frames.last_mut().filter(|frame| frame.context.is_none() && !is_marker(line)) {
            frame.context = Some(line.to_owned().into());
        }
    }
    frames
}

/// A line of marks under the one it is about.
fn is_marker(line: &str) -> bool {
    line.chars().all(|mark| matches!(mark, '^' | '~'))
}

/// Reads `File "NAME", line NUMBER, in FUNCTION`.
fn place(line: &str) -> Option<Frame<'static>> {
    let (file, rest) = line.strip_prefix("File \"")?.split_once("\", line ")?;
    let (number, function) = match rest.split_once(", in ") {
        Some((number, function)) => (number, Some(function.to_owned().into())),
        None => (rest, None),
    };
    let lineno = number.trim().parse().ok()?;
    Some(Frame { filename: Some(file.to_owned().into()), lineno, name: function, context: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_traces_are_read() {
        let trace = "Traceback (most recent call last):\n  File \"models.py\", line 210, in forward\n    y = self.wk(x)\n    \
                     ^^^^^^^^^^\n  File \"a \\\"b\\\".py\", line 7\n  File \"linear.py\", line x, in f\n";
        let frames = read(trace);
        assert_eq!(frames.len(), 2);
        assert_eq!((frames[0].lineno, frames[0].context.as_deref()), (210, Some("y = self.wk(x)")));
        assert_eq!((frames[0].filename.as_deref(), frames[0].name.as_deref()), (Some("models.py"), Some("forward")));
        assert_eq!((frames[1].lineno, frames[1].name.as_deref()), (7, None));
        assert!(read("").is_empty());
    }
}
