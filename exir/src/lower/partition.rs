//! Parts of a graph that a backend runs: each becomes a program of its own and one call in its place.
//!
//! Invariant: a part that is fused has no path that leaves it and comes back, so its call has a place in the order.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_builder::content::Data;
use edgepack_format::pte::CompileSpec;

use crate::archive::Weights;
use crate::error::Error;
use crate::graph::{
    Argument, Dialect, ExportedProgram, Graph, InputKind, InputSpec, ListKind, NamedArgument, Node, OutputKind,
    OutputSpec, Target, ValueId,
};

/// Nodes that a backend is to run as one, by their places in the graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// Places in [`Graph::nodes`].
    pub nodes: Vec<usize>,
    /// Options for the backend.
    pub specs: Vec<CompileSpec<'static>>,
}

/// Says which parts of a program a backend runs.
pub trait Partitioner {
    /// The parts; no node is in two of them.
    fn partition(&self, program: &ExportedProgram<'_>) -> Result<Vec<Part>, Error>;
}

/// Takes every node it is asked about, in stretches of neighbours.
pub struct ByOperator<F> {
    /// Whether the backend runs a node.
    pub supports: F,
    /// Options for the backend.
    pub specs: Vec<CompileSpec<'static>>,
}

impl<F: Fn(&Node) -> bool> Partitioner for ByOperator<F> {
    fn partition(&self, program: &ExportedProgram<'_>) -> Result<Vec<Part>, Error> {
        let mut parts: Vec<Part> = Vec::new();
        let mut open = false;
        for (index, node) in program.graph.nodes.iter().enumerate() {
            let taken = (self.supports)(node);
            match parts.last_mut().filter(|_| taken && open) {
                Some(part) => part.nodes.push(index),
                None if taken => parts.push(Part { nodes: vec![index], specs: self.specs.clone() }),
                None => {}
            }
            open = taken;
        }
        Ok(parts)
    }
}

/// A part that was taken out.
#[derive(Clone, Debug)]
pub struct LoweredModule<'d> {
    /// Who runs it.
    pub backend: String,
    /// Options for the backend.
    pub specs: Vec<CompileSpec<'static>>,
    /// The part as a program: its constants are its own, everything else is an input. Absent if the program came with it.
    pub program: Option<ExportedProgram<'d>>,
    /// What the backend made of it.
    pub payload: Option<Data<'d>>,
}

/// Takes a part out of a program and puts a call of lowered module `index` in its place.
pub(super) fn fuse<'d>(
    program: &mut ExportedProgram<'d>,
    part: Part,
    backend: &str,
    index: usize,
) -> Result<LoweredModule<'d>, Error> {
    let inside: BTreeSet<usize> = part.nodes.iter().copied().collect();
    let place = || format!("part {index} for `{backend}`");
    if inside.is_empty() || inside.iter().any(|node| *node >= program.graph.nodes.len()) {
        return Err(Error::program(place(), "its nodes are none of the graph's"));
    }
    let mut made = BTreeSet::new();
    for (at, node) in program.graph.nodes.iter().enumerate().filter(|(at, _)| inside.contains(at)) {
        if matches!(node.target, Target::Delegate(_)) {
            return Err(Error::program(place(), format!("node {at} is delegated already")));
        }
        made.extend(node.results());
    }
    // Values that depend on the part although they are made outside.
    let mut after = made.clone();
    let (mut before_nodes, mut part_nodes, mut after_nodes) = (Vec::new(), Vec::new(), Vec::new());
    for (at, node) in std::mem::take(&mut program.graph.nodes).into_iter().enumerate() {
        let (mut depends, mut leaves) = (false, false);
        node.each_input(&mut |id| {
            depends |= after.contains(&id);
            leaves |= after.contains(&id) && !made.contains(&id);
        });
        match (inside.contains(&at), depends) {
            (true, _) if leaves => {
                let message = format!("a path leaves it and comes back at node `{}`", node.name);
                return Err(Error::program(place(), message));
            }
            (true, _) => part_nodes.push(node),
            (false, true) => {
                after.extend(node.results());
                after_nodes.push(node);
            }
            (false, false) => before_nodes.push(node),
        }
    }
    let mut needed = BTreeSet::new();
    after_nodes.iter().for_each(|node| {
        node.each_input(&mut |id| {
            needed.insert(id);
        });
    });
    program.graph.outputs.iter().for_each(|output| {
        output.each_value(&mut |id| {
            needed.insert(id);
        });
    });
    let results: Vec<ValueId> = made.iter().filter(|id| needed.contains(id)).copied().collect();
    let (module, operands) = extract(program, part_nodes, &made, &results)?;
    let name = format!("lowered_module_{index}");
    let call = Node {
        name,
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
    before_nodes.push(call);
    before_nodes.append(&mut after_nodes);
    program.graph.nodes = before_nodes;
    Ok(LoweredModule { backend: backend.to_owned(), specs: part.specs, program: Some(module), payload: None })
}

/// The part as a program, and what the caller gives it.
fn extract<'d>(
    program: &ExportedProgram<'d>,
    nodes: Vec<Node>,
    made: &BTreeSet<ValueId>,
    results: &[ValueId],
) -> Result<(ExportedProgram<'d>, Vec<ValueId>), Error> {
    let written: BTreeSet<&str> = program.changed().collect();
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
        let value = program.graph.value(id).ok_or_else(|| Error::program("part", "it reads what is not there"))?;
        let copied = graph.add_value(&value.name, value.meta.clone());
        new.insert(id, copied);
        Ok(copied)
    };
    let mut weights = Weights::default();
    let (mut inputs, mut operands) = (Vec::new(), Vec::new());
    // Constants first, in the order of the program, then what the caller gives.
    for spec in &program.inputs {
        let (Some(name), Some(value)) = (spec.kind.tensor(), spec.arg.value().filter(|id| read.contains(id))) else {
            continue;
        };
        let Some(weight) = program.weights.find(name).filter(|_| !written.contains(name)) else { continue };
        let constant = matches!(spec.kind, InputKind::Constant(_) | InputKind::Buffer { persistent: false, .. });
        let table = if constant { &mut weights.constants } else { &mut weights.state };
        table.insert(name.to_owned(), weight.clone());
        let arg = Argument::Value(copy(&mut graph, value)?);
        graph.inputs.push(arg.clone());
        inputs.push(InputSpec { kind: spec.kind.clone(), arg });
        read.retain(|id| *id != value);
    }
    for value in read {
        let arg = Argument::Value(copy(&mut graph, value)?);
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
    for result in results {
        let arg = Argument::Value(new.get(result).copied().unwrap_or(*result));
        graph.outputs.push(arg.clone());
        outputs.push(OutputSpec { kind: OutputKind::User, arg });
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
