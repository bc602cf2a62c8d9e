//! Outcome for each node of a graph: a call of the library, or the reason it stays.

use std::collections::BTreeMap;

use super::facts::{Call, Facts};
use super::op::{Input, Op};
use super::quant::{self, Readers, Requantised};
use super::reason::Reason;
use super::{elements, images, movement, products};
use crate::graph::{Target, ValueId};

/// Calls of a graph, by places of nodes.
pub(super) struct Plan {
    pub(super) calls: Vec<Result<Op, Reason>>,
}

impl Plan {
    /// Looks at all nodes, readers before what they read.
    pub(super) fn of(facts: &Facts<'_, '_>) -> Self {
        let mut calls: Vec<Result<Op, Reason>> = vec![Err(Reason::NotOperator); facts.graph.nodes.len()];
        for (index, node) in facts.graph.nodes.iter().enumerate().rev() {
            let readers = |value: ValueId| readers(facts, &calls, value);
            let found = match &node.target {
                Target::Operator(op) | Target::Edge(op) => {
                    let (call, name) = (Call { facts, node }, op.to_string());
                    quant::recognise(call, &readers)
                        .or_else(|| elements::recognise(call, &name))
                        .or_else(|| products::recognise(call, &name))
                        .or_else(|| images::recognise(call, &name))
                        .or_else(|| movement::recognise(call, &name))
                        .unwrap_or(Err(Reason::Operator(name)))
                }
                _ => Err(Reason::NotOperator),
            };
            if let Some(slot) = calls.get_mut(index) {
                *slot = found;
            }
        }
        Plan { calls }
    }

    /// Returns what a node becomes.
    pub(super) fn call(&self, index: usize) -> Option<&Op> {
        self.calls.get(index)?.as_ref().ok()
    }

    /// Returns the calls that are computed on 8-bit numbers: for each what it makes, by the place of its node.
    pub(super) fn quantised(&self, facts: &Facts<'_, '_>) -> BTreeMap<usize, Requantised> {
        let nodes = facts.graph.nodes.iter().enumerate();
        nodes
            .filter_map(|(index, node)| {
                let op = self.call(index)?;
                let found = quant::requantised(
                    facts,
                    node.result().filter(|_| node.results().len() == 1 || matches!(op, Op::Greatest(_)))?,
                    op.has_bounds(),
                )?;
                let taken = found.nodes.iter().all(|node| self.call(*node).is_some());
                let computed = match op {
                    Op::Conv(conv) => matches!(conv.input, Input::Static(_)),
                    Op::Linear(linear) => matches!(linear.input, Input::Static(_)),
                    op => {
                        op.quantizable()?.into_iter().all(|value| {
                            let params = quant::dequantised(facts, value).map(|(_, params)| params);
                            params.is_some() && (!op.copies_numbers() || params == Some(found.params))
                        }) && ratios(facts, op, &found)
                    }
                };
                (taken && computed).then_some((index, found))
            })
            .collect()
    }
}

/// Returns whether sums and products of bytes have scales that the library takes.
fn ratios(facts: &Facts<'_, '_>, op: &Op, found: &Requantised) -> bool {
    let Op::Binary(binary, a, b) = op else { return true };
    let scale = |value: ValueId| quant::dequantised(facts, value).map_or(0.0, |(_, params)| params.scale as f32);
    let (a, b, result) = (scale(*a), scale(*b), found.params.scale as f32);
    let within = |ratio: f32, least: i32| ratio >= 2f32.powi(least) && ratio < 256.0;
    match binary {
        super::op::Binary::Multiply => within(a * b / result, -16),
        _ => within(a / result, -10) && within(b / result, -10),
    }
}

/// Says what reads a value, as far as it is part of a pattern.
fn readers(facts: &Facts<'_, '_>, calls: &[Result<Op, Reason>], value: ValueId) -> Readers {
    if facts.is_unused(value) {
        return Readers::None;
    }
    let takes = |reader: &usize| match calls.get(*reader) {
        Some(Ok(Op::Inside)) => true,
        Some(Ok(Op::Conv(conv))) => is_part(facts, conv.input, conv.filter.value, value),
        Some(Ok(Op::Linear(linear))) => is_part(facts, linear.input, linear.filter.value, value),
        _ => false,
    };
    match !facts.is_output(value) && facts.readers(value).iter().all(takes) {
        true => Readers::Take,
        false => Readers::Leave,
    }
}

/// Returns whether a product looks through the node that made a value: to its filter, or to rows it quantises itself.
fn is_part(facts: &Facts<'_, '_>, input: Input, filter: ValueId, value: ValueId) -> bool {
    let maker = facts.maker(value).and_then(|maker| facts.graph.nodes.get(maker));
    let filters = maker.is_some_and(|maker| maker.value_arg("input") == Some(filter));
    filters || matches!(input, Input::Dynamic(x) if quant::input(facts, value) == Input::Dynamic(x))
}
