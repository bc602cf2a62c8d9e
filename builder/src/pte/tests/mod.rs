//! Tests of programs that the builder finishes; [`refused`] has those it does not.

mod refused;

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

fn tensors<'a>(plan: &ExecutionPlan<'a>) -> Vec<Tensor<'a>> {
    let values = plan.values.as_ref().unwrap().iter().map(|row| row.unwrap().val.unwrap());
    let tensors = values.filter_map(|value| match value {
        KernelTypes::Tensor(tensor) => Some(tensor),
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
