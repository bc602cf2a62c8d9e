//! Memory over time: which bytes of a method hold a value that is still needed, and from where to where in its plan.
//!
//! Everything is concluded from the frozen plan when it is asked for; nothing is noted while methods run. What is not known
//! of a value is taken to be longer: one that is read before it is written, and one that is used in a loop and before it,
//! are alive all the time that they may be.

use crate::api::state::{Value, ValueId};
use crate::api::storage::Region;
use crate::pte::freeze::PlannedAction;
use crate::pte::method::Method;

/// A memory of a method.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum MemoryPart {
    /// Planned by the exporter: its id in the file, from 1.
    Planned(u32),
    /// For values that the file gives no place, by index: the temporaries of a delegate's instructions have one together.
    Private(u32),
}

/// A value that has bytes in a memory of its method, and the time that it needs them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    /// Its id: as in the file, or beyond those where loading made it.
    pub value: u32,
    /// Memory that it is in.
    pub memory: MemoryPart,
    /// Bytes from the start of that memory.
    pub offset: usize,
    /// Bytes that its greatest sizes take.
    pub bytes: usize,
    /// Place in the plan of the first instruction that uses it, as in [`Event`](crate::observer::Event).
    pub first: usize,
    /// Place in the plan of the last instruction that uses it.
    pub last: usize,
}

/// Places of first and last use, and whether the first one writes.
#[derive(Clone, Copy)]
struct Uses {
    first: usize,
    last: usize,
    written_first: bool,
}

impl Method {
    /// Returns the values with bytes in memories of the method, constants apart, and when they are needed, in order of
    /// their ids. Values without any use are not among them.
    ///
    /// ```
    /// # use edgepack_executor::Method;
    /// # fn demo(method: &Method) {
    /// // Bytes that values need while the third instruction runs; those of values that share memory count twice.
    /// let alive = method.lifetimes().into_iter().filter(|value| value.first <= 2 && 2 <= value.last);
    /// println!("{}", alive.map(|value| value.bytes).sum::<usize>());
    /// # }
    /// ```
    pub fn lifetimes(&self) -> Vec<Lifetime> {
        let mut uses: Vec<Option<Uses>> = vec![None; self.state.tensors.len()];
        let count = self.frozen.chains.iter().map(Vec::len).sum::<usize>();
        let end = count.saturating_sub(1);
        // By their ends, so that inner ones come first.
        let mut loops = Vec::new();
        let mut position = 0;
        for chain in &self.frozen.chains {
            let start = position;
            for planned in chain {
                self.touch(&planned.action, position, &mut uses);
                if let PlannedAction::JumpFalse { target, .. } = planned.action {
                    let target = start + target as usize;
                    loops.extend((target <= position).then_some((target, position)));
                }
                position += 1;
            }
        }
        for (ids, first, last) in [
            (self.inputs.iter().map(|slot| slot.value).collect::<Vec<_>>(), true, false),
            (self.outputs.clone(), false, true),
        ] {
            for tensor in ids.iter().flat_map(|&id| self.state.tensors_of(id)) {
                let uses = uses[tensor as usize].get_or_insert(Uses { first: end, last: 0, written_first: true });
                uses.first = if first { 0 } else { uses.first.min(end) };
                uses.last = if last { end } else { uses.last.max(uses.first) };
                uses.written_first |= first;
            }
        }
        let memories = self.memories();
        let tensors = self.state.values.iter().enumerate().filter_map(|(id, value)| match value {
            Value::Tensor(tensor) => Some((id, *tensor as usize)),
            _ => None,
        });
        let lifetime = |(id, tensor): (usize, usize)| {
            let state = &self.state.tensors[tensor];
            let mut uses = uses[tensor].filter(|_| !state.constant && !state.region.is_empty())?;
            if !uses.written_first {
                // Something was there before the run, or what another run left.
                (uses.first, uses.last) = (0, end);
            }
            // What a loop uses and what is around it uses, too, is needed until the loop is over.
            for &(from, to) in &loops {
                if uses.first < from && (from..=to).contains(&uses.last) {
                    uses.last = to;
                }
            }
            let (memory, whole) = memories.iter().find(|(_, whole)| whole.contains(&state.region))?;
            let offset = (state.region.addresses().start - whole.addresses().start) as usize;
            let (first, last) = (uses.first, uses.last);
            Some(Lifetime { value: id as u32, memory: *memory, offset, bytes: state.region.len(), first, last })
        };
        tensors.filter_map(lifetime).collect()
    }

    /// Notes what an instruction uses.
    fn touch(&self, action: &PlannedAction, position: usize, uses: &mut [Option<Uses>]) {
        let mut note = |tensor: u32, written_first: bool| {
            let found = uses[tensor as usize].get_or_insert(Uses { first: position, last: position, written_first });
            found.last = position;
        };
        match action {
            PlannedAction::Kernel { call, .. } | PlannedAction::Delegate { call, .. } => {
                // What a program repeats behind the arguments is the result again. An argument that does not only receive
                // a result is read, too.
                let (arity, results) = match action {
                    PlannedAction::Kernel { operator, .. } => self.results[*operator as usize],
                    _ => (usize::MAX, u128::MAX),
                };
                let ids = self.args[call.args.range()].iter().enumerate().filter(|(arg, _)| *arg < arity);
                let receives =
                    |arg: usize| call.access.is_out(arg) && results.checked_shr(arg as u32).unwrap_or(0) & 1 == 1;
                // What an instruction reads and writes is read before.
                for only_written in [false, true] {
                    for (_, &id) in ids.clone().filter(|(arg, _)| receives(*arg) == only_written) {
                        self.state.tensors_of(id).for_each(|tensor| note(tensor, only_written));
                    }
                }
            }
            PlannedAction::MoveTensor { from, to } => {
                note(*from, false);
                note(*to, true);
            }
            PlannedAction::JumpFalse { condition, .. } => {
                self.state.tensors_of(*condition as ValueId).for_each(|tensor| note(tensor, false));
            }
            PlannedAction::Free { .. } | PlannedAction::MoveNumber { .. } | PlannedAction::Nop => {}
        }
    }

    /// All memories that hold values.
    fn memories(&self) -> Vec<(MemoryPart, Region)> {
        let arenas = (1..).zip(self.memory.arenas.iter());
        let planned = arenas.filter_map(|(id, arena)| Some((MemoryPart::Planned(id), arena.region(0, arena.len())?)));
        let blocks = (0..).zip(&self.memory.private);
        let private = blocks.filter_map(|(at, block)| Some((MemoryPart::Private(at), block.region(0, block.len())?)));
        planned.chain(private).filter(|(_, whole)| !whole.is_empty()).collect()
    }
}
