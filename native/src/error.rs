//! Errors of compiling, loading and calling code.

use std::io;
use std::path::{Path, PathBuf};

use edgepack_executor::private_folder::FolderError;

/// Reason for which code could not be compiled, loaded or called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Running native code was not allowed.
    #[error("running the package's own code is not allowed; it has all rights of this process")]
    NotAllowed,
    /// The module has nothing to compile or link.
    #[error("the module {0:?} has no code")]
    NoCode(String),
    /// A file could not be written or read.
    #[error("{what}: {error}")]
    Io {
        /// Name of the file.
        what: String,
        /// The system's answer.
        error: io::Error,
    },
    /// The folder of compiled libraries is not the user's alone.
    #[error("no code is loaded from {}: {why}", folder.display())]
    Cache {
        /// Path of the folder.
        folder: PathBuf,
        /// Description of the error.
        why: String,
    },
    /// An object was compiled for another machine than this process runs on.
    #[error("{file} is {have}; this process links {want}")]
    Machine {
        /// Path of the object in the package.
        file: String,
        /// Description of the object.
        have: String,
        /// Description of the objects of this machine.
        want: String,
    },
    /// The compiler says no.
    #[error("{compiler} failed on {file}:\n{message}")]
    Compiler {
        /// Command of the compiler.
        compiler: String,
        /// On what.
        file: String,
        /// The start of what it said.
        message: String,
    },
    /// The library cannot be loaded.
    #[error("cannot load the compiled code: {0}")]
    Load(#[from] libloading::Error),
    /// The platform has no shared libraries.
    #[error("cannot load {}: this platform loads no code", .0.display())]
    NoLibraries(PathBuf),
    /// A symbol that is needed is not there.
    #[error("the code has no function {0}")]
    Symbol(String),
    /// The call failed.
    #[error("{function} answered {code}{}", if .message.is_empty() { String::new() } else { format!(": {}", .message) })]
    Call {
        /// Name of the function.
        function: String,
        /// Code that it returned.
        code: i32,
        /// Message of the code, which may be empty.
        message: String,
    },
    /// Tensors are not those the code wants.
    #[error("{0}")]
    Arguments(String),
    /// The graph cannot be run.
    #[error(transparent)]
    Graph(#[from] edgepack_executor::mlf::Error),
    /// The package cannot be read.
    #[error(transparent)]
    Package(#[from] edgepack_loader::Error),
    /// A tensor has a layout that packages do not have.
    #[error(transparent)]
    Layout(#[from] edgepack_format::tensor::LayoutError),
    /// The code ended the child process that it ran in, by a signal.
    #[error("the code ended its process by {name} (signal {signal})")]
    Crash {
        /// Number of the signal.
        signal: i32,
        /// Name of the signal.
        name: &'static str,
    },
    /// The code ended the child process that it ran in, as if it had finished.
    #[error("the code ended its process with status {code}")]
    Exit {
        /// Exit status of the process.
        code: i32,
    },
    /// The child process took too long and was ended.
    #[error("the code was ended after {seconds} seconds")]
    Deadline {
        /// Time that it had.
        seconds: f64,
    },
    /// The child process cannot do what it was asked to; its message.
    #[error("{0}")]
    Child(String),
    /// The child process says what it may not say.
    #[cfg(unix)]
    #[error("the child process sent {0}")]
    Protocol(crate::child::protocol::ProtocolError),
    /// The module wants something of its caller that is not here.
    #[error("the module wants {0}, which is not supported")]
    Unsupported(String),
}

/// Names the file that the system's answer is about.
impl From<FolderError> for Error {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Open { folder, why } => Error::Cache { folder, why },
            FolderError::Io { folder, error } => io_error(&folder)(error),
            other => Error::Io { what: "the folder of libraries".to_owned(), error: io::Error::other(other) },
        }
    }
}

#[cfg(unix)]
impl From<crate::child::protocol::ProtocolError> for Error {
    fn from(error: crate::child::protocol::ProtocolError) -> Self {
        match error {
            crate::child::protocol::ProtocolError::Io(error) => {
                Error::Io { what: "the connection of parent and child".to_owned(), error }
            }
            error => Error::Protocol(error),
        }
    }
}

pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    move |error| Error::Io { what: path.display().to_string(), error }
}
