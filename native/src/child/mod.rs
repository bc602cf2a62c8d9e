//! Compiled code in a process of its own: what ends that process is an error here.
//!
//! **The process is not a sandbox.** The code has all rights of the user: it can read and write files, and start other
//! processes. What it cannot do is end, block or overwrite the process that asked for the run.

mod process;
pub mod protocol;
mod serve;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use edgepack_executor::mlf::Operand;
use edgepack_format::limits::Limits;
use edgepack_format::tensor::{TensorBuf, TensorLayout};
use edgepack_loader::mlf::LibraryModule;

use crate::compile::{self, Options};
use crate::error::Error;
use crate::in_process::{chosen_outputs, operands};
use crate::spec::IoSpec;
use process::Process;
pub use process::end_all;
use protocol::{Answer, Load, Loaded};
pub use serve::serve;

/// Program that runs the code of packages, and its conditions.
///
/// There is no default: a program that calls [`serve`] must exist for it. It is started with its standard input
/// connected to this process, in a process group of its own, and its standard output goes where standard errors go.
#[derive(Clone, Debug)]
pub struct Child {
    helper: PathBuf,
    arguments: Vec<OsString>,
    deadline: Duration,
}

impl Child {
    /// Time that a load or a run may take, unless another is given.
    pub const DEADLINE: Duration = Duration::from_secs(600);

    /// Runs code in processes of this program.
    pub fn new(helper: impl Into<PathBuf>) -> Child {
        Child { helper: helper.into(), arguments: Vec::new(), deadline: Self::DEADLINE }
    }

    /// With an argument for the program, after those it has.
    pub fn with_argument(mut self, argument: impl Into<OsString>) -> Child {
        self.arguments.push(argument.into());
        self
    }

    /// With another time that a load or a run may take. A process that takes longer is ended, with its group.
    pub fn with_deadline(self, deadline: Duration) -> Child {
        Child { deadline, ..self }
    }

    /// Compiles the code of a module here, and loads it in a process of its own; `function` is one function of it, to be
    /// called alone.
    pub fn open(
        &self,
        module: &LibraryModule,
        function: Option<&str>,
        options: &Options,
        limits: &Limits,
    ) -> Result<ChildModule, Error> {
        let library = compile::library(module, options)?;
        let load = Load {
            library: library.into_os_string().into_encoded_bytes(),
            package: module.library().bytes().to_vec(),
            module: module.info().name.clone(),
            function: function.map(str::to_owned),
            threads: options.threads as u64,
            limits: [limits.visits, limits.arena_bytes, limits.memory_bytes],
        };
        let declared = match module.graph().filter(|_| function.is_none()) {
            Some(graph) => {
                let heads = graph.heads.iter().map(|&head| Operand::of(graph.entry(head)?));
                let heads: Option<Vec<_>> = heads.collect();
                Some(heads.ok_or_else(|| Error::Arguments("an output is larger than any memory".to_owned()))?)
            }
            None => None,
        };
        let mut module = ChildModule {
            child: self.clone(),
            load,
            limits: *limits,
            declared,
            loaded: Loaded::default(),
            process: None,
        };
        module.start()?;
        Ok(module)
    }
}

/// A module in a process of its own. If that process ends, or is ended, the next run starts another.
#[derive(Debug)]
pub struct ChildModule {
    child: Child,
    load: Load,
    limits: Limits,
    /// Outputs of a graph, which are known here.
    declared: Option<Vec<Operand>>,
    loaded: Loaded,
    process: Option<Process>,
}

impl ChildModule {
    /// Returns the inputs, as far as the package says. Of a single operator all arguments.
    pub fn inputs(&self) -> &[IoSpec] {
        &self.loaded.inputs
    }

    /// Returns the outputs, as far as the package says.
    pub fn outputs(&self) -> &[IoSpec] {
        &self.loaded.outputs
    }

    /// Returns the number of calls that a run makes, as the process says.
    pub fn call_count(&self) -> usize {
        usize::try_from(self.loaded.calls).unwrap_or(usize::MAX)
    }

    /// Bytes of the storages of a graph, as the process says.
    pub fn memory_bytes(&self) -> usize {
        usize::try_from(self.loaded.memory_bytes).unwrap_or(usize::MAX)
    }

    /// Runs the module on inputs in order. `wanted` says what outputs look like, where the package does not.
    pub fn run(&mut self, inputs: &[TensorBuf], wanted: &[TensorLayout]) -> Result<Vec<TensorBuf>, Error> {
        let outputs = match &self.declared {
            Some(declared) => declared.clone(),
            None => chosen_outputs(&self.loaded.inputs, &self.loaded.outputs, inputs.len(), wanted)?,
        };
        let total = outputs.iter().fold(0u64, |sum, output| sum.saturating_add(output.byte_len() as u64));
        if total > self.limits.memory_bytes {
            let message = format!("{total} bytes of outputs, the limits allow {}", self.limits.memory_bytes);
            return Err(Error::Arguments(message));
        }
        let operands = operands(inputs)?;
        for (input, operand) in inputs.iter().zip(&operands) {
            if input.data().len() != operand.byte_len() {
                return Err(Error::Arguments(format!("{} bytes for {operand}", input.data().len())));
            }
        }
        self.start()?;
        let given: Vec<(Operand, &[u8])> =
            operands.into_iter().zip(inputs).map(|(operand, input)| (operand, input.data())).collect();
        let limits = self.limits;
        let answer = self.ask(|process| process.run(&given, &outputs, &limits))?;
        let Answer::Ran(bytes) = answer else { return Err(unexpected()) };
        let tensors = outputs.iter().zip(bytes);
        tensors.map(|(operand, bytes)| Ok(TensorBuf::from_bytes(operand.layout()?, bytes.to_vec())?)).collect()
    }

    /// Starts a process and loads the module there, unless there is one.
    fn start(&mut self) -> Result<(), Error> {
        if self.process.is_some() {
            return Ok(());
        }
        self.process = Some(Process::start(&self.child.helper, &self.child.arguments, self.child.deadline)?);
        let (load, limits) = (self.load.clone(), self.limits);
        match self.ask(|process| process.load(&load, &limits)) {
            Ok(Answer::Loaded(loaded)) => {
                self.loaded = loaded;
                Ok(())
            }
            Ok(_) => Err(unexpected()),
            Err(error) => {
                self.process = None;
                Err(error)
            }
        }
    }

    /// Asks the process. One that did not answer properly is ended, and its end is the error.
    fn ask(&mut self, ask: impl FnOnce(&mut Process) -> Result<Answer, Error>) -> Result<Answer, Error> {
        let Some(process) = &mut self.process else { return Err(unexpected()) };
        match ask(process) {
            Ok(Answer::Failed(message)) => Err(Error::Child(message)),
            Ok(answer) => Ok(answer),
            Err(error) => {
                self.process = None;
                Err(error)
            }
        }
    }
}

fn unexpected() -> Error {
    Error::Protocol(protocol::ProtocolError::Malformed("an answer to another question"))
}
