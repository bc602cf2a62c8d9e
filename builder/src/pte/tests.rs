//! What a program builder finishes, and what it refuses.

use edgepack_format::header::ProgramHeader;
use edgepack_format::limits::Limits;
use edgepack_format::pte::{
    DeviceType, ExecutionPlan, FileExtent, Frame, InstructionArguments, KernelTypes, Program, ProgramRef, Tensor,
    TensorShapeDynamism,
};
use edgepack_format::row::Blob;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};

use super::*;
use crate::content::Data;
use crate::plan::Strategy;
use crate::{BuildError, args};

const FLOAT: ScalarType = ScalarType::FLOAT;

fn spec(sizes: &[usize]) -> TensorSpec {
    TensorSpec::new(FLOAT, sizes)
}

fn floats<'d>(sizes: &[usize], data: &'d [u8]) -> TensorView<'d> {
    TensorView::of::<f32>(sizes, data).unwrap()
}

fn finish(program: ProgramBuilder<'_>) -> Vec<u8> {
    let bytes = program.finish().unwrap_or_else(|error| panic!("{error}")).to_bytes().unwrap();
    let parsed = ProgramRef::parse(&bytes, FileExtent::of(&bytes), &Limits::DEFAULT);
    assert!(parsed.is_ok(), "{}", parsed.unwrap_err());
    bytes
}

fn parse(bytes: &[u8]) -> Program<'_> {
    ProgramRef::reopen(bytes).unwrap().program().clone()
}

fn plan<'a>(bytes: &'a [u8], name: &str) -> ExecutionPlan<'a> {
    ProgramRef::reopen(bytes).unwrap().plan(name).unwrap()
}

fn tensors(plan: &ExecutionPlan<'_>) -> Vec<Tensor<'static>> {
    let values = plan.values.as_ref().unwrap().iter().map(|row| row.unwrap().val.unwrap());
    let tensors = values.filter_map(|value| match value {
        KernelTypes::Tensor(tensor) => {
            let owned = Tensor {
                sizes: tensor.sizes.map(|sizes| sizes.into_owned()),
                dim_order: tensor.dim_order.map(|order| order.into_owned()),
                extra_tensor_info: tensor.extra_tensor_info.map(|extra| edgepack_format::pte::ExtraTensorInfo {
                    fully_qualified_name: extra.fully_qualified_name.map(|name| name.into_owned().into()),
                    ..extra
                }),
                ..tensor
            };
            Some(owned)
        }
        _ => None,
    });
    tensors.collect()
}

fn calls(plan: &ExecutionPlan<'_>) -> Vec<(String, Vec<i32>)> {
    let chain = plan.chains.as_ref().unwrap().get(0).unwrap();
    let operators: Vec<_> = plan.operators.as_ref().unwrap().iter().map(Result::unwrap).collect();
    let steps = chain.instructions.unwrap();
    let name = |index: i32| {
        let operator = &operators[index as usize];
        format!("{}.{}", operator.name.as_deref().unwrap(), operator.overload.as_deref().unwrap())
    };
    steps
        .iter()
        .map(|row| match row.unwrap().instr_args.unwrap() {
            InstructionArguments::KernelCall(call) => (name(call.op_index), call.args.unwrap().iter().collect()),
            InstructionArguments::DelegateCall(call) => ("delegate".into(), call.args.unwrap().iter().collect()),
            InstructionArguments::MoveCall(call) => ("move".into(), vec![call.move_from, call.move_to]),
            InstructionArguments::JumpFalseCall(call) => {
                ("jump".into(), vec![call.cond_value_index, call.destination_instruction])
            }
            InstructionArguments::FreeCall(call) => ("free".into(), vec![call.value_index]),
            InstructionArguments::Unknown(_) => panic!(),
        })
        .collect()
}

#[test]
fn calls_follow_the_exporter_s_convention() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(spec(&[4, 6])).unwrap();
    let sum = forward.call("aten::add.out", args![x, x], TensorSpec::like(x)).unwrap();
    let long = || TensorSpec::new(ScalarType::LONG, [4]);
    let [most, at] = forward.call("aten::max.dim_max", args![sum, 1i64], [spec(&[4]), long()]).unwrap();
    let parts = forward
        .call("aten::split_with_sizes_copy.out", args![x, vec![2i64, 4], 1i64], vec![spec(&[4, 2]), spec(&[4, 4])])
        .unwrap();
    let size = forward.call("aten::sym_size.int", args![x, 0i64], Out::Int).unwrap();
    forward.call("aten::copy_", args![x, sum], ()).unwrap();
    for output in [most, at, parts[1], size] {
        forward.output(output).unwrap();
    }
    let bytes = finish(program);
    let plan = plan(&bytes, "forward");
    let calls = calls(&plan);
    let names: Vec<_> = calls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["aten::add.out", "aten::max.dim_max", "aten::split_with_sizes_copy.out", "aten::sym_size.int", "aten::copy_."]
    );
    let value = |index: i32| plan.values.as_ref().unwrap().get(index as usize).unwrap().val.unwrap();
    // self, other, alpha by default, out, out.
    let [_, _, alpha, out, again] = calls[0].1[..] else { panic!() };
    assert!(matches!(value(alpha), KernelTypes::Int(one) if one.int_val == 1) && out == again);
    // self, dim, keepdim, two outs, the list of them.
    let [.., first, second, list] = calls[1].1[..] else { panic!() };
    let KernelTypes::TensorList(list) = value(list) else { panic!() };
    assert_eq!(list.items.unwrap().iter().collect::<Vec<_>>(), [first, second]);
    // The list of outs, and another with the same items.
    let [.., outs, again] = calls[2].1[..] else { panic!() };
    assert!(outs != again && value(outs) == value(again));
    assert_eq!(calls[3].1.len(), 3);
    let [to, _, _, again] = calls[4].1[..] else { panic!() };
    assert_eq!(to, again);
}

#[test]
fn equal_constants_are_stored_once_and_shared_by_methods() {
    let (one, two) = ([1u8; 40], [2u8; 24]);
    let mut program = ProgramBuilder::new();
    let a = program.constant("a", &floats(&[10], &one)).unwrap();
    let b = program.constant("b", &floats(&[6], &two)).unwrap();
    let again =
        program.constant_from("again", TensorLayout::contiguous(FLOAT, &[5, 2]).unwrap(), one.to_vec()).unwrap();
    assert_eq!(program.constant("a", &floats(&[10], &one)).unwrap(), a);
    for name in ["prefill", "decode"] {
        let mut method = program.method(name);
        for constant in [b, a, again, a] {
            method.output(constant).unwrap();
        }
    }
    let bytes = finish(program);
    let row = parse(&bytes);
    let segment = row.constant_segment.unwrap();
    assert_eq!(segment.offsets.unwrap().iter().collect::<Vec<_>>(), [0, 0, 48]);
    assert_eq!(row.segments.unwrap().get(0).unwrap().size, 72);
    let names: Vec<_> = row.execution_plan.unwrap().iter().map(|plan| plan.unwrap().name.unwrap()).collect();
    assert_eq!(names, ["decode", "prefill"]);
    let buffers: Vec<_> = tensors(&plan(&bytes, "decode")).iter().map(|tensor| tensor.data_buffer_idx).collect();
    assert_eq!(buffers, [2, 1, 1]);
}

#[test]
fn the_file_is_laid_out_as_the_exporter_does() {
    // The worked examples of the format: constants, initial values, delegates, named data.
    let (weights, state) = ([1u8; 24], [2u8; 12]);
    let mut program = ProgramBuilder::new();
    let w = program.constant("w", &floats(&[6], &weights)).unwrap();
    program.named_data("a", vec![3; 48], 3, None).unwrap();
    program.named_data("b", vec![4; 12], 256, None).unwrap();
    program.named_data("c", vec![3; 48], 4, None).unwrap();
    let mut forward = program.method("forward");
    let s = forward.state_with("state", &floats(&[3], &state)).unwrap();
    let backend = forward.delegate("B", vec![5; 720], &[]).unwrap();
    let same = forward.delegate("B", vec![5; 720], &[compile_spec("k", [1])]).unwrap();
    let empty = forward.delegate("B", Vec::new(), &[]).unwrap();
    for delegate in [backend, same, empty] {
        let y = forward.call_delegate(delegate, args![w, s], spec(&[3])).unwrap();
        forward.output(y).unwrap();
    }
    let bytes = finish(program);
    let header = ProgramHeader::read(&bytes).unwrap();
    assert_eq!(header.segment_base_offset % 256, 0);
    assert_eq!(bytes.len() as u64, header.segment_base_offset + header.segment_data_size.unwrap());
    let row = parse(&bytes);
    let segments: Vec<_> = row.segments.unwrap().iter().map(Result::unwrap).map(|s| (s.offset, s.size)).collect();
    assert_eq!(segments, [(0, 24), (128, 12), (256, 720), (1152, 48), (1280, 12)]);
    let named: Vec<_> = row
        .named_data
        .unwrap()
        .iter()
        .map(Result::unwrap)
        .map(|n| (n.key.unwrap().into_owned(), n.segment_index))
        .collect();
    assert_eq!(named, [("a".into(), 3), ("b".into(), 4), ("c".into(), 3)]);
    let delegates: Vec<_> = plan(&bytes, "forward").delegates.unwrap().iter().map(Result::unwrap).collect();
    let places: Vec<_> = delegates.iter().map(|d| d.processed.unwrap()).map(|p| (p.location.0, p.index)).collect();
    assert_eq!(places, [(1, 2), (1, 2), (0, 0)]);
    assert_eq!(delegates[1].compile_specs.as_ref().unwrap().len(), 1);
    let start = header.segment_base_offset as usize + 1152;
    assert_eq!(bytes[start..start + 48], [3; 48]);
}

#[test]
fn alignments_are_those_asked_for() {
    let data = [7u8; 20];
    let mut program = ProgramBuilder::new();
    program.segment_alignment(4096).unwrap().tensor_alignment(64).unwrap();
    program.delegate_alignment(1024).unwrap().memory_alignment(256).unwrap().inline_delegates(true);
    let a = program.constant("a", &floats(&[5], &data)).unwrap();
    let b = program.constant("b", &floats(&[4], &data[..16])).unwrap();
    let mut forward = program.method("forward");
    let delegate = forward.delegate("B", vec![9; 33], &[]).unwrap();
    let y = forward.call_delegate(delegate, args![a, b], [spec(&[1]), spec(&[1])]).unwrap();
    forward.output(y[0]).unwrap();
    forward.output(y[1]).unwrap();
    let bytes = finish(program);
    let row = parse(&bytes);
    assert_eq!(ProgramHeader::read(&bytes).unwrap().segment_base_offset % 4096, 0);
    assert_eq!(row.constant_segment.unwrap().offsets.unwrap().iter().collect::<Vec<_>>(), [0, 0, 64]);
    let at = bytes.windows(33).position(|window| window == [9; 33]).unwrap();
    assert_eq!(at % 1024, 0);
    let plan = plan(&bytes, "forward");
    assert_eq!(plan.non_const_buffer_sizes.as_ref().unwrap().iter().collect::<Vec<_>>(), [0, 512]);
    let refused = |result: Result<&mut ProgramBuilder<'_>, BuildError>| result.err().unwrap().to_string();
    let mut program = ProgramBuilder::new();
    assert_eq!(
        refused(program.tensor_alignment(14)),
        "constants: an alignment of 14, it must be a power of two from 1 to 65536"
    );
    assert!(program.segment_alignment(0).is_err() && program.segment_alignment(1 << 31).is_err());
    assert!(program.memory_alignment(8).is_err() && program.delegate_alignment(1 << 17).is_err());
}

#[test]
fn constants_can_be_inline() {
    let data = [7u8; 20];
    let mut program = ProgramBuilder::new();
    program.inline_constants(true);
    let a = program.constant("a", &floats(&[5], &data)).unwrap();
    program.method("forward").output(a).unwrap();
    let bytes = finish(program);
    let row = parse(&bytes);
    let buffers: Vec<_> = row.constant_buffer.unwrap().iter().map(|buffer| buffer.unwrap().storage.unwrap()).collect();
    assert_eq!(buffers, [Blob(Vec::new().into()), Blob(data.to_vec().into())]);
    assert!(row.constant_segment.is_none() && ProgramHeader::read(&bytes).is_err());
}

#[test]
fn memory_is_planned_where_and_how_it_is_asked_for() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    forward.plan_inputs(false);
    let x = forward.input(spec(&[8])).unwrap();
    let kept = forward.input(spec(&[8]).planned()).unwrap();
    let far =
        forward.call("aten::add.out", args![x, kept], TensorSpec::like(x).in_memory(3).at(0x1_0000_0010)).unwrap();
    let device = forward.call("aten::add.out", args![far, x], TensorSpec::like(x).on(DeviceType::CUDA, 1)).unwrap();
    let y = forward.call("aten::add.out", args![device, x], TensorSpec::like(x)).unwrap();
    forward.output(y).unwrap();
    let bytes = finish(program);
    let plan = plan(&bytes, "forward");
    let places: Vec<_> = tensors(&plan)
        .iter()
        .map(|tensor| tensor.allocation_info.map(|at| (at.memory_id, at.memory_offset())))
        .collect();
    assert_eq!(places, [None, Some((1, 0)), Some((3, 0x1_0000_0010)), Some((2, 0)), Some((1, 0))]);
    assert_eq!(plan.non_const_buffer_sizes.as_ref().unwrap().iter().collect::<Vec<_>>(), [0, 32, 32, 0x1_0000_0030]);
    let devices: Vec<_> = plan.non_const_buffer_device.unwrap().iter().map(Result::unwrap).collect();
    assert_eq!((devices.len(), devices[0].buffer_idx, devices[0].device_type), (1, 2, DeviceType::CUDA));
}

#[test]
fn places_that_cannot_be_are_refused() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    forward.tensor(spec(&[4]).in_memory(2).on(DeviceType::CUDA, 0)).unwrap();
    for (spec, want) in [
        (spec(&[4]).in_memory(0), "memory 0 is reserved"),
        (spec(&[4]).in_memory(1).at(6), "offset 0x6 for elements of 4 bytes"),
        (spec(&[4]).at(16), "but of which memory"),
        (spec(&[4]).in_memory(2), "it is on CPU:0, memory 2 on CUDA:0"),
        (spec(&[4]).unplanned().in_memory(1), "no planned memory"),
        (spec(&[4]).in_memory(1).at(u64::MAX - 3), "16 bytes from"),
        (spec(&[4]).in_memory(1 << 20), "at most 4096"),
        (spec(&[4]).dynamism(TensorShapeDynamism(9)), "dynamism"),
    ] {
        let error = forward.tensor(spec).unwrap_err();
        assert!(matches!(error, BuildError::Memory { .. }) && error.to_string().contains(want), "{error}");
    }
    let order = spec(&[2, 2]).dim_order([0, 0]);
    assert!(matches!(forward.tensor(order), Err(BuildError::Layout { .. })));
    assert!(matches!(forward.tensor(spec(&[1 << 31, 1])), Err(BuildError::Layout { .. })));
    assert!(matches!(forward.tensor(spec(&[1; 17])), Err(BuildError::Layout { .. })));
}

#[test]
fn ids_from_elsewhere_are_refused() {
    let mut other = ProgramBuilder::new();
    let stray = other.method("x").input(spec(&[2])).unwrap();
    let constant = other.constant("c", &floats(&[2], &[0; 8])).unwrap();
    let mut program = ProgramBuilder::new();
    let mut prefill = program.method("prefill");
    let theirs = prefill.input(spec(&[2])).unwrap();
    let label = prefill.label();
    let delegate = prefill.delegate("B", vec![1], &[]).unwrap();
    prefill.chain();
    prefill.output(theirs).unwrap();
    prefill.jump_if_false(true, label).unwrap();
    prefill.chain();
    let error = prefill.jump_if_false(true, label).unwrap_err().to_string();
    assert_eq!(error, "label 0 of chain 0 of method `prefill` is used in chain 1 of method `prefill`");
    let mut decode = program.method("decode");
    let x = decode.input(spec(&[2])).unwrap();
    let message = |result: Result<ValueId, BuildError>| result.unwrap_err().to_string();
    assert_eq!(message(decode.output(theirs)), "value 0 of method `prefill` is used in method `decode`");
    assert_eq!(message(decode.output(stray)), "value 0 of another program is used in method `decode`");
    assert_eq!(message(decode.output(constant)), "constant 0 of another program is used in method `decode`");
    for result in [
        decode.call("aten::add.out", args![x, theirs], TensorSpec::like(x)),
        decode.call("aten::add.out", args![x, x], TensorSpec::like(theirs)),
        decode.call("aten::cat.out", args![vec![x, stray]], TensorSpec::like(x)),
    ] {
        assert!(matches!(result, Err(BuildError::Foreign { .. })));
    }
    assert!(matches!(decode.call("aten::add.out", args![x, x], theirs), Err(BuildError::Foreign { .. })));
    assert!(matches!(decode.call_delegate(delegate, args![x], ()), Err(BuildError::Foreign { .. })));
    assert!(matches!(decode.bind(label), Err(BuildError::Foreign { .. })));
    assert!(matches!(decode.assign(theirs, x), Err(BuildError::Foreign { .. })));
}

#[test]
fn calls_that_do_not_fit_their_schema_say_both_sides() {
    let mut program = ProgramBuilder::new();
    let w = program.constant("w", &floats(&[2], &[0; 8])).unwrap();
    let mut forward = program.method("forward");
    let x = forward.input(spec(&[2])).unwrap();
    let before = forward.value(1i64).unwrap();
    let like = || TensorSpec::like(x);
    let mut refused =
        |operator: &str, args: Vec<Arg>, outs: Vec<Out>| forward.call(operator, args, outs).unwrap_err().to_string();
    let tensor = || vec![Out::Tensor(like())];
    for (operator, args, outs, want) in [
        (
            "aten::ad.out",
            vec![],
            tensor(),
            "the operator `aten::ad.out` is not known; give its schema instead of its name",
        ),
        ("aten::add.out", args![x].into(), tensor(), "aten::add.out: 1 arguments, 2 to 3 are asked for"),
        ("aten::add.out", args![x, x, 1i64, 2i64].into(), tensor(), "aten::add.out: 4 arguments, 2 to 3 are asked for"),
        (
            "aten::add.out",
            args![x, 1i64].into(),
            tensor(),
            "`other` of aten::add.out: an integer where a tensor is asked for",
        ),
        (
            "aten::add.out",
            args![x, before].into(),
            tensor(),
            "`other` of aten::add.out: an integer (value 1) where a tensor is asked for",
        ),
        ("aten::add.out", args![x, x].into(), vec![], "aten::add.out: 0 results, 1 are asked for"),
        (
            "aten::add.out",
            args![x, x].into(),
            vec![Out::Int],
            "result of aten::add.out: an integer where a tensor is asked for",
        ),
        (
            "aten::copy_",
            args![w, x].into(),
            vec![],
            "`self` of aten::copy_ would write to constant 0, which is constant",
        ),
        (
            "aten::sym_size.int",
            args![x, 0i64].into(),
            tensor(),
            "result of aten::sym_size.int: a tensor where an integer is asked for",
        ),
        (
            "aten::mean.dim",
            args![x].into(),
            tensor(),
            "the operator `aten::mean.dim` is not known; give its schema instead of its name",
        ),
        ("n::a(Tensor", vec![], vec![], "`n::a(Tensor`: expected an argument name at byte 11 of the operator schema"),
    ] {
        assert_eq!(refused(operator, args, outs), want);
    }
    let constant = forward.output(w).unwrap();
    let error = forward.call("aten::add.out", args![x, x], constant).unwrap_err();
    assert!(matches!(error, BuildError::ConstantWritten { .. }), "{error}");
}

#[test]
fn operators_of_one_s_own_are_known_by_their_schema() {
    let schema = "my::scale.out(Tensor self, float by=2, *, Tensor(a!) out) -> Tensor(a!)";
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(spec(&[2])).unwrap();
    let y = forward.call(schema, args![x], TensorSpec::like(x)).unwrap();
    let z = forward.call("my::scale.out", args![y, 3i64], TensorSpec::like(x)).unwrap();
    forward.output(z).unwrap();
    assert!(matches!(
        forward.call("my::scale.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", args![x], TensorSpec::like(x)),
        Err(BuildError::Conflict { .. })
    ));
    let bytes = finish(program);
    let plan = plan(&bytes, "forward");
    assert_eq!(plan.operators.as_ref().unwrap().len(), 1);
    let values = plan.values.unwrap();
    let doubles = values.iter().filter(|row| matches!(row.as_ref().unwrap().val, Some(KernelTypes::Double(_))));
    assert_eq!(doubles.count(), 2);
}

#[test]
fn jumps_moves_and_frees_are_checked() {
    let mut program = ProgramBuilder::new();
    let w = program.constant("w", &floats(&[2], &[0; 8])).unwrap();
    let mut forward = program.method("forward");
    let x = forward.input(spec(&[2])).unwrap();
    let flag = forward.input(TensorSpec::new(ScalarType::BOOL, [1])).unwrap();
    let y = forward.tensor(spec(&[2]).unplanned()).unwrap();
    let (top, end) = (forward.label(), forward.label());
    forward.bind(top).unwrap();
    let message = |result: Result<(), BuildError>| result.unwrap_err().to_string();
    assert_eq!(message(forward.bind(top)), "label 0 of chain 0 of method `forward` has a place already");
    assert_eq!(message(forward.jump(top)), "label 0 of chain 0 of method `forward` is the jump itself");
    forward.jump_if_false(flag, end).unwrap();
    forward.assign(x, y).unwrap();
    forward.jump(top).unwrap();
    let wrong = message(forward.jump_if_false(x, end));
    assert_eq!(
        wrong,
        "jump at 3 of method `forward`: a tensor that is not BOOL (value 0) where a bool or a BOOL tensor is asked for"
    );
    let constant = forward.output(w).unwrap();
    assert!(matches!(forward.assign(x, constant), Err(BuildError::ConstantWritten { .. })));
    assert!(matches!(forward.assign(1i64, y), Err(BuildError::Kind { .. })));
    assert!(matches!(forward.free(constant), Err(BuildError::Kind { .. })));
    forward.free(y).unwrap();
    let unbound = "label 1 of chain 0 of method `forward` is jumped to but has no place";
    assert_eq!(program.finish().unwrap_err().to_string(), unbound);
}

#[test]
fn labels_become_places() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let (x, c) = (forward.input(spec(&[2])).unwrap(), forward.input(TensorSpec::new(ScalarType::BOOL, [1])).unwrap());
    let (otherwise, end) = (forward.label(), forward.label());
    let out = forward.tensor(spec(&[2])).unwrap();
    forward.jump_if_false(c, otherwise).unwrap();
    let twice = forward.call("aten::add.out", args![x, x], spec(&[2])).unwrap();
    forward.assign(twice, out).unwrap();
    forward.jump(end).unwrap();
    forward.bind(otherwise).unwrap();
    forward.assign(x, out).unwrap();
    forward.bind(end).unwrap();
    forward.output(out).unwrap();
    let bytes = finish(program);
    let calls = calls(&plan(&bytes, "forward"));
    assert_eq!((calls[0].1[1], calls[3].1[1], calls.len()), (4, 5, 5));
}

#[test]
fn all_kinds_of_values_chains_traces_and_containers() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(spec(&[2]).requires_grad().layout_number(3)).unwrap();
    let n = forward.value(4i64).unwrap();
    let kinds = args![
        (),
        1i64,
        true,
        f64::NEG_INFINITY,
        "floor",
        vec![IntArg::from(1i64), n.into()],
        vec![true, false],
        vec![0.5, 1.5],
        vec![x, x],
        vec![Some(TensorArg::from(x)), None],
        ScalarType::HALF
    ];
    for kind in kinds {
        forward.output(kind).unwrap();
    }
    forward.containers("in", "out");
    let frame = Frame { filename: Some("m.py".into()), lineno: 3, name: None, context: Some("x + x".into()) };
    forward.stack_trace([frame.clone()]);
    let y = forward.call("aten::add.out", args![x, x], TensorSpec::like(x)).unwrap();
    forward.stack_trace([]);
    forward.call("aten::copy_", args![x, y], ()).unwrap();
    forward.chain_outputs([y]).unwrap();
    forward.chain().chain_inputs([y]).unwrap();
    forward.call("aten::copy_", args![x, y], ()).unwrap();
    let bytes = finish(program);
    let plan = plan(&bytes, "forward");
    let kinds: std::collections::BTreeSet<_> = plan
        .values
        .as_ref()
        .unwrap()
        .iter()
        .map(|row| edgepack_format::row::Union::tag(&row.unwrap().val.unwrap()))
        .collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), (1..=11).collect::<Vec<_>>());
    let containers = plan.container_meta_type.unwrap();
    assert_eq!(
        (containers.encoded_inp_str.as_deref(), containers.encoded_out_str.as_deref()),
        (Some("in"), Some("out"))
    );
    let chains: Vec<_> = plan.chains.as_ref().unwrap().iter().map(Result::unwrap).collect();
    assert_eq!(
        (chains.len(), chains[0].outputs.as_ref().unwrap().len(), chains[1].inputs.as_ref().unwrap().len()),
        (2, 1, 1)
    );
    let traces: Vec<_> =
        chains[0].stacktrace.as_ref().unwrap().iter().map(|trace| trace.unwrap().items.unwrap().len()).collect();
    assert_eq!((traces, chains[1].stacktrace.is_none()), (vec![1, 0], true));
    assert_eq!(
        (tensors(&self::plan(&bytes, "forward"))[0].layout, tensors(&self::plan(&bytes, "forward"))[0].requires_grad),
        (3, true)
    );
}

#[test]
fn inputs_outputs_and_state_are_what_runtimes_take() {
    let mut program = ProgramBuilder::new();
    let w = program.constant("w", &floats(&[2], &[0; 8])).unwrap();
    let mut forward = program.method("forward");
    let x = forward.input(spec(&[2])).unwrap();
    forward.input_value("text").unwrap();
    assert!(matches!(forward.input_value(x), Err(BuildError::Conflict { .. })));
    assert!(matches!(forward.input_value(w), Err(BuildError::ConstantWritten { .. })));
    assert!(matches!(forward.input_value(vec![1i64]), Err(BuildError::Kind { .. })));
    let state = forward.state("cache", spec(&[4])).unwrap();
    assert!(matches!(forward.state("cache", spec(&[4])), Err(BuildError::Conflict { .. })));
    assert!(matches!(forward.state("", spec(&[4])), Err(BuildError::Name { .. })));
    assert!(matches!(forward.state("u", spec(&[4]).unplanned()), Err(BuildError::Memory { .. })));
    assert!(matches!(forward.state_from("s", spec(&[4]), vec![0; 15], 0), Err(BuildError::Length { .. })));
    assert!(matches!(forward.state_from("s", spec(&[4]), vec![0; 16], 1), Err(BuildError::Memory { .. })));
    forward.state_from("first", spec(&[4]), vec![1; 16], 0).unwrap();
    forward.state_from("second", spec(&[4]), vec![2; 16], 1).unwrap();
    forward.state_external("third", &floats(&[2], &[3; 8]), "extra").unwrap();
    forward.output(state).unwrap();
    let built = program.finish().unwrap();
    let bytes = built.to_bytes().unwrap();
    assert_eq!(built.data_files().map(|(tag, _)| tag).collect::<Vec<_>>(), ["extra"]);
    let plan = plan(&bytes, "forward");
    let found: Vec<_> = tensors(&plan)
        .iter()
        .filter_map(|tensor| {
            Some((tensor.data_buffer_idx, tensor.extra_tensor_info.as_ref()?.mutable_data_segments_idx))
        })
        .collect();
    // The constant, then state without a first value, with one in each list, and in a data file.
    assert_eq!(found, [(1, 0), (0, 0), (1, 0), (1, 1), (0, 0)]);
    // State lives always: no two of them, nor anything else, share a byte.
    assert_eq!(plan.non_const_buffer_sizes.unwrap().iter().collect::<Vec<_>>(), [0, 16 * 5]);
}

#[test]
fn external_constants_go_to_data_files() {
    let (one, two) = ([1u8; 8], [2u8; 16]);
    let mut program = ProgramBuilder::new();
    let a = program.external_constant("a", &floats(&[2], &one), "weights").unwrap();
    let b = program.external_constant("b", &floats(&[4], &two), "weights").unwrap();
    let c = program.external_constant("c", &floats(&[2], &one), "more").unwrap();
    assert!(matches!(
        program.external_constant("a", &floats(&[1, 2], &one), "weights"),
        Err(BuildError::Conflict { .. })
    ));
    assert!(matches!(program.external_constant("d", &floats(&[2], &one), "../x"), Err(BuildError::Name { .. })));
    assert!(matches!(program.constant("a", &floats(&[2], &one)), Err(BuildError::Conflict { .. })));
    let mut forward = program.method("forward");
    for constant in [a, b, c] {
        forward.output(constant).unwrap();
    }
    let built = program.finish().unwrap();
    let tags: Vec<_> = built.data_files().map(|(tag, file)| (tag.to_owned(), !file.is_empty())).collect();
    assert_eq!(tags, [("more".to_owned(), true), ("weights".to_owned(), true)]);
    let folder = std::env::temp_dir().join(format!("edgepack-external-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    built.write_to_path(folder.join("m.pte")).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["m.pte", "more.ptd", "weights.ptd"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn names_stand_for_one_thing() {
    let mut program = ProgramBuilder::new();
    program.constant("w", &floats(&[2], &[0; 8])).unwrap();
    let error = program.constant("w", &floats(&[1, 2], &[0; 8])).unwrap_err().to_string();
    assert_eq!(error, "the constant `w` is FLOAT[2] with bytes 0 already, now FLOAT[1, 2] with bytes 0");
    let short = program.constant_from("v", TensorLayout::contiguous(FLOAT, &[2]).unwrap(), vec![0; 7]).unwrap_err();
    assert_eq!(short.to_string(), "tensor `v`: 7 bytes of data for a tensor of 8");
    program.getter("vocabulary", args![32_000i64, "text"]).unwrap();
    assert!(matches!(program.getter("vocabulary", args![1i64]), Err(BuildError::Conflict { .. })));
    let x = program.method("forward").input(spec(&[2])).unwrap();
    assert!(matches!(program.getter("other", args![x]), Err(BuildError::Foreign { .. })));
    assert_eq!(program.method("forward").input(spec(&[2])).unwrap().index, 1);
    program.method("vocabulary");
    assert!(matches!(program.finish(), Err(BuildError::Conflict { .. })));
}

#[test]
fn getters_come_last_and_have_no_memory() {
    let mut program = ProgramBuilder::new();
    program.getter("a_getter", args![3i64]).unwrap();
    program.method("zebra").output(1i64).unwrap();
    program.method("forward");
    let bytes = finish(program);
    let plans: Vec<_> = parse(&bytes).execution_plan.unwrap().iter().map(Result::unwrap).collect();
    let names: Vec<_> = plans.iter().map(|plan| plan.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["forward", "zebra", "a_getter"]);
    let sizes = |plan: &ExecutionPlan<'_>| plan.non_const_buffer_sizes.as_ref().unwrap().iter().collect::<Vec<_>>();
    assert_eq!((sizes(&plans[1]), sizes(&plans[2])), (vec![0, 0], vec![0]));
    assert_eq!(plans[2].container_meta_type.as_ref().unwrap().encoded_inp_str.as_deref(), Some(""));
}

#[test]
fn contents_stream_from_anywhere() {
    let layout = TensorLayout::contiguous(ScalarType::BYTE, &[1 << 20, 3]).unwrap();
    let mut program = ProgramBuilder::new();
    let sparse = program.constant_from("sparse", layout, Data::zeros(3 << 20)).unwrap();
    program.method("forward").output(sparse).unwrap();
    let built = program.finish().unwrap();
    assert!(built.program().head().len() < 4096);
    let mut count = Count(0);
    built.write_to(&mut count).unwrap();
    assert_eq!(count.0, built.program().len());

    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}

#[test]
fn every_strategy_gives_a_plan_that_verifies() {
    for strategy in [Strategy::Greedy, Strategy::BestFit, Strategy::Smallest] {
        let mut program = ProgramBuilder::new();
        program.strategy(strategy);
        let mut forward = program.method("forward");
        let mut x = forward.input(spec(&[16])).unwrap();
        for _ in 0..10 {
            x = forward.call("aten::add.out", args![x, x], TensorSpec::like(x)).unwrap();
        }
        forward.output(x).unwrap();
        let bytes = finish(program);
        let sizes: Vec<_> = plan(&bytes, "forward").non_const_buffer_sizes.unwrap().iter().collect();
        assert_eq!(sizes, [0, 128], "{strategy:?}");
    }
}
