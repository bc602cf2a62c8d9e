//! Payloads from parts of programs.

mod elements;
mod images;
mod movement;
mod products;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use products::Target;
pub(super) use values::Emitted;
use values::Emitter;

use super::facts::Facts;
use super::op::{Op, Params};
use super::plan::Plan;
use super::quant;
use crate::error::Error;
use crate::graph::{ExportedProgram, ValueId};
use crate::lower::ByName;

/// Describes the payload of a part. A node that is not a call of the library is an error.
pub(super) fn payload(program: &ExportedProgram<'_>, external: &ByName<String>) -> Result<Emitted, Error> {
    let facts = Facts::of(program);
    let plan = Plan::of(&facts);
    let quantised = plan.quantised(&facts);
    let mut emitter = Emitter::new(program, &facts, parameters(&facts, &plan), external)?;
    // Nodes that are part of what was written before them.
    let mut done: BTreeSet<usize> = BTreeSet::new();
    for (index, node) in facts.graph.nodes.iter().enumerate() {
        if done.contains(&index) {
            continue;
        }
        let op = match plan.calls.get(index) {
            Some(Ok(op)) => op,
            Some(Err(reason)) => return Err(Error::unsupported(format!("node `{}`", node.name), reason.to_string())),
            None => continue,
        };
        let results = node.results();
        let Some(result) = results.first().copied() else { continue };
        if let Some(found) = quantised.get(&index) {
            done.extend(&found.nodes);
            let target = Target { result: found.result, bounds: found.bounds };
            emitter.call(&on_bytes(&facts, op), target, &[found.result])?;
            continue;
        }
        let fused = op.has_bounds().then(|| bounds(&facts, &plan, result)).flatten();
        let target = match fused {
            Some((clamp, result, bounds)) if !quantised.contains_key(&clamp) => {
                done.insert(clamp);
                Target { result, bounds: Some(bounds) }
            }
            _ => Target { result, bounds: None },
        };
        emitter.call(op, target, &results)?;
    }
    emitter.finish()
}

/// Returns the parameters of all tensors of bytes.
fn parameters(facts: &Facts<'_, '_>, plan: &Plan) -> BTreeMap<ValueId, Params> {
    let calls = facts.graph.nodes.iter().zip(&plan.calls);
    let found = calls.filter_map(|(node, call)| match call {
        Ok(Op::Quantize(_, params)) => Some((node.result()?, *params)),
        Ok(Op::Dequantize(bytes, params)) => Some((*bytes, *params)),
        _ => None,
    });
    found.collect()
}

/// Returns the only reader of a result if it holds it to a range: its place, its result and the range.
fn bounds(facts: &Facts<'_, '_>, plan: &Plan, result: ValueId) -> Option<(usize, ValueId, (f32, f32))> {
    let reader = facts.only_reader(result)?;
    let Some(Op::Clamp(_, least, most)) = plan.call(reader) else { return None };
    Some((reader, facts.graph.nodes.get(reader)?.result()?, (*least, *most)))
}

/// Call with bytes in place of the floats that are made of them.
fn on_bytes(facts: &Facts<'_, '_>, op: &Op) -> Op {
    let bytes = |value: &mut ValueId| {
        if let Some((found, _)) = quant::dequantised(facts, *value) {
            *value = found;
        }
    };
    let mut op = op.clone();
    // Others have their operands as the node reads them.
    op.quantizable_mut().into_iter().flatten().for_each(bytes);
    op
}

impl Emitter<'_, '_, '_> {
    /// Writes a call.
    fn call(&mut self, op: &Op, target: Target, results: &[ValueId]) -> Result<(), Error> {
        let result = target.result;
        match op {
            Op::Conv(conv) => self.conv(conv, target),
            Op::Linear(linear) => self.linear(linear, target),
            Op::Product(a, b) => self.product(*a, *b, result),
            Op::Greatest(windows) => self.pool(windows, true, result),
            Op::Average(windows) => self.pool(windows, false, result),
            Op::Mean(x) => self.mean(*x, result),
            Op::Unary(unary, x) => self.unary(*unary, *x, result),
            Op::Binary(binary, a, b) => self.binary(*binary, *a, *b, target),
            Op::Clamp(x, least, most) => self.clamp(*x, (*least, *most), result),
            Op::Slopes(x, slope) => self.slopes(*x, *slope, result),
            Op::Norm { x, weight, bias, mean, variance, epsilon } => {
                let constants = [(*weight, 1.0), (*bias, 0.0), (Some(*mean), 0.0), (Some(*variance), 1.0)];
                self.norm(*x, &constants, *epsilon, result)
            }
            Op::Softmax { x, dim } => self.softmax(*x, *dim, result),
            Op::Cat { items, dim } => self.cat(items, *dim, result),
            Op::Slice { x, dim, parts } => self.slice(*x, *dim, parts, results),
            Op::Permute { x, dims } => self.permute(*x, dims, result),
            Op::Reshape(x) => self.reshape(*x, result),
            Op::Select { x, dim, index } => self.select(*x, *dim, *index, result),
            Op::Pad { x, before, after, value } => self.pad(*x, before, after, *value, result),
            Op::Resize { x, align_corners } => self.resize(*x, *align_corners, result),
            Op::Same(x) => self.alias(result, *x, <[usize]>::to_vec),
            Op::Quantize(x, _) => self.convert(*x, result),
            Op::Dequantize(bytes, _) => {
                self.from_bytes.insert(result, *bytes);
                Ok(())
            }
            Op::Inside => Ok(()),
        }
    }
}
