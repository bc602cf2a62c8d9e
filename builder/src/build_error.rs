//! Errors of the checked builders.
//!
//! Every error is given at the call that made it and names both sides: what was there and what was asked for.

use std::io;

use edgepack_format::finding::Findings;
use edgepack_format::operators::SchemaError;
use edgepack_format::tensor::LayoutError;

use crate::Error;

/// Reason a file or a part of one cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The rows could not be written.
    #[error(transparent)]
    Write(#[from] Error),
    /// Reading a content or writing the file failed.
    #[error("{what}: {source}")]
    Io {
        /// Name of the source or target that was read or written.
        what: String,
        /// Cause of the failure.
        source: io::Error,
    },
    /// A compiled part cannot be made or placed as asked.
    #[error("{place}: {message}")]
    Compiled {
        /// Name of the part.
        place: String,
        /// Description of the fault.
        message: String,
    },
    /// A key cannot be read.
    #[error("the key: {0}")]
    Key(String),
    /// An id was made by another builder, method or chain than the one it is given to.
    #[error("{what} of {owner} is used in {user}")]
    Foreign {
        /// Kind and number of the id's object, such as `value 3`.
        what: String,
        /// Builder, method or chain that the object belongs to.
        owner: String,
        /// Builder, method or chain that the id was given to.
        user: String,
    },
    /// No schema of this operator is known.
    #[error("the operator `{0}` is not known; give its schema instead of its name")]
    UnknownOperator(String),
    /// The text given for a schema is none.
    #[error("`{text}`: {source}")]
    Schema {
        /// Schema as the caller gave it.
        text: String,
        /// Error of the schema parser.
        source: SchemaError,
    },
    /// A call has too few or too many arguments, results or items.
    #[error("{place}: {have} {what}, {want} are asked for")]
    Count {
        /// The operator, method or case.
        place: String,
        /// Noun for the counted things, such as arguments or results.
        what: &'static str,
        /// Number found.
        have: usize,
        /// Number required, in words.
        want: String,
    },
    /// A value is of another kind than its place takes.
    #[error("{place}: {found} where {want} is asked for")]
    Kind {
        /// The argument, instruction or list.
        place: String,
        /// Kind that is required.
        want: String,
        /// Kind that was given.
        found: String,
    },
    /// Something would write to a constant.
    #[error("{place} would write to {value}, which is constant")]
    ConstantWritten {
        /// The argument or instruction.
        place: String,
        /// Constant that would be written.
        value: String,
    },
    /// Sizes, dim order and element type do not describe a tensor, or not these bytes.
    #[error("{place}: {source}")]
    Layout {
        /// Name of the tensor or of what holds it.
        place: String,
        /// Error of the layout.
        source: LayoutError,
    },
    /// A tensor and its content differ in length.
    #[error("{place}: {have} bytes of data for a tensor of {want}")]
    Length {
        /// Name of the tensor, parameter or key.
        place: String,
        /// Bytes of the content.
        have: u64,
        /// Bytes of the tensor.
        want: u64,
    },
    /// An alignment that cannot be.
    #[error("{place}: an alignment of {align}, it must be {want}")]
    Alignment {
        /// Name of the alignment or of the thing to align.
        place: String,
        /// Alignment that was asked for.
        align: u64,
        /// Condition on the number, in words.
        want: String,
    },
    /// One name for two things.
    #[error("{what} `{name}` is {first} already, now {second}")]
    Conflict {
        /// Noun for the name, such as `the key`.
        what: &'static str,
        /// Name that is used twice.
        name: String,
        /// Thing the name is already used for.
        first: String,
        /// Second thing it was given to.
        second: String,
    },
    /// A name that cannot be one.
    #[error("`{name}` cannot be {what}: {why}")]
    Name {
        /// Use the name was given for.
        what: &'static str,
        /// Name that was asked for.
        name: String,
        /// Reason the name is refused.
        why: &'static str,
    },
    /// A label that cannot be used so.
    #[error("label {label} of {owner} {what}")]
    Label {
        /// Index of the label in its chain.
        label: usize,
        /// Method and chain it belongs to.
        owner: String,
        /// Description of the fault, which follows the label in the message.
        what: &'static str,
    },
    /// A place in planned memory that cannot be.
    #[error("{place}: {message}")]
    Memory {
        /// Name of the tensor or of what holds it.
        place: String,
        /// Both sides of it.
        message: String,
    },
    /// A backend failed, or gave results that do not fit what it was asked.
    #[error("backend `{backend}`: {message}")]
    Backend {
        /// Name of the backend.
        backend: String,
        /// Message of the backend, or the mismatch between its result and the request.
        message: String,
    },
    /// Another form of a file could not hold all of it.
    #[error("{what} would lose {}", .losses.join("; "))]
    Lost {
        /// Name of the other form.
        what: String,
        /// Descriptions of the losses.
        losses: Vec<String>,
    },
    /// Findings of the verifier in the finished file.
    #[error("what was built does not verify: {0}")]
    Findings(#[from] Findings),
}

impl From<io::Error> for BuildError {
    fn from(source: io::Error) -> Self {
        BuildError::Io { what: "writing the file".to_owned(), source }
    }
}

impl BuildError {
    /// An error while something was read.
    pub(crate) fn reading(what: impl Into<String>) -> impl FnOnce(io::Error) -> BuildError {
        let what = what.into();
        move |source| BuildError::Io { what, source }
    }

    /// Sizes that describe no tensor.
    pub(crate) fn layout(place: impl Into<String>) -> impl FnOnce(LayoutError) -> BuildError {
        let place = place.into();
        move |source| BuildError::Layout { place, source }
    }
}

/// The largest alignment of a segment or of data in one: 1 GiB, the largest page there is.
pub const MAX_SEGMENT_ALIGNMENT: u64 = 1 << 30;

/// A positive alignment that is not absurd.
pub(crate) fn check_alignment(place: &str, align: u64) -> Result<u64, BuildError> {
    match align {
        1..=MAX_SEGMENT_ALIGNMENT => Ok(align),
        _ => Err(BuildError::Alignment {
            place: place.to_owned(),
            align,
            want: format!("between 1 and {MAX_SEGMENT_ALIGNMENT}"),
        }),
    }
}
