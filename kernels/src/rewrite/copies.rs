//! Instructions that copy the elements of a tensor in index order.

use edgepack_executor::plan::{PlanGraph, PlanTensor};
use edgepack_executor::state::{Value, ValueId};

use super::chain::tensor;
use crate::schema::position;

/// Sizes of the output of a copy.
#[derive(Clone, Copy, PartialEq)]
enum Sizes {
    /// Those of the input.
    Same,
    /// Those of the input, with dimensions of 1 more or less.
    Ones,
    /// Those of the list at this position.
    Listed(usize),
}

/// Copies: the first argument is the input of each, and the output is at this position. `aten::expand_copy` is one where it
/// repeats nothing, and the conversions are where types are equal.
const COPIES: &[(&str, usize, Sizes)] = &[
    (
        "aten::view_copy.out",
        position("aten::view_copy.out", "out"),
        Sizes::Listed(position("aten::view_copy.out", "size")),
    ),
    ("aten::unsqueeze_copy.out", position("aten::unsqueeze_copy.out", "out"), Sizes::Ones),
    ("aten::squeeze_copy.dim_out", position("aten::squeeze_copy.dim_out", "out"), Sizes::Ones),
    ("aten::squeeze_copy.dims_out", position("aten::squeeze_copy.dims_out", "out"), Sizes::Ones),
    ("aten::expand_copy.out", position("aten::expand_copy.out", "out"), Sizes::Ones),
    ("aten::clone.out", position("aten::clone.out", "out"), Sizes::Same),
    ("aten::alias_copy.out", position("aten::alias_copy.out", "out"), Sizes::Same),
    ("aten::detach_copy.out", position("aten::detach_copy.out", "out"), Sizes::Same),
    ("aten::lift_fresh_copy.out", position("aten::lift_fresh_copy.out", "out"), Sizes::Same),
    ("aten::_to_copy.out", position("aten::_to_copy.out", "out"), Sizes::Same),
    ("dim_order_ops::_clone_dim_order.out", position("dim_order_ops::_clone_dim_order.out", "out"), Sizes::Same),
    ("dim_order_ops::_to_dim_order_copy.out", position("dim_order_ops::_to_dim_order_copy.out", "out"), Sizes::Same),
];

/// The input and the output of a call of an operator of this name; `None` if it does more than copy elements in index order,
/// or would refuse the sizes of the output.
pub fn copied(graph: &PlanGraph<'_>, name: &str, args: &[ValueId]) -> Option<[ValueId; 2]> {
    copy(graph, name, args).map(|(tensors, _)| tensors)
}

/// The input and the output of a call that copies elements to other sizes.
pub fn viewed(graph: &PlanGraph<'_>, name: &str, args: &[ValueId]) -> Option<[ValueId; 2]> {
    copy(graph, name, args).filter(|&(_, sizes)| sizes != Sizes::Same).map(|(tensors, _)| tensors)
}

fn copy(graph: &PlanGraph<'_>, name: &str, args: &[ValueId]) -> Option<([ValueId; 2], Sizes)> {
    let &(_, out, sizes) = COPIES.iter().find(|(copy, ..)| *copy == name)?;
    let (from, to) = (*args.first()?, *args.get(out)?);
    let (input, output) = (graph.tensor(tensor(graph, from)?), graph.tensor(tensor(graph, to)?));
    let count = |tensor: &PlanTensor<'_>| tensor.bounds().iter().try_fold(1usize, |all, &size| all.checked_mul(size));
    let fits = match sizes {
        Sizes::Same => input.bounds() == output.bounds(),
        Sizes::Ones => larger(&input).eq(larger(&output)),
        Sizes::Listed(at) => count(&input)? == count(&output)? && lists(graph, *args.get(at)?, output.bounds()),
    };
    (fits && input.dtype() == output.dtype()).then_some(([from, to], sizes))
}

/// Sizes above 1, and those of nothing.
fn larger<'g>(tensor: &PlanTensor<'g>) -> impl Iterator<Item = usize> + use<'g> {
    tensor.bounds().iter().copied().filter(|&size| size != 1)
}

/// Returns whether a list has these sizes, or -1 for one that follows from the others.
fn lists(graph: &PlanGraph<'_>, list: ValueId, sizes: &[usize]) -> bool {
    let Value::IntList(items) = graph.value(list) else { return false };
    let items = graph.items(items);
    let given = |id: ValueId| match graph.value(id) {
        Value::Int(size) if !graph.is_variable(id) => Some(size),
        _ => None,
    };
    let inferred = items.iter().filter(|&&id| given(id) == Some(-1)).count();
    let fits = |(&id, &size): (&ValueId, &usize)| given(id).is_some_and(|given| given == -1 || given == size as i64);
    items.len() == sizes.len() && inferred <= 1 && items.iter().zip(sizes).all(fits)
}
