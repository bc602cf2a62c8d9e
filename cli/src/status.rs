//! End of a command: its exit status, and the reason it could not finish.

use std::fmt;
use std::io;
use std::process::ExitCode;

use edgepack_executor::{LoadError, RunError};
use edgepack_format::finding::ErrorCode;
use edgepack_format::wire::ReadError;
use edgepack_loader::Error;

use crate::style::BAD;

/// The exit status, ordered: of several files the highest counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Status {
    /// All is well.
    Fine = 0,
    /// Findings, a mismatch or a difference.
    Findings = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A file cannot be read, or its kind is unknown.
    Unreadable = 3,
    /// A valid file that cannot run here, or failed while running.
    CannotRun = 4,
}

impl Status {
    /// Returns the number that the process exits with, 0 to 4.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(status.code())
    }
}

/// Reason a command could not finish.
#[derive(Debug)]
pub struct Failure {
    /// Exit status of the process.
    pub status: Status,
    /// For people.
    pub message: String,
    /// The reader of our output went away: end without a word.
    pub silent: bool,
    /// Our own output cannot be written: there is no use in going on.
    pub output: bool,
}

impl Failure {
    /// The command line makes no sense.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Status::Usage, message)
    }

    /// A file cannot be read.
    pub fn unreadable(message: impl fmt::Display) -> Self {
        Self::new(Status::Unreadable, message)
    }

    /// A recognised file is broken, or does not have what was asked for.
    pub fn findings(message: impl fmt::Display) -> Self {
        Self::new(Status::Findings, message)
    }

    /// A valid file cannot run here.
    pub fn cannot_run(message: impl fmt::Display) -> Self {
        Self::new(Status::CannotRun, message)
    }

    fn new(status: Status, message: impl fmt::Display) -> Self {
        Failure { status, message: without_number(message.to_string()), silent: false, output: false }
    }

    /// Prints it as an error, unless it is silent.
    pub fn print(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self.silent {
            true => Ok(()),
            false => writeln!(out, "{BAD}error{BAD:#}: {}", self.message),
        }
    }

    /// Puts the file that the message is about in front of it.
    pub fn about(mut self, file: &str) -> Self {
        self.message = format!("{file}: {}", self.message);
        self
    }
}

/// Writing our own output failed. Files that are read never go through this conversion.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        let status = if silent { Status::Fine } else { Status::Unreadable };
        Failure { silent, output: true, ..Failure::new(status, format!("cannot write: {error}")) }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(kind) => io::Error::from(kind).into(),
            None => Failure::findings(error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // The file cannot be read here, whatever it holds.
            Error::Io { .. } | Error::Limit { .. } | Error::Memory { .. } => Failure::unreadable(error),
            Error::NotFound { .. } => Failure::usage(error),
            _ => Failure::findings(error),
        }
    }
}

impl From<edgepack::edit::Error> for Failure {
    fn from(error: edgepack::edit::Error) -> Self {
        use edgepack::edit::Error as Edit;
        match error {
            Edit::Io { error, .. } if error.kind() == io::ErrorKind::BrokenPipe => error.into(),
            Edit::Io { .. } | Edit::Memory(_) => Failure::unreadable(error),
            Edit::NotFound { .. } | Edit::Kind { .. } | Edit::Mismatch { .. } => Failure::usage(error),
            _ => Failure::findings(error),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Failure::findings(error)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Program(error) => error.into(),
            error => Failure::cannot_run(coded(&error, error.code())),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Program(error) => error.into(),
            // What is given to a program is part of the command line.
            RunError::Input { .. } => Failure::usage(error),
            error => Failure::cannot_run(coded(&error, error.code())),
        }
    }
}

/// Drops the number that the standard library puts behind the words of the operating system.
fn without_number(mut message: String) -> String {
    let closing = |rest: &str| rest.find(')').filter(|&end| rest[..end].bytes().all(|byte| byte.is_ascii_digit()));
    while let Some((start, len)) = message.find(OS_ERROR).and_then(|at| {
        let digits = closing(&message[at + OS_ERROR.len()..])?;
        Some((at, OS_ERROR.len() + digits + 1))
    }) {
        message.replace_range(start..start + len, "");
    }
    message
}

/// Beginning of what is dropped.
const OS_ERROR: &str = " (os error ";

/// An error with the code of ExecuTorch behind it, once.
fn coded(error: &dyn fmt::Display, code: ErrorCode) -> String {
    let text = error.to_string();
    let plain = text.strip_suffix(&format!(" ({code})")).unwrap_or(&text);
    format!("{plain} (Error::{code}, {:#04x})", code.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_said_once() {
        for text in ["an integer is divided by 0", "an integer is divided by 0 (InvalidArgument)"] {
            let coded = coded(&text, ErrorCode::InvalidArgument);
            assert_eq!(coded, "an integer is divided by 0 (Error::InvalidArgument, 0x12)");
        }
    }

    #[test]
    fn messages_have_no_numbers_of_the_system() {
        for (before, after) in [
            ("x: No such file or directory (os error 2)", "x: No such file or directory"),
            ("a (os error 2) b (os error 13): c", "a b: c"),
            ("a (os error x)", "a (os error x)"),
            (" (os error ", " (os error "),
        ] {
            assert_eq!(without_number(before.to_owned()), after);
        }
    }
}
