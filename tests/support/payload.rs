//! Programs that are one call of an XNNPACK payload, in single precision outside.

use edgepack_builder::xnnpack::{BuiltPayload, Quant, ValueId, ValueSpec};
use edgepack_executor::observer::{Event, Observer};
use edgepack_executor::{LoadError, Method, Options, Output, RunError};
use edgepack_format::tensor::TensorView;
use edgepack_format::xnnpack::{Datatype, Node1x1};
use edgepack_loader::Program;

use crate::assemble::{Assembly, Spec};

/// The backend of payloads.
pub const BACKEND: &str = "XnnpackBackend";

/// A value in single precision.
pub fn plain(dims: &[u32]) -> ValueSpec {
    ValueSpec::new(Datatype::FP32, dims)
}

/// An 8-bit value.
pub fn quantized(dims: &[u32], scale: f32, zero_point: i32) -> ValueSpec {
    ValueSpec::new(Datatype::QINT8, dims).quantized(Quant::PerTensor { scale, zero_point })
}

/// The fields of a node with one input.
pub fn unary(input: ValueId, output: ValueId) -> Node1x1 {
    Node1x1 { input_id: input.id(), output_id: output.id(), flags: 0 }
}

/// One thread, and all backends.
pub fn options() -> Options {
    Options { threads: Some(1), backends: edgepack::backends(), ..Options::default() }
}

/// Loads an assembled program.
pub fn load(assembly: &Assembly, options: &Options) -> Result<Method, LoadError> {
    let program = Program::from_bytes(assembly.build()).unwrap();
    Method::load(&program, "forward", &edgepack_kernels::registry(), options)
}

/// A method with these inputs and one output, in one call of a payload.
pub fn one_call(payload: &BuiltPayload, inputs: &[Spec], output: Spec) -> Assembly {
    let mut a = Assembly::new();
    let inputs: Vec<_> = inputs.iter().map(|input| a.planned(input.clone())).collect();
    let output = a.planned(output);
    a.inputs(&inputs);
    a.delegate(BACKEND, &payload.bytes, &[&inputs[..], &[output]].concat());
    a.outputs(&[output]);
    a
}

/// Runs a method on tensors in single precision; sizes and elements of the first output.
pub fn run(method: &mut Method, inputs: &[(&[usize], &[f32])]) -> Result<(Vec<usize>, Vec<f32>), RunError> {
    let views = inputs.iter().map(|(sizes, input)| TensorView::of::<f32>(sizes, bytemuck::cast_slice(input)).unwrap());
    let outputs = method.run(&views.collect::<Vec<_>>())?;
    match outputs.get(0).unwrap() {
        Output::Tensor(tensor) => Ok((tensor.sizes.to_vec(), tensor.as_slice::<f32>().unwrap().to_vec())),
        other => panic!("{other:?}"),
    }
}

/// So many different numbers between -1 and 2.
pub fn floats(count: usize) -> Vec<f32> {
    (0..count).map(|index| (index * 7 % 23) as f32 / 8.0 - 1.0).collect()
}

/// The names of what runs.
#[derive(Default)]
pub struct Names(pub Vec<String>);

impl Observer for Names {
    fn before(&mut self, event: &Event<'_>) {
        self.0.push(event.name.to_owned());
    }
}
