//! Errors of compile specs.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Fault of one option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpecError {
    /// Key of the option.
    pub key: String,
    /// Kind of fault.
    pub problem: SpecProblem,
}

/// Kind of fault of an option.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SpecProblem {
    /// It is not there.
    Missing {
        /// Value that is expected, in words.
        expected: Cow<'static, str>,
    },
    /// The value is something else.
    Value {
        /// Number of bytes found.
        len: usize,
        /// The first of them.
        start: Vec<u8>,
        /// Value that is expected, in words.
        expected: Cow<'static, str>,
    },
    /// It is there more than once.
    Twice,
    /// Nobody knows it.
    Unknown,
}

impl SpecProblem {
    /// Of bytes that are no such value. Keeps the first few.
    pub(crate) fn value(bytes: &[u8], expected: Cow<'static, str>) -> Self {
        SpecProblem::Value { len: bytes.len(), start: bytes.iter().take(16).copied().collect(), expected }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.key.escape_debug())?;
        match &self.problem {
            SpecProblem::Missing { expected } => write!(f, "missing, {expected} is expected"),
            SpecProblem::Value { len, start, expected } => {
                let text = core::str::from_utf8(start).ok().filter(|text| !text.is_empty());
                match text.filter(|text| !text.contains(char::is_control)) {
                    Some(text) => write!(f, "{text:?}")?,
                    None => write!(f, "{start:?}")?,
                }
                let more = if *len > start.len() { "…" } else { "" };
                let unit = if *len == 1 { "byte" } else { "bytes" };
                write!(f, "{more} ({len} {unit}), {expected} is expected")
            }
            SpecProblem::Twice => f.write_str("given more than once"),
            SpecProblem::Unknown => f.write_str("no such option"),
        }
    }
}

impl core::error::Error for SpecError {}

/// Everything that is wrong with a list of compile specs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpecErrors {
    list: Vec<SpecError>,
}

impl SpecErrors {
    pub(crate) fn push(&mut self, key: &str, problem: SpecProblem) {
        self.list.push(SpecError { key: key.into(), problem });
    }

    /// All of them.
    pub fn as_slice(&self) -> &[SpecError] {
        &self.list
    }

    /// Returns whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.list.iter().enumerate() {
            let lead = if index > 0 { "\n" } else { "" };
            write!(f, "{lead}{error}")?;
        }
        Ok(())
    }
}

impl core::error::Error for SpecErrors {}
