//! planus: generated code that checks every access.

use planus::ReadAsRoot as _;

use super::add;

#[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks)]
#[rustfmt::skip]
pub mod generated {
    include!("../../../tests/support/generated/schema.rs");
}

use generated::program::{InstructionArgumentsRef, KernelTypesRef, ProgramRef, TensorRef};

/// The sum of a program.
pub fn walk(bytes: &[u8]) -> planus::Result<u64> {
    let mut sum = 0;
    let program = ProgramRef::read_as_root(bytes)?;
    for plan in program.execution_plan()?.iter().flat_map(|plans| plans.iter()) {
        let plan = plan?;
        for value in plan.values()?.iter().flat_map(|values| values.iter()) {
            let Some(value) = value?.val()? else { continue };
            add(&mut sum, tag(&value));
            match value {
                KernelTypesRef::Int(value) => add(&mut sum, value.int_val()?),
                KernelTypesRef::Bool(value) => add(&mut sum, value.bool_val()?),
                KernelTypesRef::Tensor(value) => tensor(&value, &mut sum)?,
                KernelTypesRef::IntList(value) => {
                    value.items()?.iter().flat_map(|items| items.iter()).for_each(|item| add(&mut sum, item));
                }
                KernelTypesRef::TensorList(value) => {
                    value.items()?.iter().flat_map(|items| items.iter()).for_each(|item| add(&mut sum, item));
                }
                _ => {}
            }
        }
        for chain in plan.chains()?.iter().flat_map(|chains| chains.iter()) {
            for instruction in chain?.instructions()?.iter().flat_map(|list| list.iter()) {
                match instruction?.instr_args()? {
                    Some(InstructionArgumentsRef::KernelCall(call)) => {
                        add(&mut sum, 1);
                        add(&mut sum, call.op_index()?);
                        call.args()?.iter().flat_map(|args| args.iter()).for_each(|arg| add(&mut sum, arg));
                    }
                    Some(InstructionArgumentsRef::DelegateCall(_)) => add(&mut sum, 2),
                    Some(InstructionArgumentsRef::MoveCall(_)) => add(&mut sum, 3),
                    Some(InstructionArgumentsRef::JumpFalseCall(_)) => add(&mut sum, 4),
                    Some(InstructionArgumentsRef::FreeCall(_)) => add(&mut sum, 5),
                    None => {}
                }
            }
        }
    }
    Ok(sum)
}

fn tag(value: &KernelTypesRef<'_>) -> u8 {
    match value {
        KernelTypesRef::Null(_) => 1,
        KernelTypesRef::Int(_) => 2,
        KernelTypesRef::Bool(_) => 3,
        KernelTypesRef::Double(_) => 4,
        KernelTypesRef::Tensor(_) => 5,
        KernelTypesRef::String(_) => 6,
        KernelTypesRef::IntList(_) => 7,
        KernelTypesRef::DoubleList(_) => 8,
        KernelTypesRef::BoolList(_) => 9,
        KernelTypesRef::TensorList(_) => 10,
        KernelTypesRef::OptionalTensorList(_) => 11,
    }
}

fn tensor(tensor: &TensorRef<'_>, sum: &mut u64) -> planus::Result<()> {
    add(sum, tensor.scalar_type()? as i8);
    add(sum, tensor.data_buffer_idx()?);
    tensor.sizes()?.iter().flat_map(|sizes| sizes.iter()).for_each(|size| add(sum, size));
    if let Some(place) = tensor.allocation_info()? {
        add(sum, place.memory_id()?);
        add(sum, place.memory_offset_low()?);
    }
    Ok(())
}
