//! The transfers of a run, in order: from the hints of the package, or from its instructions alone.

use std::fmt;
use std::ops::Range;

use edgepack_format::darwinn::{AnyHint, Description, Direction, Executable, Geometry, Layer};
use edgepack_format::row::Rows;
use edgepack_format::wire::ReadError;

/// Something in memory that the device reads or writes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Buffer {
    /// Chunk of instructions, by its index in the executable.
    Instruction(usize),
    /// An input layer and its batch entry.
    Input(String, usize),
    /// An output layer and its batch entry.
    Output(String, usize),
    /// All parameters of the executable, in one buffer.
    Parameter,
    /// Scratch memory of the executable, in one buffer.
    Scratch,
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Buffer::Instruction(chunk) => write!(f, "instruction[{chunk}]"),
            Buffer::Input(name, batch) => write!(f, "input:{name}[{batch}]"),
            Buffer::Output(name, batch) => write!(f, "output:{name}[{batch}]"),
            Buffer::Parameter => f.write_str("parameter"),
            Buffer::Scratch => f.write_str("scratch"),
        }
    }
}

/// A transfer or signal of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// A chunk goes to the instruction queue.
    Instruction(Buffer, Range<usize>),
    /// Activations go to the device: an input, or scratch memory.
    InputActivation(Buffer, Range<usize>),
    /// Parameters go to the device.
    Parameter(Buffer, Range<usize>),
    /// Activations come back: an output, or scratch memory.
    OutputActivation(Buffer, Range<usize>),
    /// The device raises this interrupt; 0 ends the run.
    Interrupt(u8),
    /// Nothing after it starts before all before it has finished.
    LocalFence,
    /// The run has to end before the next one starts.
    GlobalFence,
}

impl Transfer {
    /// Its kind, as packages and tools call it.
    pub fn kind(&self) -> String {
        match self {
            Transfer::Instruction(..) => "instruction".to_owned(),
            Transfer::InputActivation(..) => "input_activation".to_owned(),
            Transfer::Parameter(..) => "parameter".to_owned(),
            Transfer::OutputActivation(..) => "output_activation".to_owned(),
            Transfer::Interrupt(number) => format!("interrupt{number}"),
            Transfer::LocalFence => "local_fence".to_owned(),
            Transfer::GlobalFence => "global_fence".to_owned(),
        }
    }

    /// The number of its kind; those below 8 are tags on USB.
    pub fn tag(&self) -> u8 {
        match self {
            Transfer::Instruction(..) => 0,
            Transfer::InputActivation(..) => 1,
            Transfer::Parameter(..) => 2,
            Transfer::OutputActivation(..) => 3,
            Transfer::Interrupt(number) => number.saturating_add(4),
            Transfer::LocalFence => 8,
            Transfer::GlobalFence => 9,
        }
    }

    /// Returns the buffer and the range that are moved, if anything is.
    pub fn moved(&self) -> Option<(&Buffer, Range<usize>)> {
        match self {
            Transfer::Instruction(buffer, range)
            | Transfer::InputActivation(buffer, range)
            | Transfer::Parameter(buffer, range)
            | Transfer::OutputActivation(buffer, range) => Some((buffer, range.clone())),
            _ => None,
        }
    }
}

/// Source from which a list of transfers is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extraction {
    /// From the hints, as over USB.
    Hints,
    /// One transfer per chunk, as over PCIe, where the device fetches the rest through linked addresses.
    Instructions,
    /// The first chunk alone, as over USB without hints.
    FirstInstruction,
}

/// Reason for which a list of transfers cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// A row could not be read: the package was not verified.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There are no hints.
    #[error("the executable has no list of transfers")]
    NoHints,
    /// A hint is about nothing there is.
    #[error("hint {hint}: {message}")]
    Hint {
        /// Index of the hint in the executable's list.
        hint: usize,
        /// Description of the error.
        message: String,
    },
}

/// The transfers of one run. `may_overlap` says whether the next request may start before this one has ended.
pub fn transfers(
    executable: &Executable<'_>,
    extraction: Extraction,
    may_overlap: bool,
) -> Result<Vec<Transfer>, TransferError> {
    let chunks = chunk_lens(executable)?;
    let chunk = |index: usize, len: usize| Transfer::Instruction(Buffer::Instruction(index), 0..len);
    let mut list: Vec<Transfer> = match extraction {
        Extraction::Hints => return from_hints(executable, &chunks, may_overlap),
        Extraction::Instructions => chunks.iter().enumerate().map(|(index, len)| chunk(index, *len)).collect(),
        Extraction::FirstInstruction => chunks.iter().take(1).map(|len| chunk(0, *len)).collect(),
    };
    if extraction == Extraction::FirstInstruction || !may_overlap {
        list.push(Transfer::GlobalFence);
    }
    Ok(list)
}

fn chunk_lens(executable: &Executable<'_>) -> Result<Vec<usize>, TransferError> {
    let mut lens = Vec::new();
    if let Some(chunks) = &executable.instruction_bitstreams {
        for chunk in chunks.iter() {
            lens.push(chunk?.bitstream.map_or(0, |blob| blob.as_slice().len()));
        }
    }
    Ok(lens)
}

fn from_hints(
    executable: &Executable<'_>,
    chunks: &[usize],
    may_overlap: bool,
) -> Result<Vec<Transfer>, TransferError> {
    let hints = executable.dma_hints.as_ref().ok_or(TransferError::NoHints)?;
    let rows = hints.hints.as_ref().ok_or(TransferError::NoHints)?;
    let (inputs, outputs) = (sizes(&executable.input_layers)?, sizes(&executable.output_layers)?);
    let mut list = Vec::new();
    for (index, hint) in rows.iter().enumerate() {
        let hint = hint?;
        let wrong = |message: String| TransferError::Hint { hint: index, message };
        list.push(match hint.any_hint {
            Some(AnyHint::InstructionHint(hint)) => {
                let number = hint.instruction_chunk_index;
                let found = usize::try_from(number).ok().and_then(|at| Some((at, *chunks.get(at)?)));
                let (at, len) = found.ok_or_else(|| wrong(format!("chunk {number} of {}", chunks.len())))?;
                Transfer::Instruction(Buffer::Instruction(at), 0..len)
            }
            Some(AnyHint::InterruptHint(hint)) => match u8::try_from(hint.kind.0) {
                Ok(number @ 0..=3) => Transfer::Interrupt(number),
                _ => return Err(wrong(format!("{}", hint.kind))),
            },
            Some(AnyHint::FenceHint(_)) => Transfer::LocalFence,
            Some(AnyHint::DmaDescriptorHint(descriptor)) => {
                let meta = descriptor.meta.ok_or_else(|| wrong("it has no meta".to_owned()))?;
                let name = meta.name.as_deref().unwrap_or_default();
                let batch = usize::try_from(meta.batch).ok().filter(|_| meta.batch < executable.batch_size.max(1));
                let layer = |layers: &[(String, usize)]| {
                    let found = layers.iter().find(|(found, _)| found == name).map(|(_, size)| *size);
                    let size = found.ok_or_else(|| wrong(format!("{name:?} is not a layer of that kind")))?;
                    Ok::<_, TransferError>((size, batch.ok_or_else(|| wrong(format!("batch entry {}", meta.batch)))?))
                };
                let (buffer, size) = match meta.desc {
                    Description::BASE_ADDRESS_PARAMETER => {
                        (Buffer::Parameter, executable.parameters.as_ref().map_or(0, |blob| blob.as_slice().len()))
                    }
                    Description::BASE_ADDRESS_SCRATCH => {
                        (Buffer::Scratch, usize::try_from(executable.scratch_size_bytes).unwrap_or(0))
                    }
                    Description::BASE_ADDRESS_INPUT_ACTIVATION => {
                        let (size, batch) = layer(&inputs)?;
                        (Buffer::Input(name.to_owned(), batch), size)
                    }
                    Description::BASE_ADDRESS_OUTPUT_ACTIVATION => {
                        let (size, batch) = layer(&outputs)?;
                        (Buffer::Output(name.to_owned(), batch), size)
                    }
                    other => return Err(wrong(format!("it is about {other}"))),
                };
                let start = usize::try_from(descriptor.offset_in_bytes).ok();
                let end = start.zip(usize::try_from(descriptor.size_in_bytes).ok()).and_then(|(a, b)| a.checked_add(b));
                let range = start.zip(end).filter(|(_, end)| *end <= size);
                let Some((start, end)) = range else {
                    let (at, len) = (descriptor.offset_in_bytes, descriptor.size_in_bytes);
                    return Err(wrong(format!("{len} bytes at {at} of the {size} bytes of {buffer}")));
                };
                match (&buffer, hint.direction) {
                    (Buffer::Parameter, _) => Transfer::Parameter(buffer, start..end),
                    (Buffer::Input(..), _) | (Buffer::Scratch, Direction::INFEED) => {
                        Transfer::InputActivation(buffer, start..end)
                    }
                    _ => Transfer::OutputActivation(buffer, start..end),
                }
            }
            Some(AnyHint::Unknown(tag)) => return Err(wrong(format!("it is of the unknown kind {tag}"))),
            None => return Err(wrong("it is of no kind".to_owned())),
        });
    }
    if !hints.fully_deterministic || !may_overlap {
        list.push(Transfer::GlobalFence);
    }
    Ok(list)
}

/// Names and padded bytes of layers. Of equal names the first counts.
fn sizes(rows: &Option<Rows<'_, Layer<'_>>>) -> Result<Vec<(String, usize)>, TransferError> {
    let mut sizes = Vec::new();
    for layer in rows.iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()) {
        let layer = layer?;
        let size = Geometry::of(&layer).map_or(0, |geometry| geometry.padded_bytes);
        sizes.push((layer.name.as_deref().unwrap_or_default().to_owned(), size));
    }
    Ok(sizes)
}
