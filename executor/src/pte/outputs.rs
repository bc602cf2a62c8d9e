//! Outputs: read where the run left them, or, if other methods may write there, from a copy made at its end.

use crate::api::state::Value;
use crate::api::tensor::{TensorRef, TensorShape};
use crate::pte::input::Output;
use crate::pte::method::Method;

/// The outputs of a run, borrowed from the method.
#[derive(Clone, Copy)]
pub struct Outputs<'m> {
    pub(crate) method: &'m Method,
}

impl<'m> Outputs<'m> {
    /// Number of outputs.
    pub fn len(&self) -> usize {
        self.method.outputs.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.method.outputs.is_empty()
    }

    /// Output `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<Output<'m>> {
        let state = &self.method.state;
        let value = &state.values[*self.method.outputs.get(index)? as usize];
        Some(match value {
            Value::Null => Output::Null,
            Value::Int(value) => Output::Int(*value),
            Value::Bool(value) => Output::Bool(*value),
            Value::Double(value) => Output::Double(*value),
            Value::Str(span) => Output::Text(&state.text[span.range()]),
            Value::Tensor(tensor) => {
                let tensor = &state.tensors[*tensor as usize];
                let meta: TensorShape<'m> = state.meta(tensor);
                let copy = self.method.copies.get(index).copied().flatten();
                let region = copy.unwrap_or(tensor.region).prefix(meta.byte_len());
                // SAFETY: the memory belongs to this method alone or to its program: what is in a shared memory has a
                // copy. Nothing writes to it while `Outputs` borrows the method.
                Output::Tensor(TensorRef::new(meta, unsafe { region.bytes() }))
            }
            other => Output::List(other.kind()),
        })
    }

    /// All outputs in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Output<'m>> + use<'m> {
        let this = *self;
        (0..this.len()).map(move |index| this.get(index).unwrap_or(Output::Null))
    }
}

impl Method {
    /// Copies the outputs that are in shared memory to where only this method writes. The caller holds the locks.
    pub(crate) fn publish_outputs(&mut self) {
        for (&value, copy) in self.outputs.iter().zip(&self.copies) {
            if let (Value::Tensor(tensor), Some(copy)) = (self.state.values[value as usize], copy) {
                // SAFETY: the method is exclusively borrowed and holds the locks, so no view of either is alive; the copy
                // is in a block of its own.
                unsafe { copy.copy_from(&self.state.tensors[tensor as usize].region) };
            }
        }
    }
}
