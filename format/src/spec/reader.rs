//! The options of one struct, looked up by key.

use alloc::collections::BTreeMap;

use super::error::{SpecErrors, SpecProblem};
use super::{AsSpec, SpecValue};

/// Compile specs while a struct is read from them: each key once, and what was wrong so far.
pub struct Reader<'s> {
    values: BTreeMap<&'s str, &'s [u8]>,
    errors: SpecErrors,
}

impl<'s> Reader<'s> {
    /// Takes in the specs. A key given twice is an error, and so is one that is not among `known`, if that is given.
    pub fn new<S: AsSpec>(specs: &'s [S], known: Option<&[&str]>) -> Self {
        let mut reader = Reader { values: BTreeMap::new(), errors: SpecErrors::default() };
        for spec in specs {
            if known.is_some_and(|known| !known.contains(&spec.key())) {
                reader.errors.push(spec.key(), SpecProblem::Unknown);
            } else if reader.values.insert(spec.key(), spec.value()).is_some() {
                reader.errors.push(spec.key(), SpecProblem::Twice);
            }
        }
        reader
    }

    /// An option that must be there.
    pub fn required<T: SpecValue>(&mut self, key: &str) -> Option<T> {
        if !self.values.contains_key(key) {
            self.errors.push(key, SpecProblem::Missing { expected: T::expected() });
        }
        self.optional(key)?
    }

    /// An option that may be absent. The outer `None` says that something is wrong.
    pub fn optional<T: SpecValue>(&mut self, key: &str) -> Option<Option<T>> {
        let Some(bytes) = self.values.get(key) else { return Some(None) };
        let value = T::from_bytes(bytes);
        if value.is_none() {
            self.errors.push(key, SpecProblem::value(bytes, T::expected()));
            return None;
        }
        Some(value)
    }

    /// The struct, unless something was wrong.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, SpecErrors> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(self.errors),
        }
    }
}
