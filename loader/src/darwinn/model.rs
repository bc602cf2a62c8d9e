//! Models with compiled parts, registered: their packages, and the tensors that each compiled operator takes and gives.
//!
//! Invariant: an operator has a package at least, and its tensors fit the layers of that package by position.

use edgepack_format::darwinn::PackageRef;
use edgepack_format::room;
use edgepack_format::tflite::{CompiledOp, ModelRef, NumberedTensors, TensorType};

use super::{RegisterError, Registration};

/// A tensor of a model that a compiled operator takes or gives.
#[derive(Clone, PartialEq, Debug)]
pub struct OperatorTensor {
    /// Number of the tensor in its subgraph; -1 for an input that is left out.
    pub number: i32,
    /// Name of the tensor.
    pub name: String,
    /// Element type.
    pub kind: TensorType,
    /// Scale of its numbers, if it has one for all.
    pub scale: Option<f32>,
    /// Zero point of its numbers, as the host sees them.
    pub zero_point: i64,
    /// True if it retains its value from run to run.
    pub is_variable: bool,
}

/// A compiled operator of a model.
#[derive(Clone, Debug)]
pub struct RegisteredOperator {
    subgraph: usize,
    operator: usize,
    packages: Vec<(Option<i64>, Registration)>,
    inputs: Vec<OperatorTensor>,
    outputs: Vec<OperatorTensor>,
}

impl RegisteredOperator {
    /// Returns the index of the subgraph that holds it.
    pub fn subgraph(&self) -> usize {
        self.subgraph
    }

    /// Returns the index of the operator in its subgraph.
    pub fn operator(&self) -> usize {
        self.operator
    }

    /// The packages with the chip code that the options give each: the one that runtimes use, then further ones.
    pub fn packages(&self) -> &[(Option<i64>, Registration)] {
        &self.packages
    }

    /// The tensors that go in, in the order of the input layers.
    pub fn inputs(&self) -> &[OperatorTensor] {
        &self.inputs
    }

    /// The tensors that come out, in the order of those output layers that are not variable.
    pub fn outputs(&self) -> &[OperatorTensor] {
        &self.outputs
    }

    fn new(
        op: &CompiledOp<'_>,
        register: impl Fn(&PackageRef<'_>) -> Result<Registration, RegisterError>,
    ) -> Result<Self, RegisterError> {
        let chips = op.options.as_ref().and_then(|options| options.chips.as_ref());
        let mut packages = room::with_room(op.packages.len())?;
        for (index, package) in op.packages.iter().enumerate() {
            packages.push((chips.and_then(|chips| chips.get(index).copied()), register(package)?));
        }
        let (inputs, outputs) = (tensors(op.inputs())?, tensors(op.outputs())?);
        Ok(RegisteredOperator { subgraph: op.subgraph, operator: op.operator, packages, inputs, outputs })
    }
}

fn tensors(list: NumberedTensors<'_>) -> Result<Vec<OperatorTensor>, RegisterError> {
    let all = list.into_iter().map(|(number, tensor)| {
        let tensor = tensor.unwrap_or_default();
        let numbers = tensor.quantization.unwrap_or_default();
        let scale = numbers.scale.filter(|list| list.len() == 1).and_then(|list| list.get(0));
        OperatorTensor {
            number,
            name: tensor.name.map(|name| name.into_owned()).unwrap_or_default(),
            kind: tensor.kind,
            scale,
            zero_point: numbers.zero_point.and_then(|list| list.get(0)).unwrap_or(0),
            is_variable: tensor.is_variable,
        }
    });
    Ok(room::collect(all)?)
}

/// A model whose packages are registered. It stays valid without the model's bytes and without the registry.
#[derive(Clone, Debug)]
pub struct RegisteredModel {
    operators: Vec<RegisteredOperator>,
}

impl RegisteredModel {
    /// The compiled operators of all subgraphs, in the order of the file.
    pub fn operators(&self) -> &[RegisteredOperator] {
        &self.operators
    }

    pub(super) fn new(
        model: &ModelRef<'_>,
        register: impl Fn(&PackageRef<'_>) -> Result<Registration, RegisterError>,
    ) -> Result<Self, RegisterError> {
        let mut operators = room::with_room(model.operators().len())?;
        for op in model.operators() {
            operators.push(RegisteredOperator::new(op, &register)?);
        }
        Ok(RegisteredModel { operators })
    }
}
