//! Interface of a device for [`Chip`](super::Chip): maps buffers to addresses, carries out lists of transfers.
//!
//! Memory of the host is the host's: a device reads and writes [`Memory`] while it carries out a run, and parameters, which
//! never move, also between runs.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use edgepack_loader::{AlignedBytes, Bytes, Registration};

use super::transfer::{Buffer, Extraction, Transfer};

/// Reason for which a device could not carry out a request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is none.
    #[error("no Edge TPU is driven here: this needs a device, and an implementation of `Device` for it")]
    Absent,
    /// It moved another number of bytes than it was asked to.
    #[error("transfer {transfer}: {moved} of {wanted} bytes of {buffer} were moved")]
    Short {
        /// Index of the transfer in the list.
        transfer: usize,
        /// The buffer they are of.
        buffer: Buffer,
        /// Bytes that were moved.
        moved: usize,
        /// Bytes that should have been.
        wanted: usize,
    },
    /// It was reset: nothing that it held is there.
    #[error("the device was reset in transfer {0}")]
    Reset(usize),
    /// It failed, or was given something that makes no sense.
    #[error("the device: {0}")]
    Failed(String),
}

/// An executable as a runner uses it. Two runners of a package have buffers of their own, and share its parameters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Program {
    /// Number of the package: [`Registration::id`].
    pub package: u64,
    /// Index of the executable in the package.
    pub executable: usize,
    /// Number of the runner, from 1 on; 0 for what all runners of the package share.
    pub runner: u64,
}

impl Program {
    /// The program to which a buffer belongs: parameters are shared.
    pub fn owner(self, buffer: &Buffer) -> Program {
        if *buffer == Buffer::Parameter { Program { runner: 0, ..self } } else { self }
    }
}

/// Memory in which a mapped buffer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The host's.
    Host,
    /// The device's own. The device fills it before the first transfer of a run, and what it writes there goes back to the
    /// host's buffer before the run ends; of parameters that is once, when they are mapped.
    Dram,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Host => "memory of the host",
            Place::Dram => "memory of the device",
        })
    }
}

/// Request to give a buffer an address.
#[derive(Clone, Copy, Debug)]
pub struct Mapping<'a> {
    /// The program that uses it.
    pub program: Program,
    /// The buffer.
    pub buffer: &'a Buffer,
    /// The buffer's bytes.
    pub bytes: usize,
    /// Memory in which it is to be.
    pub place: Place,
    /// Memory of parameters, at a page. A clone keeps them where they are.
    pub parameters: Option<&'a Bytes>,
}

/// The buffers of one executable in the host's memory, each at a page.
#[derive(Debug, Default)]
pub struct Memory {
    buffers: BTreeMap<Buffer, AlignedBytes>,
    parameters: Option<Bytes>,
}

impl Memory {
    /// Puts a buffer there.
    pub(super) fn insert(&mut self, buffer: Buffer, bytes: AlignedBytes) {
        self.buffers.insert(buffer, bytes);
    }

    /// Puts the parameters there, without copying them.
    pub(super) fn lend(&mut self, parameters: Bytes) {
        self.parameters = Some(parameters);
    }

    /// The parameters.
    pub(super) fn parameters(&self) -> Option<&Bytes> {
        self.parameters.as_ref()
    }

    /// Fills what a run writes with zeros.
    pub(super) fn clear_results(&mut self) {
        for (buffer, bytes) in &mut self.buffers {
            if matches!(buffer, Buffer::Output(..) | Buffer::Scratch) {
                bytes.as_mut_slice().fill(0);
            }
        }
    }

    /// A whole buffer.
    pub fn whole(&self, buffer: &Buffer) -> Option<&[u8]> {
        match buffer {
            Buffer::Parameter => self.parameters.as_deref(),
            _ => self.buffers.get(buffer).map(|bytes| &**bytes),
        }
    }

    /// The bytes of a range; `None` if it is not inside the buffer.
    pub fn get(&self, buffer: &Buffer, range: Range<usize>) -> Option<&[u8]> {
        self.whole(buffer)?.get(range)
    }

    /// Returns the bytes of a range, to be written; `None` if it is not inside the buffer. Parameters are not written.
    pub fn get_mut(&mut self, buffer: &Buffer, range: Range<usize>) -> Option<&mut [u8]> {
        self.buffers.get_mut(buffer)?.as_mut_slice().get_mut(range)
    }

    /// All buffers with their lengths.
    pub fn buffers(&self) -> impl Iterator<Item = (&Buffer, usize)> {
        let own = self.buffers.iter().map(|(buffer, bytes)| (buffer, bytes.len()));
        own.chain(self.parameters.iter().map(|bytes| (&Buffer::Parameter, bytes.len())))
    }
}

/// Bytes that the listed transfers of a run have moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// To the device.
    pub sent: usize,
    /// From the device.
    pub received: usize,
}

impl Moved {
    /// Counts a transfer.
    pub fn count(&mut self, transfer: &Transfer) {
        let len = transfer.moved().map_or(0, |(_, range)| range.len());
        match transfer {
            Transfer::OutputActivation(..) => self.received += len,
            _ => self.sent += len,
        }
    }
}

/// An Edge TPU, or a substitute for one.
pub trait Device {
    /// Returns the form in which lists of transfers for it are made.
    fn extraction(&self) -> Extraction {
        Extraction::Hints
    }

    /// Bytes of the device's own memory that are free. Chips known so far have none.
    fn free_dram(&self) -> u64 {
        0
    }

    /// A runner of the package is about to map its buffers: a new one, or one that was there before a reset.
    fn register(&mut self, package: &Registration) -> Result<(), DeviceError> {
        let _ = package;
        Ok(())
    }

    /// Gives a buffer an address, at which instructions find it until it is unmapped or the device is reset.
    fn map(&mut self, mapping: &Mapping<'_>) -> Result<u64, DeviceError>;

    /// Takes the address from a buffer.
    fn unmap(&mut self, program: Program, buffer: &Buffer) {
        let _ = (program, buffer);
    }

    /// No runner uses the package any more, and nothing of it is mapped.
    fn release(&mut self, package: u64) {
        let _ = package;
    }

    /// Carries out a run: moves what the list says, in its order, between memory and device, and returns when the run has
    /// ended. The answer is what the transfers have moved; a device that moved less says so or fails.
    fn run(&mut self, program: Program, transfers: &[Transfer], memory: &mut Memory) -> Result<Moved, DeviceError>;

    /// Puts the device into the state after opening: no address is valid and nothing is in its memory. Called after
    /// everything that failed.
    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// The device of a machine that has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoDevice;

impl Device for NoDevice {
    fn map(&mut self, _: &Mapping<'_>) -> Result<u64, DeviceError> {
        Err(DeviceError::Absent)
    }

    fn run(&mut self, _: Program, _: &[Transfer], _: &mut Memory) -> Result<Moved, DeviceError> {
        Err(DeviceError::Absent)
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn extraction(&self) -> Extraction {
        (**self).extraction()
    }

    fn free_dram(&self) -> u64 {
        (**self).free_dram()
    }

    fn register(&mut self, package: &Registration) -> Result<(), DeviceError> {
        (**self).register(package)
    }

    fn map(&mut self, mapping: &Mapping<'_>) -> Result<u64, DeviceError> {
        (**self).map(mapping)
    }

    fn unmap(&mut self, program: Program, buffer: &Buffer) {
        (**self).unmap(program, buffer);
    }

    fn release(&mut self, package: u64) {
        (**self).release(package);
    }

    fn run(&mut self, program: Program, transfers: &[Transfer], memory: &mut Memory) -> Result<Moved, DeviceError> {
        (**self).run(program, transfers, memory)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        (**self).reset()
    }
}
