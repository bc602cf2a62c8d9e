//! A rewrite, which is safe code, cannot give a tensor memory of its choice or take memory away.

use edgepack_executor::plan::{PlanGraph, Rewrite};

struct Forger;

impl Rewrite for Forger {
    fn name(&self) -> &'static str {
        "forger"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let bytes = vec![0u8; 64];
        let region = edgepack_executor::api::storage::Region::read_only(&bytes);
        graph.state.tensors[0].region = region;
        graph.memory.private.clear();
        graph.memory.arenas.clear();
        graph.chains[0].clear();
        graph.args.clear();
        1
    }
}

fn main() {}
