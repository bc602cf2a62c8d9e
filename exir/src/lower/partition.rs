//! Parts of a graph that a backend runs: each becomes a program of its own and one call in its place.
//!
//! Invariant: a part that is fused has no path that leaves it and comes back, so its call has a place in the order.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_builder::content::Data;
use edgepack_format::pte::CompileSpec;

use super::dim_order::Orders;
use crate::archive::Weights;
use crate::error::Error;
use crate::graph::{
    Argument, Dialect, ExportedProgram, Graph, InputKind, InputSpec, ListKind, NamedArgument, Node, OutputKind,
    OutputSpec, Target, TensorMeta, ValueId, identity,
};

/// Nodes that a backend is to run as one, by their places in their graph.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Part {
    /// Places in [`Graph::nodes`].
    pub nodes: Vec<usize>,
    /// Options for the backend.
    pub specs: Vec<CompileSpec<'static>>,
    /// Path to the graph: pairs of a node's index and the index of its argument that is a graph, from the outermost on.
    /// Empty for the program's own graph.
    pub graph: Vec<(usize, usize)>,
    /// True if the backend holds the buffers that only this part reads and writes: they leave the program.
    pub owns_state: bool,
}

/// Says which parts of a program a backend runs.
pub trait Partitioner {
    /// The parts; no node is in two of them.
    fn partition(&self, program: &ExportedProgram<'_>) -> Result<Vec<Part>, Error>;
}

/// Takes every node it is asked about, in stretches of neighbours, in sub-graphs too.
pub struct ByOperator<F> {
    /// Returns whether the backend runs a node.
    pub supports: F,
    /// Options for the backend.
    pub specs: Vec<CompileSpec<'static>>,
}

impl<F: Fn(&Node) -> bool> Partitioner for ByOperator<F> {
    fn partition(&self, program: &ExportedProgram<'_>) -> Result<Vec<Part>, Error> {
        let mut parts = Vec::new();
        self.stretches(&program.graph, &mut Vec::new(), &mut parts);
        Ok(parts)
    }
}

impl<F: Fn(&Node) -> bool> ByOperator<F> {
    fn stretches(&self, graph: &Graph, way: &mut Vec<(usize, usize)>, parts: &mut Vec<Part>) {
        let mut open: Option<usize> = None;
        for (index, node) in graph.nodes.iter().enumerate() {
            let taken = (self.supports)(node);
            match (open.and_then(|open| parts.get_mut(open)), taken) {
                (Some(part), true) => part.nodes.push(index),
                (None, true) => {
                    open = Some(parts.len());
                    parts.push(Part {
                        nodes: vec![index],
                        specs: self.specs.clone(),
                        graph: way.clone(),
                        ..Part::default()
                    });
                }
                _ => {
                    open = None;
                    for (argument, input) in node.inputs.iter().enumerate() {
                        if let Argument::Graph(_, inner) = &input.arg {
                            way.push((index, argument));
                            self.stretches(inner, way, parts);
                            way.pop();
                        }
                    }
                }
            }
        }
    }
}

/// A part that was taken out.
#[derive(Clone, Debug)]
pub struct LoweredModule<'d> {
    /// Name of the backend that runs the module.
    pub backend: String,
    /// Options for the backend.
    pub specs: Vec<CompileSpec<'static>>,
    /// The part as a program: its constants are its own, everything else is an input. Absent if the program came with it.
    pub program: Option<ExportedProgram<'d>>,
    /// The part as the archive that it came with has it.
    pub(super) original: serde_json::Value,
    /// Payload that the backend made.
    pub payload: Option<Data<'d>>,
}

/// Returns the graph at the end of a path.
fn find<'g>(graph: &'g mut Graph, way: &[(usize, usize)]) -> Option<&'g mut Graph> {
    let Some(((node, argument), rest)) = way.split_first() else { return Some(graph) };
    match &mut graph.nodes.get_mut(*node)?.inputs.get_mut(*argument)?.arg {
        Argument::Graph(_, inner) => find(inner, rest),
        _ => None,
    }
}

/// Takes parts out of a program and puts calls of lowered modules in their places, numbered from `first` on.
pub(super) fn fuse<'d>(
    program: &mut ExportedProgram<'d>,
    parts: Vec<Part>,
    backend: &str,
    first: usize,
    orders: &Orders,
) -> Result<Vec<LoweredModule<'d>>, Error> {
    let mut modules: Vec<Option<LoweredModule<'d>>> = parts.iter().map(|_| None).collect();
    // Inner graphs first, so that the paths to them stay valid.
    let mut ways: Vec<Vec<(usize, usize)>> = parts.iter().map(|part| part.graph.clone()).collect();
    ways.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    ways.dedup();
    for way in ways {
        let here: Vec<(usize, &Part)> = parts.iter().enumerate().filter(|(_, part)| part.graph == way).collect();
        let place = |index: usize| format!("part {} for `{backend}`", first.saturating_add(index));
        let mut graph = match find(&mut program.graph, &way) {
            Some(graph) => std::mem::take(graph),
            None => {
                let index = here.first().map_or(0, |(index, _)| *index);
                return Err(Error::program(place(index), "the path of its graph leads nowhere"));
            }
        };
        // Nodes change places when a part is fused, so each keeps the number of its part.
        let mut tags: Vec<Option<usize>> = vec![None; graph.nodes.len()];
        for (index, part) in &here {
            for node in &part.nodes {
                match tags.get_mut(*node) {
                    Some(tag @ None) => *tag = Some(*index),
                    Some(_) => {
                        return Err(Error::program(place(*index), format!("node {node} is in another part, too")));
                    }
                    None => return Err(Error::program(place(*index), "its nodes are none of the graph's")),
                }
            }
        }
        for (index, part) in here {
            let mut fusion = Fusion {
                program: &mut *program,
                graph: &mut graph,
                tags: &mut tags,
                outermost: way.is_empty(),
                place: place(index),
                orders,
            };
            let module = fusion.fuse(index, part, backend, first.saturating_add(index))?;
            if let Some(slot) = modules.get_mut(index) {
                *slot = Some(module);
            }
        }
        if let Some(slot) = find(&mut program.graph, &way) {
            *slot = graph;
        }
    }
    Ok(modules.into_iter().flatten().collect())
}

/// Extraction of one part from its graph.
struct Fusion<'f, 'd> {
    program: &'f mut ExportedProgram<'d>,
    graph: &'f mut Graph,
    /// The part of each node.
    tags: &'f mut Vec<Option<usize>>,
    /// True if the graph is that of the program, whose inputs may be constants and state.
    outermost: bool,
    place: String,
    orders: &'f Orders,
}

impl<'d> Fusion<'_, 'd> {
    fn fuse(&mut self, tag: usize, part: &Part, backend: &str, index: usize) -> Result<LoweredModule<'d>, Error> {
        let place = self.place.clone();
        if part.nodes.is_empty() {
            return Err(Error::program(place, "its nodes are none of the graph's"));
        }
        let mut made = BTreeSet::new();
        for (at, (node, _)) in
            self.graph.nodes.iter().zip(self.tags.iter()).enumerate().filter(|(_, (_, own))| **own == Some(tag))
        {
            if is_delegated(node) {
                return Err(Error::program(place, format!("node {at} is delegated already")));
            }
            made.extend(node.results());
        }
        // Values that depend on the part although they are made outside.
        let mut after = made.clone();
        let (mut before_nodes, mut part_nodes, mut after_nodes) = (Vec::new(), Vec::new(), Vec::new());
        let tags = std::mem::take(self.tags);
        for (node, own) in std::mem::take(&mut self.graph.nodes).into_iter().zip(tags) {
            let (mut depends, mut leaves) = (false, false);
            node.each_input(&mut |id| {
                depends |= after.contains(&id);
                leaves |= after.contains(&id) && !made.contains(&id);
            });
            match (own == Some(tag), depends) {
                (true, _) if leaves => {
                    let message = format!("a path leaves it and comes back at node `{}`", node.name);
                    return Err(Error::program(place, message));
                }
                (true, _) => part_nodes.push(node),
                (false, true) => {
                    after.extend(node.results());
                    after_nodes.push((node, own));
                }
                (false, false) => before_nodes.push((node, own)),
            }
        }
        let outside = before_nodes.iter().chain(&after_nodes).map(|(node, _)| node);
        let state = match part.owns_state && self.outermost {
            true => self.take_state(outside, &made),
            false => Vec::new(),
        };
        let mut needed = BTreeSet::new();
        after_nodes.iter().for_each(|(node, _)| {
            node.each_input(&mut |id| {
                needed.insert(id);
            });
        });
        self.graph.outputs.iter().for_each(|output| {
            output.each_value(&mut |id| {
                needed.insert(id);
            });
        });
        let results: Vec<ValueId> = made.iter().filter(|id| needed.contains(id)).copied().collect();
        // Results of a backend have the strides set here, not those of a view that an operator would have given.
        for result in &results {
            if let Some(meta) = self.graph.tensor(*result).map(|meta| self.as_stored(*result, meta)) {
                self.graph.set_meta(*result, meta.into());
            }
        }
        let (module, operands) = self.extract(part_nodes, &made, &results, state)?;
        let call = Node {
            name: format!("lowered_module_{index}"),
            target: Target::Delegate(index),
            inputs: vec![NamedArgument {
                name: String::new(),
                arg: Argument::List(ListKind::Tensors, operands.into_iter().map(Argument::Value).collect()),
                keyword: false,
            }],
            outputs: vec![Argument::tensors(results)],
            metadata: BTreeMap::new(),
            is_hop_single_tensor_return: None,
        };
        before_nodes.push((call, None));
        before_nodes.append(&mut after_nodes);
        (self.graph.nodes, *self.tags) = before_nodes.into_iter().unzip();
        Ok(LoweredModule {
            backend: backend.to_owned(),
            specs: part.specs.clone(),
            program: Some(module),
            original: serde_json::Value::Null,
            payload: None,
        })
    }

    /// Returns the metadata of a tensor with the strides of the order in which the program stores it.
    fn as_stored(&self, value: ValueId, meta: &TensorMeta) -> TensorMeta {
        let order = self.orders.get(&value).filter(|_| self.outermost);
        let order = order.cloned().unwrap_or_else(|| identity(meta.rank()));
        TensorMeta { strides: meta.strides_in(&order), ..meta.clone() }
    }

    /// Takes the buffers out of the program that only the part reads and writes: what each is, the value that it was and
    /// the one that it becomes.
    fn take_state<'n>(
        &mut self,
        outside: impl Iterator<Item = &'n Node>,
        made: &BTreeSet<ValueId>,
    ) -> Vec<(InputKind, ValueId, ValueId)> {
        let mut elsewhere = BTreeSet::new();
        outside.for_each(|node| {
            node.each_input(&mut |id| {
                elsewhere.insert(id);
            });
        });
        self.graph.outputs.iter().for_each(|output| {
            output.each_value(&mut |id| {
                elsewhere.insert(id);
            });
        });
        let mut state = Vec::new();
        for at in (0..self.program.inputs.len()).rev() {
            let Some(InputSpec { kind: kind @ InputKind::Buffer { name, .. }, arg }) = self.program.inputs.get(at)
            else {
                continue;
            };
            let Some(value) = arg.value().filter(|value| !elsewhere.contains(value)) else { continue };
            let is_new = |spec: &OutputSpec| spec.kind == OutputKind::BufferMutation(name.clone());
            let Some(output) = self.program.outputs.iter().position(is_new) else { continue };
            let Some(new) = self.graph.outputs.get(output).and_then(Argument::value) else { continue };
            if !made.contains(&new) || at >= self.graph.inputs.len() {
                continue;
            }
            state.push((kind.clone(), value, new));
            self.program.inputs.remove(at);
            self.graph.inputs.remove(at);
            self.program.outputs.remove(output);
            self.graph.outputs.remove(output);
        }
        state.reverse();
        state
    }

    /// The part as a program, and what the caller gives it.
    fn extract(
        &self,
        nodes: Vec<Node>,
        made: &BTreeSet<ValueId>,
        results: &[ValueId],
        state: Vec<(InputKind, ValueId, ValueId)>,
    ) -> Result<(ExportedProgram<'d>, Vec<ValueId>), Error> {
        let (program, outer) = (&*self.program, &*self.graph);
        let written: BTreeSet<&str> = program
            .outputs
            .iter()
            .filter_map(|spec| match &spec.kind {
                OutputKind::BufferMutation(name) | OutputKind::ParameterMutation(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let mut read: Vec<ValueId> = Vec::new();
        for node in &nodes {
            node.each_input(&mut |id| {
                if !made.contains(&id) && !read.contains(&id) {
                    read.push(id);
                }
            });
        }
        let mut graph = Graph::default();
        let mut new: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        let mut copy = |graph: &mut Graph, id: ValueId| -> Result<ValueId, Error> {
            let value = outer.value(id).ok_or_else(|| Error::program("part", "it reads what is not there"))?;
            let copied = graph.add_value(&value.name, value.meta.clone());
            new.insert(id, copied);
            Ok(copied)
        };
        let mut weights = Weights::default();
        let (mut inputs, mut operands) = (Vec::new(), Vec::new());
        // Constants first, in the order of the program, then state, then what the caller gives.
        let constants = program.inputs.iter().filter(|_| self.outermost);
        let constants = constants.filter_map(|spec| {
            let (name, value) = (spec.kind.tensor()?, spec.arg.value()?);
            (read.contains(&value) && !written.contains(name)).then_some((spec.kind.clone(), value))
        });
        let own: Vec<(InputKind, ValueId)> =
            constants.chain(state.iter().map(|(kind, value, _)| (kind.clone(), *value))).collect();
        for (kind, value) in own {
            let Some((name, weight)) = kind.tensor().and_then(|name| Some((name, program.weights.find(name)?))) else {
                continue;
            };
            let constant = matches!(kind, InputKind::Constant(_) | InputKind::Buffer { persistent: false, .. });
            let table = if constant { &mut weights.constants } else { &mut weights.state };
            table.insert(name.to_owned(), weight.clone());
            let arg = Argument::Value(copy(&mut graph, value)?);
            graph.inputs.push(arg.clone());
            inputs.push(InputSpec { kind: kind.clone(), arg });
            read.retain(|id| *id != value);
        }
        for value in read {
            let id = copy(&mut graph, value)?;
            // What the caller gives has the strides that the program stores it with.
            if let Some(meta) = graph.tensor(id).map(|meta| self.as_stored(value, meta)) {
                graph.set_meta(id, meta.into());
            }
            let arg = Argument::Value(id);
            graph.inputs.push(arg.clone());
            inputs.push(InputSpec { kind: InputKind::User, arg });
            operands.push(value);
        }
        for id in made {
            copy(&mut graph, *id)?;
        }
        for mut node in nodes {
            let mut rename = |id: ValueId| Argument::Value(new.get(&id).copied().unwrap_or(id));
            node.inputs.iter_mut().for_each(|input| input.arg.map_values(&mut rename));
            node.outputs.iter_mut().for_each(|output| output.map_values(&mut rename));
            graph.nodes.push(node);
        }
        let mut outputs = Vec::new();
        let changed = state
            .iter()
            .filter_map(|(kind, _, value)| Some((OutputKind::BufferMutation(kind.tensor()?.to_owned()), value)));
        let given = results.iter().map(|result| (OutputKind::User, result));
        for (kind, result) in changed.chain(given) {
            let arg = Argument::Value(new.get(result).copied().unwrap_or(*result));
            graph.outputs.push(arg.clone());
            outputs.push(OutputSpec { kind, arg });
        }
        let about = crate::graph::About { torch_version: program.about.torch_version.clone(), ..Default::default() };
        let module = ExportedProgram {
            graph,
            inputs,
            outputs,
            weights,
            ranges: program.ranges.clone(),
            dialect: Dialect::Edge,
            about,
        };
        Ok((module, operands))
    }
}

/// Returns whether a backend has a node, or something inside it.
fn is_delegated(node: &Node) -> bool {
    matches!(node.target, Target::Delegate(_))
        || node.inputs.iter().any(|input| match &input.arg {
            Argument::Graph(_, inner) => inner.nodes.iter().any(is_delegated),
            _ => false,
        })
}
