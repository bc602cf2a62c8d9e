//! An activation that clamps, right behind a convolution, is done while the results are in the cache.

use edgepack_executor::graph::{Graph, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Value, ValueId};
use edgepack_format::scalar::ScalarType;

use super::chain::{Call, arg, for_each_pair, is, is_private, merge, tensor};
use crate::conv;

/// Merges convolutions with `relu`, `hardtanh` and `clamp`.
pub struct FuseClamp;

/// Where an activation has its limits: arguments, or none and a least result of 0.
struct Limits {
    name: &'static str,
    arguments: Option<[usize; 2]>,
    out: usize,
}

const ACTIVATIONS: &[Limits] = &[
    Limits { name: "aten::relu.out", arguments: None, out: 1 },
    Limits { name: "aten::hardtanh.out", arguments: Some([1, 2]), out: 3 },
    Limits { name: "aten::clamp.out", arguments: Some([1, 2]), out: 3 },
];

impl Rewrite for FuseClamp {
    fn name(&self) -> &'static str {
        "fuse clamp"
    }

    fn apply(&self, graph: &mut Graph<'_>) -> usize {
        let Some(uses) = Uses::of(graph) else { return 0 };
        let mut fused = None;
        for_each_pair(graph, |graph, first, second| rule(graph, &uses, &mut fused, first, second))
    }
}

fn rule(graph: &mut Graph<'_>, uses: &Uses, fused: &mut Option<u32>, first: Call, second: Call) -> Option<()> {
    if !is(graph, first.operator, &conv::CONVOLUTION) {
        return None;
    }
    let name = &*graph.operators[second.operator as usize].name;
    let limits = ACTIVATIONS.iter().find(|activation| activation.name == name)?;
    let (image, out) = (arg(graph, first, 9)?, arg(graph, second, limits.out)?);
    if arg(graph, second, 0)? != image || !is_private(graph, uses, image) {
        return None;
    }
    let (before, after) = (tensor(graph, image)?, tensor(graph, out)?);
    let states = [before, after].map(|tensor| &graph.state.tensors[tensor as usize]);
    let alike = states.iter().all(|state| state.dtype == ScalarType::FLOAT)
        && graph.state.dim_order(states[0]) == graph.state.dim_order(states[1])
        && graph.state.bounds(states[0]) == graph.state.bounds(states[1]);
    if !alike {
        return None;
    }
    let [least, greatest] = match limits.arguments {
        None => [graph.push_value(Value::Double(0.0)), graph.push_value(Value::Null)],
        Some([least, greatest]) => [limit(graph, second, least)?, limit(graph, second, greatest)?],
    };
    let operator = match *fused {
        Some(operator) => operator,
        None => *fused.insert(graph.push_operator(&conv::CLAMPED).ok()?),
    };
    let ids = &graph.args[first.args.range()];
    let mut args = ids[..9].to_vec();
    args.extend([least, greatest]);
    args.extend(ids[9..].iter().map(|_| out));
    merge(graph, first, second, operator, args);
    Some(())
}

/// A limit that is a number, or none, and never changes.
fn limit(graph: &Graph<'_>, call: Call, at: usize) -> Option<ValueId> {
    let id = arg(graph, call, at)?;
    let known = match graph.state.values[id as usize] {
        Value::Double(limit) => !limit.is_nan(),
        Value::Int(_) | Value::Null => true,
        _ => false,
    };
    (known && !graph.variable[id as usize]).then_some(id)
}
