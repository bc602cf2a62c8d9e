//! Runs: a package, a device, and tensors in and out.
//!
//! The order is the stock driver's: parameters that stay on the chip are loaded when they are not there already, then the
//! main executable runs, once per batch of entries; a batch that is not full is filled with zeros.

use edgepack_format::darwinn::{Executable, Geometry, Layer, PackageRef};
use edgepack_format::row::Rows;
use edgepack_format::wire::ReadError;

use super::device::{Device, DeviceError, Memory};
use super::link::{Addresses, LinkError, link};
use super::relayout::Output;
use super::tensor::{TensorError, prepare_input, zeros};
use super::transfer::{Buffer, Extraction, TransferError, transfers};

/// The batch entries of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorBytes {
    /// The layer's name.
    pub name: String,
    /// The bytes of each entry.
    pub entries: Vec<Vec<u8>>,
}

/// Reason for which a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A row could not be read: the package was not verified.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The package has no executable that takes inputs.
    #[error("the package has no executable that runs on one chip")]
    NoExecutable,
    /// Only devices that ask for transfers themselves can run it.
    #[error("the list of transfers is not complete, so it takes a device that asks for the rest itself, as over PCIe")]
    Partial,
    /// The tensors are others than the layers.
    #[error("{0}")]
    Tensors(String),
    /// A tensor does not fit.
    #[error("{layer:?}: {error}")]
    Tensor {
        /// Name of the layer.
        layer: String,
        /// The error of its tensor.
        error: TensorError,
    },
    /// Instructions could not be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no list of transfers.
    #[error(transparent)]
    Transfers(#[from] TransferError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A package ready to run.
pub struct Runner<'a> {
    executables: Vec<Executable<'a>>,
    main: usize,
    caching: Option<usize>,
    inputs: Vec<Layer<'a>>,
    outputs: Vec<(String, Output<'a>)>,
    /// True if the device has the parameters of the caching executable.
    resident: bool,
}

fn layers<'a>(rows: &Option<Rows<'a, Layer<'a>>>) -> Result<Vec<Layer<'a>>, ReadError> {
    rows.iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()).collect()
}

fn name(layer: &Layer<'_>) -> String {
    layer.name.as_deref().unwrap_or_default().to_owned()
}

impl<'a> Runner<'a> {
    /// Makes the runner of a verified package.
    pub fn new(package: &PackageRef<'a>) -> Result<Self, RunError> {
        let main = package.main().ok_or(RunError::NoExecutable)?;
        let executables: Vec<_> = package.executables().iter().map(|executable| executable.row().clone()).collect();
        let row = executables.get(main).ok_or(RunError::NoExecutable)?;
        let inputs = layers(&row.input_layers)?;
        let mut outputs = Vec::new();
        for layer in layers(&row.output_layers)? {
            let output = Output::new(&layer).map_err(|error| RunError::Tensor { layer: name(&layer), error })?;
            outputs.push((name(&layer), output));
        }
        Ok(Runner { main, caching: package.caching(), inputs, outputs, resident: false, executables })
    }

    /// Forgets what is on the chip: the device was closed, or another package has used it.
    pub fn forget(&mut self) {
        self.resident = false;
    }

    /// Runs all entries of the inputs, which come in the order of the layers, and answers the outputs in theirs.
    pub fn run(&mut self, device: &mut dyn Device, inputs: &[TensorBytes]) -> Result<Vec<TensorBytes>, RunError> {
        if inputs.len() != self.inputs.len() {
            let message = format!("{} inputs, the executable takes {}", inputs.len(), self.inputs.len());
            return Err(RunError::Tensors(message));
        }
        let entries = inputs.first().map_or(1, |tensor| tensor.entries.len());
        for (tensor, layer) in inputs.iter().zip(&self.inputs) {
            if tensor.name != name(layer) || tensor.entries.len() != entries {
                let (found, have) = (&tensor.name, tensor.entries.len());
                let message = format!("{have} entries of {found:?}, wanted are {entries} of {:?}", name(layer));
                return Err(RunError::Tensors(message));
            }
        }
        if let Some(caching) = self.caching.filter(|_| !self.resident) {
            self.once(device, caching, Memory::default())?;
        }
        // It is unknown if a device that fails or panics still has them.
        self.resident = false;
        let batch = usize::try_from(self.executables[self.main].batch_size).unwrap_or(1).max(1);
        let mut results: Vec<TensorBytes> =
            self.outputs.iter().map(|(name, _)| TensorBytes { name: name.clone(), entries: Vec::new() }).collect();
        for first in (0..entries).step_by(batch) {
            let memory = self.fill(inputs, first, batch.min(entries - first), batch)?;
            let memory = self.once(device, self.main, memory)?;
            for ((layer, output), result) in self.outputs.iter().zip(&mut results) {
                for entry in 0..batch.min(entries - first) {
                    let bytes = memory.whole(&Buffer::Output(layer.clone(), entry)).unwrap_or(&[]);
                    let tensor =
                        output.take(bytes).map_err(|error| RunError::Tensor { layer: layer.clone(), error })?;
                    result.entries.push(tensor);
                }
            }
        }
        self.resident = self.caching.is_some();
        Ok(results)
    }

    /// The activations of one device run.
    fn fill(&self, inputs: &[TensorBytes], first: usize, count: usize, batch: usize) -> Result<Memory, RunError> {
        let mut memory = Memory::default();
        for (tensor, layer) in inputs.iter().zip(&self.inputs) {
            let wrong = |error| RunError::Tensor { layer: tensor.name.clone(), error };
            let padded = Geometry::of(layer).map_err(|error| wrong(error.into()))?.padded_bytes;
            for entry in 0..batch {
                let mut bytes = match tensor.entries.get(first + entry).filter(|_| entry < count) {
                    Some(bytes) => prepare_input(layer, bytes).map_err(wrong)?,
                    None => zeros(padded).map_err(wrong)?,
                };
                let more = padded.saturating_sub(bytes.len());
                bytes.try_reserve_exact(more).map_err(|_| wrong(TensorError::Memory(padded)))?;
                bytes.resize(padded, 0);
                memory.insert(Buffer::Input(tensor.name.clone(), entry), bytes);
            }
        }
        for (layer, output) in &self.outputs {
            for entry in 0..batch {
                let bytes = zeros(output.device_bytes());
                let bytes = bytes.map_err(|error| RunError::Tensor { layer: layer.clone(), error })?;
                memory.insert(Buffer::Output(layer.clone(), entry), bytes);
            }
        }
        Ok(memory)
    }

    /// Maps, links and runs an executable.
    fn once(&self, device: &mut dyn Device, index: usize, mut memory: Memory) -> Result<Memory, RunError> {
        let row = &self.executables[index];
        let is_whole = row.dma_hints.as_ref().is_some_and(|hints| hints.fully_deterministic);
        let extraction = device.extraction();
        if extraction == Extraction::Hints && !is_whole {
            return Err(RunError::Partial);
        }
        let list = transfers(row, extraction, true)?;
        let parameters = row.parameters.as_ref().map_or(&[][..], |blob| blob.as_slice());
        let scratch = usize::try_from(row.scratch_size_bytes).unwrap_or(0);
        let part = |what: &str, error| RunError::Tensor { layer: what.to_owned(), error };
        if !parameters.is_empty() {
            let mut bytes = zeros(parameters.len()).map_err(|error| part("parameters", error))?;
            bytes.copy_from_slice(parameters);
            memory.insert(Buffer::Parameter, bytes);
        }
        if scratch > 0 {
            memory.insert(Buffer::Scratch, zeros(scratch).map_err(|error| part("scratch", error))?);
        }
        let mut addresses = Addresses::default();
        for (buffer, len) in memory.buffers() {
            let address = device.map(index, buffer, len)?;
            match buffer {
                Buffer::Parameter => addresses.parameter = Some(address),
                Buffer::Scratch => addresses.scratch = Some(address),
                // Entries of a layer come in order.
                Buffer::Input(layer, _) => addresses.inputs.entry(layer.clone()).or_default().push(address),
                Buffer::Output(layer, _) => addresses.outputs.entry(layer.clone()).or_default().push(address),
                Buffer::Instruction(_) => {}
            }
        }
        for (chunk, bytes) in link(row, &addresses)?.into_iter().enumerate() {
            memory.insert(Buffer::Instruction(chunk), bytes);
        }
        device.run(index, &list, &mut memory)?;
        Ok(memory)
    }
}
