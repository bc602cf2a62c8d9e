//! Changes in place become functional: a call that changes a tensor becomes one that makes a new tensor, and everything
//! after it reads that.
//!
//! Tensors are modelled as PyTorch has them ([`storage`]): each is a storage of its own or a [view](view) of one, through
//! any number of views. A change of any of them makes a new value for the storage, and every later read of any other
//! takes its view again. [`recognise`] says what a call does to storages, [`twin`] which call computes what one that works
//! in place writes. Inputs that were changed become outputs that say so.
//!
//! Invariant: a program that changes nothing comes out as it went in; what is not modelled is refused by node, if and only
//! if a storage that it may share is changed.

mod layout;
mod recognise;
mod storage;
mod twin;
mod view;

use std::collections::BTreeMap;

use edgepack_format::operators::Schema;

use crate::decompose::Composite;
use crate::decompose::maker::{Maker, Sizes, Work};
use crate::error::Error;
use crate::graph::{
    Argument, ExportedProgram, Graph, InputKind, Node, OutputKind, OutputSpec, Target, TensorMeta, ValueId,
};
use crate::operators::Operators;
use recognise::{Effect, recognise};
use storage::Storages;
use twin::Change;

/// Makes a program functional, with outputs for the inputs it changes.
pub(crate) fn functionalise(
    program: &mut ExportedProgram<'_>,
    operators: &Operators,
    work: &Work,
) -> Result<(), Error> {
    let changed = graph(&mut program.graph, operators, work)?;
    let mut at = program.outputs.iter().take_while(|spec| spec.kind.is_mutation()).count();
    let inputs = program.inputs.clone();
    for spec in &inputs {
        let Some(new) = spec.arg.value().and_then(|value| changed.get(&value)) else { continue };
        let name = spec.arg.value().map_or(String::new(), |value| program.graph.name(value).to_owned());
        let kind = match &spec.kind {
            InputKind::Buffer { name, .. } => OutputKind::BufferMutation(name.clone()),
            InputKind::Parameter(name) => OutputKind::ParameterMutation(name.clone()),
            InputKind::User => OutputKind::InputMutation(name),
            _ => return Err(Error::unsupported(format!("input `{name}`"), "a constant is changed in place")),
        };
        if let Some(other) = shares_storage(program, spec.kind.tensor()) {
            let message = format!("it is changed in place and shares its storage with `{other}`");
            return Err(Error::unsupported(format!("input `{}`", spec.kind.tensor().unwrap_or_default()), message));
        }
        let arg = Argument::Value(*new);
        program.outputs.insert(at, OutputSpec { kind, arg: arg.clone() });
        program.graph.outputs.insert(at.min(program.graph.outputs.len()), arg);
        at = at.saturating_add(1);
    }
    program.name_outputs();
    Ok(())
}

/// Another tensor of the program in the same storage.
fn shares_storage<'p>(program: &'p ExportedProgram<'_>, name: Option<&str>) -> Option<&'p str> {
    let name = name?;
    let storage = program.weights.find(name)?.storage().name();
    let others = program.inputs.iter().filter_map(|spec| spec.kind.tensor()).filter(|other| *other != name);
    let mut sharing =
        others.filter(|other| program.weights.find(other).is_some_and(|weight| weight.storage().name() == storage));
    sharing.next()
}

/// Makes a graph functional; answers with the new values of inputs that it changes.
fn graph(graph: &mut Graph, operators: &Operators, work: &Work) -> Result<BTreeMap<ValueId, ValueId>, Error> {
    graph.each_subgraph(|inner| match self::graph(inner, operators, work)?.is_empty() {
        true => Ok(()),
        false => Err(Error::unsupported("sub-graph", "it changes what it is given")),
    })?;
    let inputs: Vec<ValueId> = graph.inputs.iter().filter_map(Argument::value).collect();
    let mut storages = Storages::default();
    for input in &inputs {
        if let Some(meta) = graph.tensor(*input).cloned() {
            storages.add(*input, meta);
        }
    }
    let mut pass = Pass { operators, storages, sizes: Sizes::of_inputs(graph, work) };
    graph.rewrite(|graph, node, made| pass.node(graph, node, made))?;
    let mut tail = Vec::new();
    let mut outputs = graph.outputs.clone();
    for output in &mut outputs {
        pass.read(graph, output, &mut tail, "output")?;
    }
    graph.outputs = outputs;
    let mut changed = BTreeMap::new();
    for input in inputs {
        if pass.storages.is_changed(input) {
            let mut make =
                Maker { graph, operators, made: &mut tail, sizes: &mut pass.sizes, place: graph_input(input) };
            changed.insert(input, pass.storages.read(&mut make, input)?);
        }
    }
    graph.nodes.append(&mut tail);
    Ok(changed)
}

fn graph_input(input: ValueId) -> String {
    format!("input {}", input.index())
}

struct Pass<'o> {
    operators: &'o Operators,
    storages: Storages,
    sizes: Sizes,
}

impl Pass<'_> {
    /// Lets an argument say the values that its tensors have now.
    fn read(
        &mut self,
        graph: &mut Graph,
        argument: &mut Argument,
        made: &mut Vec<Node>,
        place: &str,
    ) -> Result<(), Error> {
        let mut found = Vec::new();
        argument.each_value(&mut |id| found.push(id));
        let mut now = BTreeMap::new();
        for id in found {
            let mut make =
                Maker { graph, operators: self.operators, made, sizes: &mut self.sizes, place: place.to_owned() };
            now.insert(id, self.storages.read(&mut make, id)?);
        }
        argument.map_values(&mut |id| Argument::Value(now.get(&id).copied().unwrap_or(id)));
        Ok(())
    }

    fn node(&mut self, graph: &mut Graph, mut node: Node, made: &mut Vec<Node>) -> Result<(), Error> {
        let text = match &node.target {
            Target::Operator(op) | Target::Edge(op) => self.operators.text(&op.to_string()).map(str::to_owned),
            _ => None,
        };
        let schema = text.as_deref().and_then(|text| Schema::parse(text).ok());
        let effect = match &schema {
            Some(schema) => recognise(graph, schema, &Composite::new(&node, schema), &self.storages)?,
            None => Effect::None,
        };
        let original = node.clone();
        let receivers: Vec<&str> = schema
            .iter()
            .flat_map(|schema| schema.args())
            .filter(|parameter| parameter.is_out())
            .map(|parameter| parameter.name)
            .collect();
        for index in 0..node.inputs.len() {
            let Some(input) = node.inputs.get(index).filter(|input| !receivers.contains(&input.name.as_str())) else {
                continue;
            };
            let mut argument = input.arg.clone();
            self.read(graph, &mut argument, made, &original.name)?;
            if let Some(input) = node.inputs.get_mut(index) {
                input.arg = argument;
            }
        }
        match (effect, &schema) {
            (Effect::Change, Some(schema)) => {
                let (mut make, storages) = self.maker(graph, made, &node);
                Change { schema, original: &original, node: &node }.write(&mut make, storages)
            }
            (Effect::Same(value), _) => {
                node.results().into_iter().for_each(|result| self.storages.same(result, value));
                Ok(())
            }
            (Effect::Turn(value, step), _) => {
                let meta = node.result().and_then(|result| graph.tensor(result).cloned());
                let meta = meta.ok_or_else(|| Error::program(&node.name, "it gives no tensor"))?;
                let (mut make, storages) = self.maker(graph, made, &node);
                storages.turn(&mut make, value, step, meta)?;
                node.results().into_iter().for_each(|result| self.storages.same(result, value));
                Ok(())
            }
            (Effect::Views { of, views, replace }, _) => {
                if !replace {
                    self.push(graph, made, node);
                }
                for (result, steps) in views {
                    let Some(meta) = graph.tensor(result).cloned() else { continue };
                    let place = original.name.clone();
                    self.storages.add_view(result, of, steps, meta, &place, !replace)?;
                }
                Ok(())
            }
            (Effect::Maybe(values), _) => {
                for (result, meta) in tensors(graph, &node) {
                    self.storages.add_maybe(result, meta, &values, &node.target.to_string());
                }
                self.push(graph, made, node);
                Ok(())
            }
            (Effect::None | Effect::Change, _) => {
                for (result, meta) in tensors(graph, &node) {
                    self.storages.add(result, meta);
                }
                self.push(graph, made, node);
                Ok(())
            }
        }
    }

    fn push(&mut self, graph: &Graph, made: &mut Vec<Node>, node: Node) {
        self.sizes.note(graph, &node);
        made.push(node);
    }

    fn maker<'m>(
        &'m mut self,
        graph: &'m mut Graph,
        made: &'m mut Vec<Node>,
        node: &Node,
    ) -> (Maker<'m>, &'m mut Storages) {
        let place = node.name.clone();
        (Maker { graph, operators: self.operators, made, sizes: &mut self.sizes, place }, &mut self.storages)
    }
}

/// The tensors that a node makes.
fn tensors(graph: &Graph, node: &Node) -> Vec<(ValueId, TensorMeta)> {
    node.results().into_iter().filter_map(|result| Some((result, graph.tensor(result)?.clone()))).collect()
}
