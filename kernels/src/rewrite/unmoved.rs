//! Permutations and other copies that move nothing are left out: their results show the bytes of their inputs.
//!
//! Where images have found their order, a permutation between one that has its channels innermost and one that calls the
//! innermost dimension by another name copies all bytes as they are.

use edgepack_executor::plan::{Call, PlanGraph, PlanInstructionKind, PlanTensor, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Dynamism, ValueId};

use super::chain::{own_names, tensor};
use super::copies;
use super::permutation::Permutation;

/// Leaves out permutations and other copies that move nothing, where neither the input nor the output is written again.
pub struct DropCopies;

impl Rewrite for DropCopies {
    fn name(&self) -> &'static str {
        "drop copies"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(uses) = Uses::of(graph) else { return 0 };
        let (Some(names), Some(views)) = (own_names(graph), uses.views_by_base()) else { return 0 };
        let mut dropped = 0;
        for chain in 0..graph.chains().len() {
            for index in 0..graph.chains()[chain].len() {
                let PlanInstructionKind::Kernel { operator, args } = graph.chains()[chain][index].kind else {
                    continue;
                };
                let Some(name) = names.get(operator as usize).copied().flatten() else { continue };
                let found = unmoved(graph, name, graph.args(args));
                let Some((from, to)) = found.and_then(|[from, to]| steady(graph, &uses, from, to)) else { continue };
                if graph.show_temporary(&views, to, from) && graph.replace(chain, index, Call::Nothing).is_ok() {
                    dropped += 1;
                }
            }
        }
        dropped
    }
}

/// The input and the output of a call that copies all elements in the order in which they are in memory.
fn unmoved(graph: &PlanGraph<'_>, name: &str, args: &[ValueId]) -> Option<[u32; 2]> {
    let tensors = |from: ValueId, to: ValueId| Some([tensor(graph, from)?, tensor(graph, to)?]);
    if let Some(permutation) = Permutation::of(graph, name, args) {
        return tensors(permutation.from, permutation.to).filter(|_| permutation.is_copy(graph));
    }
    let [from, to] = copies::copied(graph, name, args)?;
    let [from, to] = tensors(from, to)?;
    let (input, output) = (graph.tensor(from), graph.tensor(to));
    let in_index_order = |tensor: &PlanTensor<'_>| tensor.dim_order().is_sorted();
    let stays = in_index_order(&input) && in_index_order(&output)
        || without_ones(&input) == without_ones(&output)
        || same_pixels(&input, &output);
    stays.then_some([from, to])
}

/// Returns whether both have their channels innermost, and the same pixels, in lines or in one.
fn same_pixels(a: &PlanTensor<'_>, b: &PlanTensor<'_>) -> bool {
    let innermost = |tensor: &PlanTensor<'_>| match tensor.dim_order() {
        [0, pixels @ .., 1] => !pixels.is_empty() && pixels.is_sorted(),
        _ => false,
    };
    innermost(a) && innermost(b) && a.bounds()[..2] == b.bounds()[..2]
}

/// Sizes of a tensor, and their places in memory, without those of 1.
fn without_ones(tensor: &PlanTensor<'_>) -> (Vec<usize>, Vec<usize>) {
    let sizes = tensor.bounds();
    let larger = |dim: usize| sizes[..dim].iter().filter(|&&size| size != 1).count();
    let stored = tensor.dim_order().iter().map(|&dim| usize::from(dim)).filter(|&dim| sizes[dim] != 1);
    (sizes.iter().copied().filter(|&size| size != 1).collect(), stored.map(larger).collect())
}

/// Returns a tensor and a copy of it, if each has the bytes that it is first given for as long as anything reads them.
fn steady(graph: &PlanGraph<'_>, uses: &Uses, from: u32, to: u32) -> Option<(u32, u32)> {
    let once = |tensor: u32| {
        let how = uses.of_tensor(tensor);
        (how.writes, how.pinned, how.view_of) == (1, false, None)
    };
    let is_static = |tensor: u32| graph.tensor(tensor).dynamism() == Dynamism::Static;
    let owner = uses.of_tensor(from).view_of.unwrap_or(from);
    (once(owner) && once(to) && is_static(from) && is_static(to)).then_some((from, to))
}
