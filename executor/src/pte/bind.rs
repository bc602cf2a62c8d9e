//! Inputs: what a caller passes is checked against the program, then copied into the method's memory or, for the length of
//! one run, read where it is.

use edgepack_format::finding::ErrorCode;
use edgepack_format::notation::TensorType;
use edgepack_format::tensor::TensorView;

use crate::api::state::{Dynamism, ResizeError, Value};
use crate::api::storage::Region;
use crate::pte::error::RunError;
use crate::pte::input::Input;
use crate::pte::method::Method;

impl Method {
    /// Sets an input; without memory of its own it may borrow the caller's until [`Method::take_back_inputs`]. The
    /// caller holds the locks of shared memories.
    pub(crate) fn bind(&mut self, index: usize, input: Input<'_>, lend: bool) -> Result<(), RunError> {
        let Some(slot) = self.inputs.get(index) else {
            let message = format!("is not one of the method, which takes {}", inputs_in_words(self.inputs.len()));
            return Err(input_error(index, ErrorCode::InvalidArgument, message));
        };
        let value = slot.value;
        let fail = |code, message| Err(input_error(index, code, message));
        let traced = |have: String, want: String| {
            fail(ErrorCode::InvalidArgument, format!("wants {want}, which the program was traced with, got {have}"))
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
            (Value::Tensor(tensor), Input::Tensor(input)) => self.bind_tensor(index, tensor, &input, lend)?,
            (have, input) => {
                let message = format!("wants {}, got {}", self.wanted(&have), input.type_name());
                return fail(ErrorCode::InvalidArgument, message);
            }
        }
        self.inputs[index].set = true;
        Ok(())
    }

    fn bind_tensor(&mut self, index: usize, tensor: u32, input: &TensorView<'_>, lend: bool) -> Result<(), RunError> {
        let facts = self.state.tensors[tensor as usize];
        let meta = self.state.meta(&facts);
        let bounds = self.state.bounds(&facts);
        let fail = |code, message| Err(input_error(index, code, message));
        let (dtype, sizes, dim_order) =
            (input.layout().scalar_type(), input.layout().sizes(), input.layout().dim_order());
        let wants = || {
            format!("wants {}, got {}", self.wanted(&Value::Tensor(tensor)), Input::Tensor(input.clone()).type_name())
        };
        if dtype != facts.dtype {
            return fail(ErrorCode::InvalidArgument, wants());
        }
        let fits = sizes.len() == bounds.len()
            && match facts.dynamism {
                Dynamism::Static => sizes == bounds,
                Dynamism::Bound => sizes.iter().zip(bounds).all(|(size, bound)| size <= bound),
            };
        if !fits {
            return fail(ErrorCode::NotSupported, wants());
        }
        // Two orders of the same memory: dimensions of one element may be anywhere.
        if dim_order != meta.dim_order && !same_order(sizes, dim_order, meta.dim_order) {
            return fail(ErrorCode::InvalidArgument, wants());
        }
        let data = &input.data()[..input.layout().byte_len()];
        self.state.resize(tensor, sizes).map_err(|error| {
            let message = match error {
                ResizeError::Rank(_) | ResizeError::Static | ResizeError::Bound => "does not fit".to_owned(),
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

    /// A value of the program as an input wants it: `f32[2, 3]`, and `f32[8, 3] or smaller` where sizes are bounds.
    fn wanted(&self, value: &Value) -> String {
        let Value::Tensor(tensor) = value else { return kind_name(value).to_owned() };
        let facts = self.state.tensors[*tensor as usize];
        let sizes = self.state.bounds(&facts);
        let wanted = TensorType { element: facts.dtype, sizes, dim_order: self.state.meta(&facts).dim_order };
        let bound = if facts.dynamism == Dynamism::Bound { " or smaller" } else { "" };
        format!("{wanted}{bound}")
    }

    /// Gives every input that borrows the caller's memory its own memory again, and marks it as not set.
    pub(crate) fn take_back_inputs(&mut self) {
        for slot in self.inputs.iter_mut().filter(|slot| slot.lent) {
            (slot.lent, slot.set) = (false, false);
            if let (Some(own), Value::Tensor(tensor)) = (slot.own, self.state.values[slot.value as usize]) {
                self.state.tensors[tensor as usize].region = own;
            }
        }
    }
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "None",
        Value::Int(_) => "an integer",
        Value::Bool(_) => "a bool",
        Value::Double(_) => "a double",
        Value::Str(_) => "text",
        other => other.kind(),
    }
}

/// A number of inputs: `1 input`, `2 inputs`.
pub(crate) fn inputs_in_words(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} input{plural}")
}

pub(crate) fn input_error(index: usize, code: ErrorCode, message: String) -> RunError {
    RunError::Input { index, code, message }
}

/// Returns whether a double is the one the program was traced with, as the reference compares them.
fn is_traced(have: f64, want: f64) -> bool {
    have == want || (have.is_nan() && want.is_nan()) || (have - want).abs() <= 1e-4 + 1e-5 * want.abs()
}

/// Returns whether two dim orders put the elements of these sizes in the same places.
fn same_order(sizes: &[usize], a: &[u8], b: &[u8]) -> bool {
    let long = |order: &[u8]| -> Vec<u8> {
        order.iter().copied().filter(|&dim| sizes.get(dim as usize).is_none_or(|&size| size != 1)).collect()
    };
    a.len() == b.len() && long(a) == long(b)
}
