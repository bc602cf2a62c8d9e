//! Errors of planning and running a graph.

use edgepack_format::finding::Findings;
use edgepack_format::room::NoRoom;
use edgepack_format::tensor::LayoutError;

/// Reason for which a graph cannot be run, or a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The graph breaks rules.
    #[error("the graph is not valid:\n{0}")]
    Invalid(Findings),
    /// The module is not for the graph executor.
    #[error("the module {0:?} has no graph")]
    NoGraph(String),
    /// Functions that the table does not have.
    #[error("functions are missing: {}", .0.join(", "))]
    Missing(Vec<String>),
    /// A function does not take these arguments, or could not be had.
    #[error("node {node}, {function}: {error}")]
    Function {
        /// Index of the node.
        node: u32,
        /// Name of the function.
        function: String,
        /// The error of the function.
        error: FunctionError,
    },
    /// More memory than the limits allow.
    #[error("{bytes} bytes of storage, the limits allow {limit}")]
    Limit {
        /// Bytes of storage needed.
        bytes: u64,
        /// Bytes that the limits allow.
        limit: u64,
    },
    /// Memory that is not there.
    #[error("there is no memory for {bytes} bytes")]
    Memory {
        /// Bytes that could not be allocated.
        bytes: u64,
    },
    /// There is no such input.
    #[error("there is no input {0}")]
    NoInput(String),
    /// There is no such output.
    #[error("there is no output {0}")]
    NoOutput(usize),
    /// A tensor is not what the graph wants.
    #[error("{name} wants {want}, got {have}")]
    Mismatch {
        /// Name of the input or parameter.
        name: String,
        /// Description of the tensor that was given.
        have: String,
        /// Description of the tensor that is wanted.
        want: String,
    },
    /// Arguments that were never set.
    #[error("never set: {}", .0.join(", "))]
    Unset(Vec<String>),
    /// Outputs were asked for before a run succeeded.
    #[error("the graph has not been run")]
    NotRun,
    /// An element type that other formats do not have.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

impl From<NoRoom> for Error {
    fn from(error: NoRoom) -> Self {
        Error::Memory { bytes: error.bytes }
    }
}

/// Reason for which a function cannot be used, or a call of it failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct FunctionError(pub String);

impl From<&str> for FunctionError {
    fn from(text: &str) -> Self {
        FunctionError(text.to_owned())
    }
}
