//! Follows emission: which node and which lines of source each instruction comes from.

use super::emit::Emitter;
use super::origin::{Origin, Place, frames, handle};
use crate::graph::{Node, Target};

impl Emitter<'_, '_, '_, '_> {
    /// Begins the emission of a node: what is emitted from here on comes from it.
    pub(super) fn enter(&mut self, node: &Node) {
        self.note();
        let parts = self.parts(node);
        let mut debug_handles: Vec<u32> = parts.iter().filter_map(|part| handle(part)).collect();
        debug_handles.sort_unstable();
        debug_handles.dedup();
        let from = debug_handles.iter().filter_map(|handle| self.names.get(handle)).cloned().collect();
        let frames = match self.options.stack_traces {
            true => parts.iter().map(|part| frames(part)).find(|frames| !frames.is_empty()).unwrap_or_default(),
            false => Vec::new(),
        };
        let origin = Origin { node: Some(node.name.clone()), from, debug_handles, ..Origin::default() };
        self.go_on(Place { origin, frames });
    }

    /// Goes on at a place: after the nodes of a graph at that of the node around it.
    pub(super) fn go_on(&mut self, place: Place) {
        self.note();
        if self.options.stack_traces {
            self.method.stack_trace(place.frames.iter().cloned());
        }
        self.place = place;
    }

    /// Notes that what was emitted since the last time comes from the node at hand.
    fn note(&mut self) {
        for index in self.origins.len()..self.method.instruction_count() {
            self.origins.push(Origin { index, ..self.place.origin.clone() });
        }
    }

    /// Returns the nodes that a node represents: itself, or those of the part that a backend runs.
    fn parts<'n>(&'n self, node: &'n Node) -> Vec<&'n Node> {
        match node.target {
            Target::Delegate(index) => {
                let program = self.modules.get(index).and_then(|module| module.program.as_ref());
                program.map_or(vec![node], |program| program.graph.nodes.iter().collect())
            }
            _ => vec![node],
        }
    }

    /// Returns the origins of all instructions.
    pub(super) fn origins(mut self) -> Vec<Origin> {
        self.note();
        let operators = self.method.instructions();
        let named = self.origins.into_iter().zip(operators);
        named.map(|(origin, operator)| Origin { operator, ..origin }).collect()
    }
}
