//! Reasons a node stays outside of delegates.

use edgepack_format::scalar::ScalarType;

/// Reason a node is not given to the backend.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// No node of the library computes the operator.
    #[error("no node computes {0}")]
    Operator(String),
    /// An operand or result has an element type that nodes do not take.
    #[error("`{value}` has elements of type {found}; nodes take {want}")]
    Type {
        /// Name of the value.
        value: String,
        /// Element type it has.
        found: ScalarType,
        /// Element types that would do.
        want: &'static str,
    },
    /// An operand or result is not a tensor.
    #[error("`{0}` is not a tensor")]
    NotTensor(String),
    /// A tensor has more or fewer dimensions than the node takes.
    #[error("`{value}` has {found} dimensions; the node takes {want}")]
    Rank {
        /// Name of the value.
        value: String,
        /// Dimensions it has.
        found: usize,
        /// Dimensions that would do.
        want: &'static str,
    },
    /// A tensor without elements.
    #[error("`{0}` has no elements")]
    Empty(String),
    /// A size is a formula where a number is needed, or has no upper bound.
    #[error("sizes of `{value}` are not numbers: {why}")]
    Dynamic {
        /// Name of the value.
        value: String,
        /// Place where numbers are needed.
        why: &'static str,
    },
    /// An argument has a value that nodes cannot say.
    #[error("argument `{argument}`: {why}")]
    Argument {
        /// Name of the argument.
        argument: &'static str,
        /// Value that is not taken, or that would be.
        why: &'static str,
    },
    /// An operand has to be a constant of the program and is not.
    #[error("operand `{0}` is not a constant")]
    NotConstant(&'static str),
    /// Another result of the node is used, which the library does not compute.
    #[error("result {0} is used")]
    Result(usize),
    /// A pattern of quantisation that the library does not compute.
    #[error("quantisation: {0}")]
    Quantised(&'static str),
    /// A node that would be part of a delegate that computes nothing.
    #[error("it has no company that computes: a delegate of views costs more than the views")]
    Alone,
    /// A node of a graph inside of the program, where weights are operands and a call is short.
    #[error("it is in a graph that a node runs: weights are no constants there, and calls of a delegate cost")]
    Inner,
    /// A backend has the node already, or a graph inside of it.
    #[error("it is not a call of an operator")]
    NotOperator,
}
