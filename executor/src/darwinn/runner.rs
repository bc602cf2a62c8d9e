//! Runs of a package: tensors in and out by name, state from run to run, on a device that others use, too.
//!
//! The order is the stock driver's: parameters that stay on the chip are loaded when they are not there already, then the
//! main executable runs, once per batch of entries; a batch that is not full is filled with zeros.
//!
//! Invariant: a run that fails changes nothing: not the state, and nothing of the next run depends on it.

use std::collections::BTreeMap;

use edgepack_format::darwinn::Layer;
use edgepack_format::limits::Limits;
use edgepack_loader::{Registration, machine_limits};

use super::chip::{Chip, Shared, next_runner};
use super::device::{Device, Program};
use super::error::RunError;
use super::number::{check_numerics, dequantize, quantize};
use super::program::{DramUse, Loaded, Placement, name};
use super::sides::{Entries, Sides, State, TensorBytes};
use super::transfer::Buffer;

/// Settings of a runner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RunnerOptions {
    /// Treatment of buffers that the package wants in the device's own memory.
    pub dram: DramUse,
    /// Limits; `memory_bytes` bounds the buffers of a run.
    pub limits: Limits,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        RunnerOptions { dram: DramUse::Prefer, limits: machine_limits() }
    }
}

impl RunnerOptions {
    /// Refuses devices without room for what the package wants in their own memory.
    pub fn require_dram(self) -> Self {
        RunnerOptions { dram: DramUse::Require, ..self }
    }

    /// Sets the limits.
    pub fn within(self, limits: Limits) -> Self {
        RunnerOptions { limits, ..self }
    }
}

/// The executables of a package with their buffers.
struct Engine<'a> {
    registration: &'a Registration,
    main: Loaded<'a>,
    caching: Option<Loaded<'a>>,
    batch: usize,
    dram: DramUse,
    /// The device's epoch in which everything was mapped.
    epoch: Option<u64>,
}

impl Engine<'_> {
    /// Maps and links if that has not happened since the device was reset.
    fn attach<D: Device>(&mut self, shared: &mut Shared<D>) -> Result<(), RunError> {
        if self.epoch == Some(shared.epoch) {
            return Ok(());
        }
        shared.device.register(self.registration)?;
        if let Some(caching) = &mut self.caching {
            caching.attach(shared, self.dram)?;
        }
        self.main.attach(shared, self.dram)?;
        self.epoch = Some(shared.epoch);
        Ok(())
    }

    /// Runs all entries: of each output its entries.
    fn run<D: Device>(
        &mut self,
        shared: &mut Shared<D>,
        sides: &Sides<'_>,
        given: &Entries<'_>,
        count: usize,
    ) -> Result<Vec<Vec<Vec<u8>>>, RunError> {
        self.attach(shared)?;
        let submission = shared.residency.submit(self.registration);
        if let Some(caching) = self.caching.as_mut().filter(|_| submission.load.is_some()) {
            caching.run(shared)?;
        }
        let mut results = vec![Vec::new(); sides.outputs.len()];
        for first in (0..count).step_by(self.batch) {
            sides.fill(&mut self.main.memory, given, first, self.batch);
            self.main.run(shared)?;
            for (out, result) in sides.outputs.iter().zip(&mut results) {
                for entry in 0..self.batch.min(count - first) {
                    let bytes = self.main.memory.whole(&Buffer::Output(out.name.clone(), entry)).unwrap_or(&[]);
                    let tensor = out.output.take(bytes);
                    result.push(tensor.map_err(|error| RunError::Tensor { layer: out.name.clone(), error })?);
                }
            }
        }
        Ok(results)
    }

    fn placements(&self) -> impl Iterator<Item = &Placement> {
        self.caching.iter().chain([&self.main]).flat_map(Loaded::placements)
    }
}

/// A package ready to run on a device.
pub struct Runner<'a, D: Device> {
    chip: Chip<D>,
    engine: Engine<'a>,
    sides: Sides<'a>,
    state: State,
}

impl<'a, D: Device> Runner<'a, D> {
    /// Makes the runner of a package.
    pub fn new(chip: &Chip<D>, registration: &'a Registration) -> Result<Self, RunError> {
        Self::with_options(chip, registration, RunnerOptions::default())
    }

    /// Makes the runner of a package with these settings. Nothing is asked of the device before the first run, or
    /// [`Runner::prepare`].
    pub fn with_options(
        chip: &Chip<D>,
        registration: &'a Registration,
        options: RunnerOptions,
    ) -> Result<Self, RunError> {
        let package = registration.package()?;
        let main = package.main().ok_or(RunError::NoExecutable)?;
        let row = |index: usize| package.executables().get(index).map(|one| one.row()).ok_or(RunError::NoExecutable);
        let sides = Sides::new(row(main)?, &options.limits)?;
        let runner = next_runner();
        let load = |executable: usize| {
            let program = Program { package: registration.id(), executable, runner };
            Loaded::new(registration, row(executable)?, program, options.limits.memory_bytes)
        };
        let engine = Engine {
            registration,
            main: load(main)?,
            caching: package.caching().map(load).transpose()?,
            batch: usize::try_from(row(main)?.batch_size).unwrap_or(1).max(1),
            dram: options.dram,
            epoch: None,
        };
        chip.enter(registration.id());
        Ok(Runner { chip: chip.clone(), engine, sides, state: State::new() })
    }

    /// The input layers, variables included.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = &Layer<'a>> {
        self.sides.inputs.iter().map(|input| &input.layer)
    }

    /// The output layers that a run answers: all but next values of variables.
    pub fn outputs(&self) -> impl Iterator<Item = &Layer<'a>> {
        self.sides.answers().map(|out| &out.layer)
    }

    /// The inputs that are variables: without a tensor of that name a run takes what the run before has left.
    pub fn variables(&self) -> impl Iterator<Item = &Layer<'a>> {
        self.sides.inputs.iter().filter(|input| input.initial.is_some()).map(|input| &input.layer)
    }

    /// Maps all buffers and links the instructions now rather than in the first run.
    pub fn prepare(&mut self) -> Result<(), RunError> {
        self.chip.request(|shared| self.engine.attach(shared))
    }

    /// The buffers and the memory each is in; empty before the first run and [`Runner::prepare`].
    pub fn placements(&self) -> impl Iterator<Item = &Placement> {
        self.engine.placements()
    }

    /// The value of a variable after the runs so far, an entry per batch entry; `None` before the first run and if there
    /// is no variable of that name.
    pub fn state(&self, name: &str) -> Option<&[Vec<u8>]> {
        self.state.get(&self.sides.variable(name)?).map(Vec::as_slice)
    }

    /// Sets a variable for the next run.
    pub fn set_state(&mut self, tensor: TensorBytes) -> Result<(), RunError> {
        let Some(index) = self.sides.variable(&tensor.name) else {
            let known: Vec<_> = self.variables().map(name).collect();
            return Err(RunError::Tensors(format!("there is no variable {:?}; there are {known:?}", tensor.name)));
        };
        self.sides.input(&tensor.name)?.check(&tensor.entries)?;
        self.state.insert(index, tensor.entries);
        Ok(())
    }

    /// Variables start again with the numbers that stand for 0.
    pub fn reset_state(&mut self) {
        self.state.clear();
    }

    /// Runs all entries of the inputs, given by name in any order, and answers the outputs in the order of the layers.
    /// Variables may be left out. A tensor has its elements with or without padding, and every one as many entries.
    pub fn run(&mut self, tensors: &[TensorBytes]) -> Result<Vec<TensorBytes>, RunError> {
        let Runner { chip, engine, sides, state } = self;
        let (given, count) = sides.matched(state, tensors)?;
        let results = chip.request(|shared| engine.run(shared, sides, &given, count))?;
        let mut answer = Vec::new();
        for (out, entries) in sides.outputs.iter().zip(results) {
            match out.next {
                Some(input) => drop(state.insert(input, entries)),
                None => answer.push(TensorBytes { name: out.name.clone(), entries }),
            }
        }
        Ok(answer)
    }

    /// Runs with real values: quantises the inputs, by name in any order, and dequantises the outputs. Entries of a batch
    /// follow each other.
    pub fn run_values(&mut self, tensors: &[(&str, &[f32])]) -> Result<BTreeMap<String, Vec<f32>>, RunError> {
        let mut inputs = Vec::new();
        for (name, values) in tensors {
            let input = self.sides.input(name)?;
            let bytes = quantize(&input.layer, values);
            let bytes = bytes.map_err(|error| RunError::Tensor { layer: input.name.clone(), error })?;
            inputs.push(TensorBytes { name: input.name.clone(), entries: input.entries(&bytes)? });
        }
        for out in self.sides.answers() {
            check_numerics(&out.layer).map_err(|error| RunError::Tensor { layer: out.name.clone(), error })?;
        }
        let tensors = self.run(&inputs)?;
        let values = self.sides.answers().zip(tensors).map(|(out, tensor)| {
            let values = dequantize(&out.layer, &tensor.entries.concat());
            let values = values.map_err(|error| RunError::Tensor { layer: tensor.name.clone(), error })?;
            Ok((tensor.name, values))
        });
        values.collect()
    }

    /// The values of all variables.
    pub(super) fn states(&self) -> State {
        self.state.clone()
    }

    /// Puts back what [`Runner::states`] gave.
    pub(super) fn restore(&mut self, state: State) {
        self.state = state;
    }

    /// Both sides of the main executable.
    pub(super) fn sides(&self) -> &Sides<'a> {
        &self.sides
    }
}

impl<D: Device> Drop for Runner<'_, D> {
    fn drop(&mut self) {
        let programs = self.engine.caching.iter().chain([&self.engine.main]);
        let buffers = programs
            .flat_map(|loaded| loaded.placements().iter().map(|placed| (loaded.program, placed.buffer.clone())));
        self.chip.leave(self.engine.registration.id(), self.engine.epoch, buffers);
    }
}
