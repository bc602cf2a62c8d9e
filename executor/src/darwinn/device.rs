//! Interface of a device for [`Runner`](super::Runner): maps buffers to addresses, carries out lists of transfers.

use std::collections::BTreeMap;
use std::ops::Range;

use super::transfer::{Buffer, Extraction, Transfer};

/// Reason for which a device could not carry out a request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is none.
    #[error("no Edge TPU is driven here: this needs a device, and an implementation of `Device` for it")]
    Absent,
    /// It failed, or was given something that makes no sense.
    #[error("the device: {0}")]
    Failed(String),
}

/// The buffers of one executable in the host's memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    buffers: BTreeMap<Buffer, Vec<u8>>,
}

impl Memory {
    /// Puts a buffer there.
    pub fn insert(&mut self, buffer: Buffer, bytes: Vec<u8>) {
        self.buffers.insert(buffer, bytes);
    }

    /// The bytes of a range; `None` if it is not inside the buffer.
    pub fn get(&self, buffer: &Buffer, range: Range<usize>) -> Option<&[u8]> {
        self.buffers.get(buffer)?.get(range)
    }

    /// Returns the bytes of a range, to be written; `None` if it is not inside the buffer.
    pub fn get_mut(&mut self, buffer: &Buffer, range: Range<usize>) -> Option<&mut [u8]> {
        self.buffers.get_mut(buffer)?.get_mut(range)
    }

    /// A whole buffer.
    pub fn whole(&self, buffer: &Buffer) -> Option<&[u8]> {
        self.buffers.get(buffer).map(Vec::as_slice)
    }

    /// All buffers with their lengths.
    pub fn buffers(&self) -> impl Iterator<Item = (&Buffer, usize)> {
        self.buffers.iter().map(|(buffer, bytes)| (buffer, bytes.len()))
    }
}

/// An Edge TPU, or a substitute for one.
pub trait Device {
    /// Returns the form in which lists of transfers for it are made.
    fn extraction(&self) -> Extraction {
        Extraction::Hints
    }

    /// The address at which instructions of executable `executable` find a buffer of so many bytes. The same buffer keeps
    /// its address until the next [`Device::map`] of it.
    fn map(&mut self, executable: usize, buffer: &Buffer, bytes: usize) -> Result<u64, DeviceError>;

    /// Carries out a run: moves what the list says, in its order, between memory and device, and returns when the run has
    /// ended. `executable` is the number of the one whose instructions these are.
    fn run(&mut self, executable: usize, transfers: &[Transfer], memory: &mut Memory) -> Result<(), DeviceError>;
}

/// The device of a machine that has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoDevice;

impl Device for NoDevice {
    fn map(&mut self, _: usize, _: &Buffer, _: usize) -> Result<u64, DeviceError> {
        Err(DeviceError::Absent)
    }

    fn run(&mut self, _: usize, _: &[Transfer], _: &mut Memory) -> Result<(), DeviceError> {
        Err(DeviceError::Absent)
    }
}
