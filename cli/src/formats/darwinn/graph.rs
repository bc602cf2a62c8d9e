//! Packages as graphs: executables between their inputs and outputs, and what the host does for each, step by step.

use std::collections::{HashMap, HashSet};

use edgepack_format::darwinn::{AnyHint, Description, DmaHint, ExecutableRef, Geometry, Layer, PackageRef};

use super::summary::description;
use crate::readable::sound_rows;
use crate::spelling::short;
use crate::units::{bytes, count};
use crate::view::{Graph, Kind, Node, Value, Writer, part};

/// Adds the graphs of a package and of those for further chips; returns the index of the first. `path` is the place of the
/// package in the file, up to its fields.
pub fn graphs(
    package: &PackageRef<'_>,
    name: &str,
    path: &str,
    parent: Option<usize>,
    graphs: &mut Vec<Graph>,
) -> usize {
    let at = graphs.len();
    graphs.push(Graph::default());
    let executables = package.executables();
    let about = format!("Edge TPU package, {}", count(executables.len(), "executable"));
    let graph = Graph { name: short(name), about, path: path.to_owned(), parent, ..Graph::default() };
    let mut writer = Writer::new(graph);
    // What executables exchange has one name.
    let mut ids: HashMap<String, usize> = HashMap::new();
    for (index, executable) in executables.iter().enumerate() {
        let inside = format!("{path}serialized_multi_executable.serialized_executables[{index}]");
        let layers = |rows: Vec<Layer<'_>>, writer: &mut Writer, ids: &mut HashMap<String, usize>| {
            let value = |layer: &Layer<'_>| {
                let name = short(layer.name.as_deref().unwrap_or("?"));
                *ids.entry(name.clone()).or_insert_with(|| writer.graph.value(value(name, layer)))
            };
            rows.iter().map(value).collect::<Vec<usize>>()
        };
        let row = executable.row();
        let inputs = layers(sound_rows(&row.input_layers), &mut writer, &mut ids);
        let outputs = layers(sound_rows(&row.output_layers), &mut writer, &mut ids);
        for (input, &value) in inputs.iter().enumerate() {
            if !writer.is_written(value) {
                writer.source(Kind::Input, value, format!("{inside}.input_layers[{input}]"));
            }
        }
        let role = match (package.main() == Some(index), package.caching() == Some(index)) {
            (true, _) => "main",
            (_, true) => "loads parameters",
            _ => "not used",
        };
        let mut attributes = vec![
            ("role".to_owned(), role.to_owned()),
            ("chip".to_owned(), short(row.chip.as_deref().unwrap_or("unknown"))),
            ("executable".to_owned(), bytes(executable.bytes().len() as u64)),
            ("parameters".to_owned(), bytes(executable.parameters().len() as u64)),
        ];
        let cycles = executable.estimated_cycles();
        attributes.extend(cycles.map(|cycles| ("estimate".to_owned(), format!("{cycles} cycles"))));
        writer.node(Node {
            kind: Kind::Delegate,
            name: short(&row.kind.to_string()),
            place: index.to_string(),
            inputs: inputs.iter().map(|&value| (String::new(), value)).collect(),
            outputs,
            attributes,
            graphs: host(executable, &format!("{name} / executable {index}"), &inside, at, graphs)
                .into_iter()
                .collect(),
            path: inside,
            ..Node::default()
        });
    }
    // What nothing reads comes out.
    let read: HashSet<usize> = writer.graph.edges.iter().map(|[_, _, value]| *value).collect();
    let made = writer.graph.nodes.iter().filter(|node| node.kind == Kind::Delegate);
    let made: Vec<usize> = made.flat_map(|node| node.outputs.clone()).filter(|value| !read.contains(value)).collect();
    for value in made {
        let name = writer.graph.values[value].name.clone();
        writer.output(name, value, String::new());
    }
    graphs[at] = writer.finish();
    for (index, chip) in package.chips().iter().enumerate() {
        let path = format!("{path}multi_chip_package[{index}].");
        self::graphs(chip, &format!("{name} / chip {index}"), &path, Some(at), graphs);
    }
    at
}

fn value(name: String, layer: &Layer<'_>) -> Value {
    let Layer { y_dim, x_dim, z_dim, data_type, .. } = layer;
    let size = Geometry::of(layer).ok().map(|geometry| bytes(geometry.padded_bytes as u64));
    let kind = format!("{}[{y_dim}, {x_dim}, {z_dim}]", data_type.name().unwrap_or("?").to_lowercase());
    Value { name, kind, place: size.map_or(String::new(), |size| format!("{size} on the bus")), ..Value::default() }
}

/// Steps of the host for one executable, one after another: nothing else orders them.
fn host(
    executable: &ExecutableRef<'_>,
    name: &str,
    path: &str,
    parent: usize,
    graphs: &mut Vec<Graph>,
) -> Option<usize> {
    let hints = sound_rows(&executable.row().dma_hints.as_ref()?.hints);
    if hints.is_empty() {
        return None;
    }
    let about = format!("{} of the host, in order", count(hints.len(), "step"));
    let mut graph = Graph { name: short(name), about, parent: Some(parent), ..Graph::default() };
    let steps: Vec<usize> =
        (0..=hints.len()).map(|_| graph.value(Value { constant: true, ..Value::default() })).collect();
    let mut writer = Writer::new(graph);
    for (index, hint) in hints.iter().enumerate() {
        let mut node = step(hint);
        node.place = index.to_string();
        node.path = format!("{path}.dma_hints.hints[{index}]");
        node.inputs.extend(steps.get(index).filter(|_| index > 0).map(|&step| (String::new(), step)));
        node.outputs.extend(steps.get(index + 1));
        writer.node(node);
    }
    let mut graph = writer.finish();
    part(&mut graph);
    graphs.push(graph);
    Some(graphs.len() - 1)
}

fn step(hint: &DmaHint<'_>) -> Node {
    let mut attributes = vec![("direction".to_owned(), short(&hint.direction.to_string()))];
    let mut fact = |name: &str, text: String| attributes.push((name.to_owned(), short(&text)));
    let (kind, name) = match &hint.any_hint {
        Some(AnyHint::DmaDescriptorHint(row)) => {
            let meta = row.meta.as_ref();
            let buffer = description(meta.map_or(Description::default(), |meta| meta.desc)).to_lowercase();
            if let Some(layer) = meta.and_then(|meta| meta.name.as_deref()) {
                fact("layer", layer.to_owned());
            }
            fact("bytes", row.size_in_bytes.to_string());
            fact("offset", row.offset_in_bytes.to_string());
            (Kind::Call, format!("move {buffer}"))
        }
        Some(AnyHint::InstructionHint(row)) => {
            fact("chunk", row.instruction_chunk_index.to_string());
            (Kind::Delegate, "send instructions".to_owned())
        }
        Some(AnyHint::InterruptHint(row)) => {
            fact("type", row.kind.0.to_string());
            (Kind::Control, "wait for an interrupt".to_owned())
        }
        Some(AnyHint::FenceHint(_)) => (Kind::Control, "fence".to_owned()),
        _ => (Kind::Control, "nothing".to_owned()),
    };
    Node { kind, name: short(&name), attributes, ..Node::default() }
}
