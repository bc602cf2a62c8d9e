//! Reasons for which a function of the interface fails, before they are an object that C asks.

use std::fmt::Display;

use edgepack::executor::kernel::KernelError;
use edgepack::executor::{LoadError, RunError};
use edgepack::format::finding::{ErrorCode, Finding, Findings};
use edgepack::loader;

/// A reason: its code, in words, and where it lies.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: ErrorCode,
    pub message: String,
    /// Id of the rule that a file breaks.
    pub rule: Option<&'static str>,
    /// Place in the structure of a file, or among the arguments.
    pub path: Option<String>,
    /// Place in the file, in bytes.
    pub offset: Option<u64>,
}

impl Failure {
    /// A reason with a code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), rule: None, path: None, offset: None }
    }

    /// An argument that cannot be right.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    /// Nothing of this name or number.
    pub fn missing(what: &str, name: impl Display) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no {what} {name}"))
    }

    /// A call that the object cannot take now.
    pub fn state(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidState, message)
    }

    /// The reason at a place.
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Adds the rule and the place of what is first wrong with a file.
    fn of(mut self, finding: Option<&Finding>) -> Self {
        if let Some(finding) = finding {
            self.rule = Some(finding.rule.id);
            self.path = Some(finding.path.clone());
            self.offset = finding.offset;
        }
        self
    }
}

impl From<&Findings> for Failure {
    fn from(findings: &Findings) -> Self {
        let code = findings.code().unwrap_or(ErrorCode::InvalidProgram);
        Failure::new(code, format!("the file is not valid:\n{findings}")).of(findings.first_error())
    }
}

impl From<loader::Error> for Failure {
    fn from(error: loader::Error) -> Self {
        let failure = Failure::new(error.code(), error.to_string());
        match error {
            loader::Error::Invalid(findings) => failure.of(findings.first_error()),
            loader::Error::Range { offset, .. } => Failure { offset: Some(offset), ..failure },
            loader::Error::Read(error) => Failure { offset: Some(error.offset.into()), ..failure },
            _ => failure,
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let failure = Failure::new(error.code(), error.to_string());
        match error {
            LoadError::Program(error) => error.into(),
            LoadError::Value { value, .. } => failure.at(format!("values[{value}]")),
            LoadError::Instruction { place, .. } => {
                failure.at(format!("chains[{}].instructions[{}]", place.chain, place.instruction))
            }
            LoadError::Delegate { delegate, .. } => failure.at(format!("delegates[{delegate}]")),
            _ => failure,
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let failure = Failure::new(error.code(), error.to_string());
        match error {
            RunError::Program(error) => error.into(),
            RunError::Input { index, .. } => failure.at(format!("inputs[{index}]")),
            RunError::Output { index, .. } => failure.at(format!("outputs[{index}]")),
            RunError::Instruction { place, .. } | RunError::Budget { place, .. } => {
                failure.at(format!("chains[{}].instructions[{}]", place.chain, place.instruction))
            }
            _ => failure,
        }
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        Failure::new(error.code, error.message)
    }
}
