//! Choices of a caller: numbers that a program reads, state by name, options of backends, where named data go.

use std::sync::Arc;
use std::sync::Mutex;

use edgepack_builder::args;
use edgepack_builder::pte::{Arg, Out, ProgramBuilder, TensorSpec};
use edgepack_executor::delegate::{Backend, Backends, Delegate, DelegateInit, OptionValue};
use edgepack_executor::kernel::KernelError;
use edgepack_executor::{Input, Method, Options, RunError};
use edgepack_format::limits::Limits;
use edgepack_format::pte::{DeviceType, TensorShapeDynamism};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorView;
use edgepack_loader::{DataFile, Error, NamedDataMap, Program};

fn view(values: &[f32]) -> TensorView<'_> {
    TensorView::of::<f32>(&[values.len()], bytemuck::cast_slice(values)).unwrap()
}

fn input(values: &[f32]) -> Input<'_> {
    Input::Tensor(TensorView::of::<f32>(&[2], bytemuck::cast_slice(values)).unwrap())
}

fn spec() -> TensorSpec {
    TensorSpec::new(ScalarType::FLOAT, [2])
}

fn load(program: ProgramBuilder<'_>, options: &Options) -> Method {
    let program = Program::from_bytes(program.finish().unwrap().to_bytes().unwrap()).unwrap();
    Method::load(&program, "forward", &edgepack_kernels::registry(), options).unwrap()
}

fn first(method: &Method) -> Vec<f32> {
    method.outputs().get(0).unwrap().tensor().unwrap().as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn a_number_that_instructions_read_is_the_callers() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(spec()).unwrap();
    let times = forward.input_value(3i64).unwrap();
    let unread = forward.input_value(7i64).unwrap();
    let _ = unread;
    let y = forward.call("aten::mul.Scalar_out", args![x, times], spec()).unwrap();
    forward.output(y).unwrap();
    let mut method = load(program, &Options::default());
    for (number, wanted) in [(3, [3.0, 6.0]), (5, [5.0, 10.0]), (-1, [-1.0, -2.0])] {
        method.run(&[input(&[1.0, 2.0]), Input::Int(number), Input::Int(7)]).unwrap();
        assert_eq!(first(&method), wanted);
    }
    let refused = method.run(&[input(&[1.0, 2.0]), Input::Int(3), Input::Int(8)]).err().unwrap();
    assert!(matches!(refused, RunError::Input { index: 2, .. }), "{refused}");
}

#[test]
fn kernels_do_not_keep_numbers_that_callers_choose() {
    for no_optimize in [false, true] {
        let mut program = ProgramBuilder::new();
        let mut forward = program.method("forward");
        let x = forward.input(spec()).unwrap();
        let (alpha, least) = (forward.input_value(3i64).unwrap(), forward.input_value(0.0).unwrap());
        let sum = forward.call("aten::add.out", args![x, x, alpha], spec()).unwrap();
        let y = forward.call("aten::clamp.out", args![sum, least, 100.0], spec()).unwrap();
        forward.output(y).unwrap();
        let mut method = load(program, &Options { no_optimize, ..Options::default() });
        for (alpha, least, wanted) in [(3, 0.0, [4.0, 8.0]), (5, 7.0, [7.0, 12.0]), (-1, -1.0, [0.0, 0.0])] {
            method.run(&[input(&[1.0, 2.0]), Input::Int(alpha), Input::Double(least)]).unwrap();
            assert_eq!(first(&method), wanted);
        }
    }
}

#[test]
fn a_number_that_a_call_makes_a_bool_of_can_be_a_condition() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(spec()).unwrap();
    let count = forward.input_value(0i64).unwrap();
    // The value is an Int in the file; the call leaves a bool in it.
    let holds = forward.call("executorch_prim::lt.Scalar", args![count, 4i64], Out::Int).unwrap();
    let y = forward.tensor(spec()).unwrap();
    let (otherwise, end) = (forward.label(), forward.label());
    forward.jump_if_false(holds, otherwise).unwrap();
    let twice = forward.call("aten::mul.Scalar_out", args![x, 2i64], spec()).unwrap();
    forward.assign(twice, y).unwrap();
    forward.jump(end).unwrap();
    forward.bind(otherwise).unwrap();
    let tenfold = forward.call("aten::mul.Scalar_out", args![x, 10i64], spec()).unwrap();
    forward.assign(tenfold, y).unwrap();
    forward.bind(end).unwrap();
    forward.output(y).unwrap();
    let mut method = load(program, &Options::default());
    for (number, wanted) in [(3, [2.0, 4.0]), (4, [10.0, 20.0])] {
        method.run(&[input(&[1.0, 2.0]), Input::Int(number)]).unwrap();
        assert_eq!(first(&method), wanted);
    }
}

#[test]
fn state_is_read_and_written_by_name() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(spec()).unwrap();
    let sum = forward.state("layer.sum", spec()).unwrap();
    let next = forward.call("aten::add.out", args![sum, x, 1i64], spec()).unwrap();
    forward.call("aten::copy_", [Arg::Value(sum), Arg::Value(next), Arg::Bool(false)], ()).unwrap();
    forward.output(next).unwrap();
    let mut method = load(program, &Options::default());
    assert_eq!(method.attributes().unwrap(), ["layer.sum"]);
    method.run(&[view(&[1.0, 2.0])]).unwrap();
    method.run(&[view(&[1.0, 2.0])]).unwrap();
    let sum = method.attribute("layer.sum").unwrap();
    assert_eq!(sum.layout().sizes(), [2]);
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(sum.data()), [2.0, 4.0]);
    method.set_attribute("layer.sum", view(&[10.0, 20.0])).unwrap();
    method.run(&[view(&[1.0, 2.0])]).unwrap();
    assert_eq!(first(&method), [11.0, 22.0]);
    for refused in [
        method.set_attribute("layer.sum", view(&[1.0])).unwrap_err(),
        method.set_attribute("other", view(&[1.0, 2.0])).unwrap_err(),
        method.attribute("other").unwrap_err(),
    ] {
        assert!(matches!(refused, RunError::Attribute { .. }), "{refused}");
    }
}

#[test]
fn a_tensor_without_a_bound_has_the_memory_of_its_sizes() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let unbound = || spec().dynamism(TensorShapeDynamism::DYNAMIC_UNBOUND);
    let x = forward.input(unbound()).unwrap();
    let y = forward.call("aten::mul.Scalar_out", args![x, 2i64], unbound()).unwrap();
    forward.output(y).unwrap();
    let program = Program::from_bytes(program.finish().unwrap().to_bytes().unwrap()).unwrap();
    let registry = edgepack_kernels::registry();
    let mut method = Method::load(&program, "forward", &registry, &Options::default()).unwrap();
    for values in [&[1.0f32, 2.0][..], &[3.0]] {
        method.run(&[view(values)]).unwrap();
        assert_eq!(first(&method), values.iter().map(|value| value * 2.0).collect::<Vec<_>>());
    }
    let refused = method.run(&[view(&[1.0, 2.0, 3.0])]).err().unwrap();
    assert!(matches!(refused, RunError::Input { index: 0, .. }), "{refused}");
    // It is charged like any other memory.
    let mut limits = Limits::DEFAULT;
    limits.memory_bytes = 8;
    let options = Options { limits: Some(limits), ..Options::default() };
    assert!(Method::load(&program, "forward", &registry, &options).is_err());
}

#[test]
fn planned_memory_of_another_device_is_refused() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(spec()).unwrap();
    let y = forward.call("aten::mul.Scalar_out", args![x, 2i64], spec().on(DeviceType::CUDA, 0)).unwrap();
    forward.output(y).unwrap();
    let program = Program::from_bytes(program.finish().unwrap().to_bytes().unwrap()).unwrap();
    let refused = Method::load(&program, "forward", &edgepack_kernels::registry(), &Options::default());
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("planned memory 2 is on a CUDA device"), "{message}");
}

/// Keeps what it was asked for, and refuses.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<(String, OptionValue)>>>);

impl Backend for Asked {
    fn id(&self) -> &str {
        "Asked"
    }
    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        assert_eq!(cx.option("threads"), Some(&OptionValue::Int(4)));
        assert_eq!(cx.option("other"), None);
        *self.0.lock().unwrap() = cx.options.to_vec();
        Err(KernelError::argument("asked".to_owned()))
    }
}

#[test]
fn backends_are_given_options() {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(spec()).unwrap();
    let delegate = forward.delegate("Asked", vec![1, 2, 3], &[]).unwrap();
    let y = forward.call_delegate(delegate, args![x], spec()).unwrap();
    forward.output(y).unwrap();
    let program = Program::from_bytes(program.finish().unwrap().to_bytes().unwrap()).unwrap();
    let asked = Asked::default();
    let backends = Backends::new()
        .with(asked.clone())
        .with_option("Asked", "threads", 2)
        .with_option("Asked", "threads", 4)
        .with_option("Asked", "trace", true)
        .with_option("Another", "other", "text");
    let options = Options { backends, ..Options::default() };
    assert!(Method::load(&program, "forward", &edgepack_kernels::registry(), &options).is_err());
    let wanted = [("threads", OptionValue::Int(2)), ("threads", 4.into()), ("trace", true.into())];
    assert_eq!(*asked.0.lock().unwrap(), wanted.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn named_data_fill_a_buffer_of_the_callers() {
    let mut program = ProgramBuilder::new();
    let weights = [1.0f32, 2.0];
    let weight = program.external_constant("w", &view(&weights), "data").unwrap();
    let mut forward = program.method("forward");
    let x = forward.input(spec()).unwrap();
    let y = forward.call("aten::mul.out", args![x, weight], spec()).unwrap();
    forward.output(y).unwrap();
    let built = program.finish().unwrap();
    let (_, file) = built.data_files().next().unwrap();
    let data = DataFile::from_bytes(file.to_bytes().unwrap()).unwrap();
    let mut buffer = [0f32; 2];
    data.load_into("w", bytemuck::cast_slice_mut(&mut buffer)).unwrap();
    assert_eq!(buffer, weights);
    let mut short = [7u8; 4];
    assert!(matches!(data.load_into("w", &mut short), Err(Error::Length { have: 8, want: 4, .. })));
    assert!(matches!(data.load_into("v", &mut short), Err(Error::NotFound { .. })));
    assert_eq!(short, [7; 4]);
}
