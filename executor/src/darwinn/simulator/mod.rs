//! A device of software: it has addresses, on-chip memory and, if wished, memory of its own; it checks everything that it
//! is given, gives outputs, and fails when it is told to.
//!
//! It runs no instructions. What it proves is the host's side: that transfers are those of the package, in its order and
//! inside the tables' sizes; that instructions are the package's, with the address of the buffer each field names; that
//! parameters are where they were mapped, and on the chip when a program needs them; that scratch comes back as it went.

mod check;
mod work;

use std::collections::BTreeMap;

use edgepack_format::darwinn::{Executable, ExecutableType, PackageRef};
use edgepack_loader::{Bytes, Registration};
use sha2::{Digest, Sha256};

use super::device::{Device, DeviceError, Mapping, Memory, Moved, Place, Program};
use super::transfer::{Buffer, Extraction, Transfer};
pub use work::Work;
use work::{Run, everything};

/// Something that was moved or said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The program that ran.
    pub program: Program,
    /// Transfer as it was asked for, or the signal or fence.
    pub transfer: Transfer,
    /// The bytes that went to the device; those of outputs as they came back.
    pub bytes: Vec<u8>,
}

/// Error that the device commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Of a transfer at most so many bytes are moved; the device notices and fails.
    Short(usize),
    /// Of a transfer at most so many bytes are moved; the device says how many it moved and that all is well.
    Silent(usize),
    /// The device loses everything that it holds, addresses included, and fails.
    Reset,
}

type Compute = Box<dyn FnMut(&Work<'_>) -> Vec<u8> + Send>;

/// A buffer with an address.
struct Mapped {
    address: u64,
    bytes: usize,
    place: Place,
    /// Memory of parameters on the host.
    parameters: Option<Bytes>,
    /// Content, of a buffer in the device's own memory.
    own: Vec<u8>,
}

/// A device of software.
#[derive(Default)]
pub struct Simulator {
    extraction: Option<Extraction>,
    dram: u64,
    packages: BTreeMap<u64, Registration>,
    mapped: BTreeMap<(Program, Buffer), Mapped>,
    next: u64,
    /// Parameters on the chip by package, all of this token.
    chip: (u64, BTreeMap<u64, Vec<u8>>),
    compute: BTreeMap<u64, Compute>,
    fault: Option<(usize, Fault)>,
    /// True after an error, until it is reset.
    failed: bool,
    is_recording: bool,
    seen: Vec<Seen>,
    mappings: Vec<(Program, Buffer)>,
    loads: usize,
    runs: u64,
}

/// Address of the first buffer of the host. Upper halves are those of the device's extended address space.
const BASE: u64 = 0x8000_0000_0000_0000;
/// Address of the first buffer in the device's own memory.
const DRAM: u64 = 0x0000_0040_0000_0000;
const PAGE: u64 = 4096;

fn failed<T>(message: impl Into<String>) -> Result<T, DeviceError> {
    Err(DeviceError::Failed(message.into()))
}

impl Simulator {
    /// A device without memory of its own that is given lists of transfers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the form in which lists of transfers are made.
    pub fn with_extraction(self, extraction: Extraction) -> Self {
        Simulator { extraction: Some(extraction), ..self }
    }

    /// Gives it so many bytes of memory of its own.
    pub fn with_dram(self, bytes: u64) -> Self {
        Simulator { dram: bytes, ..self }
    }

    /// Remembers all that is moved, for [`Simulator::seen`].
    pub fn recording(self) -> Self {
        Simulator { is_recording: true, ..self }
    }

    /// Gives the outputs of a package, in the device's numbers and order. Without it they are a
    /// [`digest`](Simulator::digest).
    pub fn compute(&mut self, package: &Registration, compute: impl FnMut(&Work<'_>) -> Vec<u8> + Send + 'static) {
        self.compute.insert(package.id(), Box::new(compute));
    }

    /// Bytes that depend on all of these: parameters on the chip, the device's bytes of the inputs sorted by name, the
    /// output's name.
    pub fn digest(cached: &[u8], inputs: &[(&str, &[u8])], output: &str, bytes: usize) -> Vec<u8> {
        let mut hash = Sha256::new();
        for part in [cached, output.as_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        for (name, bytes) in inputs {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update(bytes);
        }
        let hash = hash.finalize();
        hash.iter().cycle().zip(0..bytes).map(|(byte, at)| byte.wrapping_add((at / 32) as u8)).collect()
    }

    /// Makes the device fail: in the transfer that moves bytes after `transfers` others did.
    pub fn inject(&mut self, transfers: usize, fault: Fault) {
        self.fault = Some((transfers, fault));
    }

    /// All that was moved since it was opened, in order, if it is [`recording`](Simulator::recording).
    pub fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// All buffers that were given an address, in order.
    pub fn mappings(&self) -> &[(Program, Buffer)] {
        &self.mappings
    }

    /// The number of buffers that have an address now.
    pub fn mapped(&self) -> usize {
        self.mapped.len()
    }

    /// The number of times that parameters were put on the chip.
    pub fn loads(&self) -> usize {
        self.loads
    }

    /// Returns the address and the place of a buffer.
    pub fn address(&self, program: Program, buffer: &Buffer) -> Option<(u64, Place)> {
        let found = self.mapped.get(&(program.owner(buffer), buffer.clone()))?;
        Some((found.address, found.place))
    }

    /// Notes that a program uses the chip, and checks that its parameters are there.
    fn enter_chip(
        &mut self,
        package: &PackageRef<'_>,
        row: &Executable<'_>,
        program: Program,
    ) -> Result<(), DeviceError> {
        let token = row.parameter_caching_token;
        if token == 0 || token != self.chip.0 {
            self.chip = (token, BTreeMap::new());
        }
        let is_main = row.kind != ExecutableType::PARAMETER_CACHING;
        if is_main && package.caching().is_some() && !self.chip.1.contains_key(&program.package) {
            return failed("the program's parameters are not on the chip");
        }
        Ok(())
    }

    fn make(&mut self, run: &Run<'_>, output: &str, batch: usize, bytes: usize) -> Result<Vec<u8>, DeviceError> {
        let cached = self.chip.1.get(&run.program.package).map_or(&[][..], Vec::as_slice);
        let work = Work { program: run.program, output, batch, bytes, inputs: &run.inputs, cached };
        let made = match self.compute.get_mut(&run.program.package) {
            Some(compute) => compute(&work),
            None => {
                let inputs = run.inputs.iter().filter_map(|(buffer, bytes)| match buffer {
                    Buffer::Input(name, entry) if *entry == batch => Some((name.as_str(), bytes.as_slice())),
                    _ => None,
                });
                Self::digest(cached, &inputs.collect::<Vec<_>>(), output, bytes)
            }
        };
        match made.len() == bytes {
            true => Ok(made),
            false => failed(format!("{} bytes were computed for {output:?}, its buffer has {bytes}", made.len())),
        }
    }

    /// Bytes that a transfer moves to the device, after checking where they are.
    fn source<'m>(&'m self, run: &Run<'_>, memory: &'m Memory, transfer: &Transfer) -> Result<&'m [u8], DeviceError> {
        let Some((buffer, range)) = transfer.moved() else { return Ok(&[]) };
        let outside = || DeviceError::Failed(format!("{range:?} is not inside {buffer}"));
        let whole = memory.whole(buffer).ok_or_else(outside)?;
        if !whole.is_empty() && !whole.as_ptr().addr().is_multiple_of(PAGE as usize) {
            return failed(format!("{buffer} is not at a page"));
        }
        if let Buffer::Instruction(chunk) = buffer {
            let rows = run.row.instruction_bitstreams.as_ref();
            let Some(row) = rows.and_then(|rows| rows.get(*chunk).ok()) else {
                return failed(format!("there is no chunk {chunk}"));
            };
            let address = |buffer: &Buffer| self.address(run.program, buffer).map(|(address, _)| address);
            check::chunk(&row, whole, address).or_else(|error| failed(format!("chunk {chunk}: {error}")))?;
            return whole.get(range.clone()).ok_or_else(outside);
        }
        let mapped = self.mapped.get(&(run.program.owner(buffer), buffer.clone()));
        let Some(mapped) = mapped else { return failed(format!("{buffer} has no address")) };
        if whole.len() != mapped.bytes || check::table_bytes(&run.row, buffer) != Some(mapped.bytes) {
            return failed(format!("{buffer} has {} bytes, {} are mapped", whole.len(), mapped.bytes));
        }
        if mapped.parameters.as_ref().is_some_and(|bytes| bytes.as_ptr() != whole.as_ptr()) {
            return failed("the parameters are elsewhere than they were mapped");
        }
        if mapped.place == Place::Dram {
            return mapped.own.get(range.clone()).ok_or_else(outside);
        }
        whole.get(range.clone()).ok_or_else(outside)
    }

    /// Carries out one transfer: the bytes it moved.
    fn transfer(
        &mut self,
        run: &mut Run<'_>,
        memory: &mut Memory,
        transfer: &Transfer,
        most: usize,
    ) -> Result<Vec<u8>, DeviceError> {
        let Some((buffer, range)) = transfer.moved() else { return Ok(Vec::new()) };
        let bytes = self.source(run, memory, transfer)?.iter().take(most).copied().collect::<Vec<u8>>();
        match (transfer, buffer) {
            (Transfer::OutputActivation(..), Buffer::Output(name, batch)) => {
                let made = match run.made.remove(buffer) {
                    Some(made) => made,
                    None => {
                        let bytes = memory.whole(buffer).map_or(0, <[u8]>::len);
                        self.make(run, name, *batch, bytes)?
                    }
                };
                let bytes = made.get(range.clone()).unwrap_or(&[]).iter().take(most).copied().collect::<Vec<u8>>();
                run.made.insert(buffer.clone(), made);
                self.deliver(run.program, memory, buffer, range.start, &bytes)?;
                return Ok(bytes);
            }
            (Transfer::OutputActivation(..), _) => {
                // Other numbers for every run, so that those of an earlier one are noticed.
                let made = Self::digest(&run.number.to_le_bytes(), &[], "scratch", range.end);
                let bytes = made.get(range.clone()).unwrap_or(&[]).iter().take(most).copied().collect::<Vec<u8>>();
                run.scratch.resize(run.scratch.len().max(range.end), None);
                for (to, byte) in run.scratch.iter_mut().skip(range.start).zip(&bytes) {
                    *to = Some(*byte);
                }
                self.deliver(run.program, memory, buffer, range.start, &bytes)?;
                return Ok(bytes);
            }
            (Transfer::InputActivation(..), Buffer::Scratch) => {
                let wanted = run.scratch.iter().skip(range.start);
                if wanted.zip(&bytes).any(|(want, byte)| want.is_some_and(|want| want != *byte)) {
                    return failed("scratch does not come back as it went");
                }
            }
            (Transfer::InputActivation(..), _) => {
                let whole = memory.whole(buffer).map_or(0, <[u8]>::len);
                let input = run.inputs.entry(buffer.clone()).or_insert_with(|| vec![0; whole]);
                input.iter_mut().skip(range.start).zip(&bytes).for_each(|(to, byte)| *to = *byte);
            }
            (Transfer::Parameter(..), _) => {
                let want =
                    self.packages.get(&run.program.package).and_then(|one| one.parameters(run.program.executable));
                if want.and_then(|want| want.get(range.start..range.start + bytes.len())) != Some(&bytes) {
                    return failed("the parameters are others than the package's");
                }
                run.parameters.resize(run.parameters.len().max(range.end), 0);
                run.parameters.iter_mut().skip(range.start).zip(&bytes).for_each(|(to, byte)| *to = *byte);
            }
            _ => {}
        }
        Ok(bytes)
    }

    /// Writes what the device gives: into the host's memory, and the device's own if the buffer is there.
    fn deliver(
        &mut self,
        program: Program,
        memory: &mut Memory,
        buffer: &Buffer,
        start: usize,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let Some(into) = memory.get_mut(buffer, start..start + bytes.len()) else {
            return failed(format!("{} bytes at {start} are not inside {buffer}", bytes.len()));
        };
        into.copy_from_slice(bytes);
        if let Some(mapped) = self.mapped.get_mut(&(program, buffer.clone())) {
            mapped.own.iter_mut().skip(start).zip(bytes).for_each(|(to, byte)| *to = *byte);
        }
        Ok(())
    }

    /// The error that comes in this transfer: the most bytes that it moves.
    fn next_fault(&mut self, transfer: &Transfer) -> (usize, Option<Fault>) {
        if transfer.moved().is_none() {
            return (usize::MAX, None);
        }
        match self.fault.take() {
            Some((0, fault @ (Fault::Short(most) | Fault::Silent(most)))) => (most, Some(fault)),
            Some((0, fault)) => (usize::MAX, Some(fault)),
            Some((more, fault)) => {
                self.fault = Some((more - 1, fault));
                (usize::MAX, None)
            }
            None => (usize::MAX, None),
        }
    }

    fn carry_out(
        &mut self,
        program: Program,
        transfers: &[Transfer],
        memory: &mut Memory,
    ) -> Result<Moved, DeviceError> {
        let Some(registration) = self.packages.get(&program.package).cloned() else {
            return failed("the package is not registered");
        };
        let package = registration.package().or_else(|error| failed(error.to_string()))?;
        let Some(row) = package.executables().get(program.executable).map(|one| one.row().clone()) else {
            return failed(format!("there is no executable {}", program.executable));
        };
        let is_listed = self.extraction() == Extraction::Hints;
        if is_listed {
            check::list(&row, transfers).or_else(failed)?;
        }
        self.enter_chip(&package, &row, program)?;
        // Buffers in the device's own memory are filled before the first transfer.
        for ((owner, buffer), mapped) in &mut self.mapped {
            if *owner == program && mapped.place == Place::Dram {
                mapped.own = memory.whole(buffer).unwrap_or(&[]).to_vec();
            }
        }
        self.runs += 1;
        let mut run = Run { program, row, number: self.runs, ..Run::default() };
        let mut list = transfers.to_vec();
        if !is_listed {
            // The device fetches and delivers the rest itself, through the addresses it was given.
            list.extend(everything(memory));
        }
        let (mut moved, mut in_flight, mut ended) = (Moved::default(), 0usize, false);
        for (index, transfer) in list.iter().enumerate() {
            if ended && *transfer != Transfer::GlobalFence {
                return failed(format!("{} after the end of the run", transfer.kind()));
            }
            if *transfer == Transfer::LocalFence && in_flight == 0 {
                return failed("a fence with nothing in front of it never ends");
            }
            ended |= *transfer == Transfer::Interrupt(0);
            in_flight = if *transfer == Transfer::LocalFence { 0 } else { in_flight + 1 };
            let (most, fault) = self.next_fault(transfer);
            if fault == Some(Fault::Reset) {
                self.forget();
                return Err(DeviceError::Reset(index));
            }
            let bytes = self.transfer(&mut run, memory, transfer, most)?;
            let wanted = transfer.moved().map_or(0, |(_, range)| range.len());
            if let (Some(Fault::Short(_)), Some((buffer, _))) = (fault, transfer.moved())
                && bytes.len() < wanted
            {
                return Err(DeviceError::Short { transfer: index, buffer: buffer.clone(), moved: bytes.len(), wanted });
            }
            if index < transfers.len() {
                match transfer {
                    Transfer::OutputActivation(..) => moved.received += bytes.len(),
                    _ => moved.sent += bytes.len(),
                }
            }
            if self.is_recording {
                self.seen.push(Seen { program, transfer: transfer.clone(), bytes });
            }
        }
        if run.row.kind == ExecutableType::PARAMETER_CACHING {
            self.chip.1.insert(program.package, run.parameters);
            self.loads += 1;
        }
        Ok(moved)
    }

    /// Loses everything that it holds.
    fn forget(&mut self) {
        self.mapped.clear();
        self.chip = Default::default();
    }
}

impl Device for Simulator {
    fn extraction(&self) -> Extraction {
        self.extraction.unwrap_or(Extraction::Hints)
    }

    fn free_dram(&self) -> u64 {
        let used = self.mapped.values().filter(|mapped| mapped.place == Place::Dram);
        self.dram.saturating_sub(used.map(|mapped| mapped.bytes as u64).sum())
    }

    fn register(&mut self, package: &Registration) -> Result<(), DeviceError> {
        self.packages.insert(package.id(), package.clone());
        Ok(())
    }

    fn map(&mut self, mapping: &Mapping<'_>) -> Result<u64, DeviceError> {
        let Mapping { program, buffer, bytes, place, parameters } = *mapping;
        let key = (program, buffer.clone());
        let Some(registration) = self.packages.get(&program.package) else {
            return failed("the package is not registered");
        };
        let package = registration.package().or_else(|error| failed(error.to_string()))?;
        let table = package.executables().get(program.executable);
        if table.and_then(|one| check::table_bytes(one.row(), buffer)) != Some(bytes) {
            return failed(format!("{buffer} of {bytes} bytes is not in the tables"));
        }
        if self.mapped.contains_key(&key) {
            return failed(format!("{buffer} has an address already"));
        }
        if parameters.is_some_and(|bytes| !bytes.as_ptr().addr().is_multiple_of(PAGE as usize)) {
            return failed("the parameters are not at a page");
        }
        if place == Place::Dram && self.free_dram() < bytes as u64 {
            return failed(format!("{bytes} bytes of its own memory, {} are free", self.free_dram()));
        }
        let base = if place == Place::Dram { DRAM } else { BASE };
        let address = base + self.next;
        // A page between any two, so that ranges that are too long are noticed.
        self.next += (bytes as u64).next_multiple_of(PAGE) + PAGE;
        let own = match (place, parameters) {
            (Place::Dram, Some(parameters)) => parameters.to_vec(),
            _ => Vec::new(),
        };
        self.mapped.insert(key.clone(), Mapped { address, bytes, place, parameters: parameters.cloned(), own });
        self.mappings.push(key);
        Ok(address)
    }

    fn unmap(&mut self, program: Program, buffer: &Buffer) {
        self.mapped.remove(&(program, buffer.clone()));
    }

    fn release(&mut self, package: u64) {
        self.packages.remove(&package);
    }

    fn run(&mut self, program: Program, transfers: &[Transfer], memory: &mut Memory) -> Result<Moved, DeviceError> {
        if self.failed {
            return failed("it was not reset after a failure");
        }
        let result = self.carry_out(program, transfers, memory);
        self.failed = result.is_err();
        result
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.forget();
        self.failed = false;
        Ok(())
    }
}
