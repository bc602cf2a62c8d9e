//! Readers and writers of each tensor.
//!
//! Values share memory in two ways: planned memory is used again when a value is dead, and a view without an instruction
//! is a second value at the place of the first. What tells them apart is whose bytes a read finds there, so the
//! instructions are followed once with a map of memory that knows the last writer of every byte.

use std::any::Any;
use std::ops::Range;
use std::rc::Rc;

use crate::api::room::{filled, grow};
use crate::api::state::ValueId;
use crate::api::storage::Region;
use crate::pte::plan_graph::{PlanGraph, PlanInstructionKind};

use super::content::Content;

/// Uses of all tensors in a method without jumps.
pub struct Uses {
    by_tensor: Vec<Use>,
    content: Content,
    /// Memory whose content at the start of a run is read.
    kept: Vec<Range<u64>>,
}

/// Uses of one tensor.
#[derive(Clone, Copy, Default, Debug)]
pub struct Use {
    /// Instructions that write it.
    pub writes: u32,
    /// Reads of it, those through views and as an output of the method counted too.
    pub reads: u32,
    /// Some of its bytes count at the start of a run, are read together with those of others, are known to the caller
    /// or to a delegate. Such a tensor stays where it is.
    pub pinned: bool,
    /// The tensor whose bytes every read of this one finds. It has no bytes of its own.
    pub view_of: Option<u32>,
    /// It is pinned, and not because it is an output.
    held: bool,
}

impl Use {
    /// Returns whether it is pinned because it is an output, and for no other reason: one instruction writes it, and every read
    /// finds what that wrote.
    pub fn is_only_output(&self) -> bool {
        self.pinned && !self.held && self.writes == 1 && self.view_of.is_none()
    }
}

impl Uses {
    /// Looks at a method, unless that was done since it last changed; `None` if it jumps or frees, where "before" has no
    /// meaning, or if following its memory takes too long, or more memory than there is.
    pub fn of(graph: &PlanGraph<'_>) -> Option<Rc<Uses>> {
        let found = graph.found.get_or_init(|| Some(Rc::new(Uses::new(graph)?) as Rc<dyn Any>)).clone();
        found?.downcast().ok()
    }

    fn new(graph: &PlanGraph<'_>) -> Option<Uses> {
        let tensors = graph.state.tensors.len();
        // Nothing is written to constants.
        let places = graph.state.tensors.iter().map(|tensor| match tensor.constant {
            true => 0..0,
            false => tensor.region.addresses(),
        });
        let mut uses = Uses {
            by_tensor: filled(Use::default(), tensors).ok()?,
            content: Content::new(places, tensors.saturating_add(graph.args.len()))?,
            kept: Vec::new(),
        };
        for &input in &graph.inputs {
            each(graph, input, |tensor| {
                uses.write_tensor(tensor)?;
                uses.pin(tensor);
                Some(())
            })?;
        }
        for instruction in graph.chains.iter().flatten() {
            uses.instruction(graph, &instruction.kind)?;
        }
        for &output in &graph.outputs {
            each(graph, output, |tensor| {
                uses.read_tensor(graph, tensor)?;
                let owner = uses.by_tensor[tensor as usize].view_of.unwrap_or(tensor);
                for tensor in [tensor, owner] {
                    uses.by_tensor[tensor as usize].pinned = true;
                }
                Some(())
            })?;
        }
        uses.pin_kept(graph);
        for tensor in 0..tensors {
            // Written and read as another's bytes: neither can move alone.
            if uses.by_tensor[tensor].view_of.is_some() && uses.by_tensor[tensor].writes > 0 {
                uses.pin(tensor as u32);
            }
        }
        // What a pinned tensor's views show stays too.
        for tensor in 0..tensors {
            if let Use { pinned: true, view_of: Some(base), held, .. } = uses.by_tensor[tensor] {
                let base = &mut uses.by_tensor[base as usize];
                (base.pinned, base.held) = (true, base.held || held);
            }
        }
        Some(uses)
    }

    /// Returns the uses of a tensor, by its index.
    pub fn of_tensor(&self, tensor: u32) -> Use {
        self.by_tensor[tensor as usize]
    }

    /// Every tensor that is a view, and of what.
    pub fn views(&self) -> impl Iterator<Item = (u32, u32)> {
        let bases = self.by_tensor.iter().map(|tensor| tensor.view_of);
        bases.zip(0..).filter_map(|(base, tensor)| Some((tensor, base?)))
    }

    /// Every tensor that has views, and a view of it, sorted; `None` if there is no memory for it.
    pub fn views_by_base(&self) -> Option<Vec<(u32, u32)>> {
        let mut views = Vec::new();
        for (view, base) in self.views() {
            grow(&mut views, 1).ok()?;
            views.push((base, view));
        }
        views.sort_unstable();
        Some(views)
    }

    fn instruction(&mut self, graph: &PlanGraph<'_>, kind: &PlanInstructionKind) -> Option<()> {
        match *kind {
            PlanInstructionKind::Kernel { operator, args } => {
                let info = &graph.operators[operator as usize].info;
                let (outs, arity) = (info.outs(), info.arity());
                let ids = &graph.args[args.range()];
                let is_out = |arg: usize| outs >> arg & 1 == 1;
                for (_, &id) in ids.iter().enumerate().filter(|&(arg, _)| arg < arity && !is_out(arg)) {
                    each(graph, id, |tensor| self.read_tensor(graph, tensor))?;
                }
                for (_, &id) in ids.iter().enumerate().filter(|&(arg, _)| is_out(arg)) {
                    each(graph, id, |tensor| self.write_tensor(tensor))?;
                }
            }
            PlanInstructionKind::Delegate { args, .. } => {
                for &id in &graph.args[args.range()] {
                    each(graph, id, |tensor| {
                        self.read_tensor(graph, tensor)?;
                        self.pin(tensor);
                        Some(())
                    })?;
                }
                for &id in &graph.args[args.range()] {
                    each(graph, id, |tensor| self.write_tensor(tensor))?;
                }
            }
            PlanInstructionKind::Move { from, to } => {
                each(graph, from, |tensor| self.read_tensor(graph, tensor))?;
                each(graph, to, |tensor| self.write_tensor(tensor))?;
            }
            PlanInstructionKind::Nop => {}
            PlanInstructionKind::JumpFalse { .. } | PlanInstructionKind::Free { .. } => return None,
        }
        Some(())
    }

    /// Pins every tensor whose memory the next run reads, under whatever name it is written there.
    fn pin_kept(&mut self, graph: &PlanGraph<'_>) {
        let mut kept = std::mem::take(&mut self.kept);
        kept.sort_unstable_by_key(|range| range.start);
        // Disjoint after merging, so that one look per tensor is enough.
        kept.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        for tensor in 0..self.by_tensor.len() {
            let range = region(graph, tensor as u32).addresses();
            let after = kept.partition_point(|kept| kept.end <= range.start);
            if kept.get(after).is_some_and(|kept| kept.start < range.end) {
                self.pin(tensor as u32);
            }
        }
    }

    fn pin(&mut self, tensor: u32) {
        let owner = self.by_tensor[tensor as usize].view_of.unwrap_or(tensor);
        for tensor in [tensor, owner] {
            let tensor = &mut self.by_tensor[tensor as usize];
            (tensor.pinned, tensor.held) = (true, true);
        }
    }

    fn write_tensor(&mut self, tensor: u32) -> Option<()> {
        self.by_tensor[tensor as usize].writes += 1;
        self.content.write(tensor)
    }

    fn read_tensor(&mut self, graph: &PlanGraph<'_>, tensor: u32) -> Option<()> {
        self.by_tensor[tensor as usize].reads += 1;
        let state = &graph.state.tensors[tensor as usize];
        if state.constant || state.region.is_empty() {
            return Some(());
        }
        let found = self.content.read(tensor)?;
        match (found.only(), found.gaps) {
            (Some(owner), false) if owner == tensor => {}
            (Some(owner), false)
                if self.by_tensor[tensor as usize].view_of.is_none_or(|base| base == owner)
                    && region(graph, owner).same_start(&state.region) =>
            {
                self.by_tensor[tensor as usize].view_of = Some(owner);
                self.by_tensor[owner as usize].reads += 1;
            }
            _ => {
                if found.gaps {
                    grow(&mut self.kept, 1).ok()?;
                    self.kept.push(state.region.addresses());
                }
                self.pin(tensor);
                found.owners().for_each(|owner| self.pin(owner));
            }
        }
        Some(())
    }
}

fn region(graph: &PlanGraph<'_>, tensor: u32) -> Region {
    graph.state.tensors[tensor as usize].region
}

/// Calls `then` for a tensor, or every tensor of a list.
fn each(graph: &PlanGraph<'_>, id: ValueId, mut then: impl FnMut(u32) -> Option<()>) -> Option<()> {
    graph.state.tensors_of(id).try_for_each(&mut then)
}
