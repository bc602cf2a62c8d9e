//! Order of the dimensions of each tensor in memory.
//!
//! Recorded strides describe views, which copies are not. A tensor is channels-last if a conversion made it so, or if it
//! is recorded as that and comes from one that is; all others are contiguous. Operators that name a memory format become
//! those that name an order.

use std::collections::BTreeMap;

use super::Options;
use crate::error::Error;
use crate::graph::{Argument, Graph, MemoryFormat, Node, OpName, Target, TensorMeta, ValueId, channels_last, identity};
use crate::operators::Operators;

/// Operators whose kernels read images in the order of their dimensions only.
const CONTIGUOUS_INPUT: [&str; 5] =
    ["aten::_adaptive_avg_pool2d", "aten::avg_pool2d", "aten::expand_copy", "aten::mean.dim", "aten::sum.dim_IntList"];

/// The order of each value that is not contiguous.
pub(super) type Orders = BTreeMap<ValueId, Vec<u8>>;

/// Rewrites the operators of a graph that name a memory format.
pub(super) fn rewrite(graph: &mut Graph, operators: &Operators, given: &[(ValueId, Vec<u8>)]) -> Result<(), Error> {
    let mut orders: Orders = given.iter().filter(|(_, order)| *order != identity(order.len())).cloned().collect();
    graph.each_subgraph(|inner| rewrite(inner, operators, &[]))?;
    graph.rewrite(|graph, mut node, rewritten| {
        convert(graph, &mut node, &orders)?;
        if CONTIGUOUS_INPUT.iter().any(|name| node.calls(name)) {
            make_contiguous(graph, &mut node, &orders, rewritten);
        }
        record(graph, &node, operators, &mut orders);
        rewritten.push(node);
        Ok(())
    })
}

/// The orders of all values of a graph that has been rewritten.
pub(super) fn orders(graph: &Graph, options: &Options, given: &[(ValueId, Vec<u8>)]) -> Orders {
    let mut orders: Orders = given.iter().filter(|(_, order)| *order != identity(order.len())).cloned().collect();
    for node in &graph.nodes {
        record(graph, node, &options.operators, &mut orders);
    }
    orders
}

fn convert(graph: &Graph, node: &mut Node, orders: &Orders) -> Result<(), Error> {
    let name = if node.calls("aten::_to_copy") {
        "_to_dim_order_copy"
    } else if node.calls("aten::clone") {
        "_clone_dim_order"
    } else if node.calls("aten::empty.memory_format") {
        "_empty_dim_order"
    } else {
        return Ok(());
    };
    let rank = node.result().and_then(|id| graph.tensor(id)).map_or(0, TensorMeta::rank);
    let format = node.take_arg("memory_format").unwrap_or(Argument::None);
    let input = node.value_arg("self").and_then(|id| orders.get(&id).cloned());
    let order = match format {
        Argument::None | Argument::MemoryFormat(MemoryFormat::Preserve) => input.unwrap_or_else(|| identity(rank)),
        Argument::MemoryFormat(MemoryFormat::Contiguous) => identity(rank),
        Argument::MemoryFormat(MemoryFormat::ChannelsLast) if rank == 4 => {
            channels_last(rank).unwrap_or_else(|| identity(rank))
        }
        other => {
            let message = format!("memory format {other:?} of {rank} dimensions, programs have none for it");
            return Err(Error::unsupported(format!("node `{}`", node.name), message));
        }
    };
    node.set_arg("dim_order", Argument::ints(order.into_iter().map(i64::from)));
    node.target = Target::Operator(OpName {
        namespace: "dim_order_ops".to_owned(),
        name: name.to_owned(),
        overload: String::new(),
    });
    Ok(())
}

fn make_contiguous(graph: &mut Graph, node: &mut Node, orders: &Orders, rewritten: &mut Vec<Node>) {
    let Some(input) = node.inputs.first_mut() else { return };
    let Some(value) = input.arg.value().filter(|id| orders.contains_key(id)) else { return };
    let Some(meta) = graph.tensor(value).cloned() else { return };
    let order = Argument::ints(identity(meta.rank()).into_iter().map(i64::from));
    let meta = TensorMeta { requires_grad: false, ..TensorMeta::contiguous(meta.scalar_type, &meta.sizes) };
    let args = [("self", Argument::Value(value)), ("dim_order", order)];
    let copy = graph.make("dim_order_ops::_to_dim_order_copy", args, meta);
    if let Some(result) = copy.result() {
        input.arg = Argument::Value(result);
    }
    rewritten.push(copy);
}

/// Notes the orders of what a node makes.
fn record(graph: &Graph, node: &Node, operators: &Operators, orders: &mut Orders) {
    if let Some(order) = node.arg("dim_order").and_then(Argument::as_ints) {
        let order: Vec<u8> = order.into_iter().filter_map(|dim| u8::try_from(dim).ok()).collect();
        if order != identity(order.len()) {
            orders.extend(node.result().map(|result| (result, order)));
        }
        return;
    }
    if let Target::Delegate(_) = node.target {
        // Results of a backend have the order that was recorded.
        let lying = |id: &ValueId| graph.tensor(*id).is_some_and(TensorMeta::is_given_channels_last);
        let order = channels_last(4).unwrap_or_default();
        orders.extend(node.results().into_iter().filter(lying).map(|result| (result, order.clone())));
        return;
    }
    let Some(op) = node.target.operator() else { return };
    if operators.traits(op).view_copy {
        return;
    }
    let mut inherited = false;
    node.each_input(&mut |id| {
        let image = graph.tensor(id).is_some_and(|meta| meta.rank() == 4);
        inherited |= image && orders.contains_key(&id);
    });
    // All images that a call makes have one memory format.
    let images = |id: &ValueId| graph.tensor(*id).is_some_and(|meta| meta.rank() == 4);
    let results: Vec<ValueId> = node.results().into_iter().filter(images).collect();
    let recorded = results.iter().any(|id| graph.tensor(*id).is_some_and(TensorMeta::is_channels_last));
    if let (true, true, Some(order)) = (inherited, recorded, channels_last(4)) {
        orders.extend(results.into_iter().map(|result| (result, order.clone())));
    }
}
