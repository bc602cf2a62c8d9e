//! Models as graphs: operators of each subgraph, and the packages inside of compiled ones.

use std::collections::HashMap;

use edgepack_format::tflite::{ModelRef, Operator, OperatorCode, SubGraph, Tensor, operator_name};

use crate::formats::darwinn::package_graphs;
use crate::readable::{rows, sound_rows};
use crate::spelling::short;
use crate::units::count;
use crate::view::{Graph, Kind, Node, Value, Writer, part};

/// The graphs of all subgraphs, each followed by those inside of it.
pub fn graphs(model: &ModelRef<'_>) -> Vec<Graph> {
    let row = model.model();
    let codes = rows(&row.operator_codes);
    let filled: Vec<bool> = rows(&row.buffers)
        .iter()
        .map(|buffer| {
            buffer.as_ref().is_some_and(|buffer| {
                buffer.data.as_ref().is_some_and(|data| !data.as_slice().is_empty()) || buffer.size > 0
            })
        })
        .collect();
    let mut graphs = Vec::new();
    for (index, subgraph) in rows(&row.subgraphs).iter().enumerate() {
        let Some(subgraph) = subgraph else { continue };
        let at = graphs.len();
        graphs.push(Graph::default());
        let mut graph = draw(index, subgraph, &codes, &filled);
        let nodes: HashMap<usize, usize> =
            graph.nodes.iter().enumerate().filter_map(|(node, one)| Some((one.place.parse().ok()?, node))).collect();
        for compiled in model.operators().iter().filter(|compiled| compiled.subgraph == index) {
            let Some(&node) = nodes.get(&compiled.operator) else { continue };
            for (number, package) in compiled.packages.iter().enumerate() {
                let name = format!("{} / package {number}", graph.name);
                let field = if number == 0 { "package." } else { "" };
                let path = format!("subgraphs[{index}].operators[{}].custom_options.{field}", compiled.operator);
                let inner = package_graphs(package, &name, &path, Some(at), &mut graphs);
                graph.nodes[node].graphs.push(inner);
                graph.nodes[node].kind = Kind::Delegate;
            }
        }
        part(&mut graph);
        graphs[at] = graph;
    }
    graphs
}

fn draw(index: usize, subgraph: &SubGraph<'_>, codes: &[Option<OperatorCode<'_>>], filled: &[bool]) -> Graph {
    let operators: Vec<Operator<'_>> = sound_rows(&subgraph.operators);
    let name = subgraph.name.as_deref().filter(|name| !name.is_empty()).map_or(format!("subgraph {index}"), short);
    let about = format!("subgraph, {}", count(operators.len(), "operator"));
    let path = format!("subgraphs[{index}]");
    let mut graph = Graph { name, about, path: path.clone(), ..Graph::default() };
    let mut names = Vec::new();
    for (number, tensor) in rows(&subgraph.tensors).iter().enumerate() {
        let tensor = tensor.clone().unwrap_or_default();
        let constant = filled.get(tensor.buffer as usize).copied().unwrap_or(false);
        names.push(tensor.name.as_deref().map(short).unwrap_or_default());
        graph.value(Value {
            name: format!("%{number}"),
            kind: layout(&tensor),
            place: if constant { format!("buffer {}", tensor.buffer) } else { String::new() },
            constant,
            origin: names.last().cloned().unwrap_or_default(),
            path: format!("{path}.tensors[{number}]"),
            ..Value::default()
        });
    }
    let tensors = names.len();
    let known = |id: i32| usize::try_from(id).ok().filter(|id| *id < tensors);
    let mut writer = Writer::new(graph);
    for (number, id) in subgraph.inputs.iter().flat_map(|ids| ids.iter()).enumerate() {
        known(id).into_iter().for_each(|id| writer.source(Kind::Input, id, format!("{path}.inputs[{number}]")));
    }
    for (number, operator) in operators.iter().enumerate() {
        let code = codes.get(operator.opcode_index as usize).and_then(Option::as_ref);
        let name = match code {
            None => format!("operator code {}", operator.opcode_index),
            Some(code) => match (code.code(), code.custom_code.as_deref()) {
                (OperatorCode::CUSTOM, Some(custom)) => short(custom),
                (built_in, _) => operator_name(built_in).map_or(format!("operator {built_in}"), str::to_owned),
            },
        };
        let outputs: Vec<usize> = operator.outputs.iter().flat_map(|ids| ids.iter()).filter_map(known).collect();
        // Names of tensors are paths of the modules that made them.
        let scope = outputs.first().and_then(|&first| names.get(first)).map_or("", String::as_str);
        let scope: Vec<&str> = scope.split(';').next().unwrap_or_default().split('/').collect();
        let module = writer.graph.modules.at(&scope[..scope.len().saturating_sub(1)]);
        let inputs = operator.inputs.iter().flat_map(|ids| ids.iter()).filter_map(known);
        writer.node(Node {
            name,
            place: number.to_string(),
            module,
            inputs: inputs.map(|id| (String::new(), id)).collect(),
            outputs,
            attributes: code.iter().map(|code| ("version".to_owned(), code.version.to_string())).collect(),
            path: format!("{path}.operators[{number}]"),
            ..Node::default()
        });
    }
    for (number, id) in subgraph.outputs.iter().flat_map(|ids| ids.iter()).enumerate() {
        let Some(id) = known(id) else { continue };
        writer.output(format!("output {number}"), id, format!("{path}.outputs[{number}]"));
    }
    writer.finish()
}

/// Element type, sizes and quantisation: `int8[1, 224, 224, 3] scale 0.0078 zero -1`.
fn layout(tensor: &Tensor<'_>) -> String {
    let sizes: Vec<i32> = tensor.shape.iter().flat_map(|shape| shape.iter()).take(16).collect();
    let kind = tensor.kind.name().map_or("?".to_owned(), str::to_lowercase);
    let numbers = tensor.quantization.as_ref();
    let scales = numbers.and_then(|numbers| numbers.scale.as_ref());
    let quantised = match (scales.map_or(0, |scales| scales.len()), scales.and_then(|scales| scales.get(0))) {
        (1, Some(scale)) => {
            let zero = numbers.and_then(|numbers| numbers.zero_point.as_ref()?.get(0)).unwrap_or(0);
            format!(" scale {scale} zero {zero}")
        }
        (count @ 2.., _) => format!(" {count} scales"),
        _ => String::new(),
    };
    format!("{kind}{sizes:?}{quantised}")
}
