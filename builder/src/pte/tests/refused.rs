//! Tests of programs that the builder refuses, with both sides named.

use super::*;

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
    assert_eq!(message(decode.output(theirs)), "%0 of method `prefill` is used in method `decode`");
    assert_eq!(message(decode.output(stray)), "%0 of another program is used in method `decode`");
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
            "`other` of aten::add.out: an integer (%1) where a tensor is asked for",
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
        "jump at 3 of method `forward`: a tensor that is not bool (%0) where a bool, a number or a tensor of bool is asked for"
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
fn names_stand_for_one_thing() {
    let mut program = ProgramBuilder::new();
    program.constant("w", &floats(&[2], &[0; 8])).unwrap();
    let error = program.constant("w", &floats(&[1, 2], &[0; 8])).unwrap_err().to_string();
    assert_eq!(error, "the constant `w` is f32[2] with bytes 0 already, now f32[1, 2] with bytes 0");
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
