//! Graphs of a package: the calls of each module that the graph executor runs.

use std::collections::HashMap;

use edgepack_format::limits::Limits;
use edgepack_format::mlf::{Graph as Source, Package, Reference, StoragePlan, package};
use edgepack_loader::mlf::Archive;

use super::summary::{entry_name, layout};
use crate::spelling::short;
use crate::status::Failure;
use crate::units::{bytes, count};
use crate::view::{Graph, Kind, Node, Stored, Value, Writer, add_memory, part};

/// The graphs of all modules that have one.
pub fn graphs(content: &[u8], limits: &Limits) -> Result<Vec<Graph>, Failure> {
    let archive = Archive::read(content, limits).archive;
    let members = archive.members(content).unwrap_or_default();
    let Some(Package { metadata, modules }) = package::verify(&members, limits).1 else {
        return Err(Failure::findings("its metadata cannot be read"));
    };
    let named = metadata.modules.iter().map(|module| module.name.as_str()).zip(&modules);
    let graphs: Vec<Graph> = named
        .filter_map(|(name, files)| {
            let params = files.params.iter().flat_map(|params| &params.entries);
            let params = params.map(|param| (param.name, param.data.len() as u64)).collect();
            Some(draw(name, files.graph.as_ref()?, &params))
        })
        .collect();
    match graphs.is_empty() {
        true => Err(Failure::findings("no module of it has a graph: its code runs as one function")),
        false => Ok(graphs),
    }
}

fn draw(name: &str, source: &Source, params: &HashMap<&str, u64>) -> Graph {
    let path = format!("{name}.graph");
    let mut graph = Graph { name: short(name), path: path.clone(), ..Graph::default() };
    graph.about = format!("module, {}", count(source.calls().count(), "call"));
    // One storage after another: a package does not say where they are.
    let plan = StoragePlan::of(source).unwrap_or_default();
    let starts = plan.storages.iter().scan(0u64, |end, storage| {
        let start = *end;
        *end = start.saturating_add(storage.bytes);
        Some(start)
    });
    let starts: Vec<u64> = starts.collect();
    let mut ids: HashMap<u32, usize> = HashMap::new();
    let all = (0u32..).zip(&source.nodes);
    for (id, node) in all {
        for (index, entry_id) in (0u32..).zip(source.outputs_of(id)) {
            let Some(entry) = source.entries.get(entry_id as usize) else { break };
            let param = params.get(node.name.as_str()).filter(|_| node.call.is_none());
            let storage = plan.place(entry_id).filter(|_| param.is_none());
            let offset = storage.and_then(|storage| starts.get(storage as usize).copied());
            let index = graph.value(Value {
                name: short(&entry_name(source, Reference { node: id, index, version: 0 })),
                kind: layout(entry.data_type, &entry.shape),
                place: match param {
                    Some(len) => format!("parameter, {}", bytes(*len)),
                    None => format!("storage {}", entry.storage),
                },
                constant: param.is_some(),
                origin: if param.is_some() { short(&node.name) } else { String::new() },
                stored: offset.zip(entry.bytes()).map(|(offset, bytes)| Stored { memory: 1, offset, bytes }),
                path: format!("{path}.entries[{entry_id}]"),
            });
            ids.insert(entry_id, index);
        }
    }
    let mut writer = Writer::new(graph);
    let value = |reference: Reference| ids.get(&source.entry_id(reference)?).copied();
    for (id, node) in (0u32..).zip(&source.nodes) {
        let path = format!("{path}.nodes[{id}]");
        let Some(call) = &node.call else {
            let own = value(Reference { node: id, index: 0, version: 0 });
            let own = own.filter(|&own| writer.graph.values.get(own).is_some_and(|value| !value.constant));
            own.into_iter().for_each(|own| writer.source(Kind::Input, own, path.clone()));
            continue;
        };
        let outputs = source.outputs_of(id).map_while(|entry| ids.get(&entry).copied());
        let mut attributes = vec![("name".to_owned(), short(&node.name))];
        attributes.extend(call.attrs.iter().map(|(name, text)| (short(name), short(text))));
        writer.node(Node {
            kind: Kind::Call,
            name: short(&call.function),
            place: id.to_string(),
            inputs: node.inputs.iter().filter_map(|&input| Some((String::new(), value(input)?))).collect(),
            outputs: outputs.collect(),
            attributes,
            path,
            ..Node::default()
        });
    }
    for (index, &head) in source.heads.iter().enumerate() {
        let path = format!("{path}.heads[{index}]");
        value(head).into_iter().for_each(|value| writer.output(format!("output {index}"), value, path.clone()));
    }
    let mut graph = writer.finish();
    part(&mut graph);
    add_memory(&mut graph, Vec::new());
    graph
}
