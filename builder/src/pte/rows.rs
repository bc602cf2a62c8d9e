//! A method as a row of the program, planned memory apart.

use edgepack_format::pte::{
    BackendDelegate, BackendDelegateDataReference, Bool, BoolList, Chain, ContainerMetadata, DataLocation,
    DelegateCall, DeviceType, Double, DoubleList, EValue, ExecutionPlan, ExtraTensorInfo, FrameList, FreeCall,
    Instruction, InstructionArguments, Int, IntList, JumpFalseCall, KernelCall, KernelTypes, MoveCall, Null, Operator,
    OptionalTensorList, String as Text, Tensor as TensorRow, TensorDataLocation, TensorList,
};

use super::containers;
use super::parts::{self, Method, Step};
use super::program::{Constant, ProgramBuilder};
use super::values::{Initial, Role, Tensor, Value};
use crate::BuildError;
use crate::error::Error;

/// An index as files store it.
fn int(index: usize) -> Result<i32, Error> {
    i32::try_from(index).map_err(|_| Error::Overflow)
}

fn ints(indices: &[usize]) -> Result<Vec<i32>, Error> {
    indices.iter().map(|index| int(*index)).collect()
}

/// Locations of the delegates' payloads.
pub(super) struct Payloads {
    /// Index of each inline payload.
    pub(super) inline: Vec<u32>,
    /// Segment of each other payload.
    pub(super) segments: Vec<u32>,
}

/// The row of a method. Tensors have no places in planned memory yet.
pub(super) fn plan(
    method: &Method,
    program: &ProgramBuilder<'_>,
    payloads: &Payloads,
    getter: bool,
) -> Result<ExecutionPlan<'static>, BuildError> {
    let values: Result<Vec<_>, Error> =
        method.values.iter().map(|value| Ok(EValue { val: Some(value_row(value, &program.constants)?) })).collect();
    let chains: Result<Vec<_>, _> =
        method.chains.iter().enumerate().map(|(index, chain)| chain_row(method, index, chain)).collect();
    let operators = method
        .operators
        .iter()
        .map(|(name, overload)| Operator { name: Some(name.clone().into()), overload: Some(overload.clone().into()) });
    let delegates = method.delegates.iter().map(|delegate| {
        let list = if delegate.location == DataLocation::INLINE { &payloads.inline } else { &payloads.segments };
        let index = list.get(delegate.payload).copied().unwrap_or_default();
        BackendDelegate {
            id: Some(delegate.backend.clone().into()),
            processed: Some(BackendDelegateDataReference { location: delegate.location, index }),
            compile_specs: Some(delegate.specs.clone().into()),
        }
    });
    let (inputs, outputs) = &method.containers;
    let nothing = || if getter { String::new() } else { containers::arguments(method.inputs.len()) };
    let inputs = inputs.clone().unwrap_or_else(nothing);
    let outputs = outputs.clone().unwrap_or_else(|| containers::results(method.outputs.len()));
    Ok(ExecutionPlan {
        name: Some(method.name.clone().into()),
        container_meta_type: Some(ContainerMetadata {
            encoded_inp_str: Some(inputs.into()),
            encoded_out_str: Some(outputs.into()),
        }),
        values: Some(values?.into()),
        inputs: Some(ints(&method.inputs)?.into()),
        outputs: Some(ints(&method.outputs)?.into()),
        chains: Some(chains?.into()),
        operators: Some(operators.collect::<Vec<_>>().into()),
        delegates: Some(delegates.collect::<Vec<_>>().into()),
        non_const_buffer_sizes: Some(vec![0].into()),
        non_const_buffer_device: None,
    })
}

fn value_row(value: &Value, constants: &[Constant]) -> Result<KernelTypes<'static>, Error> {
    Ok(match value {
        Value::Null => KernelTypes::Null(Null {}),
        Value::Int(number) => KernelTypes::Int(Int { int_val: *number }),
        Value::Bool(truth) => KernelTypes::Bool(Bool { bool_val: *truth }),
        Value::Double(number) => KernelTypes::Double(Double { double_val: *number }),
        Value::Text(text) => KernelTypes::String(Text { string_val: Some(text.clone().into()) }),
        Value::Ints(items) => {
            let items: Vec<i64> = ints(items)?.into_iter().map(i64::from).collect();
            KernelTypes::IntList(IntList { items: Some(items.into()) })
        }
        Value::Bools(items) => KernelTypes::BoolList(BoolList { items: Some(items.clone().into()) }),
        Value::Doubles(items) => KernelTypes::DoubleList(DoubleList { items: Some(items.clone().into()) }),
        Value::Tensors(items) => KernelTypes::TensorList(TensorList { items: Some(ints(items)?.into()) }),
        Value::OptionalTensors(items) => {
            let items = items.iter().map(|item| item.map_or(Ok(-1), int)).collect::<Result<Vec<_>, _>>()?;
            KernelTypes::OptionalTensorList(OptionalTensorList { items: Some(items.into()) })
        }
        Value::Tensor(tensor) => KernelTypes::Tensor(tensor_row(tensor, constants)?),
    })
}

fn tensor_row(tensor: &Tensor, constants: &[Constant]) -> Result<TensorRow<'static>, Error> {
    let sizes: Vec<i32> = ints(tensor.layout.sizes())?;
    let (device_type, device_index) = tensor.place.device;
    let mut extra = ExtraTensorInfo { device_type, device_index, ..ExtraTensorInfo::default() };
    // Entry 0 of every list of buffers is reserved.
    let after_reserved = |buffer: usize| u32::try_from(buffer.saturating_add(1)).map_err(|_| Error::Overflow);
    let mut data_buffer_idx = 0;
    match &tensor.role {
        Role::Plain | Role::View(_) => {}
        Role::Constant(index) => {
            let constant = constants.get(*index);
            extra.fully_qualified_name = constant.map(|constant| constant.name.clone().into());
            match constant.and_then(|constant| constant.buffer) {
                Some(buffer) => data_buffer_idx = after_reserved(buffer)?,
                None => extra.location = TensorDataLocation::EXTERNAL,
            }
        }
        Role::State { name, initial } => {
            extra.fully_qualified_name = Some(name.clone().into());
            match initial {
                Initial::None => {}
                Initial::External => extra.location = TensorDataLocation::EXTERNAL,
                Initial::Buffer { list, buffer } => {
                    extra.mutable_data_segments_idx = *list;
                    data_buffer_idx = after_reserved(*buffer)?;
                }
            }
        }
    }
    let plain =
        matches!(tensor.role, Role::Plain | Role::View(_)) && (device_type, device_index) == (DeviceType::CPU, 0);
    Ok(TensorRow {
        scalar_type: tensor.layout.scalar_type(),
        sizes: Some(sizes.into()),
        dim_order: Some(tensor.layout.dim_order().to_vec().into()),
        data_buffer_idx,
        allocation_info: None,
        shape_dynamism: tensor.dynamism,
        extra_tensor_info: (!plain).then_some(extra),
        ..tensor.place.row.clone()
    })
}

fn chain_row(method: &Method, index: usize, chain: &parts::Chain) -> Result<Chain<'static>, BuildError> {
    let mut instructions = Vec::with_capacity(chain.steps.len());
    for (step, _) in &chain.steps {
        let args = match step {
            Step::Kernel { operator, args } => InstructionArguments::KernelCall(KernelCall {
                op_index: int(*operator)?,
                args: Some(ints(args)?.into()),
            }),
            Step::Delegate { delegate, args } => InstructionArguments::DelegateCall(DelegateCall {
                delegate_index: int(*delegate)?,
                args: Some(ints(args)?.into()),
            }),
            Step::Move { from, to } => {
                InstructionArguments::MoveCall(MoveCall { move_from: int(*from)?, move_to: int(*to)? })
            }
            Step::JumpFalse { condition, label } => {
                let place = chain.labels.get(*label).copied().flatten().ok_or_else(|| BuildError::Label {
                    label: *label,
                    owner: format!("chain {index} of method `{}`", method.name),
                    what: "is jumped to but has no place",
                })?;
                InstructionArguments::JumpFalseCall(JumpFalseCall {
                    cond_value_index: int(*condition)?,
                    destination_instruction: int(place)?,
                })
            }
            Step::Free { value } => InstructionArguments::FreeCall(FreeCall { value_index: int(*value)? }),
        };
        instructions.push(Instruction { instr_args: Some(args) });
    }
    let traced = chain.steps.iter().any(|(_, frames)| frames.is_some());
    let traces =
        chain.steps.iter().map(|(_, frames)| FrameList { items: Some(frames.clone().unwrap_or_default().into()) });
    Ok(Chain {
        inputs: Some(ints(&chain.inputs)?.into()),
        outputs: Some(ints(&chain.outputs)?.into()),
        instructions: Some(instructions.into()),
        stacktrace: traced.then(|| traces.collect::<Vec<_>>().into()),
    })
}
