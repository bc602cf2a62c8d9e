//! Errors of opening and running language models.

use edgepack_executor::{LoadError, RunError};

use crate::sampling::SampleError;

/// Reason for which a language model could not be opened or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program could not be read.
    #[error(transparent)]
    Program(#[from] edgepack_loader::Error),
    /// A method could not be loaded.
    #[error("method `{method}`: {error}")]
    Load {
        /// Name of the method.
        method: String,
        /// The error of the executor.
        error: Box<LoadError>,
    },
    /// A run failed. Of a session that reports this the position is that of the last run which succeeded.
    #[error("method `{method}`: {error}")]
    Run {
        /// Name of the method.
        method: String,
        /// The error of the executor.
        error: Box<RunError>,
    },
    /// A method has a form that cannot be run as a step of a language model.
    #[error("method `{method}`: {message}")]
    Form {
        /// Name of the method.
        method: String,
        /// Message with both sides: the form of the method and the form that is wanted.
        message: String,
    },
    /// Metadata that cannot be true, or that contradicts the methods.
    #[error("metadata `{name}`: {message}")]
    Metadata {
        /// Name of the metadata method.
        name: String,
        /// Message with both sides: the value of the metadata and the value it contradicts.
        message: String,
    },
    /// A token outside of the vocabulary.
    #[error("token {token}: the vocabulary has the tokens 0 to {}", .vocabulary.saturating_sub(1))]
    Token {
        /// The token.
        token: u32,
        /// Number of tokens in the vocabulary.
        vocabulary: usize,
    },
    /// More tokens than the context of the model has room for. The session has not changed.
    #[error("{more} tokens after {position}: the context has room for {limit}")]
    ContextFull {
        /// Tokens in the session.
        position: usize,
        /// Tokens that were to be added.
        more: usize,
        /// Room for tokens in all.
        limit: usize,
    },
    /// No tokens or rows where at least one is needed.
    #[error("no tokens were given")]
    Empty,
    /// Rows of embeddings that do not fit the model.
    #[error("embeddings: {0}")]
    Embeddings(String),
    /// The session cannot go to this position.
    #[error("position {to}: {message}")]
    Rewind {
        /// The position that was asked for.
        to: usize,
        /// Description of the error.
        message: String,
    },
    /// A saved session that does not belong to this model, or is damaged.
    #[error("the saved session: {0}")]
    Saved(String),
    /// A file could not be read or written.
    #[error("reading or writing: {0}")]
    Io(#[from] std::io::Error),
    /// Memory that could not be allocated.
    #[error("no memory for {bytes} bytes of {what}")]
    OutOfMemory {
        /// Purpose of the memory.
        what: &'static str,
        /// Number of bytes.
        bytes: u64,
    },
    /// A token could not be sampled.
    #[error(transparent)]
    Sample(#[from] SampleError),
}

impl Error {
    pub(crate) fn form(method: &str, message: impl Into<String>) -> Self {
        Error::Form { method: method.to_owned(), message: message.into() }
    }

    pub(crate) fn metadata(name: &str, message: impl Into<String>) -> Self {
        Error::Metadata { name: name.to_owned(), message: message.into() }
    }

    pub(crate) fn run(method: &str, error: RunError) -> Self {
        Error::Run { method: method.to_owned(), error: Box::new(error) }
    }

    pub(crate) fn load(method: &str, error: LoadError) -> Self {
        Error::Load { method: method.to_owned(), error: Box::new(error) }
    }
}

/// Makes room for `more` items, or says what there is no memory for.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize, what: &'static str) -> Result<(), Error> {
    list.try_reserve_exact(more)
        .map_err(|_| Error::OutOfMemory { what, bytes: (more as u64).saturating_mul(size_of::<T>() as u64) })
}
