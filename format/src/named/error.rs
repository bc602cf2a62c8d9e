//! Errors of data when they are stored and loaded.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::scalar::ScalarType;
use crate::tensor::LayoutError;

/// Reason a struct could not be stored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError<E> {
    /// A field holds another number of elements than its `shape` asks for.
    #[error("{key}: {have} elements, its shape is {want}")]
    Shape {
        /// Key of the field.
        key: String,
        /// Number of elements found.
        have: usize,
        /// Sizes that the field asks for, as text.
        want: String,
    },
    /// A field's sizes are no tensor's.
    #[error("{key}: {error}")]
    Layout {
        /// Key of the field.
        key: String,
        /// Error of the layout.
        error: LayoutError,
    },
    /// The sink refuses it.
    #[error("{key}: {error}")]
    Sink {
        /// Key of the field.
        key: String,
        /// Reason that the sink gives.
        error: E,
    },
}

/// Fault of one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedDataError {
    /// Key at which the fault is.
    pub key: String,
    /// Kind of fault.
    pub problem: Problem,
}

/// Kind of fault of a key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not there.
    #[error("there is no such key, {expected} is expected")]
    Missing {
        /// Data that the field expects, in words.
        expected: String,
    },
    /// It is there, but cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The elements are of another type.
    #[error("elements of type {have}, the field's are {want}")]
    Element {
        /// Type of the elements found.
        have: ScalarType,
        /// The field's.
        want: ScalarType,
    },
    /// The sizes are others.
    #[error("sizes {have}, the field's are {want}")]
    Sizes {
        /// Sizes found.
        have: String,
        /// The field's.
        want: String,
    },
    /// The elements are not in index order, and the field cannot say so.
    #[error("dim order {0:?}, only contiguous data fit the field")]
    DimOrder(Vec<u8>),
    /// Without a layout: the bytes are not a whole number of elements, or not as many as the sizes say.
    #[error("{bytes} bytes are not {want}")]
    Bytes {
        /// Bytes found.
        bytes: usize,
        /// Bytes that the field needs, in words.
        want: String,
    },
    /// The layout of the bytes is not recorded, and the field does not know it either.
    #[error("nothing says what its {0} bytes look like")]
    NoLayout(usize),
    /// A layout that makes no sense for the data.
    #[error("{0}")]
    Layout(LayoutError),
    /// An item is missing before the last one of a list.
    #[error("the list has no item {0}, but later ones")]
    Gap(usize),
    /// The list has another length.
    #[error("a list of {have} items, the field has {want}")]
    Items {
        /// Items found.
        have: usize,
        /// Items of the field.
        want: usize,
    },
}

impl fmt::Display for NamedDataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.problem)
    }
}

impl core::error::Error for NamedDataError {}

/// Everything that is wrong with the data of a struct, in order of its fields.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NamedDataErrors {
    list: Vec<NamedDataError>,
}

impl NamedDataErrors {
    /// Adds one.
    pub fn push(&mut self, key: &str, problem: Problem) {
        self.list.push(NamedDataError { key: key.into(), problem });
    }

    /// All of them.
    pub fn as_slice(&self) -> &[NamedDataError] {
        &self.list
    }

    /// Returns whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl fmt::Display for NamedDataErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.list.iter().enumerate() {
            let lead = if index > 0 { "\n" } else { "" };
            write!(f, "{lead}{error}")?;
        }
        Ok(())
    }
}

impl core::error::Error for NamedDataErrors {}
