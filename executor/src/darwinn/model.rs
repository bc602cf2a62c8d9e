//! Runs of a model's compiled operators, one after another, with the model's own tensors by name.
//!
//! Operators of the CPU are not run: tensors that only they make have to be given. Layers and tensors belong together by
//! position, as in the runtime.
//!
//! Invariant: a run that fails leaves the variables of all operators as they were.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::darwinn::DataType;
use edgepack_format::tflite::TensorType;
use edgepack_format::tflite::verify::tensor_type;
use edgepack_loader::{OperatorTensor, RegisteredModel, RegisteredOperator};

use super::chip::Chip;
use super::device::Device;
use super::error::RunError;
use super::number::{check_numerics, dequantize, quantize};
use super::runner::{Runner, RunnerOptions};
use super::sides::{Input, Out, State, TensorBytes};

/// Settings of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Subgraph whose operators run.
    pub subgraph: usize,
    /// Number of the package in each operator's options: 0 is the one that runtimes use.
    pub package: usize,
    /// Settings of the runners.
    pub runner: RunnerOptions,
}

impl ModelOptions {
    /// Runs this subgraph.
    pub fn subgraph(self, subgraph: usize) -> Self {
        ModelOptions { subgraph, ..self }
    }

    /// Runs this package of every operator.
    pub fn package(self, package: usize) -> Self {
        ModelOptions { package, ..self }
    }

    /// Sets the settings of the runners.
    pub fn runner(self, runner: RunnerOptions) -> Self {
        ModelOptions { runner, ..self }
    }
}

/// Step from a layer's numbers to a tensor's.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Conversion {
    /// They are the same.
    None,
    /// Floats become bytes by the tensor's scale and zero point, rounded towards zero.
    Floats { scale: f32, zero_point: f32 },
    /// 16-bit numbers, read as signed, become bytes; what does not fit is at the nearest end.
    Wide,
}

impl Conversion {
    fn of(out: &Out<'_>, tensor: &OperatorTensor) -> Result<Self, RunError> {
        let is_pixel = out.layer.y_dim == 1 && out.layer.x_dim == 1;
        match (out.layer.data_type, tensor.kind) {
            (found, kind) if tensor_type(found) == Some(kind) => Ok(Conversion::None),
            (DataType::SINGLE, TensorType::UINT8) if is_pixel => match tensor.scale {
                Some(scale) => Ok(Conversion::Floats { scale, zero_point: tensor.zero_point as f32 }),
                None => Err(RunError::Model(format!("tensor {:?} has no scale to make bytes by", tensor.name))),
            },
            (DataType::FIXED_POINT16, TensorType::UINT8) if is_pixel => Ok(Conversion::Wide),
            (found, kind) => Err(mismatch(&out.name, found, tensor, kind)),
        }
    }

    fn apply(self, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Conversion::None => bytes,
            Conversion::Floats { scale, zero_point } => {
                let values = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
                // Casting rounds towards zero and clamps.
                values.map(|value| (value / scale + zero_point) as u8).collect()
            }
            Conversion::Wide => {
                let numbers = bytes.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes));
                numbers.map(|number| number.clamp(0, 255) as u8).collect()
            }
        }
    }

    /// The real values of a tensor.
    fn values(self, out: &Out<'_>, tensor: &OperatorTensor, bytes: &[u8]) -> Result<Vec<f32>, RunError> {
        let wrong = |error| RunError::Tensor { layer: out.name.clone(), error };
        if self == Conversion::None {
            check_numerics(&out.layer).map_err(wrong)?;
            return dequantize(&out.layer, bytes).map_err(wrong);
        }
        let Some(scale) = tensor.scale else {
            return Err(RunError::Model(format!("tensor {:?} has no scale", tensor.name)));
        };
        Ok(bytes.iter().map(|byte| (f64::from(scale) * (f64::from(*byte) - tensor.zero_point as f64)) as f32).collect())
    }
}

fn mismatch(layer: &str, found: DataType, tensor: &OperatorTensor, kind: TensorType) -> RunError {
    RunError::Model(format!("tensor {:?} is {kind}, its layer {layer:?} is {found}", tensor.name))
}

/// A compiled operator ready to run.
struct Part<'a, D: Device> {
    operator: &'a RegisteredOperator,
    runner: Runner<'a, D>,
    conversions: Vec<Conversion>,
}

impl<D: Device> Part<'_, D> {
    fn inputs(&self) -> impl Iterator<Item = (&OperatorTensor, &Input<'_>)> {
        self.operator.inputs().iter().zip(&self.runner.sides().inputs)
    }

    fn outputs(&self) -> impl Iterator<Item = (&OperatorTensor, &Out<'_>, Conversion)> {
        let layers = self.runner.sides().answers().zip(&self.conversions);
        self.operator.outputs().iter().zip(layers).map(|(tensor, (out, conversion))| (tensor, out, *conversion))
    }
}

/// A model whose compiled operators run on a device.
pub struct Model<'a, D: Device> {
    parts: Vec<Part<'a, D>>,
}

impl<'a, D: Device> Model<'a, D> {
    /// Makes the runners of a model's first subgraph.
    pub fn new(chip: &Chip<D>, model: &'a RegisteredModel) -> Result<Self, RunError> {
        Self::with_options(chip, model, ModelOptions::default())
    }

    /// Makes the runners of a model.
    pub fn with_options(chip: &Chip<D>, model: &'a RegisteredModel, options: ModelOptions) -> Result<Self, RunError> {
        let mut parts = Vec::new();
        for operator in model.operators().iter().filter(|operator| operator.subgraph() == options.subgraph) {
            parts.push(part(chip, operator, &options)?);
        }
        if parts.is_empty() {
            return Err(RunError::Model(format!("subgraph {} has no compiled operator", options.subgraph)));
        }
        // Names stand for tensors only if they are unique among those that are used.
        let mut numbers = BTreeMap::new();
        for part in &parts {
            for tensor in part.operator.inputs().iter().chain(part.operator.outputs()) {
                let first = *numbers.entry(tensor.name.as_str()).or_insert(tensor.number);
                if first != tensor.number {
                    let message = format!("tensors {first} and {} are both called {:?}", tensor.number, tensor.name);
                    return Err(RunError::Model(message));
                }
            }
        }
        for (index, part) in parts.iter().enumerate() {
            let used = |tensor: &OperatorTensor| {
                let mut others = parts.iter().enumerate().filter(|(other, _)| *other != index);
                others.any(|(_, other)| other.operator.inputs().iter().any(|found| found.number == tensor.number))
            };
            let mut variables = part.inputs().filter(|(_, input)| input.initial.is_some());
            if let Some((tensor, _)) = variables.find(|(tensor, _)| used(tensor)) {
                let message = format!("variable {:?} is used by two compiled operators", tensor.name);
                return Err(RunError::Model(message));
            }
        }
        Ok(Model { parts })
    }

    /// The tensors that a run needs: those that no earlier compiled operator makes and that are not variables.
    pub fn inputs(&self) -> Vec<&OperatorTensor> {
        let (mut made, mut needed) = (BTreeSet::new(), Vec::new());
        for part in &self.parts {
            for (tensor, input) in part.inputs() {
                if input.initial.is_none() && made.insert(tensor.number) {
                    needed.push(tensor);
                }
            }
            made.extend(part.operator.outputs().iter().map(|tensor| tensor.number));
        }
        needed
    }

    /// The tensors that a run answers: those that the compiled operators make.
    pub fn outputs(&self) -> Vec<&OperatorTensor> {
        self.parts.iter().flat_map(|part| part.outputs().map(|(tensor, ..)| tensor)).collect()
    }

    /// The runners, one per compiled operator, for their variables and buffers.
    pub fn runners(&mut self) -> impl Iterator<Item = &mut Runner<'a, D>> {
        self.parts.iter_mut().map(|part| &mut part.runner)
    }

    /// Variables of all operators start again with the numbers that stand for 0.
    pub fn reset_state(&mut self) {
        self.runners().for_each(Runner::reset_state);
    }

    /// Runs all operators on tensors by name, in any order, and answers what they make. Batch entries of a tensor follow
    /// each other. A tensor that the operators make themselves may be given, too, and is then overwritten by what they
    /// make; a variable that is given replaces its value.
    pub fn run(&mut self, tensors: &[(&str, &[u8])]) -> Result<BTreeMap<String, Vec<u8>>, RunError> {
        let before: Vec<State> = self.parts.iter().map(|part| part.runner.states()).collect();
        let result = self.run_parts(tensors);
        if result.is_err() {
            self.runners().zip(before).for_each(|(runner, state)| runner.restore(state));
        }
        result
    }

    fn run_parts(&mut self, tensors: &[(&str, &[u8])]) -> Result<BTreeMap<String, Vec<u8>>, RunError> {
        let mut known: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (name, bytes) in tensors {
            self.input(name)?;
            if known.insert((*name).to_owned(), bytes.to_vec()).is_some() {
                return Err(RunError::Tensors(format!("{name:?} is given twice")));
            }
        }
        let mut answer = BTreeMap::new();
        for part in &mut self.parts {
            let mut inputs = Vec::new();
            for (tensor, input) in part.inputs() {
                match known.get(&tensor.name) {
                    Some(bytes) => {
                        inputs.push(TensorBytes { name: input.name.clone(), entries: input.entries(bytes)? });
                    }
                    None if input.initial.is_some() => {}
                    None => {
                        let (name, at) = (&tensor.name, part.operator.operator());
                        let message = format!("tensor {name:?} is missing, which operator {at} takes");
                        return Err(RunError::Tensors(message));
                    }
                }
            }
            let results = part.runner.run(&inputs)?;
            for ((tensor, _, conversion), result) in part.outputs().zip(results) {
                let bytes = conversion.apply(result.entries.concat());
                known.insert(tensor.name.clone(), bytes.clone());
                answer.insert(tensor.name.clone(), bytes);
            }
        }
        Ok(answer)
    }

    /// Runs with real values: quantises the tensors, by name in any order, and dequantises what the operators make.
    pub fn run_values(&mut self, tensors: &[(&str, &[f32])]) -> Result<BTreeMap<String, Vec<f32>>, RunError> {
        let mut inputs = Vec::new();
        for (name, values) in tensors {
            let input = self.input(name)?;
            let bytes = quantize(&input.layer, values);
            inputs.push((*name, bytes.map_err(|error| RunError::Tensor { layer: input.name.clone(), error })?));
        }
        let inputs: Vec<(&str, &[u8])> = inputs.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
        let bytes = self.run(&inputs)?;
        let made = self.parts.iter().flat_map(Part::outputs);
        let values = made.filter_map(|(tensor, out, conversion)| {
            let bytes = bytes.get(&tensor.name)?;
            Some(conversion.values(out, tensor, bytes).map(|values| (tensor.name.clone(), values)))
        });
        values.collect()
    }

    /// The first layer that takes a tensor of this name.
    fn input(&self, name: &str) -> Result<&Input<'_>, RunError> {
        let found = self.parts.iter().flat_map(Part::inputs).find(|(tensor, _)| tensor.name == name);
        found.map(|(_, input)| input).ok_or_else(|| {
            let names: Vec<_> = self.inputs().into_iter().map(|tensor| &tensor.name).collect();
            RunError::Tensors(format!("no compiled operator takes {name:?}; they take {names:?}"))
        })
    }
}

fn part<'a, D: Device>(
    chip: &Chip<D>,
    operator: &'a RegisteredOperator,
    options: &ModelOptions,
) -> Result<Part<'a, D>, RunError> {
    let at = operator.operator();
    let Some((_, package)) = operator.packages().get(options.package) else {
        let (have, wanted) = (operator.packages().len(), options.package);
        return Err(RunError::Model(format!("operator {at} has {have} packages, none of them is number {wanted}")));
    };
    let runner = Runner::with_options(chip, package, options.runner)?;
    let sides = runner.sides();
    let (takes, gives) = (operator.inputs(), operator.outputs());
    if takes.len() != sides.inputs.len() || gives.len() < sides.answers().count() {
        let message = format!(
            "operator {at} takes {} tensors and gives {}, its package {} and {}",
            takes.len(),
            gives.len(),
            sides.inputs.len(),
            sides.answers().count()
        );
        return Err(RunError::Model(message));
    }
    for (tensor, input) in takes.iter().zip(&sides.inputs) {
        let found = input.layer.data_type;
        if tensor.number < 0 || tensor_type(found) != Some(tensor.kind) {
            return Err(mismatch(&input.name, found, tensor, tensor.kind));
        }
    }
    let conversions = gives.iter().zip(sides.answers()).map(|(tensor, out)| Conversion::of(out, tensor));
    let conversions = conversions.collect::<Result<_, _>>()?;
    Ok(Part { operator, runner, conversions })
}
