//! Values and calls as exporters write them, from [`edgepack_format::pte::fast`].
//!
//! Anything that is declined there, or needs a second look here, is `None` and read by [`super::values`] and
//! [`super::instructions`], which say what is wrong with it.
//!
//! Invariant: what is read here is what they would have made of it; what is declined leaves no trace.

use edgepack_format::pte::fast::{FastCalls, FastTensor, FastValue, FastValues};
use edgepack_format::tensor::MAX_RANK;

use super::memory::Places;
use crate::api::context::MAX_ARGS;
use crate::api::state::{Dynamism, Span, State, Value};
use crate::api::storage::Region;
use crate::pte::plan_graph::{Memory, PlanGraph, PlanInstructionKind};

/// Reads the value whose table is at `pos`. Lists are read if all their items were read before them.
#[inline]
pub(super) fn value(
    values: &mut FastValues<'_>,
    pos: usize,
    state: &mut State,
    memory: &Memory,
    places: &Places<'_>,
) -> Option<Value> {
    Some(match values.value(pos)? {
        FastValue::Tensor(found) => Value::Tensor(tensor(&found, state, memory, places)?),
        FastValue::Int(number) => Value::Int(number),
        FastValue::Double(number) => Value::Double(number),
        FastValue::Bool(truth) => Value::Bool(truth),
        FastValue::IntList(items) => {
            let items = items.iter().map(|item| usize::try_from(u64::from_le_bytes(*item)).unwrap_or(usize::MAX));
            Value::IntList(ids(state, items, |item| matches!(item, Value::Int(_)))?)
        }
        FastValue::TensorList(items) => {
            let items = items.iter().map(|item| u32::from_le_bytes(*item) as usize);
            Value::TensorList(ids(state, items, |item| matches!(item, Value::Tensor(_)))?)
        }
    })
}

#[inline(always)]
fn tensor(tensor: &FastTensor<'_>, state: &mut State, memory: &Memory, places: &Places<'_>) -> Option<u32> {
    let dtype = tensor.scalar_type;
    let dynamism = if tensor.bound { Dynamism::Bound } else { Dynamism::Static };
    let mut list = [0; MAX_RANK];
    let sizes = list.get_mut(..tensor.sizes.len())?;
    for (out, size) in sizes.iter_mut().zip(tensor.sizes) {
        *out = usize::try_from(i32::from_le_bytes(*size)).ok()?;
    }
    let bytes = usize::try_from(tensor.bytes).ok()?;
    let (region, constant) = match (tensor.allocation, tensor.data_buffer_idx) {
        (None, 0) => return None,
        (None, buffer) => (places.known_constant(buffer, bytes)?, true),
        (Some((id, offset)), 0) => {
            let arena = memory.arenas.get((id as usize).checked_sub(1)?)?;
            (arena.region(usize::try_from(offset).ok()?, bytes)?, false)
        }
        _ => return None,
    };
    if !Region::is_aligned(&region, dtype.size()?) {
        return None;
    }
    Some(state.push_tensor(dtype, sizes, tensor.dim_order, dynamism, region, constant))
}

/// Reads the kernel call whose table is at `pos`, if it is one.
#[inline]
pub(super) fn call(calls: &mut FastCalls<'_>, pos: usize, graph: &mut PlanGraph<'_>) -> Option<PlanInstructionKind> {
    let call = calls.call(pos)?;
    let info = &graph.operators.get(call.operator as usize)?.info;
    let values = graph.state.values.len();
    let ids = call.args.iter().map(|item| u32::from_le_bytes(*item));
    if call.args.len() > MAX_ARGS || !ids.clone().all(|id| (id as usize) < values) {
        return None;
    }
    let args = Span { start: graph.args.len() as u32, len: call.args.len() as u32 };
    graph.args.try_reserve(call.args.len()).ok()?;
    graph.args.extend(ids);
    info.mark_written(&graph.args[args.range()], &mut graph.variable);
    Some(PlanInstructionKind::Kernel { operator: call.operator, args })
}

/// Adds the items of a list, if each is a value that was read and fits.
#[inline(always)]
fn ids(
    state: &mut State,
    items: impl ExactSizeIterator<Item = usize> + Clone,
    fits: impl Fn(&Value) -> bool,
) -> Option<Span> {
    if !items.clone().all(|item| state.values.get(item).is_some_and(&fits)) {
        return None;
    }
    state.ids.try_reserve(items.len()).ok()?;
    let span = Span { start: state.ids.len() as u32, len: items.len() as u32 };
    // Below the number of values, which fits.
    state.ids.extend(items.map(|item| item as u32));
    Some(span)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use edgepack_loader::{MergedData, Program};

    use super::super::{Source, memory, values};
    use super::*;
    use crate::pte::account::Account;
    use crate::pte::arena::Arena;
    use crate::pte::error::LoadError;
    use crate::pte::options::Options;

    /// Returns the outcome of reading all values, as text: addresses too, unless something was copied to be aligned.
    fn read(source: &Source<'_>, quick: bool) -> Result<String, LoadError> {
        let mut memory = Memory::default();
        let mut account = Account::new(source.program.limits());
        memory::arenas(source, &mut memory, &mut account)?;
        let tables = source.plan.values.clone().unwrap_or_default().tables();
        let mut state = State::with_capacity(tables.len())?;
        let mut places = Places::new(source, account)?;
        let quick = quick.then(|| FastValues::new(tables.buffer()));
        values::read(source, &tables, &mut state, &mut memory, &mut places, quick)?;
        let tensors = state.tensors.iter().map(|tensor| {
            let address = memory.private.is_empty().then(|| tensor.region.addresses());
            let shape = (state.sizes(tensor), state.strides(tensor), state.bounds(tensor), state.dim_order(tensor));
            let (dtype, dynamism, constant) = (tensor.dtype, tensor.dynamism, tensor.constant);
            format!("{dtype} {dynamism:?} {constant} {shape:?} {} {address:?}\n", tensor.region.len())
        });
        let tensors: String = tensors.collect();
        Ok(format!("{:?}\n{:?}\n{tensors}", state.values, state.ids))
    }

    #[test]
    fn values_are_what_the_long_way_makes_of_them() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus/models");
        let mut methods = 0;
        for entry in std::fs::read_dir(corpus).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "pte") {
                continue;
            }
            let program = Program::from_bytes(std::fs::read(&path).unwrap()).unwrap();
            let view = program.view().unwrap();
            for plan in view.plans().iter() {
                let plan = plan.unwrap();
                let sizes = plan.non_const_buffer_sizes.iter().flat_map(|sizes| sizes.iter());
                let arenas = sizes.enumerate().map(|(id, size)| (id as u32, Arena::new(size as usize).unwrap()));
                let options = Options { arenas: arenas.collect(), ..Options::default() };
                let data = MergedData::new([]).unwrap();
                let source = Source { program: &program, view: &view, plan: &plan, options: &options, data: &data };
                match (read(&source, true), read(&source, false)) {
                    (Ok(quick), Ok(long)) => assert_eq!(quick, long, "{}", path.display()),
                    (Err(quick), Err(long)) => assert_eq!(quick.to_string(), long.to_string(), "{}", path.display()),
                    (quick, long) => panic!("{}: {quick:?}, {long:?}", path.display()),
                }
                methods += 1;
            }
        }
        assert!(methods > 50, "{methods} methods");
    }
}
