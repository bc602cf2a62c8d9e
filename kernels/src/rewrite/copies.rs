//! Instructions that copy the elements of a tensor in index order.

use edgepack_executor::plan::PlanGraph;
use edgepack_executor::state::ValueId;

use super::chain::tensor;
use crate::schema::position;

/// Operators that copy elements in index order, if they copy each once and types are equal. The first argument is the input
/// of each.
const COPIES: &[(&str, usize)] = &[
    ("aten::view_copy.out", position("aten::view_copy.out", "out")),
    ("aten::unsqueeze_copy.out", position("aten::unsqueeze_copy.out", "out")),
    ("aten::squeeze_copy.dim_out", position("aten::squeeze_copy.dim_out", "out")),
    ("aten::squeeze_copy.dims_out", position("aten::squeeze_copy.dims_out", "out")),
    ("aten::expand_copy.out", position("aten::expand_copy.out", "out")),
    ("aten::clone.out", position("aten::clone.out", "out")),
    ("aten::alias_copy.out", position("aten::alias_copy.out", "out")),
    ("aten::detach_copy.out", position("aten::detach_copy.out", "out")),
    ("aten::lift_fresh_copy.out", position("aten::lift_fresh_copy.out", "out")),
    ("aten::_to_copy.out", position("aten::_to_copy.out", "out")),
    ("dim_order_ops::_clone_dim_order.out", position("dim_order_ops::_clone_dim_order.out", "out")),
    ("dim_order_ops::_to_dim_order_copy.out", position("dim_order_ops::_to_dim_order_copy.out", "out")),
];

/// The input and the output of a call of an operator of this name; `None` if it does more than copy elements in index order.
pub fn copied(graph: &PlanGraph<'_>, name: &str, args: &[ValueId]) -> Option<[ValueId; 2]> {
    let &(_, out) = COPIES.iter().find(|(copy, _)| *copy == name)?;
    let (from, to) = (*args.first()?, *args.get(out)?);
    let (input, output) = (graph.tensor(tensor(graph, from)?), graph.tensor(tensor(graph, to)?));
    let count = |sizes: &[usize]| sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    let all = count(input.bounds())? == count(output.bounds())?;
    (all && input.dtype() == output.dtype()).then_some([from, to])
}
