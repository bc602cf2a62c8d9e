//! Walks of a graph for rules about neighbours.

use std::collections::HashMap;
use std::sync::LazyLock;

use edgepack_executor::kernel::{Kernel, room};
use edgepack_executor::plan::{self, PlanGraph, PlanInstructionKind};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Span, Value, ValueId};

use crate::FAMILIES;
use crate::aten::movement::shuffle::Shuffle;
use crate::aten::{conv, matmul};
use crate::dims::dim_of;
use crate::prelu::PRELU;

/// Returns at most `count` items in a list; `None` if there is no memory for it: a rule that cannot look leaves the
/// graph alone.
pub fn collected<T>(count: usize, items: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let mut list = room(count).ok()?;
    list.extend(items.take(count));
    Some(list)
}

/// A call of one of the library's kernels.
#[derive(Clone, Copy)]
pub struct Call {
    pub chain: usize,
    pub index: usize,
    pub operator: u32,
    pub args: Span,
}

/// Returns whether an operator of the graph is this kernel itself, not another one of its name.
pub fn is(graph: &PlanGraph<'_>, operator: u32, kernel: &'static Kernel) -> bool {
    std::ptr::addr_eq(&raw const *graph.operators()[operator as usize].kernel, kernel as *const Kernel)
}

/// The shuffle of channels that an operator of the graph is.
pub fn shuffle_of<'g>(graph: &'g PlanGraph<'_>, operator: u32) -> Option<&'g Shuffle> {
    graph.operators()[operator as usize].kernel.as_any()?.downcast_ref()
}

/// Returns the name of every operator of the graph that is a kernel of this library; `None` for one that is another
/// kernel.
pub fn own_names(graph: &PlanGraph<'_>) -> Option<Vec<Option<&'static str>>> {
    let own = |operator: u32| {
        let operator = &graph.operators()[operator as usize];
        let name = OWN.get(&(&raw const *operator.kernel).addr())?;
        (**name == *operator.name).then_some(*name)
    };
    collected(graph.operators().len(), (0..).map(own))
}

/// Names of the kernels of this library by where they are. Those in the list of families are the ones that registries hold:
/// tables are constants, which may be anywhere.
static OWN: LazyLock<HashMap<usize, &'static str>> = LazyLock::new(|| {
    let registered = FAMILIES.iter().flat_map(|family| family.tables).copied().flatten().copied();
    registered
        .chain([&conv::SCALED, &matmul::REPEATED, &PRELU])
        .map(|kernel| ((&raw const *kernel).addr(), kernel.name))
        .collect()
});

/// Every call with the call right behind it, nothing between them. Rules that change both see what they left.
pub fn for_each_pair(
    graph: &mut PlanGraph<'_>,
    mut rule: impl FnMut(&mut PlanGraph<'_>, Call, Call) -> Option<()>,
) -> usize {
    let mut changed = 0;
    for chain in 0..graph.chains().len() {
        let mut before: Option<Call> = None;
        for index in 0..graph.chains()[chain].len() {
            let call = match graph.chains()[chain][index].kind {
                PlanInstructionKind::Nop => continue,
                PlanInstructionKind::Kernel { operator, args } => Call { chain, index, operator, args },
                _ => {
                    before = None;
                    continue;
                }
            };
            if let Some(first) = before
                && rule(graph, first, call).is_some()
            {
                changed += 1;
            }
            before = match graph.chains()[chain][index].kind {
                PlanInstructionKind::Kernel { operator, args } => Some(Call { operator, args, ..call }),
                _ => None,
            };
        }
    }
    changed
}

/// The argument of a call.
pub fn arg(graph: &PlanGraph<'_>, call: Call, at: usize) -> Option<ValueId> {
    graph.args(call.args).get(at).copied()
}

/// The dimension of a tensor of so many that a value names, whatever runs.
pub fn dim(graph: &PlanGraph<'_>, id: ValueId, rank: usize) -> Option<usize> {
    match graph.value(id) {
        Value::Int(dim) if !graph.is_variable(id) => dim_of("dim", dim, "self", rank).ok().filter(|&dim| dim < rank),
        _ => None,
    }
}

/// The tensor index of a value.
pub fn tensor(graph: &PlanGraph<'_>, id: ValueId) -> Option<u32> {
    match graph.value(id) {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    }
}

/// Returns whether two tensors share bytes.
pub fn overlap(graph: &PlanGraph<'_>, a: ValueId, b: ValueId) -> Option<bool> {
    Some(graph.tensor(tensor(graph, a)?).overlaps(&graph.tensor(tensor(graph, b)?)))
}

/// Returns whether the value is a tensor that one instruction writes, one reads, and nothing else uses.
pub fn is_private(graph: &PlanGraph<'_>, uses: &Uses, id: ValueId) -> bool {
    tensor(graph, id).is_some_and(|tensor| {
        let how = uses.of_tensor(tensor);
        (how.writes, how.reads, how.pinned, how.view_of) == (1, 1, false, None)
    })
}

/// Replaces two neighbours by one call at the place of the second: where its inputs are still what the first read.
/// `None`, and nothing changed, if the operator does not take them.
pub fn merge(graph: &mut PlanGraph<'_>, first: Call, second: Call, operator: u32, args: &[ValueId]) -> Option<()> {
    graph.replace(second.chain, second.index, plan::Call::Kernel { operator, args }).ok()?;
    graph.replace(first.chain, first.index, plan::Call::Nothing).ok()
}
