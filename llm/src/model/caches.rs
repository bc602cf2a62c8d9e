//! Caches of keys and values, found in the instructions of a program: which state is addressed by position.
//!
//! A session may go back to an earlier position at no cost if every piece of state is written at the positions of the
//! call alone, and has room for all of them: what is beyond the position is then written again before attention reads it.

use std::collections::HashMap;

use edgepack_executor::{Method, Registry};
use edgepack_format::operators::Schema;
use edgepack_format::pte::{ExecutionPlan, InstructionArguments, KernelCall, KernelTypes, Operator};
use edgepack_format::tensor::MAX_RANK;

use crate::error::Error;

/// State of a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// None: calls know nothing of each other.
    Absent,
    /// All of it is written at positions.
    ByPosition {
        /// Room of the smallest cache that is written from a position on: no text can be longer.
        room: usize,
        /// Room of the smallest cache that is written at computed places. Those of longer texts may wrap around.
        ring: usize,
    },
    /// Something else, such as a sum over all tokens, or a cache that this crate does not know.
    Other,
}

/// A write of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    /// From a position on, into a cache `[1, positions, heads, width]`.
    FromPosition,
    /// At computed places of such a cache.
    AtPlaces,
    /// Of the whole value, from another one.
    Copy(i32),
    /// Of a copy of the value `of`, at computed places along a dimension.
    Put { of: i32, dimension: usize },
    /// Anything else, or more than one kind of write.
    Other,
}

/// All writes of a method, by value.
#[derive(Default)]
struct Writes(HashMap<i32, Write>);

/// Finds out about the state of a loaded method.
pub(super) fn state_of(method: &Method, registry: &Registry) -> Result<State, Error> {
    let values = method.state_values().map_err(|error| Error::run(method.name(), error))?;
    if values.is_empty() {
        return Ok(State::Absent);
    }
    let view = method.program().view()?;
    let Some(plan) = view.plan(method.name()) else { return Ok(State::Other) };
    let Some(writes) = writes(&plan, registry) else { return Ok(State::Other) };
    let (mut room, mut ring) = (usize::MAX, usize::MAX);
    for value in values {
        let Ok(id) = i32::try_from(value) else { return Ok(State::Other) };
        let Some(sizes) = sizes(&plan, id) else { return Ok(State::Other) };
        let dimension = match writes.0.get(&id) {
            Some(Write::FromPosition | Write::AtPlaces) => Some(1),
            Some(Write::Copy(from)) => match writes.0.get(from) {
                Some(Write::Put { of, dimension }) if *of == id => Some(*dimension),
                _ => None,
            },
            _ => None,
        };
        match dimension.and_then(|dimension| sizes.get(dimension)) {
            Some(&positions) if writes.0.get(&id) == Some(&Write::FromPosition) => room = room.min(positions),
            Some(&positions) => ring = ring.min(positions),
            None => return Ok(State::Other),
        }
    }
    Ok(State::ByPosition { room, ring })
}

fn value<'p>(plan: &ExecutionPlan<'p>, id: i32) -> Option<KernelTypes<'p>> {
    plan.values.as_ref()?.get(usize::try_from(id).ok()?).ok()?.val
}

fn sizes(plan: &ExecutionPlan<'_>, id: i32) -> Option<Vec<usize>> {
    let KernelTypes::Tensor(tensor) = value(plan, id)? else { return None };
    tensor.sizes?.iter().map(|size| usize::try_from(size).ok()).collect()
}

/// The dimension that a list of indices picks from, if it is one alone.
fn indexed(plan: &ExecutionPlan<'_>, id: i32) -> Option<usize> {
    let KernelTypes::OptionalTensorList(list) = value(plan, id)? else { return None };
    // Longer lists index nothing: no tensor has as many dimensions.
    let list = list.items.filter(|items| items.len() <= MAX_RANK)?;
    let is_there = |item: &i32| *item >= 0 && !matches!(value(plan, *item), Some(KernelTypes::Null(_)));
    let items: Vec<i32> = list.iter().collect();
    let mut there = items.iter().enumerate().filter(|(_, item)| is_there(item)).map(|(dimension, _)| dimension);
    there.next().filter(|_| there.next().is_none())
}

fn is_false(plan: &ExecutionPlan<'_>, id: i32) -> bool {
    matches!(value(plan, id), Some(KernelTypes::Bool(value)) if !value.bool_val)
}

/// All writes of a method; `None` if something in it cannot be read.
fn writes(plan: &ExecutionPlan<'_>, registry: &Registry) -> Option<Writes> {
    let mut writes = Writes::default();
    let mut operators = Vec::new();
    for operator in plan.operators.as_ref()?.iter() {
        operators.push(Named::of(&operator.ok()?, registry)?);
    }
    for chain in plan.chains.as_ref()?.iter() {
        for instruction in chain.ok()?.instructions?.iter() {
            match instruction.ok()?.instr_args? {
                InstructionArguments::KernelCall(KernelCall { op_index, args }) => {
                    let operator = operators.get(usize::try_from(op_index).ok()?)?;
                    let args = args?;
                    writes.call(plan, operator, |place| args.iter().nth(place));
                }
                InstructionArguments::MoveCall(call) => writes.note(call.move_to, Write::Other),
                _ => {}
            }
        }
    }
    Some(writes)
}

/// An operator, and the places of the arguments it writes.
struct Named {
    name: String,
    written: Vec<usize>,
}

impl Named {
    fn of(operator: &Operator<'_>, registry: &Registry) -> Option<Self> {
        let mut name = operator.name.as_ref()?.to_string();
        if let Some(overload) = operator.overload.as_ref().filter(|overload| !overload.is_empty()) {
            name.push('.');
            name.push_str(overload);
        }
        let found = registry.find(&name)?;
        let text = [found.name(), found.schema()].concat();
        let written = Schema::parse(&text).ok()?.mutated().collect();
        Some(Named { name, written })
    }
}

impl Writes {
    fn note(&mut self, value: i32, write: Write) {
        self.0
            .entry(value)
            .and_modify(|known| *known = if *known == write { write } else { Write::Other })
            .or_insert(write);
    }

    /// Notes what a call writes; `arg` gives the value at a place of it.
    fn call(&mut self, plan: &ExecutionPlan<'_>, operator: &Named, arg: impl Fn(usize) -> Option<i32>) {
        match (operator.name.as_str(), [0, 1, 3, 4].map(&arg)) {
            ("llama::update_cache.out", [_, Some(cache), ..]) => self.note(cache, Write::FromPosition),
            ("llama::update_cache_with_indices.out", [_, Some(cache), ..]) => self.note(cache, Write::AtPlaces),
            ("aten::index_put.out", [Some(cache), Some(indices), Some(accumulate), Some(out)]) => {
                let dimension = indexed(plan, indices).filter(|_| is_false(plan, accumulate));
                let write = dimension.map_or(Write::Other, |dimension| Write::Put { of: cache, dimension });
                self.note(out, write);
            }
            ("aten::copy_", [Some(to), Some(from), ..]) => self.note(to, Write::Copy(from)),
            _ => {
                operator.written.iter().filter_map(|&place| arg(place)).for_each(|value| self.note(value, Write::Other))
            }
        }
    }
}
