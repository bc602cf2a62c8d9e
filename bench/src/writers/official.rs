//! The official `flatbuffers` crate, fed by hand: its generated code for Rust has no owned rows.

use edgepack_format::pte;
use edgepack_format::row::{Rows, Scalars, Table};
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, Vector, WIPOffset};

use crate::readers::official::generated::program_generated::program as out;
use crate::readers::official::generated::scalar_type_generated::scalar_type::ScalarType;

/// The flatbuffer of rows with the kinds of values and instructions that `programs::rows` makes.
pub fn write(program: &pte::Program<'_>) -> Vec<u8> {
    let mut fbb = FlatBufferBuilder::new();
    let plans: Vec<_> = rows(&program.execution_plan).map(|row| plan(&mut fbb, &row)).collect();
    let execution_plan = Some(fbb.create_vector(&plans));
    let segments: Vec<_> = rows(&program.segments)
        .map(|row| out::DataSegment::create(&mut fbb, &out::DataSegmentArgs { offset: row.offset, size_: row.size }))
        .collect();
    let segments = Some(fbb.create_vector(&segments));
    let constants = program.constant_segment.as_ref().map(|row| {
        let offsets = numbers(&mut fbb, &row.offsets);
        out::SubsegmentOffsets::create(
            &mut fbb,
            &out::SubsegmentOffsetsArgs { segment_index: row.segment_index, offsets },
        )
    });
    let args = out::ProgramArgs { execution_plan, segments, constant_segment: constants, ..Default::default() };
    let root = out::Program::create(&mut fbb, &args);
    fbb.finish(root, Some("ET12"));
    fbb.finished_data().to_vec()
}

type Builder = FlatBufferBuilder<'static>;

fn plan(fbb: &mut Builder, plan: &pte::ExecutionPlan<'_>) -> WIPOffset<out::ExecutionPlan<'static>> {
    let values: Vec<_> = rows(&plan.values).map(|row| value(fbb, row.val)).collect();
    let chains: Vec<_> = rows(&plan.chains)
        .map(|chain| {
            let instructions: Vec<_> = rows(&chain.instructions).map(|row| instruction(fbb, row.instr_args)).collect();
            let args = out::ChainArgs { instructions: Some(fbb.create_vector(&instructions)), ..Default::default() };
            out::Chain::create(fbb, &args)
        })
        .collect();
    let operators: Vec<_> = rows(&plan.operators)
        .map(|row| {
            let name = row.name.as_deref().map(|text| fbb.create_string(text));
            let overload = row.overload.as_deref().map(|text| fbb.create_string(text));
            out::Operator::create(fbb, &out::OperatorArgs { name, overload })
        })
        .collect();
    let args = out::ExecutionPlanArgs {
        name: plan.name.as_deref().map(|text| fbb.create_string(text)),
        values: Some(fbb.create_vector(&values)),
        inputs: numbers(fbb, &plan.inputs),
        outputs: numbers(fbb, &plan.outputs),
        chains: Some(fbb.create_vector(&chains)),
        operators: Some(fbb.create_vector(&operators)),
        delegates: Some(fbb.create_vector::<WIPOffset<out::BackendDelegate<'_>>>(&[])),
        non_const_buffer_sizes: numbers(fbb, &plan.non_const_buffer_sizes),
        ..Default::default()
    };
    out::ExecutionPlan::create(fbb, &args)
}

fn value(fbb: &mut Builder, value: Option<pte::KernelTypes<'_>>) -> WIPOffset<out::EValue<'static>> {
    let (val_type, val): (_, Option<WIPOffset<UnionWIPOffset>>) = match value {
        Some(pte::KernelTypes::Int(row)) => {
            let int = out::Int::create(fbb, &out::IntArgs { int_val: row.int_val });
            (out::KernelTypes::Int, Some(int.as_union_value()))
        }
        Some(pte::KernelTypes::IntList(row)) => {
            let items = numbers(fbb, &row.items);
            (out::KernelTypes::IntList, Some(out::IntList::create(fbb, &out::IntListArgs { items }).as_union_value()))
        }
        Some(pte::KernelTypes::Tensor(row)) => {
            let place = row.allocation_info.as_ref().map(|place| out::AllocationDetailsArgs {
                memory_id: place.memory_id,
                memory_offset_low: place.memory_offset_low,
                memory_offset_high: place.memory_offset_high,
            });
            let args = out::TensorArgs {
                scalar_type: ScalarType(row.scalar_type.0),
                sizes: numbers(fbb, &row.sizes),
                dim_order: numbers(fbb, &row.dim_order),
                data_buffer_idx: row.data_buffer_idx,
                allocation_info: place.map(|args| out::AllocationDetails::create(fbb, &args)),
                ..Default::default()
            };
            (out::KernelTypes::Tensor, Some(out::Tensor::create(fbb, &args).as_union_value()))
        }
        other => panic!("no such value is made here: {other:?}"),
    };
    out::EValue::create(fbb, &out::EValueArgs { val_type, val })
}

fn instruction(
    fbb: &mut Builder,
    arguments: Option<pte::InstructionArguments<'_>>,
) -> WIPOffset<out::Instruction<'static>> {
    let Some(pte::InstructionArguments::KernelCall(call)) = arguments else { panic!("only calls are made here") };
    let args = out::KernelCallArgs { op_index: call.op_index, args: numbers(fbb, &call.args) };
    let args = out::InstructionArgs {
        instr_args_type: out::InstructionArguments::KernelCall,
        instr_args: Some(out::KernelCall::create(fbb, &args).as_union_value()),
    };
    out::Instruction::create(fbb, &args)
}

fn rows<'a, T: Table<'a> + Clone>(rows: &Option<Rows<'a, T>>) -> impl Iterator<Item = T> {
    rows.iter().flat_map(|rows| rows.iter()).map(|row| row.expect("rows in memory"))
}

fn numbers<'f, T>(fbb: &mut FlatBufferBuilder<'f>, list: &Option<Scalars<'_, T>>) -> Option<WIPOffset<Vector<'f, T>>>
where
    T: edgepack_format::row::Scalar + flatbuffers::Push<Output = T> + 'f,
{
    let list: Vec<T> = list.as_ref()?.iter().collect();
    Some(fbb.create_vector(&list))
}
