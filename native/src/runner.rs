//! A module, ready to run: in this process, or in a child.

use edgepack_format::limits::Limits;
use edgepack_format::tensor::{TensorBuf, TensorLayout};
use edgepack_loader::mlf::LibraryModule;

#[cfg(unix)]
use crate::child::ChildModule;
use crate::compile::Options;
use crate::error::Error;
use crate::in_process::InProcess;
use crate::spec::IoSpec;

/// A module, ready to run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Runner {
    /// In this process.
    InProcess(InProcess),
    /// In a child process.
    #[cfg(unix)]
    Child(Box<ChildModule>),
}

impl Runner {
    /// Compiles the code of a module and loads it into this process; `function` is one function of it, to be called
    /// alone.
    pub fn open(
        module: &LibraryModule,
        function: Option<&str>,
        options: &Options,
        limits: &Limits,
    ) -> Result<Runner, Error> {
        Ok(Runner::InProcess(InProcess::open(module, function, options, limits)?))
    }

    /// Returns the inputs, as far as the package says. Of a single operator all arguments.
    pub fn inputs(&self) -> Vec<IoSpec> {
        match self {
            Runner::InProcess(module) => module.inputs(),
            #[cfg(unix)]
            Runner::Child(module) => module.inputs().to_vec(),
        }
    }

    /// Returns the outputs, as far as the package says; none if it says nothing.
    pub fn outputs(&self) -> Vec<IoSpec> {
        match self {
            Runner::InProcess(module) => module.outputs(),
            #[cfg(unix)]
            Runner::Child(module) => module.outputs().to_vec(),
        }
    }

    /// Returns the number of calls that a run makes.
    pub fn call_count(&self) -> usize {
        match self {
            Runner::InProcess(module) => module.call_count(),
            #[cfg(unix)]
            Runner::Child(module) => module.call_count(),
        }
    }

    /// Bytes of the storages of a graph.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Runner::InProcess(module) => module.memory_bytes(),
            #[cfg(unix)]
            Runner::Child(module) => module.memory_bytes(),
        }
    }

    /// Runs the module on inputs in order. `wanted` says what outputs look like, where the package does not.
    pub fn run(&mut self, inputs: &[TensorBuf], wanted: &[TensorLayout]) -> Result<Vec<TensorBuf>, Error> {
        match self {
            Runner::InProcess(module) => module.run(inputs, wanted),
            #[cfg(unix)]
            Runner::Child(module) => module.run(inputs, wanted),
        }
    }
}
