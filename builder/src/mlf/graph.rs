//! Graphs: their text, and making one call by call, with storages that are used again once no node reads them.

use std::collections::BTreeMap;

use edgepack_format::limits::Limits;
use edgepack_format::mlf::json::{Json, Value};
use edgepack_format::mlf::{Call, DataType, Entry, Graph, NOP, Node, Reference};

use crate::build_error::BuildError;

/// The text of a graph, with keys in the order in which exporters write them.
pub fn graph_text(graph: &Graph) -> String {
    let numbers =
        |list: &[u32]| Json::from(list.iter().map(|&number| Json::from(i64::from(number))).collect::<Vec<_>>());
    let references = |list: &[Reference]| {
        let one = |one: &Reference| numbers(&[one.node, one.index, one.version]);
        Json::from(list.iter().map(one).collect::<Vec<_>>())
    };
    let node = |node: &Node| {
        let op = if node.call.is_some() { "tvm_op" } else { "null" };
        let mut members = vec![("op", Json::from(op)), ("name", Json::from(node.name.as_str()))];
        members.extend(node.call.as_ref().map(|call| ("attrs", attributes(call))));
        members.push(("inputs", references(&node.inputs)));
        if !node.control_deps.is_empty() {
            members.push(("control_deps", numbers(&node.control_deps)));
        }
        Json::of(members)
    };
    let members = [
        ("nodes", Json::from(graph.nodes.iter().map(node).collect::<Vec<_>>())),
        ("arg_nodes", numbers(&graph.arg_nodes)),
        ("heads", references(&graph.heads)),
        ("attrs", lists(graph)),
        ("node_row_ptr", numbers(&graph.row_ptr)),
    ];
    Json::of(members).pretty()
}

fn attributes(call: &Call) -> Json {
    let (inputs, outputs) = (call.inputs.to_string(), call.outputs.to_string());
    let flatten = if call.flatten { "1" } else { "0" };
    let mut members = vec![
        ("num_outputs", Json::from(outputs.as_str())),
        ("num_inputs", Json::from(inputs.as_str())),
        ("flatten_data", Json::from(flatten)),
        ("func_name", Json::from(call.function.as_str())),
    ];
    members.extend(call.attrs.iter().map(|(key, value)| (key.as_str(), Json::from(value.as_str()))));
    Json::of(members)
}

/// The lists with one element per entry.
fn lists(graph: &Graph) -> Json {
    let tagged = |tag: &str, list: Vec<Json>| Json::from(vec![Json::from(tag), Json::from(list)]);
    let entries = &graph.entries;
    let each = |one: &dyn Fn(&Entry) -> Json| entries.iter().map(one).collect::<Vec<_>>();
    let shape = |entry: &Entry| Json::from(entry.shape.iter().map(|&size| Json::from(size)).collect::<Vec<_>>());
    let data_type = |entry: &Entry| Json::from(entry.data_type.to_string().as_str());
    let mut members = vec![
        ("dltype", tagged("list_str", each(&data_type))),
        ("storage_id", tagged("list_int", each(&|entry| Json::from(i64::from(entry.storage))))),
        ("shape", tagged("list_shape", each(&shape))),
    ];
    // An entry without a device among others with one is on the CPU.
    if entries.iter().any(|entry| entry.device.is_some()) {
        let devices = each(&|entry| Json::from(i64::from(entry.device.unwrap_or(1))));
        members.push(("device_index", tagged("list_int", devices)));
    }
    if entries.iter().any(|entry| entry.scope.is_some()) {
        let scopes = each(&|entry| Json::from(entry.scope.as_deref().unwrap_or("global")));
        members.push(("storage_scope", tagged("list_str", scopes)));
    }
    members.extend(graph.other.iter().map(|(key, value)| (key.as_str(), value.clone())));
    let mut json = Json::of(members);
    if let Value::Object(members) = &mut json.value {
        // Exporters sort them.
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
    json
}

/// Makes a graph call by call. Shapes are given, not inferred: only functions know what they answer.
///
/// ```
/// use edgepack_builder::mlf::GraphBuilder;
/// let float32 = "float32".parse()?;
/// let mut graph = GraphBuilder::new();
/// let x = graph.argument("x", float32, &[1, 4]);
/// let y = graph.call("tvmgen_default_fused_nn_relu", &[x], &[(float32, &[1, 4])])[0];
/// graph.output(y);
/// assert_eq!(graph.finish()?.entries.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    fn node(&mut self, node: Node, outputs: &[(DataType, &[u64])]) -> Vec<Reference> {
        let id = self.graph.nodes.len() as u32;
        self.graph.row_ptr.push(self.graph.entries.len() as u32);
        self.graph.nodes.push(node);
        for (data_type, shape) in outputs {
            let shape = shape.to_vec();
            self.graph.entries.push(Entry { storage: 0, shape, data_type: *data_type, device: Some(1), scope: None });
        }
        (0..outputs.len() as u32).map(|index| Reference { node: id, index, version: 0 }).collect()
    }

    /// An input or parameter.
    pub fn argument(&mut self, name: impl Into<String>, data_type: DataType, shape: &[u64]) -> Reference {
        self.graph.arg_nodes.push(self.graph.nodes.len() as u32);
        let node = Node { name: name.into(), ..Node::default() };
        self.node(node, &[(data_type, shape)]).first().copied().unwrap_or_default()
    }

    /// A call of a function; its results.
    pub fn call(
        &mut self,
        function: impl Into<String>,
        inputs: &[Reference],
        results: &[(DataType, &[u64])],
    ) -> Vec<Reference> {
        let function = function.into();
        let call = Call {
            function: function.clone(),
            inputs: inputs.len() as u32,
            outputs: results.len() as u32,
            flatten: false,
            attrs: Vec::new(),
        };
        let node = Node { name: function, inputs: inputs.to_vec(), call: Some(call), ..Node::default() };
        self.node(node, results)
    }

    /// The same bytes in another shape: nothing is called.
    pub fn reshape(&mut self, input: Reference, shape: &[u64]) -> Reference {
        let data_type = self.graph.entry(input).map_or(DataType::BOOL, |entry| entry.data_type);
        self.call(NOP, &[input], &[(data_type, shape)]).first().copied().unwrap_or_default()
    }

    /// Makes it an output, too.
    pub fn output(&mut self, reference: Reference) {
        self.graph.heads.push(reference);
    }

    /// Plans the storages and checks everything.
    pub fn finish(mut self) -> Result<Graph, BuildError> {
        self.graph.row_ptr.push(self.graph.entries.len() as u32);
        self.plan();
        let findings = self.graph.check(&Limits::default());
        match findings.has_errors() {
            true => Err(findings.into()),
            false => Ok(self.graph),
        }
    }

    /// Arguments, outputs and what they are reshaped to keep a storage of their own; others share one after the other.
    fn plan(&mut self) {
        let graph = &mut self.graph;
        // An entry is the value of its root: a reshape has the root of what it reshapes.
        let mut roots: Vec<usize> = (0..graph.entries.len()).collect();
        let mut last_use: BTreeMap<usize, usize> = BTreeMap::new();
        let entry = |graph: &Graph, reference: &Reference| graph.entry_id(*reference).map(|entry| entry as usize);
        for (id, node) in graph.nodes.iter().enumerate() {
            for input in node.inputs.iter().filter_map(|input| entry(graph, input)) {
                let root = roots.get(input).copied().unwrap_or(input);
                last_use.insert(root, id);
                if node.call.as_ref().is_some_and(|call| call.function == NOP) {
                    let output = graph.outputs_of(id as u32).start as usize;
                    roots.get_mut(output).into_iter().for_each(|slot| *slot = root);
                }
            }
        }
        for head in graph.heads.iter().filter_map(|head| entry(graph, head)) {
            last_use.insert(roots.get(head).copied().unwrap_or(head), usize::MAX);
        }
        let mut of_root: BTreeMap<usize, u32> = BTreeMap::new();
        let (mut free, mut next): (Vec<u32>, u32) = (Vec::new(), 0);
        for (id, node) in graph.nodes.iter().enumerate() {
            let outputs: Vec<usize> = graph.outputs_of(id as u32).map(|entry| entry as usize).collect();
            for &output in outputs.iter().filter(|output| roots.get(**output) == Some(*output)) {
                // What is set once stays, so its storage is not shared.
                let reused = if node.call.is_some() { free.pop() } else { None };
                let storage = reused.unwrap_or_else(|| {
                    let fresh = next;
                    next = next.saturating_add(1);
                    fresh
                });
                of_root.insert(output, storage);
            }
            let is_argument = |root: usize| {
                let owner = graph.row_ptr.partition_point(|&first| first as usize <= root).saturating_sub(1);
                graph.nodes.get(owner).is_some_and(|node| node.call.is_none())
            };
            // What this node read for the last time, and what is never read.
            let read = node.inputs.iter().filter_map(|input| entry(graph, input));
            let read =
                read.filter_map(|input| roots.get(input).copied()).filter(|root| last_use.get(root) == Some(&id));
            let unread = outputs
                .iter()
                .copied()
                .filter(|output| roots.get(*output) == Some(output) && !last_use.contains_key(output));
            let done: std::collections::BTreeSet<usize> = read.chain(unread).collect();
            free.extend(done.into_iter().filter(|root| !is_argument(*root)).filter_map(|root| of_root.get(&root)));
        }
        for (index, slot) in graph.entries.iter_mut().enumerate() {
            let root = roots.get(index).copied().unwrap_or(index);
            slot.storage = of_root.get(&root).copied().unwrap_or_default();
        }
    }
}
