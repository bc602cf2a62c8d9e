//! Producers: every value has one, and there is an order in which they can run.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::report::Report;
use crate::room;
use crate::rules::xnnpack as rule;
use crate::xnnpack::node::Node;
use crate::xnnpack::tables::TensorValue;

/// No node.
const NONE: u32 = u32::MAX;

/// Indices of the nodes in an order in which they can run. Empty if there is none.
pub(super) fn check(report: &mut Report<'_, '_>) -> room::Result<Vec<u32>> {
    let producers = producers(report)?;
    let order = order(&producers, report)?;
    let nodes = report.payload.nodes.len();
    if order.len() < nodes {
        let mut is_ordered = room::filled(false, nodes)?;
        for index in &order {
            if let Some(place) = is_ordered.get_mut(*index as usize) {
                *place = true;
            }
        }
        if let Some(index) = is_ordered.iter().position(|is_ordered| !is_ordered) {
            let message = format!("{} nodes need what they make", nodes.saturating_sub(order.len()));
            report.node(&rule::CYCLE, index, message);
        }
        return Ok(Vec::new());
    }
    Ok(order)
}

/// The node that makes each value.
fn producers(report: &mut Report<'_, '_>) -> room::Result<Vec<u32>> {
    let payload = report.payload;
    let mut producers = room::filled(NONE, payload.values.len())?;
    for (index, node) in payload.nodes.iter().enumerate() {
        for output in node.outputs() {
            let Some(value) = payload.index_of(output.id) else { continue };
            let tensor = payload.values.get(value).and_then(|value| value.tensor());
            let Some(producer) = producers.get_mut(value) else { continue };
            match (*producer, tensor) {
                (_, Some(tensor)) if tensor.is_input() || tensor.is_constant() => {
                    let what = if tensor.is_input() { "an input" } else { "constant" };
                    report.node(&rule::PRODUCER, index, format!("%{} is {what}", output.id));
                }
                (NONE, _) => *producer = index as u32,
                (first, _) => report.node(&rule::PRODUCER, index, format!("%{} comes out of node {first}", output.id)),
            }
        }
    }
    for (index, (value, producer)) in payload.values.iter().zip(&producers).enumerate() {
        let Some(tensor) = value.tensor().filter(|_| *producer == NONE) else { continue };
        // Of values with one id, the first counts.
        if tensor.is_input() || tensor.is_constant() || payload.index_of(tensor.id_out) != Some(index) {
            continue;
        }
        unmade(index, tensor, report);
    }
    Ok(producers)
}

fn unmade(index: usize, tensor: &TensorValue<'_>, report: &mut Report<'_, '_>) {
    let rule = if tensor.is_output() { &rule::OUTPUT } else { &rule::PRODUCER };
    report.whole_value(rule, index, "no node makes it".to_string());
}

/// As many nodes as can be ordered: in the order of the file as far as it is one.
fn order(producers: &[u32], report: &Report<'_, '_>) -> room::Result<Vec<u32>> {
    let payload = report.payload;
    let nodes = payload.nodes.len();
    // For every node, how many of its inputs are to be made yet; for every node, who waits for it, one list behind the other.
    let before = |node: &Node<'_>| {
        let inputs = node.inputs().filter_map(|input| payload.index_of(input.id));
        inputs.filter_map(|value| producers.get(value).copied()).filter(|producer| *producer != NONE)
    };
    let mut missing = room::filled(0u32, nodes)?;
    let mut ends = room::filled(0usize, nodes.saturating_add(1))?;
    for (index, node) in payload.nodes.iter().enumerate() {
        for producer in before(node) {
            if let (Some(missing), Some(end)) = (missing.get_mut(index), ends.get_mut(producer as usize)) {
                *missing = missing.saturating_add(1);
                *end = end.saturating_add(1);
            }
        }
    }
    let mut sum = 0usize;
    for end in &mut ends {
        sum = sum.saturating_add(*end);
        *end = sum;
    }
    let mut waiting = room::filled(0u32, sum)?;
    // Filled from behind, every list ends where it starts.
    for (index, node) in payload.nodes.iter().enumerate().rev() {
        for producer in before(node) {
            let Some(end) = ends.get_mut(producer as usize) else { continue };
            *end = end.saturating_sub(1);
            if let Some(place) = waiting.get_mut(*end) {
                *place = index as u32;
            }
        }
    }
    let mut order = room::with_room(nodes)?;
    let mut open: Vec<u32> = room::with_room(nodes)?;
    for first in 0..nodes {
        if missing.get(first) != Some(&0) {
            continue;
        }
        // Nodes in front that waited for this one follow it; nodes behind have their turn.
        open.push(first as u32);
        while let Some(index) = open.pop() {
            order.push(index);
            let start = ends.get(index as usize).copied().unwrap_or(0);
            let end = ends.get((index as usize).saturating_add(1)).copied().unwrap_or(start);
            for next in waiting.get(start..end).unwrap_or_default() {
                let Some(missing) = missing.get_mut(*next as usize) else { continue };
                *missing = missing.saturating_sub(1);
                if *missing == 0 && (*next as usize) < first {
                    open.push(*next);
                }
            }
        }
    }
    Ok(order)
}
