//! Programs made by the builder, with inputs for every run and the outputs that belong to them. Between them they turn
//! every knob of the builder's layout.

use edgepack_builder::plan::Strategy;
use edgepack_builder::pte::{BuiltProgram, Out, ProgramBuilder, TensorSpec};
use edgepack_builder::{BuildError, args, tensors};
use edgepack_format::pte::Frame;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorView;

/// A built program and what it does.
pub struct Built {
    /// Name of the program.
    pub name: &'static str,
    /// The program and its data files.
    pub program: BuiltProgram<'static>,
    /// Runs of its methods, each method's in order on one loaded method.
    pub runs: Vec<Run>,
}

/// One run: floats in, numbers out.
pub struct Run {
    /// Of which method.
    pub method: &'static str,
    /// Inputs with their sizes.
    pub inputs: Vec<(Vec<usize>, Vec<f32>)>,
    /// The elements of each output.
    pub outputs: Vec<Vec<f64>>,
}

fn run(method: &'static str, inputs: &[(&[usize], &[f32])], outputs: &[&[f64]]) -> Run {
    Run {
        method,
        inputs: inputs.iter().map(|(sizes, values)| (sizes.to_vec(), values.to_vec())).collect(),
        outputs: outputs.iter().map(|values| values.to_vec()).collect(),
    }
}

/// A tensor of floats that lives as long as the test.
fn floats(sizes: &[usize], values: &[f32]) -> TensorView<'static> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorView::of::<f32>(sizes, bytes.leak()).unwrap()
}

fn float(sizes: &[usize]) -> TensorSpec {
    TensorSpec::new(ScalarType::FLOAT, sizes)
}

/// All of them.
pub fn programs() -> Vec<Built> {
    [constants, shared_weights, looped_state, branches, external_data].map(|make| make().unwrap()).into()
}

/// Constants far apart, a getter, stack traces.
fn constants() -> Result<Built, BuildError> {
    let mut program = ProgramBuilder::new();
    program.tensor_alignment(64)?.segment_alignment(256)?;
    let a = program.constant("a", &floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))?;
    let b = program.constant("b", &floats(&[2], &[0.5, -0.5]))?;
    program.getter("get_vocab_size", args![32_000i64, 0.25, true])?;
    let mut forward = program.method("forward");
    let x = forward.input(float(&[2, 2]))?;
    let frame = Frame { filename: Some("model.py".into()), lineno: 7, name: Some("forward".into()), context: None };
    forward.stack_trace([frame]);
    let sum = forward.call("aten::add.out", args![x, a, 2i64], TensorSpec::like(x))?;
    let y = forward.call("aten::mul.out", args![sum, b], TensorSpec::like(x))?;
    forward.output(y)?;
    let runs = vec![
        run("forward", &[(&[2, 2], &[1.0, 1.0, 1.0, 1.0])], &[&[1.5, -2.5, 3.5, -4.5]]),
        run("forward", &[(&[2, 2], &[0.0, 2.0, 4.0, 6.0])], &[&[1.0, -3.0, 5.0, -7.0]]),
        run("get_vocab_size", &[], &[&[32_000.0], &[0.25], &[1.0]]),
    ];
    Ok(Built { name: "constants", program: program.finish()?, runs })
}

/// Two methods on the same weights, in pages, with dynamic shapes.
fn shared_weights() -> Result<Built, BuildError> {
    let mut program = ProgramBuilder::new();
    program.segment_alignment(4096)?.memory_alignment(64)?.strategy(Strategy::BestFit);
    let weight = program.constant("weight", &floats(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]))?;
    let bias = program.constant("bias", &floats(&[2], &[10.0, -20.0]))?;
    for (name, rows) in [("prefill", 4), ("decode", 1)] {
        let mut method = program.method(name);
        let spec = float(&[rows, 3]);
        let x = method.input(if rows > 1 { spec.dynamic() } else { spec })?;
        let like = |columns| if rows > 1 { float(&[rows, columns]).dynamic() } else { float(&[rows, columns]) };
        let product = method.call("aten::addmm.out", args![bias, x, weight], like(2))?;
        let y = method.call("aten::relu.out", args![product], like(2))?;
        method.output(y)?;
    }
    let runs = vec![
        run("prefill", &[(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 50.0, 6.0])], &[&[14.0, 0.0, 20.0, 36.0]]),
        run("prefill", &[(&[1, 3], &[-20.0, 0.0, 0.0])], &[&[0.0, 0.0]]),
        run("decode", &[(&[1, 3], &[1.0, 30.0, 2.0])], &[&[13.0, 12.0]]),
    ];
    Ok(Built { name: "shared_weights", program: program.finish()?, runs })
}

/// State with a first value, and a loop that adds to it three times a run.
fn looped_state() -> Result<Built, BuildError> {
    let mut program = ProgramBuilder::new();
    program.strategy(Strategy::Greedy);
    let mut forward = program.method("forward");
    let x = forward.input(float(&[2]))?;
    let total = forward.state_with("total", &floats(&[2], &[100.0, 200.0]))?;
    let runs = forward.state("runs", float(&[1]))?;
    let count = forward.value(0i64)?;
    let again = forward.label();
    forward.bind(again)?;
    let sum = forward.call("aten::add.out", args![total, x], TensorSpec::like(x))?;
    forward.call("aten::copy_", args![total, sum], ())?;
    forward.call("executorch_prim::add.Scalar", args![count, 1i64], Out::Value(count))?;
    let done = forward.call("executorch_prim::eq.Scalar", args![count, 3i64], Out::Bool)?;
    forward.jump_if_false(done, again)?;
    forward.call("executorch_prim::sub.Scalar", args![count, 3i64], Out::Value(count))?;
    let more = forward.call("aten::add.Scalar_out", args![runs, 1i64], TensorSpec::like(runs))?;
    forward.call("aten::copy_", args![runs, more], ())?;
    forward.output(sum)?;
    forward.output(more)?;
    let runs = vec![
        run("forward", &[(&[2], &[1.0, 2.0])], &[&[103.0, 206.0], &[1.0]]),
        run("forward", &[(&[2], &[10.0, -1.0])], &[&[133.0, 203.0], &[2.0]]),
    ];
    Ok(Built { name: "looped_state", program: program.finish()?, runs })
}

/// Two branches of different length, in a file with a large header, with outputs that are the caller's.
fn branches() -> Result<Built, BuildError> {
    let mut program = ProgramBuilder::new();
    program.delegate_alignment(1024)?;
    let limit = program.constant("limit", &floats(&[1], &[10.0]))?;
    let mut forward = program.method("forward");
    let x = forward.input(float(&[1]))?;
    let small = forward.call("aten::lt.Tensor_out", args![x, limit], TensorSpec::new(ScalarType::BOOL, [1]))?;
    let (otherwise, end) = (forward.label(), forward.label());
    let y = forward.tensor(float(&[1]))?;
    forward.jump_if_false(small, otherwise)?;
    let one = forward.call("aten::add.Scalar_out", args![x, 1i64], TensorSpec::like(x))?;
    let two = forward.call("aten::mul.out", args![one, one], TensorSpec::like(x))?;
    forward.assign(two, y)?;
    forward.jump(end)?;
    forward.bind(otherwise)?;
    let less = forward.call("aten::sub.out", args![x, limit, 3i64], TensorSpec::like(x))?;
    forward.assign(less, y)?;
    forward.bind(end)?;
    let out = forward.call("aten::add.out", args![y, x], TensorSpec::like(x))?;
    forward.output(out)?;
    let runs = vec![
        run("forward", &[(&[1], &[4.0])], &[&[29.0]]),
        run("forward", &[(&[1], &[40.0])], &[&[50.0]]),
        run("forward", &[(&[1], &[0.0])], &[&[1.0]]),
    ];
    Ok(Built { name: "branches", program: program.finish()?, runs })
}

/// Weights in a data file, lists of tensors, several results, several chains.
fn external_data() -> Result<Built, BuildError> {
    let mut program = ProgramBuilder::new();
    program.segment_alignment(64)?.tensor_alignment(32)?;
    let table = program.external_constant("table", &floats(&[2, 2], &[1.0, 8.0, 3.0, 4.0]), "weights")?;
    let same = program.external_constant("same", &floats(&[4], &[1.0, 8.0, 3.0, 4.0]), "weights")?;
    program.named_data("blob", vec![7; 100], 16, None)?;
    let mut forward = program.method("forward");
    let x = forward.input(float(&[1, 2]))?;
    let all = forward.call("aten::cat.out", args![tensors![x, table, x]], float(&[4, 2]))?;
    forward.chain_outputs([all])?;
    forward.chain().chain_inputs([all])?;
    let long = TensorSpec::new(ScalarType::LONG, [4]);
    let [most, at] = forward.call("aten::max.dim_max", args![all, 1i64], [float(&[4]), long])?;
    let shifted = forward.call("aten::add.out", args![most, same], float(&[4]))?;
    forward.output(shifted)?;
    forward.output(at)?;
    let runs = vec![
        run("forward", &[(&[1, 2], &[5.0, 6.0])], &[&[7.0, 16.0, 7.0, 10.0], &[1.0, 1.0, 1.0, 1.0]]),
        run("forward", &[(&[1, 2], &[9.0, 6.0])], &[&[10.0, 16.0, 7.0, 13.0], &[0.0, 1.0, 1.0, 0.0]]),
    ];
    Ok(Built { name: "external_data", program: program.finish()?, runs })
}
