//! One of two methods that are compared: its rows one at a time, and keys of what is in them.
//!
//! A key is a guess: what has equal keys is a candidate for being the same, and is compared before anything is said of it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use edgepack_format::pte::{EValue, ExecutionPlan, Instruction, InstructionArguments, KernelTypes, Tensor};
use edgepack_format::row::{Rows, Scalar, Scalars, Table};
use edgepack_format::wire::ReadError;

use super::contents::{OfProgram, Place};
use super::made_up;
use crate::edit::content::Content;
use crate::edit::program::name_of;

/// Samples that stand for a content in its key, and the bytes of one.
const SAMPLES: u64 = 4;
const SAMPLE: u64 = 256;

/// A method with what its constants and payloads are read from.
pub(super) struct Side<'p, 'a> {
    pub(super) program: &'p OfProgram<'p, 'a>,
    /// Place of the method in its program.
    pub(super) index: usize,
    pub(super) plan: ExecutionPlan<'a>,
}

/// An instruction with the indices of its values.
pub(super) struct Call {
    pub(super) kind: CallKind,
    pub(super) args: Vec<i32>,
}

/// Kinds of instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallKind {
    /// Call of an operator.
    Operator(i32),
    /// Call of a delegate.
    Delegate(i32),
    /// Move from one value to another.
    Move,
    /// Jump to an instruction unless a value is true.
    Jump(i32),
    /// End of a value.
    Free,
    /// A kind without a name, or none at all.
    Unknown(Option<u8>),
}

impl From<Instruction<'_>> for Call {
    fn from(row: Instruction<'_>) -> Self {
        let list = |args: Option<Scalars<'_, i32>>| args.iter().flat_map(|args| args.iter()).collect();
        let (kind, args) = match row.instr_args {
            Some(InstructionArguments::KernelCall(call)) => (CallKind::Operator(call.op_index), list(call.args)),
            Some(InstructionArguments::DelegateCall(call)) => {
                (CallKind::Delegate(call.delegate_index), list(call.args))
            }
            Some(InstructionArguments::MoveCall(call)) => (CallKind::Move, vec![call.move_from, call.move_to]),
            Some(InstructionArguments::JumpFalseCall(call)) => {
                (CallKind::Jump(call.destination_instruction), vec![call.cond_value_index])
            }
            Some(InstructionArguments::FreeCall(call)) => (CallKind::Free, vec![call.value_index]),
            Some(InstructionArguments::Unknown(tag)) => (CallKind::Unknown(Some(tag)), Vec::new()),
            None => (CallKind::Unknown(None), Vec::new()),
        };
        Call { kind, args }
    }
}

/// Keys of the values of a method.
pub(super) struct ValueKeys {
    /// Of all that a value is: kind, shape, name, a sample of its bytes.
    pub(super) fine: Vec<u64>,
    /// Of its kind and shape.
    pub(super) coarse: Vec<u64>,
}

/// Keys of an instruction, from all that it is to the operator alone.
pub(super) type CallKeys = [u64; 3];

pub(super) fn key(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The number of rows of a list that may be absent.
pub(super) fn count<'a, T: Table<'a> + Clone>(rows: &Option<Rows<'a, T>>) -> usize {
    rows.as_ref().map_or(0, Rows::len)
}

/// A row of a list that may be absent.
pub(super) fn row<'a, T: Table<'a> + Clone>(rows: &Option<Rows<'a, T>>, index: usize) -> Result<Option<T>, ReadError> {
    match rows {
        Some(rows) if index < rows.len() => rows.get(index).map(Some),
        _ => Ok(None),
    }
}

/// The items of a list that may be absent.
pub(super) fn items<'s, T: Scalar>(list: &'s Option<Scalars<'_, T>>) -> impl Iterator<Item = T> + 's {
    list.iter().flat_map(|list| list.iter())
}

/// The values that a list is made of.
pub(super) fn members(value: &KernelTypes<'_>) -> Option<Vec<i32>> {
    match value {
        KernelTypes::IntList(list) => Some(items(&list.items).map(|item| i32::try_from(item).unwrap_or(-2)).collect()),
        KernelTypes::TensorList(list) => Some(items(&list.items).collect()),
        KernelTypes::OptionalTensorList(list) => Some(items(&list.items).collect()),
        _ => None,
    }
}

impl<'a> Side<'_, 'a> {
    pub(super) fn value_count(&self) -> usize {
        count(&self.plan.values)
    }

    /// A value; `None` if there is none of that index.
    pub(super) fn value(&self, index: i32) -> Result<Option<EValue<'a>>, ReadError> {
        match usize::try_from(index) {
            Ok(index) => row(&self.plan.values, index),
            Err(_) => Ok(None),
        }
    }

    /// The bytes of a value of the file, if it has some.
    pub(super) fn content(&self, index: usize, tensor: &Tensor<'a>) -> Option<Content> {
        let found = self.program.value(Place::Value(self.index, index), tensor).ok()??;
        Some(found.0)
    }

    pub(super) fn value_keys(&self) -> Result<ValueKeys, ReadError> {
        let count = self.value_count();
        let mut keys = ValueKeys { fine: Vec::with_capacity(count), coarse: Vec::with_capacity(count) };
        let mut samples = HashMap::new();
        for index in 0..count {
            let value = row(&self.plan.values, index)?.and_then(|value| value.val);
            let (fine, coarse) = match &value {
                Some(KernelTypes::Tensor(tensor)) => self.tensor_keys(index, tensor, &mut samples),
                Some(KernelTypes::Int(int)) => (key(int.int_val), 1),
                Some(KernelTypes::Bool(bool)) => (key(bool.bool_val), 2),
                Some(KernelTypes::Double(double)) => (key(double.double_val.to_bits()), 3),
                Some(KernelTypes::String(text)) => (key(text.string_val.as_deref()), 4),
                Some(KernelTypes::DoubleList(list)) => {
                    (items(&list.items).fold(1, |all, item| key((all, item.to_bits()))), 5)
                }
                Some(KernelTypes::BoolList(list)) => (items(&list.items).fold(1, |all, item| key((all, item))), 6),
                Some(KernelTypes::IntList(_)) => (0, 7),
                Some(KernelTypes::TensorList(_)) => (0, 8),
                Some(KernelTypes::OptionalTensorList(_)) => (0, 9),
                Some(KernelTypes::Null(_)) => (0, 10),
                Some(KernelTypes::Unknown(tag)) => (key(tag), 11),
                None => (0, 12),
            };
            keys.fine.push(key((coarse, fine)));
            keys.coarse.push(coarse);
        }
        // Lists are what their values are.
        let plain = keys.fine.clone();
        for index in 0..count {
            if !matches!(keys.coarse.get(index), Some(7..=9)) {
                continue;
            }
            let value = row(&self.plan.values, index)?.and_then(|value| value.val);
            let list = value.as_ref().and_then(members).unwrap_or_default();
            let all = list.iter().fold(1, |all, item| key((all, at(&plain, *item))));
            keys.fine[index] = key((keys.coarse[index], all));
        }
        Ok(keys)
    }

    fn tensor_keys(
        &self,
        index: usize,
        tensor: &Tensor<'a>,
        samples: &mut HashMap<(u32, bool, u64), u64>,
    ) -> (u64, u64) {
        let sizes: Vec<i32> = items(&tensor.sizes).collect();
        let order: Vec<u8> = items(&tensor.dim_order).collect();
        let name = name_of(tensor).filter(|name| !made_up(name));
        let list = tensor.extra_tensor_info.as_ref().map_or(0, |info| info.mutable_data_segments_idx);
        let coarse = key((100, tensor.scalar_type.0, &sizes));
        let place = (tensor.data_buffer_idx, tensor.allocation_info.is_some(), key((list, coarse)));
        let sample = *samples
            .entry(place)
            .or_insert_with(|| if tensor.data_buffer_idx == 0 { 0 } else { sample(self.content(index, tensor)) });
        let planned = tensor.allocation_info.is_some();
        (key((coarse, order, tensor.shape_dynamism.0, planned, name, sample)), coarse)
    }

    /// Keys of the instructions of a chain.
    pub(super) fn call_keys(
        &self,
        chain: &Option<Rows<'a, Instruction<'a>>>,
        values: &ValueKeys,
    ) -> Result<Vec<CallKeys>, ReadError> {
        let mut operators = Vec::with_capacity(count(&self.plan.operators));
        for operator in self.plan.operators.iter().flat_map(|rows| rows.iter()) {
            let operator = operator?;
            operators.push(key((operator.name.as_deref(), operator.overload.as_deref())));
        }
        let mut delegates = Vec::with_capacity(count(&self.plan.delegates));
        for (index, delegate) in self.plan.delegates.iter().flat_map(|rows| rows.iter()).enumerate() {
            let delegate = delegate?;
            let payload = self.program.delegate(Place::Delegate(self.index, index), &delegate).ok().flatten();
            delegates.push((key(delegate.id.as_deref()), sample(payload.map(|found| found.0))));
        }
        let mut keys = Vec::with_capacity(count(chain));
        for call in chain.iter().flat_map(|rows| rows.iter()) {
            let call = Call::from(call?);
            let (what, payload) = match call.kind {
                CallKind::Operator(index) => (key((1, at(&operators, index))), 0),
                CallKind::Delegate(index) => {
                    let found = usize::try_from(index).ok().and_then(|index| delegates.get(index));
                    let (id, payload) = found.copied().unwrap_or((key(index), 0));
                    (key((2, id)), payload)
                }
                CallKind::Move => (3, 0),
                CallKind::Jump(_) => (4, 0),
                CallKind::Free => (5, 0),
                CallKind::Unknown(tag) => (key((6, tag)), 0),
            };
            let all = |keys: &[u64]| call.args.iter().fold(what, |all, arg| key((all, at(keys, *arg))));
            keys.push([key((payload, all(&values.fine))), all(&values.coarse), key((what, call.args.len()))]);
        }
        Ok(keys)
    }
}

/// The key of an index, which may name nothing.
pub(super) fn at(keys: &[u64], index: i32) -> u64 {
    let known = usize::try_from(index).ok().and_then(|index| keys.get(index));
    known.copied().unwrap_or_else(|| key(("no such", index)))
}

/// A key of some bytes: of their number and a few of them.
pub(super) fn sample(content: Option<Content>) -> u64 {
    let Some(content) = content else { return 0 };
    let step = content.len().saturating_sub(SAMPLE) / (SAMPLES - 1);
    let mut all = key(content.len());
    for part in 0..SAMPLES {
        let start = step.saturating_mul(part);
        let end = start.saturating_add(SAMPLE).min(content.len());
        let part = content.slice(start..end).unwrap_or_default();
        all = key((all, part.read().ok()));
    }
    all
}
