//! Regions that change nothing about what is computed are written into the graph around them: those that turn gradients on
//! or off, switch automatic casts off, or only mark a stretch of the graph.
//!
//! Invariant: a graph that comes out calls none of these higher-order operators. A region that casts is refused, since
//! its operators compute in other element types than they were recorded with.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::graph::{Argument, ExportedProgram, Graph, Node, Target, ValueId};

/// Ceiling of the nesting of regions.
const DEPTH: usize = 32;

/// Writes the regions of a program into its graph.
pub(crate) fn inline(program: &mut ExportedProgram<'_>) -> Result<(), Error> {
    graph(&mut program.graph, 0)?;
    program.name_outputs();
    Ok(())
}

fn graph(graph: &mut Graph, depth: usize) -> Result<(), Error> {
    if depth > DEPTH {
        return Err(Error::unsupported("sub-graphs", format!("more than {DEPTH} lie in each other")));
    }
    graph.each_subgraph(|inner| self::graph(inner, depth.saturating_add(1)))?;
    if !graph.nodes.iter().any(|node| region(node).is_some()) {
        return Ok(());
    }
    let mut replaced = BTreeMap::new();
    graph.rewrite(|graph, mut node, made| {
        node.inputs.iter_mut().for_each(|input| substitute(&mut input.arg, &replaced));
        match region(&node) {
            Some(region) => splice(graph, &node, region?, &mut replaced, made),
            None => {
                made.push(node);
                Ok(())
            }
        }
    })?;
    graph.outputs.iter_mut().for_each(|output| substitute(output, &replaced));
    Ok(())
}

fn substitute(argument: &mut Argument, replaced: &BTreeMap<ValueId, Argument>) {
    argument.map_values(&mut |id| replaced.get(&id).cloned().unwrap_or(Argument::Value(id)));
}

/// The graph that a node runs as it is, and what it is given; `None` if the node is something else.
fn region(node: &Node) -> Option<Result<(&Graph, Vec<Argument>), Error>> {
    let Target::HigherOrder(name) = &node.target else { return None };
    let at = node.inputs.iter().position(|input| matches!(input.arg, Argument::Graph(..)))?;
    let Some(Argument::Graph(_, inner)) = node.inputs.get(at).map(|input| &input.arg) else { return None };
    let rest = node.inputs.iter().skip(at.saturating_add(1)).map(|input| input.arg.clone());
    let operands = match name.as_str() {
        "wrap_with_set_grad_enabled" => rest.collect(),
        "wrap_with_autocast" => {
            let before = node.inputs.iter().take(at).map(|input| &input.arg);
            if !before.into_iter().any(|arg| *arg == Argument::Bool(false)) {
                let message = "it casts what it computes with; export it with automatic casts off";
                return Some(Err(Error::unsupported(format!("node `{}`", node.name), message)));
            }
            rest.collect()
        }
        "wrap" | "tag_activation_checkpoint" | "wrap_activation_checkpoint" => rest.collect(),
        // The name of the sub-graph is between the graph and the operands.
        "invoke_subgraph" => rest.skip(1).collect(),
        _ => return None,
    };
    Some(Ok((inner, operands)))
}

/// Puts the nodes of a region where its call stood.
fn splice(
    graph: &mut Graph,
    node: &Node,
    (inner, operands): (&Graph, Vec<Argument>),
    replaced: &mut BTreeMap<ValueId, Argument>,
    made: &mut Vec<Node>,
) -> Result<(), Error> {
    let place = || format!("node `{}`", node.name);
    // Operands come one by one, or in one list.
    let operands = match operands.as_slice() {
        [Argument::List(_, items)] if items.len() == inner.inputs.len() => items.clone(),
        _ => operands,
    };
    if operands.len() < inner.inputs.len() {
        let message = format!("{} operands for {} inputs", operands.len(), inner.inputs.len());
        return Err(Error::program(place(), message));
    }
    let mut here: BTreeMap<ValueId, Argument> =
        inner.inputs.iter().zip(operands).filter_map(|(input, operand)| Some((input.value()?, operand))).collect();
    for inner_node in &inner.nodes {
        let mut copy = inner_node.clone();
        copy.inputs.iter_mut().for_each(|input| substitute(&mut input.arg, &here));
        for result in inner_node.results() {
            let Some(value) = inner.value(result) else { continue };
            let new = graph.add_value(&value.name, value.meta.clone());
            here.insert(result, Argument::Value(new));
        }
        copy.outputs.iter_mut().for_each(|output| substitute(output, &here));
        if let Some(result) = copy.result() {
            copy.name = graph.name(result).to_owned();
        }
        made.push(copy);
    }
    let results = node.results();
    let mut given = inner.outputs.clone();
    given.iter_mut().for_each(|output| substitute(output, &here));
    let given: Vec<Argument> = match given.as_slice() {
        [Argument::List(_, items)] if items.len() == results.len() => items.clone(),
        _ => given,
    };
    if given.len() < results.len() {
        return Err(Error::program(place(), format!("{} results of {}", given.len(), results.len())));
    }
    replaced.extend(results.into_iter().zip(given));
    Ok(())
}
