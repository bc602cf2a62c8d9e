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

pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    move |error| Error::Io { what: path.display().to_string(), error }
}
