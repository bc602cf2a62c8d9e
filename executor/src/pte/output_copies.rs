//! Places to which outputs in a shared memory are copied when a run ends.

use crate::api::room::{grow, no_room};
use crate::api::state::Value;
use crate::api::storage::{BLOCK_ALIGN, Region};
use crate::pte::error::LoadError;
use crate::pte::plan_graph::PlanGraph;

/// The copies, in messages.
const WHAT: &str = "outputs in shared memory";

/// By output: the place of its copy, if it is in a shared memory. Empty if none is.
pub(crate) fn copies(graph: &mut PlanGraph<'_>) -> Result<Vec<Option<Region>>, LoadError> {
    if graph.memory.arenas.shared().next().is_none() {
        return Ok(Vec::new());
    }
    let mut total = 0usize;
    let mut places = Vec::new();
    grow(&mut places, graph.outputs.len())?;
    for &value in &graph.outputs {
        let len = match graph.state.values[value as usize] {
            Value::Tensor(tensor) => {
                let region = graph.state.tensors[tensor as usize].region;
                graph.memory.arenas.shared_at(&region).map(|_| region.len())
            }
            _ => None,
        };
        places.push(len.map(|len| (total, len)));
        let next = total.checked_add(len.unwrap_or(0)).and_then(|end| end.checked_next_multiple_of(BLOCK_ALIGN));
        total = next.ok_or_else(|| no_room(WHAT, u64::MAX))?;
    }
    let block = graph.account.block(WHAT, total)?;
    let mut copies = Vec::new();
    grow(&mut copies, places.len())?;
    copies.extend(places.into_iter().map(|place| place.and_then(|(offset, len)| block.region(offset, len))));
    graph.own(block);
    Ok(copies)
}
