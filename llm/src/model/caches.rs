//! Caches of keys and values, found in the instructions of a program: which state is addressed by position.
//!
//! A session may go back to an earlier position at no cost if every piece of state is written at the positions of the
//! call alone, and has room for all of them: what is beyond the position is then written again before attention reads it.

use std::collections::HashMap;

use edgepack_executor::{Method, Registry};
use edgepack_format::operators::Schema;
use edgepack_format::pte::{ExecutionPlan, InstructionArguments, KernelCall, KernelTypes};

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

/// Writes of values that are state.
#[derive(Default)]
struct Writes {
    /// Writes from a position on, into caches `[1, positions, heads, width]`.
    caches: Vec<i32>,
    /// Writes at computed places, into such caches.
    rings: Vec<i32>,
    /// Results of writes at positions into a copy: the copy, what it is a copy of, and the dimension of the positions.
    puts: HashMap<i32, (i32, usize)>,
    /// Copies of whole tensors: destination and source.
    copies: Vec<(i32, i32)>,
    /// Any other write.
    others: Vec<i32>,
}

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
        if writes.others.contains(&id) {
            return Ok(State::Other);
        }
        let copies: Vec<i32> = writes.copies.iter().filter(|(to, _)| *to == id).map(|(_, from)| *from).collect();
        let (cache, placed) = (writes.caches.contains(&id), writes.rings.contains(&id));
        let dimension = match (cache, placed, copies.as_slice()) {
            (true, false, []) | (false, true, []) => Some(1),
            (false, false, [from]) => {
                writes.puts.get(from).filter(|(of, _)| *of == id).map(|(_, dimension)| *dimension)
            }
            _ => None,
        };
        match dimension.and_then(|dimension| sizes.get(dimension)) {
            Some(&positions) if cache => room = room.min(positions),
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
    let is_there = |item: &i32| *item >= 0 && !matches!(value(plan, *item), Some(KernelTypes::Null(_)));
    let items: Vec<i32> = list.items?.iter().collect();
    let mut there = items.iter().enumerate().filter(|(_, item)| is_there(item)).map(|(dimension, _)| dimension);
    there.next().filter(|_| there.next().is_none())
}

fn is_false(plan: &ExecutionPlan<'_>, id: i32) -> bool {
    matches!(value(plan, id), Some(KernelTypes::Bool(value)) if !value.bool_val)
}

/// All writes of a method; `None` if something in it cannot be read.
fn writes(plan: &ExecutionPlan<'_>, registry: &Registry) -> Option<Writes> {
    let mut writes = Writes::default();
    let mut names = Vec::new();
    for operator in plan.operators.as_ref()?.iter() {
        let operator = operator.ok()?;
        let mut name = operator.name?.into_owned();
        if let Some(overload) = operator.overload.filter(|overload| !overload.is_empty()) {
            name.push('.');
            name.push_str(&overload);
        }
        names.push(name);
    }
    for chain in plan.chains.as_ref()?.iter() {
        for instruction in chain.ok()?.instructions?.iter() {
            match instruction.ok()?.instr_args? {
                InstructionArguments::KernelCall(KernelCall { op_index, args }) => {
                    let name = names.get(usize::try_from(op_index).ok()?)?;
                    let args: Vec<i32> = args?.iter().collect();
                    writes.call(plan, registry, name, &args)?;
                }
                InstructionArguments::MoveCall(call) => writes.others.push(call.move_to),
                _ => {}
            }
        }
    }
    Some(writes)
}

impl Writes {
    fn call(&mut self, plan: &ExecutionPlan<'_>, registry: &Registry, name: &str, args: &[i32]) -> Option<()> {
        match (name, args) {
            ("llama::update_cache.out", [_, cache, ..]) => self.caches.push(*cache),
            ("llama::update_cache_with_indices.out", [_, cache, ..]) => self.rings.push(*cache),
            ("aten::index_put.out", [cache, indices, _, accumulate, out, ..]) if is_false(plan, *accumulate) => {
                match indexed(plan, *indices) {
                    Some(dimension) => _ = self.puts.insert(*out, (*cache, dimension)),
                    None => self.others.push(*out),
                }
            }
            ("aten::copy_", [to, from, ..]) => self.copies.push((*to, *from)),
            _ => {
                let operator = registry.find(name)?;
                let text = [operator.name(), operator.schema()].concat();
                let schema = Schema::parse(&text).ok()?;
                self.others.extend(schema.mutated().filter_map(|index| args.get(index)));
            }
        }
        Some(())
    }
}
