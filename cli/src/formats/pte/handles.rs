//! Debug handles of what delegates are made of: numbers that lead to the nodes of the exported program.

use std::collections::HashMap;

use edgepack_format::pte::{BackendDelegate, DataLocation, ExecutionPlan};
use edgepack_format::row::Table as _;
use edgepack_format::wire;
use edgepack_format::xnnpack::{Graph, Header};
use edgepack_loader::Program;

use crate::readable;

/// Backend whose payloads have handles.
const XNNPACK: &str = "XnnpackBackend";

/// Returns the handle of every node of the method's delegates that has one, by index of the delegate and of the node.
pub fn node_handles(program: &Program, plan: &ExecutionPlan<'_>) -> HashMap<(usize, u32), u64> {
    let mut handles = HashMap::new();
    for (index, delegate) in readable::rows(&plan.delegates).iter().enumerate() {
        let Some(delegate) = delegate.as_ref().filter(|delegate| delegate.id.as_deref() == Some(XNNPACK)) else {
            continue;
        };
        let found = of_delegate(program, delegate).unwrap_or_default();
        handles
            .extend((0..).zip(found).filter(|(_, handle)| *handle > 0).map(|(node, handle)| ((index, node), handle)));
    }
    handles
}

/// The handles of a delegate's nodes in order, 0 for none; `None` if its payload is not there. Loading refuses what is broken.
fn of_delegate(program: &Program, delegate: &BackendDelegate<'_>) -> Option<Vec<u64>> {
    let processed = delegate.processed?;
    match processed.location {
        DataLocation::SEGMENT => of_payload(&program.segment(processed.index).ok()?),
        DataLocation::INLINE => {
            let view = program.view().ok()?;
            let list = view.program().backend_delegate_data.clone()?;
            of_payload(list.get(processed.index as usize).ok()?.data.as_ref()?.as_slice())
        }
        _ => None,
    }
}

fn of_payload(payload: &[u8]) -> Option<Vec<u64>> {
    let header = Header::read(payload).ok()?;
    let start = usize::try_from(header.map_or(0, |header| header.flatbuffer_offset)).ok()?;
    let graph = Graph::decode(wire::Table::root(payload.get(start..)?).ok()?).ok()?;
    let handle =
        |node: &Option<edgepack_format::xnnpack::Node<'_>>| node.as_ref().map_or(0, |node| node.debug_handle.into());
    Some(readable::rows(&graph.xnodes).iter().map(handle).collect())
}
