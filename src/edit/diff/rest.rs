//! Rows without what refers to other rows, and what jumps refer to.

use edgepack_format::pte::{Chain, EValue, ExecutionPlan, KernelTypes};
use edgepack_format::row::{Rows, Scalars};

use super::align::{Pair, gaps};

/// Positions that jumps go to, by the matching instruction at or behind them.
pub(super) struct Targets {
    left: Vec<usize>,
    right: Vec<usize>,
}

impl Targets {
    pub(super) fn new(pairs: &[Pair], (left, right): (usize, usize)) -> Self {
        let mut targets = Targets { left: Vec::with_capacity(left + 1), right: Vec::with_capacity(right + 1) };
        for (number, (ours, theirs)) in gaps(pairs, left, right).into_iter().enumerate() {
            targets.left.resize(ours.end + 1, number);
            targets.right.resize(theirs.end + 1, number);
        }
        targets
    }

    pub(super) fn same(&self, ours: i32, theirs: i32) -> bool {
        let target = |list: &[usize], to: i32| usize::try_from(to).ok().and_then(|to| list.get(to).copied());
        match (target(&self.left, ours), target(&self.right, theirs)) {
            (None, None) => ours == theirs,
            (ours, theirs) => ours == theirs,
        }
    }
}

/// A list that is or is not there, without its rows.
fn none_of<'a, T>(rows: &Option<Rows<'a, T>>) -> Option<Rows<'a, T>> {
    rows.as_ref().map(|_| Rows::default())
}

fn no_items<'a, T>(list: &Option<Scalars<'a, T>>) -> Option<Scalars<'a, T>>
where
    Scalars<'a, T>: From<Vec<T>>,
{
    list.as_ref().map(|_| Vec::new().into())
}

/// Rows of a method that refer to nothing, and which of the others are there.
pub(super) fn rest<'a>(plan: &ExecutionPlan<'a>) -> ExecutionPlan<'a> {
    ExecutionPlan {
        values: None,
        chains: None,
        inputs: no_items(&plan.inputs),
        outputs: no_items(&plan.outputs),
        operators: none_of(&plan.operators),
        delegates: none_of(&plan.delegates),
        ..plan.clone()
    }
}

pub(super) fn chain_rest<'a>(chain: &Chain<'a>) -> Chain<'a> {
    Chain {
        inputs: no_items(&chain.inputs),
        outputs: no_items(&chain.outputs),
        instructions: none_of(&chain.instructions),
        stacktrace: none_of(&chain.stacktrace),
    }
}

/// Takes the values out of a list of values.
pub(super) fn emptied(value: &mut EValue<'_>) {
    match &mut value.val {
        Some(KernelTypes::IntList(list)) => list.items = no_items(&list.items),
        Some(KernelTypes::TensorList(list)) => list.items = no_items(&list.items),
        Some(KernelTypes::OptionalTensorList(list)) => list.items = no_items(&list.items),
        _ => {}
    }
}
