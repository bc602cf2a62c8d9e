//! Lifetimes of tensors: from the instruction that first touches the bytes to the last, as the code's jumps require.
//!
//! Position 0 is before the first instruction, where inputs are set; the last is behind all, where outputs are read. What
//! is read before it is written keeps its bytes from one run to the next, so it lives always. A lifetime may be longer
//! than necessary, never shorter.

use std::collections::BTreeMap;

use edgepack_format::pte::{ExecutionPlan, KernelTypes, TensorDataLocation};
use edgepack_format::row::Rows;
use edgepack_format::wire;
use edgepack_memory_plan::Lifetime;

use super::access::{Access, Code, Event, byte_len, tensors_of};
use super::regions::Regions;

/// State of one tensor while its lifetime is found.
#[derive(Clone, Copy, Default)]
struct Tensor {
    lifetime: Option<Lifetime>,
    /// Some of its bytes survive the instruction that writes others.
    carried: bool,
    /// Its bytes survive the run.
    kept: bool,
    /// Memory, offset and length, if it is planned.
    place: Option<Place>,
}

/// Memory id, offset and length.
type Place = (u32, u64, u64);

impl Tensor {
    fn of(value: &Option<KernelTypes<'_>>) -> Tensor {
        let place = match value {
            Some(KernelTypes::Tensor(tensor)) => {
                tensor.allocation_info.and_then(|at| Some((at.memory_id, at.memory_offset(), byte_len(tensor)?)))
            }
            _ => None,
        };
        Tensor { kept: is_state(value), place, ..Tensor::default() }
    }

    fn touch(&mut self, position: u32) {
        let here = Lifetime { first: position, last: position };
        self.lifetime = Some(self.lifetime.map_or(here, |lifetime| lifetime.hull(&here)));
    }
}

/// The lifetime of every tensor of a plan, by value index; `None` for other values and for tensors nothing touches.
///
/// A tensor with an initial value or a name keeps its bytes between runs, as exporters mark mutable state so. One that is
/// read without ever being written, but has a place where others were written before, is a view of those: exporters
/// leave out instructions that would only give bytes another shape. What a delegate gets that was never seen before may be
/// such a view, too: unless it is the last argument, or some of its bytes were never written, it counts as one.
pub fn lifetimes(plan: &ExecutionPlan<'_>) -> wire::Result<Vec<Option<Lifetime>>> {
    lifetimes_with(plan, &[])
}

/// The same where it is known which tensors are views: pairs of what each is of and itself, no view being of a view.
/// An access to a view counts as one to the tensor that it is a view of; views have no lifetimes of their own.
pub(crate) fn lifetimes_with(
    plan: &ExecutionPlan<'_>,
    views: &[(usize, usize)],
) -> wire::Result<Vec<Option<Lifetime>>> {
    let values = values_of(plan)?;
    let mut code = Code::of(plan, &values)?;
    let mut inputs = tensors_of(&values, plan.inputs.iter().flat_map(|list| list.iter()));
    let mut outputs = tensors_of(&values, plan.outputs.iter().flat_map(|list| list.iter()));
    if !views.is_empty() {
        let bases: BTreeMap<usize, usize> = views.iter().map(|(base, view)| (*view, *base)).collect();
        let base = |value: &mut usize| *value = bases.get(value).copied().unwrap_or(*value);
        code.events.iter_mut().for_each(|event| base(&mut event.value));
        code.aliases.iter_mut().for_each(|(from, to)| [from, to].into_iter().for_each(base));
        for list in [&mut inputs, &mut outputs, &mut code.chain_inputs, &mut code.chain_outputs] {
            list.iter_mut().for_each(base);
        }
    }

    let mut tensors: Vec<Tensor> = values.iter().map(Tensor::of).collect();
    let mut writers = Writers::default();
    for (value, tensor) in tensors.iter().enumerate().filter(|(_, tensor)| tensor.kept) {
        writers.wrote(value, tensor);
    }
    for &value in inputs.iter().chain(&code.chain_inputs) {
        if let Some(tensor) = tensors.get_mut(value) {
            tensor.touch(0);
            writers.wrote(value, tensor);
        }
    }
    let mut aliases = code.aliases;
    writers.apply(&code.events, &mut tensors, &mut aliases);
    for &value in outputs.iter().chain(&code.chain_outputs) {
        if let Some(tensor) = tensors.get_mut(value) {
            tensor.touch(code.end);
        }
    }

    let regions = Regions::of(code.jumps);
    let groups = Groups::of(values.len(), &aliases);
    // Regions are disjoint, so what sharing adds after the first round is settled by the second.
    for _ in 0..2 {
        groups.share_ends(&mut tensors);
        for tensor in &mut tensors {
            tensor.lifetime = tensor.lifetime.map(|lifetime| regions.extend(lifetime, tensor.carried));
        }
    }
    let always = Lifetime { first: 0, last: code.end };
    Ok(tensors.iter().map(|tensor| if tensor.kept { Some(always) } else { tensor.lifetime }).collect())
}

/// The values of a plan, without their wrapping.
pub(super) fn values_of<'a>(plan: &ExecutionPlan<'a>) -> wire::Result<Vec<Option<KernelTypes<'a>>>> {
    match &plan.values {
        Some(rows) => Rows::iter(rows).map(|row| Ok(row?.val)).collect(),
        None => Ok(Vec::new()),
    }
}

/// Returns whether a value is a tensor whose bytes survive a run.
pub(super) fn is_state(value: &Option<KernelTypes<'_>>) -> bool {
    let Some(KernelTypes::Tensor(tensor)) = value else { return false };
    let extra = tensor.extra_tensor_info.as_ref();
    tensor.data_buffer_idx > 0
        || extra.is_some_and(|extra| {
            extra.location == TensorDataLocation::EXTERNAL
                || extra.fully_qualified_name.as_ref().is_some_and(|name| !name.is_empty())
        })
}

/// Last writer of each byte: maps memory and first byte to the end of a stretch and the tensor whose bytes it holds.
/// Stretches do not overlap.
#[derive(Default)]
struct Writers(BTreeMap<(u32, u64), (u64, usize)>);

impl Writers {
    fn wrote(&mut self, value: usize, tensor: &Tensor) {
        let Some((memory, start, bytes)) = tensor.place else { return };
        let end = start.saturating_add(bytes);
        if start == end {
            return;
        }
        // What others still have before and behind.
        for (from, to, other) in self.within(memory, start, end) {
            self.0.remove(&(memory, from));
            if from < start {
                self.0.insert((memory, from), (start, other));
            }
            if to > end {
                self.0.insert((memory, end), (to, other));
            }
        }
        self.0.insert((memory, start), (end, value));
    }

    /// The stretches that have bytes in a range, whole: start, end, whose.
    fn within(&self, memory: u32, start: u64, end: u64) -> Vec<(u64, u64, usize)> {
        let before = self.0.range((memory, 0)..(memory, start)).next_back();
        let rest = self.0.range((memory, start)..(memory, end));
        let stretches = before.into_iter().chain(rest).map(|(&(_, from), &(to, value))| (from, to, value));
        stretches.filter(|&(_, to, _)| to > start).collect()
    }

    /// Whose bytes are at a place, and whether there are some everywhere.
    fn beneath(&self, place: Option<Place>) -> (Vec<usize>, bool) {
        let Some((memory, start, bytes)) = place.filter(|&(.., bytes)| bytes > 0) else { return (Vec::new(), false) };
        let end = start.saturating_add(bytes);
        let (mut whose, mut reached) = (Vec::new(), start);
        for (from, to, value) in self.within(memory, start, end) {
            whose.push(value);
            if from <= reached {
                reached = reached.max(to);
            }
        }
        (whose, reached >= end)
    }

    fn apply(&mut self, events: &[Event], tensors: &mut [Tensor], aliases: &mut Vec<(usize, usize)>) {
        let mut rest = events;
        while let Some(first) = rest.first() {
            let len = rest.iter().take_while(|event| event.position == first.position).count();
            let (now, later) = rest.split_at(len);
            let outputs_from = self.outputs_from(now, tensors);
            for (place, event) in now.iter().enumerate() {
                let Some(tensor) = tensors.get_mut(event.value) else { continue };
                let fresh = tensor.lifetime.is_none();
                let reads = match event.access {
                    Access::Read | Access::Update => true,
                    Access::Unknown => !fresh || place < outputs_from,
                    Access::Write | Access::Fill => false,
                };
                if reads && fresh && !tensor.kept {
                    let (bases, everywhere) = self.beneath(tensor.place);
                    aliases.extend(bases.into_iter().map(|base| (base, event.value)));
                    tensor.kept = !everywhere;
                }
                let partly = matches!(event.access, Access::Update | Access::Fill);
                tensor.carried |= partly || event.access == Access::Unknown && !fresh;
                tensor.touch(event.position);
                if event.access != Access::Read {
                    self.wrote(event.value, tensor);
                }
            }
            rest = later;
        }
    }

    /// The first argument of an instruction that can only be an output, if no schema says which are: none before the last
    /// that was seen before is, and behind it the first where bytes were never written, or the last of all.
    fn outputs_from(&self, now: &[Event], tensors: &[Tensor]) -> usize {
        let tensor = |event: &Event| tensors.get(event.value).copied().unwrap_or_default();
        let seen = |event: &Event| tensor(event).lifetime.is_some() || tensor(event).kept;
        let first = now.iter().rposition(seen).map_or(0, |last| last.saturating_add(1));
        let views = now.iter().skip(first).take_while(|event| self.beneath(tensor(event).place).1).count();
        first.saturating_add(views).min(now.len().saturating_sub(1)).max(first)
    }
}

/// Values that may stand for the same bytes.
struct Groups {
    /// The members of every group of two or more.
    members: Vec<Vec<usize>>,
}

impl Groups {
    fn of(count: usize, aliases: &[(usize, usize)]) -> Self {
        let mut parent: Vec<usize> = (0..count).collect();
        for &(from, to) in aliases {
            let (from, to) = (root(&mut parent, from), root(&mut parent, to));
            if let Some(place) = parent.get_mut(from.max(to)) {
                *place = from.min(to);
            }
        }
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &value in aliases.iter().flat_map(|(from, to)| [from, to]) {
            members.entry(root(&mut parent, value)).or_default().push(value);
        }
        Groups { members: members.into_values().collect() }
    }

    /// All members live as long as the one that lives longest.
    fn share_ends(&self, tensors: &mut [Tensor]) {
        for group in &self.members {
            let of = |tensors: &[Tensor], value: &usize| tensors.get(*value).and_then(|tensor| tensor.lifetime);
            let last = group.iter().filter_map(|value| of(tensors, value)).map(|lifetime| lifetime.last).max();
            for value in group {
                if let (Some(last), Some(tensor)) = (last, tensors.get_mut(*value))
                    && let Some(lifetime) = &mut tensor.lifetime
                {
                    lifetime.last = last;
                }
            }
        }
    }
}

/// The representative of a set; paths are halved while they are followed.
pub(super) fn root(parent: &mut [usize], mut value: usize) -> usize {
    while let Some(&up) = parent.get(value) {
        if up == value {
            break;
        }
        let above = parent.get(up).copied().unwrap_or(up);
        if let Some(place) = parent.get_mut(value) {
            *place = above;
        }
        value = above;
    }
    value
}
