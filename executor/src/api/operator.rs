//! Facts that an operator's schema states about its calls, in the form that checking and freezing need.

use edgepack_format::finding::ErrorCode;
use edgepack_format::notation::ValueName;
use edgepack_format::operators::{Schema, Trailing};
use edgepack_format::pte::KernelTypes;

use crate::api::context::MAX_ARGS;
use crate::api::error::KernelError;
use crate::api::kernel::Operator;
use crate::api::state::{State, Value, ValueId};

/// Facts about one operator, computed once per method.
#[derive(Clone, Debug)]
pub struct OperatorInfo {
    /// Per place of a call: the tags of values it takes, as bits.
    accepted: Vec<u16>,
    /// Names of the arguments, for messages.
    names: Vec<String>,
    /// Bit per argument: a tensor or list of tensors the operator writes.
    outs: u128,
    /// Bit per place of a call: only there to receive a result, which is written whole.
    results: u128,
    /// Values that follow the arguments in a call.
    trailing: Trailing,
}

/// Tags of numbers, as bits.
const NUMBERS: u16 = 1 << 2 | 1 << 3 | 1 << 4;

impl OperatorInfo {
    /// Reads a kernel's schema.
    pub fn parse(kernel: &dyn Operator) -> Result<Self, KernelError> {
        let text = [kernel.name(), kernel.schema()].concat();
        let schema = Schema::parse(&text).map_err(|error| {
            KernelError::new(ErrorCode::Internal, format!("the schema of {}: {error}", kernel.name()))
        })?;
        let len = schema.stack_len();
        if len > MAX_ARGS {
            return Err(KernelError::unsupported(format!("{} takes {len} arguments", kernel.name())));
        }
        let accepted =
            (0..len).map(|index| (0..12).filter(|&tag| schema.accepts(index, tag)).fold(0, |m, tag| m | 1 << tag));
        Ok(OperatorInfo {
            accepted: accepted.collect(),
            names: schema.args().iter().map(|arg| arg.name.to_owned()).collect(),
            outs: schema.mutated().fold(0, |mask, index| mask | 1 << index),
            results: match schema.trailing() {
                Trailing::Result => 1 << schema.args().len(),
                _ => schema.outs().fold(0, |mask, index| mask | 1 << index),
            },
            trailing: schema.trailing(),
        })
    }

    /// Number of arguments in the schema; calls may repeat the result after them.
    pub fn arity(&self) -> usize {
        self.names.len()
    }

    /// Returns the kind of values that follow the arguments in a call.
    pub(crate) fn trailing(&self) -> Trailing {
        self.trailing
    }

    /// Bit per argument: a tensor or list of tensors the operator writes. A tensor that receives a result of its own,
    /// after the schema's arguments, counts too.
    pub fn outs(&self) -> u128 {
        self.outs
    }

    /// Bit per place of a call: a tensor, or list of tensors, that is only there to receive a result. Others that the
    /// operator writes it may read first, or write in part.
    pub(crate) fn results(&self) -> u128 {
        self.results
    }

    /// Checks that this call fits the schema: number and kinds of its values.
    pub(crate) fn check(&self, ids: &[ValueId], state: &State, variable: &[bool]) -> Result<(), KernelError> {
        if ids.len() != self.accepted.len() {
            let message = format!("a call with {} values, the operator takes {}", ids.len(), self.accepted.len());
            return Err(KernelError::new(ErrorCode::InvalidProgram, message));
        }
        for (index, (&id, &accepted)) in ids.iter().zip(&self.accepted).enumerate() {
            let value = &state.values[id as usize];
            let tag = 1 << value.tag();
            // A number that is computed may change its kind; it is looked at when it is used.
            let computed = variable[id as usize] && tag & NUMBERS != 0 && accepted & NUMBERS != 0;
            if accepted & tag == 0 && !computed {
                let name = self.names.get(index).map_or("the result", String::as_str);
                let message = format!(
                    "`{name}` is {id}, a {}, which the schema does not allow",
                    value.kind(),
                    id = ValueName(id)
                );
                return Err(KernelError::kind(message));
            }
        }
        Ok(())
    }

    /// Marks the values a call writes.
    pub(crate) fn mark_written(&self, ids: &[ValueId], variable: &mut [bool]) {
        let mut outs = self.outs;
        while outs != 0 {
            if let Some(&id) = ids.get(outs.trailing_zeros() as usize) {
                variable[id as usize] = true;
            }
            outs &= outs - 1;
        }
        if self.trailing == Trailing::Result
            && let Some(&id) = ids.get(self.arity())
        {
            variable[id as usize] = true;
        }
    }
}

impl Value {
    /// Its tag in the `KernelTypes` union.
    pub fn tag(&self) -> u8 {
        match self {
            Value::Null => KernelTypes::NULL,
            Value::Int(_) => KernelTypes::INT,
            Value::Bool(_) => KernelTypes::BOOL,
            Value::Double(_) => KernelTypes::DOUBLE,
            Value::Tensor(_) => KernelTypes::TENSOR,
            Value::Str(_) => KernelTypes::STRING,
            Value::IntList(_) => KernelTypes::INT_LIST,
            Value::DoubleList(_) => KernelTypes::DOUBLE_LIST,
            Value::BoolList(_) => KernelTypes::BOOL_LIST,
            Value::TensorList(_) => KernelTypes::TENSOR_LIST,
            Value::OptionalTensorList(_) => KernelTypes::OPTIONAL_TENSOR_LIST,
        }
    }

    /// Returns whether it is an integer, a bool or a double.
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::Bool(_) | Value::Double(_))
    }
}
