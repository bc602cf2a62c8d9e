//! Graphs as Model Explorer reads them: a collection of graphs, with modules as namespaces.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use super::graph::{Graph, Kind, Node, View};
use crate::status::Failure;

/// The document.
pub fn explorer(view: &View) -> Result<String, Failure> {
    let ids = ids(view);
    let mut marks: HashMap<(usize, usize), Vec<String>> = HashMap::new();
    for marked in &view.findings {
        let place = marked.node.into_iter();
        place.for_each(|place| marks.entry(place).or_default().push(marked.finding.to_string()));
    }
    let graph = |(index, graph): (usize, &Graph)| {
        let nodes = graph.nodes.iter().enumerate();
        let node = |(at, node)| self::node(at, node, graph, &ids, marks.get(&(index, at)));
        let mut nodes: Vec<Json> = nodes.map(node).collect();
        edges(graph, &mut nodes);
        json!({ "id": ids[index], "nodes": nodes })
    };
    let graphs: Vec<Json> = view.graphs.iter().enumerate().map(graph).collect();
    Ok(serde_json::to_string_pretty(&json!({ "label": view.file, "graphs": graphs }))? + "\n")
}

/// Names of graphs, each another one.
fn ids(view: &View) -> Vec<String> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut ids = Vec::with_capacity(view.graphs.len());
    for graph in &view.graphs {
        let count = seen.entry(graph.name.as_str()).or_default();
        ids.push(match *count {
            0 => graph.name.clone(),
            more => format!("{} ({more})", graph.name),
        });
        *count += 1;
    }
    ids
}

fn node(at: usize, node: &Node, graph: &Graph, ids: &[String], marks: Option<&Vec<String>>) -> Json {
    let fact = |key: &str, value: &str| json!({ "key": key, "value": value });
    let mut attributes: Vec<Json> = node.attributes.iter().map(|(key, value)| fact(key, value)).collect();
    if !node.place.is_empty() {
        attributes.insert(0, fact("instruction", &node.place));
    }
    for (name, value) in &node.inputs {
        // Constants have no node that they come from.
        if let Some(value) = graph.values.get(*value).filter(|value| value.constant) {
            let name = if name.is_empty() { &value.name } else { name };
            let what = [&value.origin, &value.kind, &value.place].map(String::as_str);
            attributes
                .push(fact(name, &what.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")));
        }
    }
    attributes.extend(marks.into_iter().flatten().map(|mark| fact("finding", mark)));
    let outputs = node.outputs.iter().enumerate().map(|(index, value)| {
        let value = graph.values.get(*value);
        let text = |of: fn(&super::graph::Value) -> &str| value.map_or("", of);
        let facts =
            [("tensor_name", text(|v| &v.name)), ("tensor_shape", text(|v| &v.kind)), ("place", text(|v| &v.place))];
        let facts: Vec<Json> =
            facts.iter().filter(|(_, text)| !text.is_empty()).map(|(key, text)| fact(key, text)).collect();
        json!({ "id": index.to_string(), "attrs": facts })
    });
    let inputs = node
        .inputs
        .iter()
        .enumerate()
        .map(|(index, (name, _))| json!({ "id": index.to_string(), "attrs": [fact("__tensor_tag", name)] }));
    let slashes = |name: &str| name.replace('/', "∕");
    let namespace: Vec<String> = graph.modules.path(node.module).into_iter().map(slashes).collect();
    let mut document = json!({
        "id": at.to_string(),
        "label": node.name,
        "namespace": namespace.join("/"),
        "attrs": attributes,
        "inputsMetadata": inputs.collect::<Vec<_>>(),
        "outputsMetadata": outputs.collect::<Vec<_>>(),
        "incomingEdges": [],
    });
    let inside: Vec<&String> = node.graphs.iter().filter_map(|&inner| ids.get(inner)).collect();
    if !inside.is_empty() {
        document["subgraphIds"] = json!(inside);
    }
    if marks.is_some() {
        document["style"] = json!({ "backgroundColor": "#f5b7b1" });
    } else if node.kind == Kind::Delegate {
        document["style"] = json!({ "backgroundColor": "#d6eaf8" });
    }
    document
}

/// Adds the edges to the nodes that they lead to.
fn edges(graph: &Graph, nodes: &mut [Json]) {
    let mut lists: Vec<Vec<Json>> = vec![Vec::new(); nodes.len()];
    let mut outputs: HashMap<(usize, usize), usize> = HashMap::new();
    // A value that is read twice is two inputs: positions of each, the last one first.
    let mut inputs: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for (position, &value) in node.outputs.iter().enumerate() {
            outputs.entry((at, value)).or_insert(position);
        }
        for (position, &(_, value)) in node.inputs.iter().enumerate().rev() {
            inputs.entry((at, value)).or_default().push(position);
        }
    }
    for &[from, to, value] in &graph.edges {
        let output = outputs.get(&(from, value)).copied().unwrap_or(0);
        let input = inputs.get_mut(&(to, value)).and_then(Vec::pop).unwrap_or(0);
        lists[to].push(json!({
            "sourceNodeId": from.to_string(),
            "sourceNodeOutputId": output.to_string(),
            "targetNodeInputId": input.to_string(),
        }));
    }
    for (node, list) in nodes.iter_mut().zip(lists) {
        node["incomingEdges"] = list.into();
    }
}
