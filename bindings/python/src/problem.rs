//! Errors on their way to Python: every error of the crates becomes an exception of `edgepack._errors` with the rule, path
//! and offset of what is wrong, and a panic becomes one, too.

use std::any::Any;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use edgepack::executor::{LoadError, RunError};
use edgepack::format::finding::{ErrorCode, Finding, Findings, Severity};
use edgepack::format::tensor::LayoutError;
use edgepack::loader;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// An error that will be an exception.
pub struct Problem {
    /// Name of the class in `edgepack._errors`.
    class: &'static str,
    message: String,
    code: Option<ErrorCode>,
    findings: Vec<Finding>,
    /// Further attributes.
    details: Vec<(&'static str, Detail)>,
}

/// The value of an attribute.
pub enum Detail {
    /// A number.
    Number(usize),
    /// Names.
    Names(Vec<String>),
    /// Text.
    Text(String),
    /// The number that the operating system has for an error.
    Errno(i32),
}

impl Problem {
    /// An exception of this class.
    pub fn new(class: &'static str, message: impl Display) -> Problem {
        Problem { class, message: message.to_string(), code: None, findings: Vec::new(), details: Vec::new() }
    }

    /// Something that was closed is used.
    pub fn closed(what: &str) -> Problem {
        Problem::new("ClosedError", format!("the {what} is closed"))
    }

    /// An input or output does not fit.
    pub fn input(index: usize, message: impl Display) -> Problem {
        Problem::new("InputError", message).with("index", Detail::Number(index)).coded(ErrorCode::InvalidArgument)
    }

    /// Adds an attribute.
    pub fn with(mut self, name: &'static str, detail: Detail) -> Problem {
        self.details.push((name, detail));
        self
    }

    fn coded(mut self, code: ErrorCode) -> Problem {
        self.code = Some(code);
        self
    }

    /// A file that breaks rules.
    pub fn invalid(message: impl Display, findings: &Findings) -> Problem {
        let mut problem = Problem::new("InvalidFile", message);
        problem.code = findings.code();
        problem.findings = findings.as_slice().to_vec();
        problem
    }

    /// An error of the operating system about something.
    pub fn io(what: &str, error: &io::Error) -> Problem {
        let class = if error.kind() == io::ErrorKind::NotFound { "FileMissing" } else { "AccessError" };
        let problem = Problem::new(class, format!("{what}: {error}")).coded(ErrorCode::AccessFailed);
        match error.raw_os_error() {
            Some(number) => problem.with("errno", Detail::Errno(number)),
            None => problem,
        }
    }

    fn panic(payload: &(dyn Any + Send)) -> Problem {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
        Problem::new("InternalError", format!("{text}; this is a fault of edgepack"))
    }

    fn raise(self, py: Python<'_>) -> PyResult<PyErr> {
        let fields = PyDict::new(py);
        fields.set_item("code", self.code.map(ErrorCode::name))?;
        let rows = self.findings.iter().map(|finding| {
            let Finding { rule, path, offset, message } = finding;
            (rule.id, severity(rule.severity), path, *offset, message, rule.code.map(ErrorCode::name))
        });
        fields.set_item("findings", PyTuple::new(py, rows.collect::<Vec<_>>())?)?;
        for (name, detail) in self.details {
            match detail {
                Detail::Number(number) => fields.set_item(name, number)?,
                Detail::Names(names) => fields.set_item(name, PyTuple::new(py, names)?)?,
                Detail::Text(text) => fields.set_item(name, text)?,
                Detail::Errno(number) => fields.set_item(name, number)?,
            }
        }
        let made = py.import("edgepack._errors")?.call_method("make", (self.class, self.message), Some(&fields))?;
        Ok(PyErr::from_value(made))
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

impl From<Problem> for PyErr {
    fn from(problem: Problem) -> PyErr {
        Python::attach(|py| problem.raise(py).unwrap_or_else(|error| error))
    }
}

impl From<loader::Error> for Problem {
    fn from(error: loader::Error) -> Problem {
        let code = error.code();
        match &error {
            loader::Error::Io { what, error } => Problem::io(what, error),
            loader::Error::Invalid(findings) => Problem::invalid(&error, findings),
            loader::Error::NotFound { name, .. } => {
                Problem::new("NotFound", &error).coded(code).with("name", Detail::Text(name.clone()))
            }
            loader::Error::Limit { .. } | loader::Error::Memory { .. } => {
                Problem::new("LimitError", &error).coded(code)
            }
            loader::Error::Read(read) => Problem::new("InvalidFile", &error)
                .coded(code)
                .with("offset", Detail::Number(usize::try_from(read.offset).unwrap_or(usize::MAX))),
            _ => Problem::new("Error", &error).coded(code),
        }
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Problem {
        let code = error.code();
        match error {
            LoadError::Program(error) => error.into(),
            LoadError::Missing(missing) => Problem::new("LoadError", &missing)
                .coded(code)
                .with("missing_operators", Detail::Names(missing.operators))
                .with("missing_backends", Detail::Names(missing.backends)),
            LoadError::Instruction { ref place, .. } => {
                Problem::new("LoadError", &error).coded(code).with("path", Detail::Text(path(place)))
            }
            LoadError::Value { value, .. } => {
                Problem::new("LoadError", &error).coded(code).with("path", Detail::Text(format!("values[{value}]")))
            }
            error if code == ErrorCode::MemoryAllocationFailed => Problem::new("LimitError", &error).coded(code),
            error => Problem::new("LoadError", &error).coded(code),
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Problem {
        let code = error.code();
        match error {
            RunError::Program(error) => error.into(),
            RunError::Input { index, .. } => {
                Problem::new("InputError", &error).coded(code).with("index", Detail::Number(index))
            }
            RunError::Instruction { ref place, .. } | RunError::Budget { ref place, .. } => {
                Problem::new("RunError", &error).coded(code).with("path", Detail::Text(path(place)))
            }
            RunError::Attribute { ref name, .. } => {
                Problem::new("NotFound", &error).coded(code).with("name", Detail::Text(name.clone()))
            }
            error => Problem::new("RunError", &error).coded(code),
        }
    }
}

/// The place of an instruction as findings have it.
fn path(place: &edgepack::executor::Place) -> String {
    format!("{}.chains[{}].instructions[{}]", place.method, place.chain, place.instruction)
}

impl From<edgepack::edit::Error> for Problem {
    fn from(error: edgepack::edit::Error) -> Problem {
        use edgepack::edit::Error as Edit;
        match &error {
            Edit::Io { what, error } => Problem::io(what, error),
            Edit::Invalid(findings) | Edit::Unsound(findings) => Problem::invalid(&error, findings),
            Edit::Memory(_) => Problem::new("LimitError", &error).coded(ErrorCode::MemoryAllocationFailed),
            Edit::NotFound { name, .. } => Problem::new("NotFound", &error).with("name", Detail::Text(name.clone())),
            Edit::Kind { .. } => Problem::new("InvalidFile", &error),
            Edit::Refused { place, .. } | Edit::Layout { place, .. } => {
                Problem::new("EditError", &error).with("path", Detail::Text(place.clone()))
            }
            _ => Problem::new("EditError", &error),
        }
    }
}

impl From<LayoutError> for Problem {
    fn from(error: LayoutError) -> Problem {
        Problem::new("Error", error)
    }
}

/// Runs code that may panic, with or without the interpreter's lock.
pub fn shielded<T, E: From<Problem>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    // What is seen after a panic is behind a lock that remembers it, or is dropped.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(payload) => Err(Problem::panic(&*payload).into()),
    }
}

/// Does work without the interpreter's lock.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Problem> + Send) -> PyResult<T> {
    Ok(py.detach(|| shielded(work))?)
}

/// Panics, as a fault of the library would: tests look at what Python sees of it.
#[pyfunction(name = "_panic_for_tests")]
pub fn panic_for_tests(py: Python<'_>) -> PyResult<()> {
    detached(py, || panic!("asked for"))
}
