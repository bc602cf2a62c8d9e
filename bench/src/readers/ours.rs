//! This project's views: single slots, every access checked.

use edgepack_format::pte::{
    AllocationDetails, Bool, Chain, EValue, ExecutionPlan, Instruction, Int, IntList, KernelCall, ProgramRef, Tensor,
    TensorList,
};
use edgepack_format::wire;

use super::add;

/// The sum of a verified program.
pub fn walk(program: &ProgramRef<'_>) -> wire::Result<u64> {
    let mut sum = 0;
    for plan in program.plans().tables().iter() {
        let plan = plan?;
        for value in plan.get(ExecutionPlan::VALUES)?.unwrap_or_default().tables().iter() {
            let Some((tag, Some(value))) = value?.union(EValue::VAL.index)? else { continue };
            add(&mut sum, tag);
            match tag {
                2 => add(&mut sum, value.get(Int::INT_VAL)?),
                3 => add(&mut sum, value.get(Bool::BOOL_VAL)?),
                5 => tensor(&value, &mut sum)?,
                7 => value.get(IntList::ITEMS)?.iter().for_each(|items| items.iter().for_each(|i| add(&mut sum, i))),
                10 => {
                    value.get(TensorList::ITEMS)?.iter().for_each(|items| items.iter().for_each(|i| add(&mut sum, i)));
                }
                _ => {}
            }
        }
        for chain in plan.get(ExecutionPlan::CHAINS)?.unwrap_or_default().tables().iter() {
            for instruction in chain?.get(Chain::INSTRUCTIONS)?.unwrap_or_default().tables().iter() {
                let Some((tag, Some(call))) = instruction?.union(Instruction::INSTR_ARGS.index)? else { continue };
                add(&mut sum, tag);
                if tag == 1 {
                    add(&mut sum, call.get(KernelCall::OP_INDEX)?);
                    if let Some(args) = call.get(KernelCall::ARGS)? {
                        args.iter().for_each(|arg| add(&mut sum, arg));
                    }
                }
            }
        }
    }
    Ok(sum)
}

#[inline(always)]
fn tensor(table: &wire::Table<'_>, sum: &mut u64) -> wire::Result<()> {
    add(sum, table.get(Tensor::SCALAR_TYPE)?.0);
    add(sum, table.get(Tensor::DATA_BUFFER_IDX)?);
    if let Some(sizes) = table.get(Tensor::SIZES)? {
        sizes.iter().for_each(|size| add(sum, size));
    }
    if let Some(place) = table.table(Tensor::ALLOCATION_INFO.index)? {
        add(sum, place.get(AllocationDetails::MEMORY_ID)?);
        add(sum, place.get(AllocationDetails::MEMORY_OFFSET_LOW)?);
    }
    Ok(())
}
