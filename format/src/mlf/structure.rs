//! Checks of a graph's numbers, so that it can be followed: row pointers, references, arguments, counts.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;

use super::graph::{Graph, NOP, Reference};
use super::report::{Report, shown};
use crate::room;
use crate::rules::mlf as rules;

/// Checks a graph; whether references can be followed.
pub(super) fn check(graph: &Graph, report: &mut Report) -> bool {
    let mut sound = rows(graph, report);
    for (index, (id, node)) in (0u32..).zip(&graph.nodes).enumerate() {
        for (place, &input) in node.inputs.iter().enumerate() {
            let path = format_args!("nodes[{index}].inputs[{place}]").to_string();
            if input.node < graph.nodes.len() as u32 && input.node >= id {
                let message = format!("node {} runs later", input.node);
                report.add(&rules::ORDER, path, None, message);
                sound = false;
            } else {
                sound &= reference(graph, input, &path, report);
            }
        }
        let Some(call) = &node.call else {
            if !node.inputs.is_empty() {
                let message = format!("an input or parameter that reads {} entries", node.inputs.len());
                report.add(&rules::ARG_INPUTS, format_args!("nodes[{index}]"), None, message);
            }
            continue;
        };
        if call.inputs as usize != node.inputs.len() {
            let message = format!("num_inputs is {}, there are {} inputs", call.inputs, node.inputs.len());
            report.add(&rules::NUM_INPUTS, format_args!("nodes[{index}]"), None, message);
        }
        if call.flatten && call.function != NOP {
            let message = "arguments are passed in one dimension".to_string();
            report.add(&rules::FLATTEN, format_args!("nodes[{index}]"), None, message);
        }
    }
    let mut seen = BTreeMap::new();
    for (index, &head) in graph.heads.iter().enumerate() {
        sound &= reference(graph, head, &format!("heads[{index}]"), report);
        if let Some(first) = seen.insert((head.node, head.index), index) {
            let message = format!("the same as output {first}");
            report.add(&rules::HEAD_REPEATED, format_args!("heads[{index}]"), None, message);
        }
    }
    if graph.heads.is_empty() {
        report.add(&rules::NO_HEADS, "heads", None, "there is no output".to_string());
    }
    arguments(graph, report);
    for (index, entry) in graph.entries.iter().enumerate() {
        if entry.bytes().is_none() {
            let shape = shown(&entry.shape);
            let message = format!("{} of shape {shape} has more bytes than 63 bits count", entry.data_type);
            report.add(&rules::SHAPE, format_args!("attrs.shape[{index}]"), None, message);
            sound = false;
        }
    }
    sound
}

/// Row pointers count the outputs of the nodes before.
fn rows(graph: &Graph, report: &mut Report) -> bool {
    let want_len = graph.nodes.len().saturating_add(1);
    if graph.row_ptr.len() != want_len {
        let message = format!("{} elements for {} nodes", graph.row_ptr.len(), graph.nodes.len());
        report.add(&rules::ROW_PTR, "node_row_ptr", None, message);
        return false;
    }
    let mut want = 0u64;
    let outputs = graph.nodes.iter().map(|node| u64::from(node.outputs())).chain([0]);
    for (index, (&have, outputs)) in graph.row_ptr.iter().zip(outputs).enumerate() {
        if u64::from(have) != want {
            let message = format!("{have}, the nodes before have {want} outputs");
            report.add(&rules::ROW_PTR, format_args!("node_row_ptr[{index}]"), None, message);
            return false;
        }
        want = want.saturating_add(outputs);
    }
    if want != graph.entries.len() as u64 {
        let message = format!("{} elements, the nodes have {want} outputs", graph.entries.len());
        report.add(&rules::ATTR_LENGTH, "attrs.storage_id", None, message);
        return false;
    }
    true
}

fn reference(graph: &Graph, reference: Reference, path: &str, report: &mut Report) -> bool {
    let message = match graph.nodes.get(reference.node as usize) {
        None => format!("node {} of {}", reference.node, graph.nodes.len()),
        Some(node) if reference.index >= node.outputs() => {
            format!("output {} of node {}, which has {}", reference.index, reference.node, node.outputs())
        }
        Some(_) => return true,
    };
    report.add(&rules::REFERENCE, path, None, message);
    false
}

/// The arguments are exactly the nodes that call nothing, and their names tell them apart.
fn arguments(graph: &Graph, report: &mut Report) {
    let Some(mut listed) = report.roomy(room::filled(false, graph.nodes.len())) else { return };
    for (index, &id) in graph.arg_nodes.iter().enumerate() {
        let path = format_args!("arg_nodes[{index}]").to_string();
        match graph.nodes.get(id as usize) {
            None => report.add(&rules::ARG_NODES, path, None, format!("node {id} of {}", graph.nodes.len())),
            Some(node) if node.call.is_some() => {
                report.add(&rules::ARG_NODES, path, None, format!("node {id} is a call"));
            }
            Some(_) => match listed.get_mut(id as usize) {
                Some(listed) if !*listed => *listed = true,
                _ => report.add(&rules::ARG_NODES, path, None, format!("node {id} is listed already")),
            },
        }
    }
    let nodes = graph.nodes.iter().zip(&listed).enumerate();
    for (index, _) in nodes.filter(|(_, (node, listed))| node.call.is_none() && !**listed) {
        report.add(&rules::ARG_NODES, format_args!("nodes[{index}]"), None, "not in arg_nodes".to_string());
    }
    let mut names = BTreeMap::new();
    for (id, name, _) in graph.args() {
        if let Some(first) = names.insert(name, id).filter(|&first| first != id) {
            let message = format!("{name:?} is the name of node {first} already");
            report.add(&rules::ARG_NAME, format_args!("nodes[{id}].name"), None, message);
        }
    }
}
