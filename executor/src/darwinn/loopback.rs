//! A device of software: it checks what it is given and gives the outputs it was told.
//!
//! It computes nothing. What it proves is the host's side: that every field of the instructions holds the address of the
//! buffer it names, that fences and the end of the run are where they belong, and that outputs are fetched.

use std::collections::BTreeMap;

use edgepack_format::darwinn::{Description, Executable, PackageRef, Position};

use super::device::{Device, DeviceError, Memory};
use super::transfer::{Buffer, Extraction, Transfer};

/// Something that was moved or said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Index of the executable in the package.
    pub executable: usize,
    /// Transfer as it was asked for, or the signal or fence.
    pub transfer: Transfer,
    /// The bytes that went to the device; those of outputs as they came back.
    pub bytes: Vec<u8>,
}

/// A device of software for one package.
pub struct Loopback<'a> {
    executables: Vec<Executable<'a>>,
    extraction: Extraction,
    addresses: BTreeMap<(usize, Buffer), u64>,
    next: u64,
    answers: BTreeMap<(String, usize), Vec<u8>>,
    seen: Vec<Seen>,
}

/// Address of the first buffer. Upper halves are those of the device's extended address space.
const BASE: u64 = 0x8000_0000_0000_0000;
const PAGE: u64 = 4096;

fn failed<T>(message: String) -> Result<T, DeviceError> {
    Err(DeviceError::Failed(message))
}

impl<'a> Loopback<'a> {
    /// For this package.
    pub fn new(package: &PackageRef<'a>) -> Self {
        Loopback {
            executables: package.executables().iter().map(|executable| executable.row().clone()).collect(),
            extraction: Extraction::Hints,
            addresses: BTreeMap::new(),
            next: BASE,
            answers: BTreeMap::new(),
            seen: Vec::new(),
        }
    }

    /// Sets the form in which lists of transfers are made.
    pub fn with_extraction(self, extraction: Extraction) -> Self {
        Loopback { extraction, ..self }
    }

    /// Tells what an output and batch entry is to hold, as numbers of the device.
    pub fn answer(&mut self, output: &str, batch: usize, bytes: Vec<u8>) {
        self.answers.insert((output.to_owned(), batch), bytes);
    }

    /// Everything so far, in order.
    pub fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// Checks that every field of a chunk holds the value it should.
    fn check_chunk(&self, executable: usize, chunk: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let rows = self.executables.get(executable).and_then(|row| row.instruction_bitstreams.as_ref());
        let row = rows.and_then(|rows| rows.get(chunk).ok());
        let Some(row) = row else { return failed(format!("there is no chunk {chunk}")) };
        for (index, field) in
            row.field_offsets.iter().flat_map(|rows| rows.iter().flatten().collect::<Vec<_>>()).enumerate()
        {
            let Some(meta) = &field.meta else { continue };
            let name = || meta.name.as_deref().unwrap_or_default().to_owned();
            let batch = usize::try_from(meta.batch).unwrap_or(usize::MAX);
            let buffer = match meta.desc {
                Description::BASE_ADDRESS_INPUT_ACTIVATION => Buffer::Input(name(), batch),
                Description::BASE_ADDRESS_OUTPUT_ACTIVATION => Buffer::Output(name(), batch),
                Description::BASE_ADDRESS_SCRATCH => Buffer::Scratch,
                _ => Buffer::Parameter,
            };
            // Executables have fields for parameters and scratch also when they have neither.
            let Some(address) = self.addresses.get(&(executable, buffer.clone())) else { continue };
            let want = if meta.position == Position::LOWER_32BIT { *address as u32 } else { (address >> 32) as u32 };
            let found = read_bits(bytes, usize::try_from(field.offset_bit).unwrap_or(usize::MAX));
            if found != Some(want) {
                return failed(format!("field {index} of chunk {chunk} holds {found:x?}, {buffer} wants {want:#x}"));
            }
        }
        Ok(())
    }

    fn fetch(&mut self, buffer: &Buffer, into: &mut [u8], start: usize) -> Result<(), DeviceError> {
        let Buffer::Output(name, batch) = buffer else { return Ok(()) };
        let answer = self.answers.get(&(name.clone(), *batch));
        let bytes = answer.and_then(|bytes| bytes.get(start..start + into.len()));
        match bytes {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            // Filling entries of a batch are fetched and thrown away.
            None if answer.is_none() => Ok(()),
            None => failed(format!("{} bytes at {start} of {buffer} were asked for", into.len())),
        }
    }
}

/// The 32 bits from here, one by one: another algorithm than the one that writes them.
fn read_bits(bytes: &[u8], bit: usize) -> Option<u32> {
    (0..32).try_fold(0u32, |value, k| {
        let at = bit.checked_add(k)?;
        let set = (bytes.get(at / 8)? >> (at % 8)) & 1;
        Some(value | (u32::from(set) << k))
    })
}

impl Device for Loopback<'_> {
    fn extraction(&self) -> Extraction {
        self.extraction
    }

    fn map(&mut self, executable: usize, buffer: &Buffer, bytes: usize) -> Result<u64, DeviceError> {
        let address = self.next;
        // A page between any two, so that ranges that are too long are noticed.
        self.next += (bytes as u64).next_multiple_of(PAGE) + PAGE;
        self.addresses.insert((executable, buffer.clone()), address);
        Ok(address)
    }

    fn run(&mut self, executable: usize, transfers: &[Transfer], memory: &mut Memory) -> Result<(), DeviceError> {
        let (mut moved, mut ended) = (0usize, false);
        for transfer in transfers {
            if ended && !matches!(transfer, Transfer::GlobalFence) {
                return failed(format!("{} after the end of the run", transfer.kind()));
            }
            let mut bytes = Vec::new();
            match transfer {
                Transfer::Interrupt(number) => ended |= *number == 0,
                Transfer::LocalFence if moved == 0 => return failed("a fence with nothing in front of it".to_owned()),
                Transfer::LocalFence | Transfer::GlobalFence => {}
                Transfer::OutputActivation(buffer, range) => {
                    let Some(into) = memory.get_mut(buffer, range.clone()) else {
                        return failed(format!("{range:?} is not inside {buffer}"));
                    };
                    self.fetch(buffer, into, range.start)?;
                    bytes = into.to_vec();
                }
                Transfer::Instruction(buffer, range)
                | Transfer::InputActivation(buffer, range)
                | Transfer::Parameter(buffer, range) => {
                    let Some(from) = memory.get(buffer, range.clone()) else {
                        return failed(format!("{range:?} is not inside {buffer}"));
                    };
                    if let Buffer::Instruction(chunk) = buffer {
                        self.check_chunk(executable, *chunk, from)?;
                    }
                    bytes = from.to_vec();
                }
            }
            moved = if matches!(transfer, Transfer::LocalFence) { 0 } else { moved + 1 };
            self.seen.push(Seen { executable, transfer: transfer.clone(), bytes });
        }
        if self.extraction != Extraction::Hints {
            // The device fetches and delivers through the addresses it was given.
            let outputs: Vec<(Buffer, usize)> = memory.buffers().map(|(buffer, len)| (buffer.clone(), len)).collect();
            for (buffer, len) in outputs {
                if let Some(into) = memory.get_mut(&buffer, 0..len) {
                    self.fetch(&buffer, into, 0)?;
                }
            }
        }
        Ok(())
    }
}
