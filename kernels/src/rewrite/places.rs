//! Max pooling computes the places of the greatest elements only where an instruction reads them: exported programs
//! carry them along, and hardly any program reads them.

use edgepack_executor::plan::{Call, PlanGraph, PlanInstructionKind, Rewrite};
use edgepack_executor::rewrite::Uses;

use super::chain::{is, tensor};
use crate::aten::pool::{MAX_2D, MAX_2D_ALONE, MAX_2D_INDICES, MAX_2D_OUT};

/// Removes the places that no instruction reads.
pub struct DropPlaces;

impl Rewrite for DropPlaces {
    fn name(&self) -> &'static str {
        "drop places"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(uses) = Uses::of(graph) else { return 0 };
        let (mut alone, mut changed) = (None, 0);
        for chain in 0..graph.chains().len() {
            for index in 0..graph.chains()[chain].len() {
                let PlanInstructionKind::Kernel { operator, args } = graph.chains()[chain][index].kind else {
                    continue;
                };
                if !is(graph, operator, &MAX_2D) {
                    continue;
                }
                let ids = graph.args(args);
                let places = ids.get(MAX_2D_INDICES).and_then(|&id| tensor(graph, id));
                let unread = |tensor| {
                    let how = uses.of_tensor(tensor);
                    (how.writes, how.reads, how.pinned, how.view_of) == (1, 0, false, None)
                };
                let Some(true) = places.map(unread) else { continue };
                let mut args = ids[..=MAX_2D_OUT].to_vec();
                args.push(ids[MAX_2D_OUT]);
                if alone.is_none() {
                    alone = graph.push_operator(&MAX_2D_ALONE).ok();
                }
                let Some(operator) = alone else { return changed };
                changed += usize::from(graph.replace(chain, index, Call::Kernel { operator, args: &args }).is_ok());
            }
        }
        changed
    }
}
