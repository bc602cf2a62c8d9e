//! The program around the graph: inputs and outputs are what the signature says, and what it names is there.

use edgepack_format::rules::exir as rule;

use super::Checker;
use crate::archive::Weight;
use crate::graph::{Dialect, ExportedProgram, InputKind, OutputKind, Size};

pub(super) fn check(checker: &mut Checker<'_>, program: &ExportedProgram<'_>) {
    inputs(checker, program);
    outputs(checker, program);
}

fn inputs(checker: &mut Checker<'_>, program: &ExportedProgram<'_>) {
    let (specs, inputs) = (&program.inputs, &program.graph.inputs);
    if specs.len() != inputs.len() {
        let message = format!("{} inputs, {} are described", inputs.len(), specs.len());
        checker.say(&rule::INPUT_COUNT, "signature.input_specs", message);
    }
    for (index, (spec, input)) in specs.iter().zip(inputs).enumerate() {
        let place = format!("signature.input_specs[{index}]");
        if let (Some(described), Some(value)) = (spec.arg.value(), input.value())
            && described != value
        {
            let names = [described, value].map(|id| program.graph.name(id).to_owned());
            let [described, value] = names;
            checker.say(&rule::INPUT_COUNT, &place, format!("`{described}` is described, the graph has `{value}`"));
        }
        let weights = &program.weights;
        let missing = |what: &str, name: &str| format!("{what} `{name}` has no tensor");
        let tensor: Option<&Weight<'_>> = match &spec.kind {
            InputKind::Parameter(name) => match weights.state.get(name) {
                Some(weight) if !weight.is_param => {
                    checker.say(&rule::PARAMETER, &place, format!("`{name}` is not stored as a parameter"));
                    Some(weight)
                }
                Some(weight) => Some(weight),
                None => {
                    checker.say(&rule::PARAMETER, &place, missing("parameter", name));
                    None
                }
            },
            InputKind::Buffer { name, persistent } => {
                let found = weights.state.get(name).filter(|_| *persistent).or_else(|| weights.constants.get(name));
                if !persistent && weights.state.contains_key(name) {
                    checker.say(&rule::NOT_PERSISTENT, &place, format!("`{name}` is stored among the weights"));
                } else if found.is_none() {
                    checker.say(&rule::BUFFER, &place, missing("buffer", name));
                }
                found
            }
            InputKind::Constant(name) => {
                let found = weights.constants.get(name);
                if found.is_none() {
                    checker.say(&rule::CONSTANT, &place, missing("constant", name));
                }
                found
            }
            _ => None,
        };
        if let Some(weight) = tensor.filter(|_| checker.dialect == Dialect::Aten) {
            let order = weight.dim_order();
            if !weight.is_dense(&order) {
                let message = format!("stored with sizes {:?} and strides {:?}", weight.sizes(), weight.strides());
                checker.say(&rule::STRIDES, &place, message);
            }
        }
        if let (Some(weight), Some(meta)) = (tensor, program.graph.tensor_of(&spec.arg)) {
            let sizes: Vec<Option<i64>> = meta.sizes.iter().map(Size::known).collect();
            let stored: Vec<Option<i64>> = weight.sizes().iter().map(|size| i64::try_from(*size).ok()).collect();
            if meta.scalar_type != weight.scalar_type() || sizes != stored {
                let message = format!(
                    "stored as {} {:?}, described as {} {:?}",
                    weight.scalar_type(),
                    weight.sizes(),
                    meta.scalar_type,
                    meta.sizes.iter().map(Size::hint).collect::<Vec<_>>()
                );
                checker.say(&rule::TENSOR, &place, message);
            }
        }
    }
}

fn outputs(checker: &mut Checker<'_>, program: &ExportedProgram<'_>) {
    let (specs, outputs) = (&program.outputs, &program.graph.outputs);
    if specs.len() != outputs.len() {
        let message = format!("{} outputs, {} are described", outputs.len(), specs.len());
        checker.say(&rule::OUTPUT_COUNT, "signature.output_specs", message);
    }
    let mut users = false;
    for (index, (spec, output)) in specs.iter().zip(outputs).enumerate() {
        let place = format!("signature.output_specs[{index}]");
        if spec.arg.value() != output.value() {
            checker.say(&rule::OUTPUT_COUNT, &place, "another output than the graph has");
        }
        users |= spec.kind == OutputKind::User;
        if spec.kind.is_mutation() && users {
            checker.say(&rule::MUTATION, &place, "a new value behind results");
        }
        let is_tensor = |name: &String| program.inputs.iter().any(|input| input.kind.tensor() == Some(name));
        let is_input = |name: &String| {
            let id = program.graph.find(name);
            program.inputs.iter().any(|input| input.kind == InputKind::User && input.arg.value() == id && id.is_some())
        };
        let known = match &spec.kind {
            OutputKind::BufferMutation(name) | OutputKind::ParameterMutation(name) => is_tensor(name),
            OutputKind::InputMutation(name) => is_input(name),
            _ => true,
        };
        if !known {
            checker.say(&rule::MUTATION, &place, format!("{:?} names nothing there is", spec.kind));
        }
    }
}
