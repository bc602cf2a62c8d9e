//! Chains, instructions, operators and delegates that are not what they should be.

use edgepack_format::pte::{
    BackendDelegateDataReference, BackendDelegateInlineData, CompileSpec, DataLocation, DelegateCall, FrameList,
    FreeCall, InstructionArguments, JumpFalseCall, KernelCall, MoveCall, Operator, TensorDataLocation,
};
use edgepack_format::rules::pte as rule;

use super::base::blob;
use super::{Case, changed, changed_full};

fn jump(cond_value_index: i32, destination_instruction: i32) -> InstructionArguments<'static> {
    InstructionArguments::JumpFalseCall(JumpFalseCall { cond_value_index, destination_instruction })
}

fn call(op_index: i32, args: &[i32]) -> InstructionArguments<'static> {
    InstructionArguments::KernelCall(KernelCall { op_index, args: Some(args.to_vec().into()) })
}

fn delegate_call(delegate_index: i32, args: &[i32]) -> InstructionArguments<'static> {
    InstructionArguments::DelegateCall(DelegateCall { delegate_index, args: Some(args.to_vec().into()) })
}

fn code() -> Vec<Case> {
    const FIRST: &str = "execution_plan[0].chains[0].instructions[0].instr_args";
    const ARGS: &str = "execution_plan[0].chains[0].instructions[0].instr_args.args";
    const ARG: &str = "execution_plan[0].chains[0].instructions[0].instr_args.args[1]";
    const OP: &str = "execution_plan[0].chains[0].instructions[0].instr_args.op_index";
    const COND: &str = "execution_plan[0].chains[0].instructions[3].instr_args.cond_value_index";
    const TARGET: &str = "execution_plan[0].chains[0].instructions[3].instr_args.destination_instruction";
    const DELEGATE: &str = "execution_plan[0].chains[0].instructions[1].instr_args.delegate_index";
    const FREE: &str = "execution_plan[0].chains[0].instructions[4].instr_args.value_index";
    let first = |id, rule, path, args| changed(id, rule, path, |rows| *rows.instruction(0) = Some(args));
    let second = |id, rule, path, args| changed_full(id, rule, path, |rows| *rows.instruction(1) = Some(args));
    let moved = |id, rule, path, move_from, move_to| {
        changed_full(id, rule, path, |rows| {
            *rows.instruction(2) = Some(InstructionArguments::MoveCall(MoveCall { move_from, move_to }));
        })
    };
    let jumps = |id, rule, path, args| changed_full(id, rule, path, |rows| *rows.instruction(3) = Some(args));
    let freed = |id, rule, value_index| {
        changed_full(id, rule, FREE, |rows| {
            *rows.instruction(4) = Some(InstructionArguments::FreeCall(FreeCall { value_index }));
        })
    };
    vec![
        changed("chains_absent", &rule::CHAINS, "execution_plan[0].chains", |rows| rows.plan().chains = None),
        changed("chains_empty", &rule::CHAINS, "execution_plan[0].chains", |rows| {
            rows.plan().chains = Some(Vec::new().into());
        }),
        changed("instructions_absent", &rule::INSTRUCTIONS, "execution_plan[0].chains[0].instructions", |rows| {
            rows.chain().instructions = None;
        }),
        changed("instruction_none", &rule::INSTRUCTION_KIND, FIRST, |rows| *rows.instruction(0) = None),
        first("instruction_unknown", &rule::INSTRUCTION_KIND, FIRST, InstructionArguments::Unknown(6)),
        first("op_index_5", &rule::OPERATOR_INDEX, OP, call(5, &[])),
        first("op_index_negative", &rule::OPERATOR_INDEX, OP, call(-1, &[])),
        changed("operators_absent", &rule::OPERATOR_INDEX, OP, |rows| rows.plan().operators = None),
        first("args_absent", &rule::ARGS, ARGS, {
            InstructionArguments::KernelCall(KernelCall { op_index: 0, args: None })
        }),
        first("arg_99", &rule::ARG_INDEX, ARG, call(0, &[0, 99])),
        first("arg_negative", &rule::ARG_INDEX, ARG, call(0, &[0, -1])),
        second("delegate_index_2", &rule::DELEGATE_INDEX, DELEGATE, delegate_call(2, &[])),
        second("delegate_index_negative", &rule::DELEGATE_INDEX, DELEGATE, delegate_call(-1, &[])),
        second("delegate_args_absent", &rule::ARGS, "execution_plan[0].chains[0].instructions[1].instr_args.args", {
            InstructionArguments::DelegateCall(DelegateCall { delegate_index: 0, args: None })
        }),
        second(
            "delegate_arg_14",
            &rule::ARG_INDEX,
            "execution_plan[0].chains[0].instructions[1].instr_args.args[0]",
            delegate_call(0, &[14]),
        ),
        moved(
            "move_from_14",
            &rule::ARG_INDEX,
            "execution_plan[0].chains[0].instructions[2].instr_args.move_from",
            14,
            2,
        ),
        moved(
            "move_to_negative",
            &rule::ARG_INDEX,
            "execution_plan[0].chains[0].instructions[2].instr_args.move_to",
            2,
            -1,
        ),
        moved("move_kinds", &rule::MOVE_KIND, "execution_plan[0].chains[0].instructions[2].instr_args", 2, 4),
        jumps("jump_negative", &rule::JUMP_TARGET, TARGET, jump(8, -7)),
        jumps("jump_beyond", &rule::JUMP_TARGET, TARGET, jump(8, 6)),
        jumps("jump_self", &rule::JUMP_SELF, TARGET, jump(8, 3)),
        jumps("jump_on_int", &rule::JUMP_CONDITION, COND, jump(4, 5)),
        jumps("jump_on_float_tensor", &rule::JUMP_CONDITION, COND, jump(0, 5)),
        jumps("jump_on_14", &rule::ARG_INDEX, COND, jump(14, 5)),
        freed("free_14", &rule::ARG_INDEX, 14),
        freed("free_int", &rule::FREE_KIND, 4),
        changed("chain_inputs", &rule::CHAIN_IO, "execution_plan[0].chains[0].inputs[0]", |rows| {
            rows.chain().inputs = Some(vec![4].into());
        }),
        changed("chain_outputs", &rule::CHAIN_IO, "execution_plan[0].chains[0].outputs[1]", |rows| {
            rows.chain().outputs = Some(vec![3, -1].into());
        }),
        changed("stacktrace_long", &rule::STACKTRACE, "execution_plan[0].chains[0].stacktrace", |rows| {
            rows.chain().stacktrace = Some(vec![FrameList::default(); 2].into());
        }),
    ]
}

fn operators() -> Vec<Case> {
    let named = |id, rule, path, name: Option<&'static str>, overload: Option<String>| {
        changed(id, rule, path, |rows| {
            let operator = Operator { name: name.map(Into::into), overload: overload.map(Into::into) };
            rows.plan().operators = Some(vec![operator].into());
        })
    };
    vec![
        named("operator_nameless", &rule::OPERATOR_NAME, "execution_plan[0].operators[0].name", None, None),
        named(
            "operator_long",
            &rule::OPERATOR_LONG,
            "execution_plan[0].operators[0]",
            Some("a::b"),
            Some("o".repeat(95)),
        ),
    ]
}

/// Faults that show only when calls are checked against the schemas of operators.
fn calls() -> Vec<Case> {
    const ARGS: &str = "execution_plan[0].chains[0].instructions[0].instr_args.args";
    const OUT: &str = "execution_plan[0].chains[0].instructions[0].instr_args.args[3]";
    let first = |id, rule, path, args| changed_full(id, rule, path, |rows| *rows.instruction(0) = Some(args));
    let operators = |id, rule, path, names: &[&'static str]| {
        let list = |name: &&'static str| Operator { name: Some((*name).into()), overload: Some("out".into()) };
        let list: Vec<_> = names.iter().map(list).collect();
        changed(id, rule, path, |rows| rows.plan().operators = Some(list.into()))
    };
    vec![
        first("call_short", &rule::CALL_LENGTH, ARGS, call(0, &[0, 1, 4, 2])),
        first("call_long", &rule::CALL_LENGTH, ARGS, call(0, &[0, 1, 4, 2, 2, 2])),
        first("call_kind", &rule::CALL_KIND, "execution_plan[0].chains[0].instructions[0].instr_args.args[1]", {
            call(0, &[0, 5, 4, 2, 2])
        }),
        first("call_constant", &rule::CALL_CONSTANT, OUT, call(0, &[0, 1, 4, 1, 1])),
        changed_full("call_external", &rule::CALL_CONSTANT, OUT, |rows| {
            rows.tensor(2).allocation_info = None;
            rows.extra(2).location = TensorDataLocation::EXTERNAL;
            rows.extra(2).fully_qualified_name = Some("weight".into());
        }),
        operators("operator_unknown", &rule::OPERATOR_UNKNOWN, "execution_plan[0].operators[0]", &["my::add"]),
        operators("operator_twice", &rule::OPERATOR_TWICE, "execution_plan[0].operators[1]", &["aten::add"; 2]),
    ]
    .into_iter()
    .map(Case::against_schemas)
    .collect()
}

fn delegates() -> Vec<Case> {
    const INDEX: &str = "execution_plan[0].delegates[0].processed.index";
    let refer = |id, rule, path, location, index| {
        changed_full(id, rule, path, |rows| *rows.payload(0) = BackendDelegateDataReference { location, index })
    };
    let spec = |id, path, key: Option<&'static str>, value: Option<&[u8]>| {
        let spec = CompileSpec { key: key.map(Into::into), value: value.map(blob) };
        changed_full(id, &rule::COMPILE_SPEC, path, |rows| rows.delegate(0).compile_specs = Some(vec![spec].into()))
    };
    vec![
        changed_full("delegate_nameless", &rule::DELEGATE_ID, "execution_plan[0].delegates[0].id", |rows| {
            rows.delegate(0).id = None;
        }),
        changed_full(
            "processed_absent",
            &rule::DELEGATE_PROCESSED,
            "execution_plan[0].delegates[0].processed",
            |rows| {
                rows.delegate(0).processed = None;
            },
        ),
        refer(
            "payload_location_5",
            &rule::DELEGATE_LOCATION,
            "execution_plan[0].delegates[0].processed.location",
            DataLocation(5),
            0,
        ),
        refer("payload_inline_7", &rule::DELEGATE_INLINE_INDEX, INDEX, DataLocation::INLINE, 7),
        changed_full("payload_list_absent", &rule::DELEGATE_INLINE_INDEX, INDEX, |rows| {
            rows.program.backend_delegate_data = None;
        }),
        refer("payload_segment_7", &rule::DELEGATE_SEGMENT_INDEX, INDEX, DataLocation::SEGMENT, 7),
        changed_full("payload_data_absent", &rule::DELEGATE_INLINE_DATA, INDEX, |rows| {
            rows.program.backend_delegate_data = Some(vec![BackendDelegateInlineData { data: None }].into());
        }),
        spec("spec_keyless", "execution_plan[0].delegates[0].compile_specs[0].key", None, Some(&[])),
        spec("spec_valueless", "execution_plan[0].delegates[0].compile_specs[0].value", Some("k"), None),
        changed_full("payload_unused", &rule::DELEGATE_UNREFERENCED, "backend_delegate_data[1]", |rows| {
            let payload = BackendDelegateInlineData { data: Some(blob(&[5; 4])) };
            rows.program.backend_delegate_data = Some(vec![payload.clone(), payload].into());
        }),
    ]
}

pub fn cases() -> Vec<Case> {
    [code(), operators(), calls(), delegates()].into_iter().flatten().collect()
}
