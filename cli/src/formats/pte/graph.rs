//! Methods of a program as graphs, with the graphs inside of their delegates.

use std::collections::HashMap;

use edgepack_format::limits::Limits;
use edgepack_format::notation::ValueName;
use edgepack_format::operators::{Schema, lookup};
use edgepack_format::payload::Description;
use edgepack_format::pte::{ExecutionPlan, InstructionArguments, KernelCall, KernelTypes, Program, Tensor};

use super::code::Code;
use super::handles::node_handles;
use super::payloads::{Described, place};
use super::profile::stack_traces;
use super::{tables, values};
use crate::file::File;
use crate::formats::Format;
use crate::profile::ExportRecord;
use crate::spelling::short;
use crate::status::Failure;
use crate::units::{bytes, count};
use crate::view::{Graph, Kind, Node, Stored, Value, Writer, add_memory, part};

/// Modules around the nodes of delegates, by index of the delegate and of the node.
pub type Parts = HashMap<(usize, u32), Vec<String>>;

/// Modules that the record of an export knows.
pub struct Recorded {
    /// Record of the export.
    pub record: ExportRecord,
    /// Parts of delegates, by method.
    pub parts: HashMap<String, Parts>,
}

/// Reads what the record of an export, if there is one, says of the nodes of a program.
pub fn recorded(
    format: &dyn Format,
    file: &File,
    record: Option<ExportRecord>,
    limits: &Limits,
) -> Result<Option<Recorded>, Failure> {
    let Some(record) = record else { return Ok(None) };
    let opened = format.program(file, limits)?;
    let view = opened.program.view()?;
    let mut parts = HashMap::new();
    for plan in tables::plans(view.program()) {
        let name = plan.name.as_deref().unwrap_or("?");
        let Some(by_handle) = record.by_handle(name) else { continue };
        let handles = node_handles(&opened.program, &plan).into_iter();
        let found = handles.filter_map(|(node, handle)| Some((node, by_handle.get(&handle)?.clone()))).collect();
        parts.insert(name.to_owned(), found);
    }
    Ok(Some(Recorded { record, parts }))
}

/// The graphs of all methods. `prefix` is the place of the program in the file.
pub fn graphs(
    program: &Program<'_>,
    payloads: &[Described],
    recorded: Option<&Recorded>,
    prefix: &str,
) -> Result<Vec<Graph>, Failure> {
    let payloads: HashMap<&str, &Described> = payloads.iter().map(|payload| (payload.path.as_str(), payload)).collect();
    let mut graphs = Vec::new();
    for (index, plan) in tables::plans(program).iter().enumerate() {
        let path = format!("{prefix}execution_plan[{index}]");
        let name = plan.name.as_deref().unwrap_or("?");
        let modules = match recorded {
            Some(recorded) => recorded.record.modules(name)?,
            None => stack_traces(plan)?,
        };
        let at = graphs.len();
        graphs.push(Graph::default());
        let mut drawn = Drawn::new(plan, path);
        drawn.method(&modules, recorded.is_some(), &payloads);
        let Drawn { writer, calls, loops, path, .. } = drawn;
        let mut graph = writer.finish();
        let mut delegates: Vec<(usize, Vec<usize>)> = calls.into_iter().collect();
        delegates.sort_unstable();
        for (delegate, nodes) in delegates {
            let Some(payload) = payloads.get(&*payload_path(&path, delegate)) else { continue };
            let parts = recorded.and_then(|recorded| recorded.parts.get(name));
            let module = |node| parts.and_then(|parts| parts.get(&(delegate, node))).map(Vec::as_slice);
            let mut inner = inside(&payload.path, &payload.backend, &payload.description, Some(&module));
            inner.name = format!("{} / delegate {delegate}", short(name));
            inner.parent = Some(at);
            nodes.iter().for_each(|&node| graph.nodes[node].graphs.push(graphs.len()));
            graphs.push(inner);
        }
        part(&mut graph);
        add_memory(&mut graph, loops);
        graph.name = short(name);
        graphs[at] = graph;
    }
    Ok(graphs)
}

fn payload_path(plan: &str, delegate: usize) -> String {
    format!("{plan}.delegates[{delegate}].processed")
}

/// A method while it becomes a graph.
struct Drawn<'a> {
    code: Code<'a>,
    path: String,
    writer: Writer,
    /// Indices of values that are drawn, by those in the file.
    ids: HashMap<i32, usize>,
    /// Literals of values that never change, by index.
    literals: HashMap<i32, String>,
    /// Items of lists that may still become arguments of their own.
    room: usize,
    /// Nodes that call a delegate, by its index.
    calls: HashMap<usize, Vec<usize>>,
    /// Nodes between which a run goes back.
    loops: Vec<std::ops::RangeInclusive<usize>>,
}

/// Arguments of a node so far.
#[derive(Default)]
struct Arguments {
    inputs: Vec<(String, usize)>,
    attributes: Vec<(String, String)>,
}

impl<'a> Drawn<'a> {
    fn new(plan: &ExecutionPlan<'a>, path: String) -> Self {
        let code = Code::new(plan);
        let room = 4 * (code.values.len() + code.chains.iter().map(Vec::len).sum::<usize>());
        let writer = Writer::new(Graph { path: path.clone(), ..Graph::default() });
        let (ids, literals, calls) = (HashMap::new(), HashMap::new(), HashMap::new());
        Drawn { code, path, writer, ids, literals, room, calls, loops: Vec::new() }
    }

    /// Draws all instructions. `named` says that modules are those of the model, not lines of its source.
    fn method(
        &mut self,
        modules: &HashMap<(usize, usize), Vec<String>>,
        named: bool,
        payloads: &HashMap<&str, &Described>,
    ) {
        for (index, &id) in self.code.inputs.clone().iter().enumerate() {
            if let Some(value) = self.value(id) {
                self.writer.source(Kind::Input, value, format!("{}.inputs[{index}]", self.path));
            }
        }
        let chains = std::mem::take(&mut self.code.chains);
        let mut instructions = 0;
        for (chain, calls) in chains.iter().enumerate() {
            let mut nodes: Vec<usize> = Vec::with_capacity(calls.len());
            for (index, call) in calls.iter().enumerate() {
                let mut node = self.instruction(call.as_ref(), payloads);
                node.place = if chain == 0 { index.to_string() } else { format!("{chain}:{index}") };
                node.path = format!("{}.chains[{chain}].instructions[{index}]", self.path);
                let path = modules.get(&(chain, index)).map_or(&[][..], Vec::as_slice);
                let all = &mut self.writer.graph.modules;
                node.module = if named { all.at(path) } else { all.next(path) };
                let node = self.writer.node(node);
                nodes.push(node);
                match call {
                    Some(InstructionArguments::DelegateCall(call)) => {
                        if let Ok(delegate) = usize::try_from(call.delegate_index) {
                            self.calls.entry(delegate).or_default().push(node);
                        }
                    }
                    Some(InstructionArguments::JumpFalseCall(jump)) => {
                        let to = usize::try_from(jump.destination_instruction).ok();
                        self.loops.extend(to.and_then(|to| nodes.get(to)).map(|&to| to..=node));
                    }
                    _ => {}
                }
                instructions += 1;
            }
        }
        for (index, &id) in self.code.outputs.clone().iter().enumerate() {
            if let Some(value) = self.value(id) {
                self.writer.output(format!("output {index}"), value, format!("{}.outputs[{index}]", self.path));
            }
        }
        self.writer.graph.about = format!("method, {}", count(instructions, "instruction"));
    }

    fn instruction(&mut self, call: Option<&InstructionArguments<'a>>, payloads: &HashMap<&str, &Described>) -> Node {
        let mut all = Arguments::default();
        let node = |kind, name: &str| Node { kind, name: name.to_owned(), ..Node::default() };
        let mut node = match call {
            None => node(Kind::Control, "unreadable"),
            Some(InstructionArguments::KernelCall(call)) => self.kernel(call, &mut all),
            Some(InstructionArguments::DelegateCall(call)) => {
                let args: Vec<i32> = call.args.iter().flat_map(|args| args.iter()).collect();
                let index = usize::try_from(call.delegate_index).ok();
                let name = index.and_then(|index| self.code.delegates.get(index)).cloned();
                let payload = index.and_then(|index| payloads.get(&*payload_path(&self.path, index)));
                let described = payload.map(|payload| &payload.description).filter(|inside| !inside.values.is_empty());
                let outputs = described.map_or_else(|| self.written_behind(&args), results);
                let (inputs, outputs) = args.split_at(args.len().saturating_sub(outputs));
                inputs.iter().enumerate().for_each(|(at, &id)| self.argument(&format!("input {at}"), id, &mut all));
                if let Some(payload) = payload {
                    all.attributes.push(("payload".to_owned(), bytes(payload.bytes)));
                }
                let outputs = self.results(outputs);
                let name = name.unwrap_or_else(|| format!("delegate {}", call.delegate_index));
                Node { kind: Kind::Delegate, name: short(&name), outputs, ..Node::default() }
            }
            Some(InstructionArguments::MoveCall(call)) => {
                self.argument("from", call.move_from, &mut all);
                let outputs = self.value(call.move_to).into_iter().collect();
                Node { outputs, ..node(Kind::Control, "move") }
            }
            Some(InstructionArguments::JumpFalseCall(call)) => {
                self.argument("condition", call.cond_value_index, &mut all);
                all.attributes.push(("if not, go to".to_owned(), call.destination_instruction.to_string()));
                node(Kind::Control, "jump")
            }
            Some(InstructionArguments::FreeCall(call)) => {
                self.argument("value", call.value_index, &mut all);
                node(Kind::Control, "free")
            }
            Some(InstructionArguments::Unknown(tag)) => node(Kind::Control, &format!("instruction of kind {tag}")),
        };
        let Arguments { inputs, attributes } = all;
        (node.inputs, node.attributes) = (inputs, attributes);
        node
    }

    fn kernel(&mut self, call: &KernelCall<'a>, all: &mut Arguments) -> Node {
        let name = usize::try_from(call.op_index).ok().and_then(|index| self.code.operators.get(index)).cloned();
        let schema = name.as_deref().and_then(lookup).and_then(|text| Schema::parse(text).ok());
        let (args, results) = self.code.split(call);
        let mut written = results;
        for (position, &id) in args.iter().enumerate() {
            let argument = schema.as_ref().and_then(|schema| schema.args().get(position));
            let name = argument.map_or("", |argument| argument.name);
            let is_written = argument.is_some_and(|argument| argument.mutated);
            if is_written && !written.contains(&id) {
                written.push(id);
            }
            // `et_view` takes its result as any other argument.
            if !(is_written && name == "out") {
                self.argument(name, id, all);
            }
        }
        let outputs = self.results(&written);
        let name = name.unwrap_or_else(|| format!("operator {}", call.op_index));
        Node { name: short(&name), outputs, ..Node::default() }
    }

    /// The items of a list of tensors; `None` for another value.
    fn items(&self, id: i32) -> Option<Vec<i32>> {
        match self.code.value(id) {
            Some(KernelTypes::TensorList(list)) => Some(list.items.iter().flat_map(|items| items.iter()).collect()),
            Some(KernelTypes::OptionalTensorList(list)) => {
                Some(list.items.iter().flat_map(|items| items.iter()).collect())
            }
            _ => None,
        }
    }

    /// Values that are written: of a list its items.
    fn results(&mut self, ids: &[i32]) -> Vec<usize> {
        let mut found = Vec::new();
        for &id in ids {
            match self.items(id) {
                Some(items) if items.len() <= self.room => {
                    self.room -= items.len();
                    found.extend(items.into_iter().filter_map(|item| self.value(item)));
                }
                Some(_) => {}
                None => found.extend(self.value(id)),
            }
        }
        found
    }

    /// Adds an argument: a value that is drawn, each item of a list of tensors, or a literal.
    fn argument(&mut self, name: &str, id: i32, all: &mut Arguments) {
        let Some(items) = self.items(id) else {
            match self.value(id) {
                Some(value) => all.inputs.push((name.to_owned(), value)),
                None => all.attributes.push((name.to_owned(), self.literal(id))),
            }
            return;
        };
        if items.len() > self.room {
            all.attributes.push((name.to_owned(), format!("a list of {}", count(items.len(), "tensor"))));
            return;
        }
        self.room -= items.len();
        for (at, item) in items.into_iter().enumerate() {
            if let Some(value) = self.value(item) {
                all.inputs.push((format!("{name}[{at}]"), value));
            }
        }
    }

    /// The literal of a value that nothing changes.
    fn literal(&mut self, id: i32) -> String {
        let code = &self.code;
        self.literals.entry(id).or_insert_with(|| short(&code.argument(id))).clone()
    }

    /// Number of results of a delegate of which nothing is known: values at the end that nothing wrote before.
    fn written_behind(&mut self, args: &[i32]) -> usize {
        let mut count = 0;
        for &id in args.iter().rev() {
            let fresh = |writer: &Writer, value: usize| {
                !writer.is_written(value) && !writer.graph.values.get(value).is_some_and(|value| value.constant)
            };
            match self.value(id) {
                Some(value) if fresh(&self.writer, value) => count += 1,
                _ => break,
            }
        }
        count
    }

    /// The index of a value that is drawn: a tensor, or a number that instructions compute.
    fn value(&mut self, id: i32) -> Option<usize> {
        if let Some(&known) = self.ids.get(&id) {
            return Some(known);
        }
        let value = match self.code.value(id)? {
            KernelTypes::Tensor(tensor) => tensor_value(tensor),
            other if self.code.variable.contains(&id) => {
                Value { kind: values::kind(other).to_owned(), ..Value::default() }
            }
            _ => return None,
        };
        let name = ValueName(id).to_string();
        let index = self.writer.graph.value(Value { name, path: format!("{}.values[{id}]", self.path), ..value });
        self.ids.insert(id, index);
        Some(index)
    }
}

fn tensor_value(tensor: &Tensor<'_>) -> Value {
    let mut sizes = tensor.sizes.iter().flat_map(|sizes| sizes.iter());
    let elements = sizes.try_fold(1u64, |product, size| product.checked_mul(u64::try_from(size).ok()?));
    let bytes = elements.zip(tensor.scalar_type.size()).and_then(|(count, size)| count.checked_mul(size as u64));
    let stored = tensor.allocation_info.zip(bytes).map(|(at, bytes)| Stored {
        memory: at.memory_id,
        offset: at.memory_offset(),
        bytes,
    });
    let info = tensor.extra_tensor_info.as_ref();
    let is_external = info.is_some_and(|info| info.location == edgepack_format::pte::TensorDataLocation::EXTERNAL);
    Value {
        kind: values::tensor(tensor),
        place: short(&super::code::tensor_places(tensor).join(", ")),
        constant: tensor.allocation_info.is_none() && (tensor.data_buffer_idx != 0 || is_external),
        origin: info.and_then(|info| info.fully_qualified_name.as_deref()).map(short).unwrap_or_default(),
        stored,
        ..Value::default()
    }
}

/// Number of values that come out of a payload.
fn results(description: &Description) -> usize {
    description.values.iter().filter(|value| value.role.starts_with("output")).count()
}

/// Modules around a node of a delegate, by its index.
type ModulesOf<'m> = &'m dyn Fn(u32) -> Option<&'m [String]>;

/// The graph inside of a delegate, whose payload has this place in the file.
pub fn inside(path: &str, backend: &str, description: &Description, modules: Option<ModulesOf<'_>>) -> Graph {
    let Description { about, values, nodes, weights } = description;
    let mut graph = Graph { path: path.to_owned(), ..Graph::default() };
    graph.about = format!("{}, {}", short(backend), short(about));
    for (index, value) in values.iter().enumerate() {
        let weight = value.weight.and_then(|weight| weights.get(weight));
        graph.value(Value {
            name: short(&value.name),
            kind: short(&value.kind),
            place: weight.map(|weight| short(&place(&weight.place))).unwrap_or_default(),
            constant: value.role.starts_with("constant"),
            path: format!("{path}.xvalues[{index}]"),
            ..Value::default()
        });
    }
    let mut writer = Writer::new(graph);
    let ends = |kind: &'static str| {
        let with_role = values.iter().enumerate().filter(move |(_, value)| value.role.starts_with(kind));
        with_role.map(|(index, value)| (index, short(&value.role)))
    };
    ends("input").for_each(|(index, _)| writer.source(Kind::Input, index, String::new()));
    for (index, node) in nodes.iter().enumerate() {
        let module = modules.and_then(|modules| modules(u32::try_from(index).ok()?));
        let module = module.and_then(|path| writer.graph.modules.at(path));
        let mut attributes = vec![("line".to_owned(), short(&node.text))];
        attributes.extend(node.fused.iter().map(|fused| ("fused".to_owned(), short(fused))));
        writer.node(Node {
            name: short(&node.operator),
            place: index.to_string(),
            module,
            inputs: node.inputs.iter().map(|(role, value)| (short(role), *value)).collect(),
            outputs: node.outputs.clone(),
            attributes,
            path: format!("{path}.xnodes[{index}]"),
            ..Node::default()
        });
    }
    ends("output").for_each(|(index, role)| writer.output(role, index, String::new()));
    let mut graph = writer.finish();
    part(&mut graph);
    graph
}
