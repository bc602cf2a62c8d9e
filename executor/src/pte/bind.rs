//! Inputs: what a caller passes is checked against the program, then copied into the method's memory or, for the length of
//! one run, read where it is.

use std::ops::Range;

use edgepack_format::finding::ErrorCode;
use edgepack_format::scalar::ScalarType;

use crate::api::room::{filled, grow};
use crate::api::state::{Dynamism, NONE, ResizeError, Value, ValueId};
use crate::api::storage::Region;
use crate::pte::error::{LoadError, RunError};
use crate::pte::freeze::{Plan, PlannedAction};
use crate::pte::input::Input;
use crate::pte::method::Method;
use crate::pte::plan_graph::PlanGraph;

/// An input of a method.
pub(crate) struct InputSlot {
    pub value: ValueId,
    /// Whether it may be read: a caller has set it and nothing has written over it since.
    pub set: bool,
    /// Whether memory of the caller stands in for its own.
    lent: bool,
    /// The tensor's own memory, if a caller's may stand in for it: the program gives it none, nothing writes it, and it is
    /// not an output.
    own: Option<Region>,
    /// Whether instructions read it: a number is then the caller's to choose. One that none reads has been traced into the
    /// program.
    pub read: bool,
    /// Index of the shared memory it lies in.
    pub shared: Option<usize>,
    /// Whether its bytes are still there after a run. Exporters use the memory of an input again once it has been read.
    pub survives: bool,
}

/// The inputs of a graph. `unplanned` are the tensors that the program gives no memory, `frozen` is its plan.
pub(crate) fn inputs(graph: &PlanGraph<'_>, unplanned: &[u32], frozen: &Plan) -> Result<Vec<InputSlot>, LoadError> {
    let mut pinned = graph.written()?;
    graph.outputs.iter().for_each(|&output| pinned[output as usize] = true);
    let mut is_unplanned = filled(false, graph.state.tensors.len())?;
    unplanned.iter().for_each(|&tensor| is_unplanned[tensor as usize] = true);
    let written = written(graph, frozen)?;
    let read = read(graph, frozen)?;
    let slot = |&value: &ValueId| {
        let place = match graph.state.values[value as usize] {
            Value::Tensor(tensor) => Some((tensor, graph.state.tensors[tensor as usize].region)),
            _ => None,
        };
        InputSlot {
            value,
            set: matches!(graph.state.values[value as usize], Value::Null),
            lent: false,
            own: place
                .filter(|(tensor, _)| is_unplanned[*tensor as usize] && !pinned[value as usize])
                .map(|(_, own)| own),
            read: read[value as usize],
            shared: place.and_then(|(_, region)| graph.memory.arenas.shared_at(&region)),
            survives: place.is_none_or(|(_, region)| {
                let range = region.addresses();
                let after = written.partition_point(|written| written.end <= range.start);
                written.get(after).is_none_or(|written| range.end <= written.start)
            }),
        }
    };
    let mut inputs = Vec::new();
    grow(&mut inputs, graph.inputs.len())?;
    inputs.extend(graph.inputs.iter().map(slot));
    Ok(inputs)
}

/// Which values instructions read, also as items of lists.
fn read(graph: &PlanGraph<'_>, frozen: &Plan) -> Result<Vec<bool>, LoadError> {
    let mut read = filled(false, graph.state.values.len())?;
    for step in frozen.chains.iter().flatten() {
        match &step.action {
            PlannedAction::Kernel { call, .. } | PlannedAction::Delegate { call, .. } => {
                graph.args[call.args.range()].iter().for_each(|&id| read[id as usize] = true);
            }
            PlannedAction::MoveNumber { from, .. } => read[*from as usize] = true,
            PlannedAction::JumpFalse { condition, .. } => read[*condition as usize] = true,
            _ => {}
        }
    }
    for id in 0..read.len() {
        if let (true, Value::IntList(span)) = (read[id], graph.state.values[id]) {
            graph.state.ids[span.range()].iter().for_each(|&item| read[item as usize] = true);
        }
    }
    Ok(read)
}

/// The addresses that instructions write, disjoint and rising.
fn written(graph: &PlanGraph<'_>, frozen: &Plan) -> Result<Vec<Range<u64>>, LoadError> {
    let mut values = filled(false, graph.state.values.len())?;
    let mut tensors = filled(false, graph.state.tensors.len())?;
    for step in frozen.chains.iter().flatten() {
        match &step.action {
            PlannedAction::Kernel { call, .. } | PlannedAction::Delegate { call, .. } => {
                let ids = graph.args[call.args.range()].iter().enumerate();
                ids.filter(|&(arg, _)| call.access.is_out(arg)).for_each(|(_, &id)| values[id as usize] = true);
            }
            PlannedAction::MoveTensor { to, .. } => tensors[*to as usize] = true,
            _ => {}
        }
    }
    // A list is looked through once, however many instructions write it.
    for (value, _) in graph.state.values.iter().zip(values).filter(|(_, written)| *written) {
        match value {
            Value::Tensor(tensor) => tensors[*tensor as usize] = true,
            Value::TensorList(span) | Value::OptionalTensorList(span) => {
                for &item in graph.state.ids[span.range()].iter().filter(|&&item| item != NONE) {
                    if let Value::Tensor(tensor) = graph.state.values[item as usize] {
                        tensors[tensor as usize] = true;
                    }
                }
            }
            _ => {}
        }
    }
    let mut ranges = Vec::new();
    grow(&mut ranges, tensors.iter().filter(|written| **written).count())?;
    let written = graph.state.tensors.iter().zip(tensors).filter(|(_, written)| *written);
    ranges.extend(written.map(|(tensor, _)| tensor.region.addresses()));
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    Ok(ranges)
}

impl Method {
    /// Sets an input; a tensor without memory of its own may be lent until [`Method::take_back_inputs`]. The caller holds
    /// the locks of shared memories.
    pub(crate) fn bind(&mut self, index: usize, input: Input<'_>, lend: bool) -> Result<(), RunError> {
        let Some(slot) = self.inputs.get(index) else {
            let message = format!("the method has {}", self.inputs.len());
            return Err(input_error(index, ErrorCode::InvalidArgument, message));
        };
        let value = slot.value;
        let fail = |code, message| Err(input_error(index, code, message));
        let traced = |have: String, want: String| {
            fail(ErrorCode::InvalidArgument, format!("{have}, the program was traced with {want}"))
        };
        match (self.state.values[value as usize], input) {
            (Value::Null, Input::Null) => {}
            (Value::Int(_), Input::Int(have)) if slot.read => self.state.values[value as usize] = Value::Int(have),
            (Value::Bool(_), Input::Bool(have)) if slot.read => self.state.values[value as usize] = Value::Bool(have),
            (Value::Double(_), Input::Double(have)) if slot.read => {
                self.state.values[value as usize] = Value::Double(have);
            }
            (Value::Int(want), Input::Int(have)) if want == have => {}
            (Value::Int(want), Input::Int(have)) => return traced(have.to_string(), want.to_string()),
            (Value::Bool(want), Input::Bool(have)) if want == have => {}
            (Value::Bool(want), Input::Bool(have)) => return traced(have.to_string(), want.to_string()),
            (Value::Double(want), Input::Double(have)) if is_traced(have, want) => {}
            (Value::Double(want), Input::Double(have)) => return traced(have.to_string(), want.to_string()),
            (Value::Str(span), Input::Text(have)) => {
                let want = &self.state.text[span.range()];
                if want != have {
                    return traced(format!("{have:?}"), format!("{want:?}"));
                }
            }
            (Value::Tensor(tensor), Input::Tensor { dtype, sizes, dim_order, data }) => {
                let input = TensorInput { dtype, sizes, dim_order, data };
                self.bind_tensor(index, tensor, &input, lend)?;
            }
            (have, input) => {
                let message = format!("{} given, the program takes a {}", input.kind(), have.kind());
                return fail(ErrorCode::InvalidArgument, message);
            }
        }
        self.inputs[index].set = true;
        Ok(())
    }

    fn bind_tensor(&mut self, index: usize, tensor: u32, input: &TensorInput<'_>, lend: bool) -> Result<(), RunError> {
        let facts = self.state.tensors[tensor as usize];
        let meta = self.state.meta(&facts);
        let bounds = self.state.bounds(&facts);
        let fail = |code, message| Err(input_error(index, code, message));
        if input.dtype != facts.dtype {
            let message = format!("a {} tensor, the program takes {}", input.dtype, facts.dtype);
            return fail(ErrorCode::InvalidArgument, message);
        }
        let fits = input.sizes.len() == bounds.len()
            && match facts.dynamism {
                Dynamism::Static => input.sizes == bounds,
                Dynamism::Bound => input.sizes.iter().zip(bounds).all(|(size, bound)| size <= bound),
            };
        if !fits {
            let most = if facts.dynamism == Dynamism::Bound { "at most " } else { "" };
            let message = format!("sizes {:?}, the program takes {most}{bounds:?}", input.sizes);
            return fail(ErrorCode::NotSupported, message);
        }
        // Two orders of the same memory: dimensions of one element may stand anywhere.
        if input.dim_order != meta.dim_order && !same_order(input.sizes, input.dim_order, meta.dim_order) {
            let message = format!("dim order {:?}, the program takes {:?}", input.dim_order, meta.dim_order);
            return fail(ErrorCode::InvalidArgument, message);
        }
        let want = input.sizes.iter().product::<usize>() * facts.dtype.size().unwrap_or(0);
        if input.data.len() < want {
            let message = format!("{} bytes of data, the sizes need {want}", input.data.len());
            return fail(ErrorCode::InvalidArgument, message);
        }
        let data = &input.data[..want];
        self.state.resize(tensor, input.sizes).map_err(|error| {
            let message = match error {
                ResizeError::Rank(_) | ResizeError::Static | ResizeError::Bound => "the sizes do not fit".to_owned(),
            };
            input_error(index, ErrorCode::NotSupported, message)
        })?;
        let lent = Region::read_only(data);
        let (slot, facts) = (&mut self.inputs[index], &mut self.state.tensors[tensor as usize]);
        facts.freed = false;
        let own = slot.own.unwrap_or(facts.region);
        if lend && slot.own.is_some() && lent.is_aligned(facts.dtype.size().unwrap_or(1)) {
            // From here on the tensor has memory of the caller, until `take_back_inputs`.
            slot.lent = true;
            facts.region = lent;
        } else {
            facts.region = own;
            // SAFETY: the method is exclusively borrowed and holds the locks of its shared memories, so no view of its
            // memory is alive, neither here nor elsewhere; `data` is the caller's, who can only have bytes that are not
            // the method's: outputs of this one borrow it, those of others are never in a shared memory.
            unsafe { own.copy_from(&lent) };
        }
        Ok(())
    }

    /// Gives every input that was lent its own memory again, and asks for it anew.
    pub(crate) fn take_back_inputs(&mut self) {
        for slot in self.inputs.iter_mut().filter(|slot| slot.lent) {
            (slot.lent, slot.set) = (false, false);
            if let (Some(own), Value::Tensor(tensor)) = (slot.own, self.state.values[slot.value as usize]) {
                self.state.tensors[tensor as usize].region = own;
            }
        }
    }
}

/// The tensor case of [`Input`].
struct TensorInput<'a> {
    dtype: ScalarType,
    sizes: &'a [usize],
    dim_order: &'a [u8],
    data: &'a [u8],
}

pub(crate) fn input_error(index: usize, code: ErrorCode, message: String) -> RunError {
    RunError::Input { index, code, message }
}

/// Whether a double is the one the program was traced with, as the reference compares them.
fn is_traced(have: f64, want: f64) -> bool {
    have == want || (have.is_nan() && want.is_nan()) || (have - want).abs() <= 1e-4 + 1e-5 * want.abs()
}

/// Whether two dim orders put the elements of these sizes in the same places.
fn same_order(sizes: &[usize], a: &[u8], b: &[u8]) -> bool {
    let long = |order: &[u8]| -> Vec<u8> {
        order.iter().copied().filter(|&dim| sizes.get(dim as usize).is_none_or(|&size| size != 1)).collect()
    };
    a.len() == b.len() && long(a) == long(b)
}
