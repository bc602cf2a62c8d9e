//! `x * min(max(x + 3, 0), 6) / 6` as exported: a sum, one or two clamps, a product and a division, each a pass.

use std::sync::Arc;

use edgepack_compute::epilogue::{Epilogue, Operation};
use edgepack_executor::plan::{self, PlanGraph, PlanInstructionKind};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Value, ValueId};
use edgepack_format::scalar::ScalarType;

use super::super::chain::{Call, arg, is_private, own_names};
use super::{Operators, alike, dtype, overlap};
use crate::fused::POINTWISE;
use crate::schema::position;

const ALPHA: usize = position("aten::add.out", "alpha");
const SUM: usize = position("aten::add.out", "out");
const PRODUCT: usize = position("aten::mul.out", "out");
const QUOTIENT: usize = position("aten::div.out", "out");

/// Instructions of a hard swish, at most: a sum, two clamps, a product and a division.
const LONGEST: usize = 5;

/// Replaces such instructions by one operation. Returns how many it found.
pub(super) fn replace(graph: &mut PlanGraph<'_>, uses: &Uses, operators: &mut Operators) -> usize {
    let Some(names) = own_names(graph) else { return 0 };
    let mut changed = 0;
    for chain in 0..graph.chains().len() {
        // The last few instructions that compute something.
        let mut calls: Vec<Call> = Vec::with_capacity(LONGEST);
        for index in 0..graph.chains()[chain].len() {
            match graph.chains()[chain][index].kind {
                PlanInstructionKind::Nop => continue,
                PlanInstructionKind::Kernel { operator, args } => {
                    if calls.len() == LONGEST {
                        calls.remove(0);
                    }
                    calls.push(Call { chain, index, operator, args });
                }
                _ => calls.clear(),
            }
            for length in [LONGEST - 1, LONGEST] {
                let Some(found) = calls.len().checked_sub(length).and_then(|first| calls.get(first..)) else {
                    continue;
                };
                if merge(graph, uses, operators, &names, found).is_some() {
                    calls.clear();
                    changed += 1;
                    break;
                }
            }
        }
    }
    changed
}

/// Merges instructions that are all of a hard swish and nothing else.
fn merge(
    graph: &mut PlanGraph<'_>,
    uses: &Uses,
    operators: &mut Operators,
    names: &[Option<&str>],
    calls: &[Call],
) -> Option<()> {
    let [sum, clamps @ .., product, quotient] = calls else { return None };
    let (sum, product, quotient) = (*sum, *product, *quotient);
    let name = |call: Call| names.get(call.operator as usize).copied().flatten();
    if [sum, product, quotient].map(name) != [Some("aten::add.out"), Some("aten::mul.out"), Some("aten::div.out")] {
        return None;
    }
    let x = arg(graph, sum, 0)?;
    let alpha = matches!(graph.value(arg(graph, sum, ALPHA)?), Value::Int(1));
    if !alpha || number(graph, arg(graph, sum, 1)?)? != 3.0 || number(graph, arg(graph, quotient, 1)?)? != 6.0 {
        return None;
    }
    let mut last = arg(graph, sum, SUM)?;
    let (mut least, mut greatest) = (f32::NEG_INFINITY, f32::INFINITY);
    for &clamp in clamps {
        let next = operators.operations(graph, clamp)?;
        if next.input != last || !is_private(graph, uses, last) {
            return None;
        }
        let known =
            |operation| Epilogue::new(ScalarType::FLOAT, &[operation]).is_ok_and(|known| known == *next.epilogue);
        if known(Operation::Clamp { least: 0.0, greatest: 6.0 }) {
            (least, greatest) = (0.0, 6.0);
        } else if known(Operation::Clamp { least: 0.0, greatest: f32::INFINITY }) {
            least = 0.0;
        } else if known(Operation::Clamp { least: f32::NEG_INFINITY, greatest: 6.0 }) {
            greatest = 6.0;
        } else {
            return None;
        }
        last = next.out;
    }
    let factors = [arg(graph, product, 0)?, arg(graph, product, 1)?];
    let (times, out) = (arg(graph, product, PRODUCT)?, arg(graph, quotient, QUOTIENT)?);
    let whole = (least, greatest) == (0.0, 6.0)
        && (factors == [x, last] || factors == [last, x])
        && arg(graph, quotient, 0)? == times
        && is_private(graph, uses, last)
        && is_private(graph, uses, times)
        && [x, last, times, out].iter().all(|&id| dtype(graph, id) == Some(ScalarType::FLOAT));
    if !whole || overlap(graph, x, out)? {
        return None;
    }
    alike(graph, [x, last, times, out])?;
    let epilogue = Epilogue::new(ScalarType::FLOAT, &[Operation::HardSwish]).ok()?;
    let operator = operators.fused(graph, &POINTWISE, Arc::new(epilogue))?;
    let args = [x, out, out];
    graph.replace(quotient.chain, quotient.index, plan::Call::Kernel { operator, args: &args }).ok()?;
    for call in calls.iter().take(calls.len() - 1) {
        graph.replace(call.chain, call.index, plan::Call::Nothing).ok()?;
    }
    Some(())
}

/// A constant of one element.
fn number(graph: &PlanGraph<'_>, id: ValueId) -> Option<f32> {
    match *graph.constant(id)?.as_slice::<f32>().ok()? {
        [number] => Some(number),
        _ => None,
    }
}
