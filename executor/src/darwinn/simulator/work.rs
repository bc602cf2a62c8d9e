//! State of a run on the device of software: what came, what is given, and the work of making an output.

use std::collections::BTreeMap;

use edgepack_format::darwinn::Executable;

use super::super::device::{Memory, Program};
use super::super::transfer::{Buffer, Transfer};

/// An output that the device has to give.
#[derive(Clone, Copy, Debug)]
pub struct Work<'w> {
    /// The program that runs.
    pub program: Program,
    /// Name of the output layer.
    pub output: &'w str,
    /// Its batch entry.
    pub batch: usize,
    /// Bytes of its buffer.
    pub bytes: usize,
    pub(super) inputs: &'w BTreeMap<Buffer, Vec<u8>>,
    pub(super) cached: &'w [u8],
}

impl<'w> Work<'w> {
    /// The device's bytes of an input of the same batch entry, padding included; empty if nothing of it came yet.
    pub fn input(&self, name: &str) -> &'w [u8] {
        self.inputs.get(&Buffer::Input(name.to_owned(), self.batch)).map_or(&[], Vec::as_slice)
    }

    /// The package's parameters that are on the chip.
    pub fn cached(&self) -> &'w [u8] {
        self.cached
    }
}

/// State of a run.
#[derive(Default)]
pub(super) struct Run<'a> {
    pub(super) program: Program,
    pub(super) row: Executable<'a>,
    pub(super) number: u64,
    /// Results made from the inputs.
    pub(super) inputs: BTreeMap<Buffer, Vec<u8>>,
    /// Outputs that were begun.
    pub(super) made: BTreeMap<Buffer, Vec<u8>>,
    pub(super) parameters: Vec<u8>,
    /// Bytes written to scratch.
    pub(super) scratch: Vec<Option<u8>>,
}

/// Transfers of all parameters and activations: those to the device first.
pub(super) fn everything(memory: &Memory) -> Vec<Transfer> {
    let (mut to, mut from) = (Vec::new(), Vec::new());
    for (buffer, bytes) in memory.buffers() {
        match buffer {
            Buffer::Parameter => to.push(Transfer::Parameter(buffer.clone(), 0..bytes)),
            Buffer::Input(..) => to.push(Transfer::InputActivation(buffer.clone(), 0..bytes)),
            Buffer::Output(..) => from.push(Transfer::OutputActivation(buffer.clone(), 0..bytes)),
            Buffer::Scratch | Buffer::Instruction(_) => {}
        }
    }
    to.extend(from);
    to
}
