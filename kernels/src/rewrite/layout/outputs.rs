//! Outputs that would keep a group of images in their order become copies.
//!
//! Callers see outputs in the order of the program. Where the last sum of residual blocks is an output, all blocks share its order,
//! and each convolution of theirs turns what it reads and what it writes. One copy at the end is less.

use edgepack_executor::plan::PlanGraph;
use edgepack_executor::state::Value;

use super::Groups;
use crate::aten::movement::copy::REORDERED;

/// Makes outputs copies where a group that only they keep in its order is turned more often than they are many. Returns how many
/// became copies.
pub(super) fn copy(graph: &mut PlanGraph<'_>, groups: &mut Groups) -> usize {
    let mut outputs: Vec<(u32, u32)> = Vec::new();
    for &id in graph.outputs() {
        if let Value::Tensor(tensor) = graph.value(id) {
            let root = groups.root(tensor);
            if groups.fixed[root as usize] && !groups.held[root as usize] {
                outputs.push((root, tensor));
            }
        }
    }
    outputs.sort_unstable();
    outputs.dedup();
    if outputs.is_empty() {
        return 0;
    }
    let permuted = groups.permuted(graph);
    let mut turned = Vec::new();
    for group in outputs.chunk_by(|a, b| a.0 == b.0) {
        let root = group[0].0;
        let permutations = permuted.binary_search_by_key(&root, |(of, _)| *of).ok();
        let spared = permutations.map_or(0, |at| groups.spares(graph, root, &permuted[at].1));
        let becomes_innermost = groups.pays[root as usize] || spared > 0;
        if becomes_innermost && groups.convolved[root as usize] + spared > group.len() {
            turned.extend(group.iter().map(|(_, tensor)| *tensor));
        }
    }
    if turned.is_empty() {
        return 0;
    }
    let Ok(operator) = graph.push_operator(&REORDERED) else { return 0 };
    graph.copy_outputs(&turned, operator)
}
