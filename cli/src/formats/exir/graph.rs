//! Exported programs as graphs: their sub-graphs, and what is inside of lowered parts.

use std::collections::{HashMap, HashSet};

use edgepack_exir::archive::Archive;
use edgepack_exir::graph::{Argument, ExportedProgram, Graph as Source, InputKind, OutputKind, Target, ValueId};
use edgepack_exir::json::ExportedProgram as Document;
use edgepack_format::notation::ValueName;
use serde::Deserialize as _;

use crate::profile::read_stack;
use crate::spelling::short;
use crate::status::Failure;
use crate::units::{bytes, count};
use crate::view::{Graph, Kind, Node, Value, Writer, part};

/// The graphs of all programs of an archive.
pub fn graphs(content: &[u8]) -> Result<Vec<Graph>, Failure> {
    let archive = Archive::parse(content).map_err(Failure::findings)?;
    let mut drawn = Drawn::default();
    for name in archive.models() {
        // Without its tensors, if those cannot be read: only the graph is wanted.
        let program = archive
            .model(name)
            .or_else(|_| ExportedProgram::from_document(archive.document(name)?, Default::default()));
        let place = Place { name: short(name), path: format!("{name}.graph"), parent: None };
        drawn.program(place, &program.map_err(Failure::findings)?);
    }
    match drawn.graphs.is_empty() {
        true => Err(Failure::findings("there is no program in it")),
        false => Ok(drawn.graphs),
    }
}

/// Lowered parts inside of each other that are looked into.
const DEPTH: usize = 8;

/// Graphs while they are drawn.
#[derive(Default)]
struct Drawn {
    graphs: Vec<Graph>,
    /// Lowered parts around what is drawn.
    depth: usize,
}

/// Meaning of an input: whether it is constant, what it is, and its name in the model.
type Roles<'p> = HashMap<ValueId, (bool, &'static str, &'p str)>;

/// A graph, and what encloses it.
struct Place {
    name: String,
    path: String,
    parent: Option<usize>,
}

impl Drawn {
    fn program(&mut self, place: Place, program: &ExportedProgram<'_>) {
        let at = self.graphs.len();
        let changed: HashSet<&str> = program.changed().collect();
        let mut roles: Roles<'_> = HashMap::new();
        for spec in &program.inputs {
            let Some(id) = spec.arg.value() else { continue };
            let tensor = spec.kind.tensor().unwrap_or_default();
            let role = match &spec.kind {
                InputKind::Parameter(_) => "parameter",
                InputKind::Buffer { .. } => "buffer",
                InputKind::Constant(_) => "constant",
                _ => continue,
            };
            roles.insert(id, (!changed.contains(tensor), role, tensor));
        }
        self.graph(&program.graph, place, program, &roles);
        let Some(graph) = self.graphs.get_mut(at) else { return };
        graph.about = format!("{} dialect, {}", program.dialect.name(), count(program.graph.nodes.len(), "node"));
        let ends = graph.nodes.iter_mut().filter(|node| node.kind == Kind::Output);
        for (node, spec) in ends.zip(&program.outputs).filter(|(_, spec)| spec.kind != OutputKind::User) {
            node.attributes.push(("means".to_owned(), short(&format!("{:?}", spec.kind))));
        }
    }

    fn graph(&mut self, source: &Source, place: Place, program: &ExportedProgram<'_>, roles: &Roles<'_>) -> usize {
        let Place { name, path, parent } = place;
        let at = self.graphs.len();
        self.graphs.push(Graph::default());
        let about = format!("sub-graph, {}", count(source.nodes.len(), "node"));
        let mut graph = Graph { name, about, path: path.clone(), parent, ..Graph::default() };
        let mut ids: HashMap<ValueId, usize> = HashMap::new();
        for (id, value) in source.values() {
            let (constant, place, origin) = roles.get(&id).copied().unwrap_or_default();
            let index = graph.value(Value {
                name: short(&ValueName(&value.name).to_string()),
                kind: short(&value.meta.to_string()),
                place: place.to_owned(),
                constant,
                origin: short(origin),
                path: format!("{path}.values[{}]", value.name),
                ..Value::default()
            });
            ids.insert(id, index);
        }
        let mut writer = Writer::new(graph);
        for (index, input) in source.inputs.iter().enumerate() {
            let value = input.value().and_then(|id| ids.get(&id).copied());
            let path = format!("{path}.inputs[{index}]");
            match value.map(|value| &writer.graph.values[value]) {
                Some(drawn) if drawn.constant => {}
                Some(drawn) => {
                    let kind = if drawn.place.is_empty() { Kind::Input } else { Kind::State };
                    value.into_iter().for_each(|value| writer.source(kind, value, path.clone()));
                }
                None => {}
            }
        }
        for (index, node) in source.nodes.iter().enumerate() {
            let mut drawn = self.node(source, node, &ids);
            drawn.place = index.to_string();
            drawn.path = format!("{path}.nodes[{}]", node.name);
            let modules = node.metadata.get("nn_module_stack").map(|stack| read_stack(stack));
            drawn.module = modules.and_then(|path| writer.graph.modules.at(path));
            for input in &node.inputs {
                if let Argument::Graph(name, inner) = &input.arg {
                    let place = Place {
                        name: short(&format!("{} / {name}", writer.graph.name)),
                        path: format!("{}.{name}", drawn.path),
                        parent: Some(at),
                    };
                    drawn.graphs.push(self.graph(inner, place, program, &HashMap::new()));
                }
            }
            if let Target::Delegate(number) = &node.target {
                let name = writer.graph.name.clone();
                self.delegate(*number, program, &mut drawn, &name, at);
            }
            writer.node(drawn);
        }
        for (index, output) in source.outputs.iter().enumerate() {
            let value = output.value().and_then(|id| ids.get(&id).copied());
            let path = format!("{path}.outputs[{index}]");
            value.into_iter().for_each(|value| writer.output(format!("output {index}"), value, path.clone()));
        }
        let mut graph = writer.finish();
        part(&mut graph);
        self.graphs[at] = graph;
        at
    }

    fn node(&self, source: &Source, node: &edgepack_exir::graph::Node, ids: &HashMap<ValueId, usize>) -> Node {
        let kind = if matches!(node.target, Target::Delegate(_)) { Kind::Delegate } else { Kind::Call };
        let mut drawn = Node { kind, name: short(&node.target.to_string()), ..Node::default() };
        for input in &node.inputs {
            let mut values = Vec::new();
            input.arg.each_value(&mut |id| values.extend(ids.get(&id)));
            let name = short(&input.name);
            match (&input.arg, values.as_slice()) {
                (Argument::Graph(..), _) => {}
                (Argument::Value(_), [value]) => drawn.inputs.push((name, *value)),
                (_, []) => drawn.attributes.push((name, short(&source.argument_text(&input.arg)))),
                (_, values) => {
                    drawn.inputs.extend(values.iter().enumerate().map(|(at, value)| (format!("{name}[{at}]"), *value)));
                    if !matches!(&input.arg, Argument::List(..)) || values.len() < input.arg.items().len() {
                        drawn.attributes.push((name, short(&source.argument_text(&input.arg))));
                    }
                }
            }
        }
        drawn.outputs = node.results().iter().filter_map(|id| ids.get(id).copied()).collect();
        let traces = node.metadata.get("stack_trace").and_then(|trace| trace.lines().rfind(|line| !line.is_empty()));
        drawn.attributes.extend(traces.map(|line| ("source".to_owned(), short(line.trim()))));
        drawn
    }

    /// Adds the graph of a lowered part as it was before its backend took it over, if the archive has it.
    fn delegate(&mut self, number: usize, around: &ExportedProgram<'_>, node: &mut Node, name: &str, parent: usize) {
        let Some(part) = around.about.modules.get(number) else { return };
        node.name = short(&part.backend);
        let size = part.payload.as_ref().map(|payload| bytes(payload.len() as u64));
        node.attributes.extend(size.map(|size| ("payload".to_owned(), size)));
        let document = part.original.get("original_module").and_then(|was| Document::deserialize(was).ok());
        let was = document.and_then(|document| ExportedProgram::from_document(document, Default::default()).ok());
        if let Some(was) = was.filter(|_| self.depth < DEPTH) {
            let name = short(&format!("{name} / delegate {number}"));
            let place = Place { name, path: format!("{}.original", node.path), parent: Some(parent) };
            node.graphs.push(self.graphs.len());
            self.depth += 1;
            self.program(place, &was);
            self.depth -= 1;
        }
    }
}
