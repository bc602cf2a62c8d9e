//! Every field of a program can be set through the builder, and is read, shown and dumped.

use std::collections::BTreeSet;

use edgepack_builder::pte::{Arg, Out, ProgramBuilder, TensorArg, TensorSpec, compile_spec};
use edgepack_builder::{BuildError, args, tensors};
use edgepack_format::pte::{DeviceType, Frame, Program, TensorShapeDynamism};
use edgepack_format::row::Table as _;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorView;
use edgepack_format::wire::Table;
use edgepack_tests::command::edgepack;
use edgepack_tests::fields::{all, told, written};

/// Fields whose only legal value is the one that is not written.
const FIXED: [&str; 2] = ["Program.version", "Tensor.storage_offset"];

fn floats(values: &'static [u8]) -> TensorView<'static> {
    TensorView::of::<f32>(&[values.len() / 4], values).unwrap()
}

fn everything() -> Result<Vec<u8>, BuildError> {
    let float = |sizes: &[usize]| TensorSpec::new(ScalarType::FLOAT, sizes);
    let mut program = ProgramBuilder::new();
    let w = program.constant("w", &floats(&[1; 8]))?;
    let far = program.external_constant("far", &floats(&[2; 8]), "weights")?;
    program.named_data("key", vec![3; 5], 1, None)?;
    let mut method = program.method("forward");
    let x = method.input(float(&[2]).requires_grad().layout_number(1).dynamism(TensorShapeDynamism::DYNAMIC_BOUND))?;
    method.output(w)?;
    method.output(far)?;
    method.state_from("first", float(&[1]), vec![1; 4], 0)?;
    method.state_from("second", float(&[1]), vec![1; 4], 1)?;
    method.tensor(float(&[1]).in_memory(2).at(1 << 33).on(DeviceType::CUDA, 3))?;
    let unplanned = method.tensor(float(&[2]).unplanned())?;
    let items: Vec<Arg> = args![
        (),
        7i64,
        true,
        0.5,
        "text",
        vec![1i64],
        vec![0.5],
        vec![true],
        tensors![x, w],
        vec![None, Some(TensorArg::from(x))],
    ]
    .into();
    for item in items {
        method.output(item)?;
    }
    method.containers("inputs", "outputs");
    let context = Some("return x".into());
    method.stack_trace([Frame { filename: Some("m.py".into()), lineno: 3, name: Some("forward".into()), context }]);
    method.call("aten::relu.out", args![x], float(&[2]).dynamic())?;
    method.call("aten::sym_size.int", args![x, 0i64], Out::Int)?;
    let specs = [compile_spec("threads", [1])];
    method.delegate("First", vec![4; 3], &specs)?;
    let second = method.delegate("Second", vec![5; 3], &[])?;
    method.call_delegate(second, args![x], float(&[2]))?;
    let end = method.label();
    method.jump_if_false(true, end)?;
    let y = method.tensor(float(&[2]))?;
    method.assign(w, y)?;
    method.free(unplanned)?;
    method.bind(end)?;
    method.chain_inputs([x])?.chain_outputs([y])?;
    program.finish()?.to_bytes()
}

fn old() -> Result<Vec<u8>, BuildError> {
    let mut program = ProgramBuilder::new();
    program.inline_constants(true).inline_delegates(true);
    let w = program.constant("w", &floats(&[1; 8]))?;
    let mut method = program.method("forward");
    let delegate = method.delegate("First", vec![4; 3], &[])?;
    let y = method.call_delegate(delegate, args![w], TensorSpec::like(w))?;
    method.output(y)?;
    program.finish()?.to_bytes()
}

#[test]
fn every_field_can_be_set_and_is_shown() {
    let mut seen = BTreeSet::new();
    let commands: [&[&str]; 3] = [&["inspect", "--all", "-"], &["inspect", "--all", "--json", "-"], &["dump", "-"]];
    let mut said = commands.map(|_| String::new());
    let mut dumped = BTreeSet::new();
    for bytes in [everything().unwrap(), old().unwrap()] {
        written(Table::root(&bytes).unwrap(), Program::DESC, &mut seen);
        for (command, said) in commands.iter().zip(&mut said) {
            let ran = edgepack(command, bytes.clone(), false);
            assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{command:?}");
            said.push_str(std::str::from_utf8(&ran.stdout).unwrap());
        }
        let dump = edgepack(&["dump", "-"], bytes, false).stdout;
        told(&serde_json::from_slice::<serde_json::Value>(&dump).unwrap()["program"], Program::DESC, &mut dumped);
    }
    for field in &seen {
        let name = field.rsplit(['.', ':']).next().unwrap();
        for (command, said) in commands.iter().zip(&said) {
            let words = said.split(|c: char| !c.is_alphanumeric() && c != '_');
            assert!(words.into_iter().any(|word| word == name), "{command:?} says nothing of {field}");
        }
    }
    let untold: Vec<_> = seen.difference(&dumped).collect();
    assert!(untold.is_empty(), "the dump lacks {untold:?}");
    let mut fields = BTreeSet::new();
    all(Program::DESC, &mut fields);
    let missing: Vec<_> = fields.difference(&seen).map(String::as_str).collect();
    assert_eq!(missing, FIXED);
    assert!(seen.len() > 90, "{}", seen.len());
}
