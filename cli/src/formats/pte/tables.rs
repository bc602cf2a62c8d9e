//! Tables of a program read field by field: a broken field reads as absent, and the rest is still shown. What is broken
//! is for the findings to say.

use edgepack_format::pte::{Chain, ExecutionPlan, Program};
use edgepack_format::row::{Field, Slot};
use edgepack_format::wire;

fn field<'a, F: Field<'a> + Default>(table: &wire::Table<'a>, slot: Slot<F>) -> F {
    table.get(slot).unwrap_or_default()
}

/// The root, as far as it can be read.
pub fn program<'a>(table: &wire::Table<'a>) -> Program<'a> {
    Program {
        version: field(table, Program::VERSION),
        execution_plan: field(table, Program::EXECUTION_PLAN),
        constant_buffer: field(table, Program::CONSTANT_BUFFER),
        backend_delegate_data: field(table, Program::BACKEND_DELEGATE_DATA),
        segments: field(table, Program::SEGMENTS),
        constant_segment: field(table, Program::CONSTANT_SEGMENT),
        mutable_data_segments: field(table, Program::MUTABLE_DATA_SEGMENTS),
        named_data: field(table, Program::NAMED_DATA),
    }
}

/// The methods, as far as they can be read.
pub fn plans<'a>(program: &Program<'a>) -> Vec<ExecutionPlan<'a>> {
    let Some(plans) = &program.execution_plan else { return Vec::new() };
    plans.tables().iter().filter_map(Result::ok).map(|table| plan(&table)).collect()
}

fn plan<'a>(table: &wire::Table<'a>) -> ExecutionPlan<'a> {
    ExecutionPlan {
        name: field(table, ExecutionPlan::NAME),
        container_meta_type: field(table, ExecutionPlan::CONTAINER_META_TYPE),
        values: field(table, ExecutionPlan::VALUES),
        inputs: field(table, ExecutionPlan::INPUTS),
        outputs: field(table, ExecutionPlan::OUTPUTS),
        chains: field(table, ExecutionPlan::CHAINS),
        operators: field(table, ExecutionPlan::OPERATORS),
        delegates: field(table, ExecutionPlan::DELEGATES),
        non_const_buffer_sizes: field(table, ExecutionPlan::NON_CONST_BUFFER_SIZES),
        non_const_buffer_device: field(table, ExecutionPlan::NON_CONST_BUFFER_DEVICE),
    }
}

/// The chains of a method, as far as they can be read.
pub fn chains<'a>(plan: &ExecutionPlan<'a>) -> Vec<Chain<'a>> {
    let Some(chains) = &plan.chains else { return Vec::new() };
    let read = |table: wire::Table<'a>| Chain {
        inputs: field(&table, Chain::INPUTS),
        outputs: field(&table, Chain::OUTPUTS),
        instructions: field(&table, Chain::INSTRUCTIONS),
        stacktrace: field(&table, Chain::STACKTRACE),
    };
    chains.tables().iter().filter_map(Result::ok).map(read).collect()
}
