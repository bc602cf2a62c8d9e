//! The conversion to the Edge dialect, in the order of its passes.

use super::{Options, casts, dim_order, fold, scalars};
use crate::error::Error;
use crate::graph::{Argument, Dialect, ExportedProgram, Graph, InputKind, Node, Size, Target, ValueId};
use crate::operators::{self, Operators};

/// Checks that say nothing a program could act on.
const CHECKS: [&str; 9] = [
    "aten::_assert_tensor_metadata",
    "aten::_assert_scalar",
    "aten::_assert_async",
    "aten::_assert_async.msg",
    "aten::_functional_assert_scalar",
    "aten::_functional_assert_async.msg",
    "aten::sym_constrain_range",
    "aten::sym_constrain_range_for_size",
    "aten::_functional_sym_constrain_range",
];

/// Converts a program in place.
pub(super) fn convert(program: &mut ExportedProgram<'_>, options: &Options) -> Result<(), Error> {
    each_graph(&mut program.graph, &mut |graph| {
        remove_checks(graph);
        remove_no_ops(graph, options);
        copy_views(graph, &options.operators)
    })?;
    scalars::lift(program, options)?;
    each_graph(&mut program.graph, &mut |graph| casts::agree(graph, &options.operators))?;
    if !options.like_reference {
        fold::constants(program);
    }
    let constant = constant_orders(program);
    dim_order::rewrite(&mut program.graph, &options.operators, &constant)?;
    each_graph(&mut program.graph, &mut |graph| {
        graph.remove_unused(|_| false);
        for node in &mut graph.nodes {
            node.target.make_edge();
        }
        Ok(())
    })?;
    program.name_outputs();
    program.dialect = Dialect::Edge;
    Ok(())
}

/// Does something to a graph and all graphs inside it, innermost first.
pub(super) fn each_graph(
    graph: &mut Graph,
    change: &mut impl FnMut(&mut Graph) -> Result<(), Error>,
) -> Result<(), Error> {
    graph.each_subgraph(|inner| each_graph(inner, change))?;
    change(graph)
}

/// Inputs whose tensors the program knows, with the order of their dimensions in memory.
fn constant_orders(program: &ExportedProgram<'_>) -> Vec<(ValueId, Vec<u8>)> {
    let order = |spec: &crate::graph::InputSpec| {
        let weight = program.weights.find(spec.kind.tensor()?)?;
        Some((spec.arg.value()?, weight.dim_order()))
    };
    let user = |spec: &crate::graph::InputSpec| {
        let value = spec.arg.value().filter(|_| spec.kind == InputKind::User)?;
        let channels_last = program.graph.tensor(value).filter(|meta| meta.is_channels_last())?;
        Some((value, crate::graph::channels_last(channels_last.rank()).filter(|order| order.len() == 4)?))
    };
    program.inputs.iter().filter_map(|spec| order(spec).or_else(|| user(spec))).collect()
}

fn remove_checks(graph: &mut Graph) {
    graph.nodes.retain(|node| !CHECKS.iter().any(|name| node.calls(name)));
}

/// Lets readers of what changes nothing read its input.
fn remove_no_ops(graph: &mut Graph, options: &Options) {
    let outputs: Vec<ValueId> = {
        let mut found = Vec::new();
        graph.outputs.iter().for_each(|output| output.each_value(&mut |id| found.push(id)));
        found
    };
    let mut replacements = std::collections::BTreeMap::new();
    for node in &graph.nodes {
        let (Some(result), Some(input)) = (node.result(), node.value_arg("self")) else { continue };
        if outputs.contains(&result) {
            continue;
        }
        let format = node.arg("memory_format");
        let same_format = matches!(
            format,
            None | Some(Argument::None | Argument::MemoryFormat(crate::graph::MemoryFormat::Preserve))
        );
        let no_op = if node.calls("aten::_to_copy") || node.calls("aten::to.dtype") {
            same_format && same_tensor(graph, input, result)
        } else if node.calls("aten::slice.Tensor") {
            is_whole_slice(graph, node, input, result)
        } else if ["aten::alias", "aten::detach", "aten::lift_fresh", "aten::lift_fresh_copy"]
            .iter()
            .any(|name| node.calls(name))
        {
            true
        } else {
            node.calls("aten::clone") && !options.like_reference && (same_format || is_contiguous_clone(graph, node))
        };
        if no_op {
            // Nodes are in order, so the replacement of the input is known already.
            let input = replacements.get(&input).cloned().unwrap_or(Argument::Value(input));
            replacements.insert(result, input);
        }
    }
    graph.replace_all(&replacements);
    graph.nodes.retain(|node| !node.result().is_some_and(|result| replacements.contains_key(&result)));
}

/// A clone that makes contiguous what is not an image: results are contiguous as it is.
fn is_contiguous_clone(graph: &Graph, node: &Node) -> bool {
    let contiguous = node.arg("memory_format") == Some(&Argument::MemoryFormat(crate::graph::MemoryFormat::Contiguous));
    contiguous && node.value_arg("self").and_then(|id| graph.tensor(id)).is_some_and(|meta| meta.rank() != 4)
}

fn same_tensor(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    match (graph.tensor(a), graph.tensor(b)) {
        (Some(a), Some(b)) => a.scalar_type == b.scalar_type && a.sizes == b.sizes && a.strides == b.strides,
        _ => false,
    }
}

fn is_whole_slice(graph: &Graph, node: &Node, input: ValueId, result: ValueId) -> bool {
    let sizes = |id| graph.tensor(id).map(|meta| &meta.sizes);
    let from_start = matches!(node.arg("start"), None | Some(Argument::None | Argument::Int(0)));
    let every = matches!(node.arg("step"), None | Some(Argument::Int(1)));
    let known = |sizes: &&Vec<Size>| sizes.iter().all(|size| size.known().is_some());
    let open_end = node.arg("end").is_some_and(|end| *end == Argument::Int(i64::MAX));
    let same = sizes(input).is_some() && sizes(input) == sizes(result);
    from_start && every && same && (open_end || sizes(input).as_ref().is_some_and(known))
}

/// Views become the copying operators of the same name.
fn copy_views(graph: &mut Graph, operators: &Operators) -> Result<(), Error> {
    for node in &mut graph.nodes {
        let Target::Operator(op) = &node.target else { continue };
        let view = op.name == "_unsafe_view"
            || op.name == "reshape"
            || operators.schema(op).is_some_and(|schema| operators::is_view(&schema));
        if !view {
            continue;
        }
        match operators.copying_twin(op) {
            Some(twin) => {
                // The twin of another name calls its sizes otherwise.
                if let (true, Some(shape)) = (op.name == "reshape", node.arg("shape").cloned()) {
                    node.take_arg("shape");
                    node.set_arg("size", shape);
                }
                node.target = Target::Operator(twin);
            }
            None => {
                return Err(Error::unsupported(format!("node `{}`", node.name), format!("{op} has no copying twin")));
            }
        }
    }
    Ok(())
}
