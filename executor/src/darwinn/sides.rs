//! Both sides of an executable by name: which tensor is which layer, which outputs are the next values of inputs, and how
//! tensors become the device's buffers.

use std::collections::BTreeMap;

use edgepack_format::darwinn::{Executable, Geometry, Layer, NumericsConstants};
use edgepack_format::limits::Limits;
use edgepack_format::tflite::VARIABLE_SUFFIX;

use super::device::Memory;
use super::error::RunError;
use super::number::quantize;
use super::program::{layers, name};
use super::relayout::Output;
use super::tensor::{check_input, fill_input, zeros};
use super::transfer::Buffer;

/// The batch entries of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorBytes {
    /// The layer's name.
    pub name: String,
    /// The bytes of each entry.
    pub entries: Vec<Vec<u8>>,
}

impl TensorBytes {
    /// A tensor of one entry.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        TensorBytes { name: name.into(), entries: vec![bytes.into()] }
    }
}

/// Values of variables by the index of the input; each has an entry per entry of the runs so far.
pub(super) type State = BTreeMap<usize, Vec<Vec<u8>>>;

/// The bytes of every entry of every input, in the order of the layers.
pub(super) type Entries<'t> = Vec<Vec<&'t [u8]>>;

/// An input layer.
pub(super) struct Input<'a> {
    pub(super) name: String,
    pub(super) layer: Layer<'a>,
    pub(super) geometry: Geometry,
    /// Numbers that stand for 0, if the input is a variable.
    pub(super) initial: Option<Vec<u8>>,
}

/// An output layer.
pub(super) struct Out<'a> {
    pub(super) name: String,
    pub(super) layer: Layer<'a>,
    pub(super) output: Output<'a>,
    /// Index of the input whose next value it is.
    pub(super) next: Option<usize>,
}

/// The inputs and outputs of an executable.
pub(super) struct Sides<'a> {
    pub(super) inputs: Vec<Input<'a>>,
    pub(super) outputs: Vec<Out<'a>>,
}

impl<'a> Sides<'a> {
    pub(super) fn new(row: &Executable<'a>, limits: &Limits) -> Result<Self, RunError> {
        let mut inputs = Vec::new();
        for layer in layers(&row.input_layers)? {
            let geometry = Geometry::of(&layer);
            let geometry = geometry.map_err(|error| RunError::Tensor { layer: name(&layer), error: error.into() })?;
            inputs.push(Input { name: name(&layer), layer, geometry, initial: None });
        }
        let mut outputs = Vec::new();
        for layer in layers(&row.output_layers)? {
            let name = name(&layer);
            let wrong = |error| RunError::Tensor { layer: name.clone(), error };
            let output = Output::within(&layer, limits).map_err(wrong)?;
            let variable = name.strip_suffix(VARIABLE_SUFFIX);
            let next = variable.and_then(|variable| inputs.iter().position(|input| input.name == variable));
            if let Some(input) = next.and_then(|index| inputs.get_mut(index)) {
                follows(input, &layer, &output, &name)?;
                input.initial = Some(zero(input)?);
            }
            outputs.push(Out { name, layer, output, next });
        }
        Ok(Sides { inputs, outputs })
    }

    /// The input of this name.
    pub(super) fn input(&self, name: &str) -> Result<&Input<'a>, RunError> {
        self.inputs.iter().find(|input| input.name == name).ok_or_else(|| {
            let names: Vec<_> = self.inputs.iter().map(|input| &input.name).collect();
            RunError::Tensors(format!("there is no input {name:?}; the inputs are {names:?}"))
        })
    }

    /// The index of the variable of this name.
    pub(super) fn variable(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|input| input.name == name && input.initial.is_some())
    }

    /// The outputs that are not next values.
    pub(super) fn answers(&self) -> impl Iterator<Item = &Out<'a>> {
        self.outputs.iter().filter(|out| out.next.is_none())
    }

    /// The entries of every input, in the order of the layers, and their number.
    pub(super) fn matched<'t>(
        &'t self,
        state: &'t State,
        tensors: &'t [TensorBytes],
    ) -> Result<(Entries<'t>, usize), RunError> {
        let mut given = BTreeMap::new();
        for tensor in tensors {
            self.input(&tensor.name)?;
            if given.insert(tensor.name.as_str(), &tensor.entries).is_some() {
                return Err(RunError::Tensors(format!("{:?} is given twice", tensor.name)));
            }
        }
        let found = |(index, input): (usize, &Input<'_>)| given.get(input.name.as_str()).copied().or(state.get(&index));
        let all: Vec<_> = self.inputs.iter().enumerate().map(found).collect();
        let count = all.iter().flatten().next().map_or(1, |entries| entries.len());
        let mut matched = Vec::new();
        for (input, entries) in self.inputs.iter().zip(all) {
            let entries: Vec<&[u8]> = match (entries, &input.initial) {
                (Some(entries), _) => {
                    input.check(entries)?;
                    entries.iter().map(Vec::as_slice).collect()
                }
                (None, Some(initial)) => vec![initial; count],
                (None, None) => {
                    let names: Vec<_> = self.inputs.iter().map(|input| &input.name).collect();
                    let message = format!("input {:?} is missing; the inputs are {names:?}", input.name);
                    return Err(RunError::Tensors(message));
                }
            };
            if entries.len() != count {
                let hint = match input.initial {
                    Some(_) => "; `reset_state` starts with another number of entries",
                    None => "",
                };
                let have = entries.len();
                let message = format!("{have} entries of {:?}, the first input has {count}{hint}", input.name);
                return Err(RunError::Tensors(message));
            }
            matched.push(entries);
        }
        Ok((matched, count))
    }

    /// Writes the activations of one device run: entries from `first` on, zeros in what is left of a batch.
    pub(super) fn fill(&self, memory: &mut Memory, given: &Entries<'_>, first: usize, batch: usize) {
        for (input, entries) in self.inputs.iter().zip(given) {
            for entry in 0..batch {
                let buffer = Buffer::Input(input.name.clone(), entry);
                let Some(out) = memory.get_mut(&buffer, 0..input.geometry.padded_bytes) else { continue };
                match first.checked_add(entry).and_then(|index| entries.get(index)) {
                    Some(bytes) => fill_input(&input.layer, &input.geometry, bytes, out),
                    None => out.fill(0),
                }
            }
        }
    }
}

impl Input<'_> {
    /// Checks the lengths of entries.
    pub(super) fn check(&self, entries: &[Vec<u8>]) -> Result<(), RunError> {
        if entries.is_empty() {
            return Err(RunError::Tensors(format!("{:?} has no entries", self.name)));
        }
        let wrong = |error| RunError::Tensor { layer: self.name.clone(), error };
        entries.iter().try_for_each(|bytes| check_input(&self.geometry, bytes.len())).map_err(wrong)
    }

    /// Cuts a tensor into its entries, which follow each other without padding.
    pub(super) fn entries(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RunError> {
        let one = self.geometry.actual_bytes;
        if bytes.is_empty() || !bytes.len().is_multiple_of(one) {
            let message = format!("{:?} has {} bytes, an entry has {one}", self.name, bytes.len());
            return Err(RunError::Tensors(message));
        }
        Ok(bytes.chunks(one).map(<[u8]>::to_vec).collect())
    }
}

/// Checks that the numbers of an output can be an input's.
fn follows(input: &Input<'_>, layer: &Layer<'_>, output: &Output<'_>, name: &str) -> Result<(), RunError> {
    let differ = |message: String| Err(RunError::State { output: name.to_owned(), input: input.name.clone(), message });
    if input.initial.is_some() {
        return differ("another output is, too".to_owned());
    }
    if layer.data_type != input.layer.data_type {
        return differ(format!("{}, the input is {}", layer.data_type, input.layer.data_type));
    }
    if output.tensor_bytes() != input.geometry.actual_bytes {
        return differ(format!("{} bytes, the input has {}", output.tensor_bytes(), input.geometry.actual_bytes));
    }
    let numerics = |layer: &Layer<'_>| layer.numerics.clone().unwrap_or_default();
    let (ours, theirs) = (numerics(layer), numerics(&input.layer));
    if layer.data_type.is_quantized() && ours != theirs {
        let say =
            |one: &NumericsConstants| format!("scale {} and zero point {}", one.dequantization_factor, one.zero_point);
        return differ(format!("{}, the input has {}", say(&ours), say(&theirs)));
    }
    Ok(())
}

/// The tensor of an input in which every element stands for 0.
fn zero(input: &Input<'_>) -> Result<Vec<u8>, RunError> {
    let zero_point = input.layer.numerics.as_ref().map_or(0, |numerics| numerics.zero_point);
    let numerics = Some(NumericsConstants { zero_point, dequantization_factor: 1.0 });
    let number = quantize(&Layer { numerics, ..input.layer.clone() }, &[0.0]);
    let wrong = |error| RunError::Tensor { layer: input.name.clone(), error };
    let (number, mut tensor) = (number.map_err(wrong)?, zeros(input.geometry.actual_bytes).map_err(wrong)?);
    tensor.chunks_exact_mut(number.len()).for_each(|element| element.copy_from_slice(&number));
    Ok(tensor)
}
