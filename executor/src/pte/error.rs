//! Errors of loading and running a method.

use std::fmt;

use edgepack_format::finding::ErrorCode;
use edgepack_format::notation::ValueName;
use edgepack_format::pte::backends::{ADVICE, known_backend};
use edgepack_format::wire::ReadError;

use crate::api::error::KernelError;
use crate::api::room::OutOfMemory;

/// Reason for which a method could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The program could not be read.
    #[error(transparent)]
    Program(#[from] edgepack_loader::Error),
    /// Operators or backends that this runtime does not have; all of them.
    #[error("{0}")]
    Missing(Missing),
    /// A value cannot be represented.
    #[error("{}: {message}", ValueName(*value))]
    Value {
        /// Index into the values of the method.
        value: usize,
        /// The ExecuTorch error this corresponds to.
        code: ErrorCode,
        /// Description of the error.
        message: String,
    },
    /// An instruction cannot be run.
    #[error("{place}: {error}")]
    Instruction {
        /// Method, chain and instruction.
        place: Box<Place>,
        /// The error of the kernel or of the check.
        error: KernelError,
    },
    /// A delegate's backend refused it.
    #[error("delegates[{delegate}] ({backend}): {error}")]
    Delegate {
        /// Index into the delegates of the method.
        delegate: usize,
        /// Name by which the program asks for the backend.
        backend: String,
        /// Reason that the backend gives.
        error: KernelError,
    },
    /// Something about the method as a whole.
    #[error("{message}")]
    Method {
        /// The ExecuTorch error this corresponds to.
        code: ErrorCode,
        /// Description of the error.
        message: String,
    },
}

impl From<OutOfMemory> for LoadError {
    fn from(error: OutOfMemory) -> Self {
        LoadError::method(ErrorCode::MemoryAllocationFailed, error.into_message())
    }
}

impl From<ReadError> for LoadError {
    fn from(error: ReadError) -> Self {
        LoadError::Program(error.into())
    }
}

impl LoadError {
    pub(crate) fn value(value: usize, code: ErrorCode, message: impl Into<String>) -> Self {
        LoadError::Value { value, code, message: message.into() }
    }

    pub(crate) fn method(code: ErrorCode, message: impl Into<String>) -> Self {
        LoadError::Method { code, message: message.into() }
    }

    /// The ExecuTorch error this corresponds to.
    pub fn code(&self) -> ErrorCode {
        match self {
            LoadError::Program(error) => error.code(),
            LoadError::Missing(missing) if !missing.operators.is_empty() => ErrorCode::OperatorMissing,
            LoadError::Missing(_) => ErrorCode::NotFound,
            LoadError::Value { code, .. } | LoadError::Method { code, .. } => *code,
            LoadError::Instruction { error, .. } | LoadError::Delegate { error, .. } => error.code,
        }
    }
}

/// Operators that a message names; the others are counted.
const NAMED: usize = 20;

/// Operators and backends that a method needs and this runtime does not have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Missing {
    /// Operator names, in order of the program, each once.
    pub operators: Vec<String>,
    /// Backend names, in order of the program, each once.
    pub backends: Vec<String>,
}

impl Missing {
    /// Returns whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.operators.is_empty() && self.backends.is_empty()
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.operators.is_empty() {
            let plural = if self.operators.len() == 1 { "" } else { "s" };
            let named = self.operators.get(..NAMED).unwrap_or(&self.operators);
            write!(f, "this runtime lacks the operator{plural} {}", named.join(", "))?;
            if let more @ 1.. = self.operators.len() - named.len() {
                write!(f, " and {more} more")?;
            }
        }
        if !self.backends.is_empty() {
            let lead = if self.operators.is_empty() { "this runtime lacks" } else { " and" };
            let plural = if self.backends.len() == 1 { "" } else { "s" };
            write!(f, "{lead} the backend{plural} ")?;
            for (index, id) in self.backends.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                write!(f, "{comma}{id}")?;
                if let Some(known) = known_backend(id) {
                    write!(f, " ({known})")?;
                }
            }
            if self.backends.iter().any(|id| known_backend(id).is_some()) {
                write!(f, "; {ADVICE}")?;
            }
        }
        Ok(())
    }
}

/// Place of an instruction, its operator, and the line of source it came from if the file says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Name under which the program has the method.
    pub method: String,
    /// Index of the chain in the method; programs have one.
    pub chain: usize,
    /// Index of the instruction in the chain.
    pub instruction: usize,
    /// Operator or backend, or the kind of instruction.
    pub what: String,
    /// Part of the payload, if the instruction stands for a delegate call.
    pub node: Option<u32>,
    /// `file:line in function`, from the file's stack trace.
    pub source: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} chains[{}].instructions[{}] ({})", self.method, self.chain, self.instruction, self.what)?;
        if let Some(node) = self.node {
            write!(f, " node {node}")?;
        }
        match &self.source {
            Some(source) => write!(f, " from {source}"),
            None => Ok(()),
        }
    }
}

/// Reason for which a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An input does not fit.
    #[error("input {index} {message}")]
    Input {
        /// Index among the inputs of the method.
        index: usize,
        /// The ExecuTorch error this corresponds to.
        code: ErrorCode,
        /// Message with both sides: the value that was given and the value that is wanted.
        message: String,
    },
    /// An output does not fit.
    #[error("output {index}: {message}")]
    Output {
        /// Index among the outputs of the method.
        index: usize,
        /// The ExecuTorch error this corresponds to.
        code: ErrorCode,
        /// Message with both sides: the value that was given and the value that is wanted.
        message: String,
    },
    /// An instruction failed.
    #[error("{place}: {error}")]
    Instruction {
        /// Method, chain and instruction.
        place: Box<Place>,
        /// The error of the kernel or backend.
        error: KernelError,
    },
    /// More instructions than allowed: an endless loop.
    #[error("{place}: {limit} instructions were run, no more are allowed for one execution")]
    Budget {
        /// Place of the instruction at which the run stopped.
        place: Box<Place>,
        /// Instructions that one execution may run.
        limit: u64,
    },
    /// A planned memory is used by another method right now.
    #[error("the shared memory {memory_id} is in use by another method")]
    Busy {
        /// Id of the memory.
        memory_id: u32,
    },
    /// A tensor that lives on between runs cannot be read or written by name.
    #[error("attribute `{name}`: {message}")]
    Attribute {
        /// Name that was asked for; the tensor's fully qualified one, if there is such a tensor.
        name: String,
        /// Description of the error.
        message: String,
    },
    /// A saved state does not fit the method.
    #[error("the saved state: {message}")]
    State {
        /// The ExecuTorch error this corresponds to.
        code: ErrorCode,
        /// Message with both sides: what the saved state has and what the method has.
        message: String,
    },
    /// Initial values could not be read again.
    #[error(transparent)]
    Program(#[from] edgepack_loader::Error),
}

impl RunError {
    /// The ExecuTorch error this corresponds to.
    pub fn code(&self) -> ErrorCode {
        match self {
            RunError::Input { code, .. } | RunError::Output { code, .. } | RunError::State { code, .. } => *code,
            RunError::Instruction { error, .. } => error.code,
            RunError::Budget { .. } => ErrorCode::InvalidProgram,
            RunError::Busy { .. } => ErrorCode::InvalidState,
            RunError::Attribute { .. } => ErrorCode::InvalidArgument,
            RunError::Program(error) => error.code(),
        }
    }
}
