//! An executable made ready: buffers that stay where they are, instructions linked to them, the list of transfers.
//!
//! Invariant: a program runs only after it was attached in the device's current epoch, so its instructions hold addresses
//! that the device gave and still knows.

use std::collections::BTreeSet;

use edgepack_format::darwinn::{Executable, Geometry, Layer};
use edgepack_format::row::Rows;
use edgepack_format::wire::ReadError;
use edgepack_loader::{AlignedBytes, Registration};

use super::chip::Shared;
use super::device::{Device, DeviceError, Mapping, Memory, Moved, Place, Program};
use super::error::RunError;
use super::link::{Addresses, link};
use super::tensor::TensorError;
use super::transfer::{Buffer, Extraction, Transfer, transfers};

/// Treatment of buffers that the package wants in the device's own memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DramUse {
    /// They are in the host's memory if the device has no room, as the format says.
    #[default]
    Prefer,
    /// A device without room is refused.
    Require,
}

/// A mapped buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Index of the executable in the package.
    pub executable: usize,
    /// The buffer.
    pub buffer: Buffer,
    /// Bytes of the buffer.
    pub bytes: usize,
    /// Memory in which it is.
    pub place: Place,
    /// True if the package asks for the device's own memory: with [`Place::Host`] there was no room.
    pub wants_dram: bool,
}

pub(super) fn layers<'a>(rows: &Option<Rows<'a, Layer<'a>>>) -> Result<Vec<Layer<'a>>, ReadError> {
    rows.iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()).collect()
}

pub(super) fn name(layer: &Layer<'_>) -> String {
    layer.name.as_deref().unwrap_or_default().to_owned()
}

/// An executable with its buffers.
pub(super) struct Loaded<'a> {
    row: Executable<'a>,
    pub(super) program: Program,
    pub(super) memory: Memory,
    /// Buffers that the package wants in the device's own memory.
    dram: BTreeSet<Buffer>,
    placements: Vec<Placement>,
    list: Vec<Transfer>,
}

fn zeroed(bytes: usize, what: &str) -> Result<AlignedBytes, RunError> {
    AlignedBytes::paged(bytes)
        .ok_or_else(|| RunError::Tensor { layer: what.to_owned(), error: TensorError::Memory(bytes) })
}

impl<'a> Loaded<'a> {
    /// Makes the buffers of an executable, which have no more than `limit` bytes together.
    pub(super) fn new(
        package: &Registration,
        row: &Executable<'a>,
        program: Program,
        limit: u64,
    ) -> Result<Self, RunError> {
        let batch = usize::try_from(row.batch_size).unwrap_or(1).max(1);
        let scratch = usize::try_from(row.scratch_size_bytes).unwrap_or(0);
        let mut all = Vec::new();
        for (rows, is_input) in [(&row.input_layers, true), (&row.output_layers, false)] {
            for layer in layers(rows)? {
                let geometry = Geometry::of(&layer);
                let geometry =
                    geometry.map_err(|error| RunError::Tensor { layer: name(&layer), error: error.into() })?;
                all.push((name(&layer), is_input, geometry.padded_bytes, layer.cache_on_dram));
            }
        }
        // Every buffer takes whole pages, and a page more to start at one.
        let pages = |bytes: usize| (bytes as u64).div_ceil(4096).saturating_add(1).saturating_mul(4096);
        let entry: u64 = all.iter().fold(0, |sum, (_, _, bytes, _)| sum.saturating_add(pages(*bytes)));
        let bytes = entry.saturating_mul(batch as u64).saturating_add(pages(scratch));
        if bytes > limit {
            return Err(RunError::TooLarge { bytes, limit });
        }
        let (mut memory, mut dram) = (Memory::default(), BTreeSet::new());
        for (layer, is_input, bytes, wants_dram) in all {
            for entry in 0..batch {
                let buffer = match is_input {
                    true => Buffer::Input(layer.clone(), entry),
                    false => Buffer::Output(layer.clone(), entry),
                };
                if wants_dram {
                    dram.insert(buffer.clone());
                }
                memory.insert(buffer, zeroed(bytes, &layer)?);
            }
        }
        if scratch > 0 {
            memory.insert(Buffer::Scratch, zeroed(scratch, "scratch")?);
        }
        if let Some(parameters) = package.parameters(program.executable).filter(|bytes| !bytes.is_empty()) {
            memory.lend(parameters.clone());
            if row.use_tpu_dram_for_parameters {
                dram.insert(Buffer::Parameter);
            }
        }
        Ok(Loaded { row: row.clone(), program, memory, dram, placements: Vec::new(), list: Vec::new() })
    }

    /// The buffers with their places, after the executable was attached.
    pub(super) fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// Maps every buffer and writes the addresses into the instructions.
    pub(super) fn attach<D: Device>(&mut self, shared: &mut Shared<D>, dram: DramUse) -> Result<(), RunError> {
        let is_whole = self.row.dma_hints.as_ref().is_some_and(|hints| hints.fully_deterministic);
        let extraction = shared.device.extraction();
        if extraction == Extraction::Hints && !is_whole {
            return Err(RunError::Partial);
        }
        self.list = transfers(&self.row, extraction, true)?;
        let mut addresses = Addresses::default();
        let mut placements = Vec::new();
        for (buffer, bytes) in self.memory.buffers() {
            if matches!(buffer, Buffer::Instruction(_)) {
                continue;
            }
            let wants_dram = self.dram.contains(buffer);
            let free = shared.device.free_dram();
            let place = match shared.mapped(self.program, buffer) {
                Some(place) => place,
                // Scratch goes there if there is room, and nothing in a package asks for it.
                None if (wants_dram || *buffer == Buffer::Scratch) && free >= bytes as u64 => Place::Dram,
                None => Place::Host,
            };
            if wants_dram && place == Place::Host && dram == DramUse::Require {
                return Err(RunError::Dram { buffer: buffer.clone(), bytes, free });
            }
            let parameters = self.memory.parameters().filter(|_| *buffer == Buffer::Parameter);
            let mapping = Mapping { program: self.program, buffer, bytes, place, parameters };
            let (address, place) = shared.map(mapping)?;
            placements.push(Placement {
                executable: self.program.executable,
                buffer: buffer.clone(),
                bytes,
                place,
                wants_dram,
            });
            match buffer {
                Buffer::Parameter => addresses.parameter = Some(address),
                Buffer::Scratch => addresses.scratch = Some(address),
                // Entries of a layer come in order.
                Buffer::Input(layer, _) => addresses.inputs.entry(layer.clone()).or_default().push(address),
                Buffer::Output(layer, _) => addresses.outputs.entry(layer.clone()).or_default().push(address),
                Buffer::Instruction(_) => {}
            }
        }
        self.placements = placements;
        for (chunk, bytes) in link(&self.row, &addresses)?.into_iter().enumerate() {
            let mut buffer = zeroed(bytes.len(), "instructions")?;
            buffer.as_mut_slice().copy_from_slice(&bytes);
            self.memory.insert(Buffer::Instruction(chunk), buffer);
        }
        Ok(())
    }

    /// Runs the executable once. Outputs and scratch hold zeros before, so that what is not delivered is not an earlier
    /// run's.
    pub(super) fn run<D: Device>(&mut self, shared: &mut Shared<D>) -> Result<(), RunError> {
        self.memory.clear_results();
        let mut want = Moved::default();
        self.list.iter().for_each(|transfer| want.count(transfer));
        let moved = shared.device.run(self.program, &self.list, &mut self.memory)?;
        if moved != want {
            let message = format!(
                "{} bytes were sent and {} received, the list has {} and {}",
                moved.sent, moved.received, want.sent, want.received
            );
            return Err(DeviceError::Failed(message).into());
        }
        Ok(())
    }
}
