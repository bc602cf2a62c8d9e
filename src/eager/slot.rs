//! Arguments of calls.

use edgepack_exir::graph::{Argument, ListKind};

use super::EagerError;

/// An argument, with whatever stands for a tensor.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Slot<T = usize> {
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    Tensor(T),
    List(ListKind, Vec<Slot<T>>),
    Other(Argument),
}

impl<T> Slot<T> {
    /// Replaces what stands for each tensor.
    pub(super) fn map<U>(self, change: &mut impl FnMut(T) -> Result<U, EagerError>) -> Result<Slot<U>, EagerError> {
        Ok(match self {
            Slot::None => Slot::None,
            Slot::Int(number) => Slot::Int(number),
            Slot::Float(number) => Slot::Float(number),
            Slot::Bool(truth) => Slot::Bool(truth),
            Slot::Other(argument) => Slot::Other(argument),
            Slot::Tensor(tensor) => Slot::Tensor(change(tensor)?),
            Slot::List(kind, items) => {
                Slot::List(kind, items.into_iter().map(|item| item.map(change)).collect::<Result<_, _>>()?)
            }
        })
    }
}
