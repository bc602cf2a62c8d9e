//! Tensors that a program looks up in data files, and that none of them has: one account of them for all who look.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::pte::{EValue, ExtraTensorInfo, KernelTypes, Tensor, TensorDataLocation};
use crate::wire;

/// Keys that are named; the others are counted.
const NAMED: usize = 20;

/// Tensors whose data are in none of the data files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MissingData {
    /// Number of tensors that are looked up.
    wanted: usize,
    /// Number of those that are not there.
    missing: usize,
    /// Keys of the first of these.
    named: Vec<String>,
}

impl MissingData {
    /// Notes a tensor that is looked up, and whether it is there.
    pub fn wants(&mut self, key: &str, found: bool) {
        self.wanted = self.wanted.saturating_add(1);
        if !found {
            self.missing = self.missing.saturating_add(1);
            if self.named.len() < NAMED {
                self.named.push(key.to_owned());
            }
        }
    }

    /// Returns whether the data files are of another model: they have none of several tensors.
    pub fn is_foreign(&self) -> bool {
        self.missing > 1 && self.missing == self.wanted
    }

    /// Returns what is missing in words; `other` is a key that the data files have.
    pub fn described(&self, other: Option<&str>) -> String {
        match (self.named.first(), other) {
            (Some(first), Some(other)) if self.is_foreign() => alloc::format!(
                "data of another model: the program looks up {} tensors, such as {first:?}, and none of them is there, but \
                 others are, such as {other:?}",
                self.wanted
            ),
            (_, Some(_)) => {
                alloc::format!("{self} {} in none of the data files", if self.missing == 1 { "is" } else { "are" })
            }
            (_, None) => alloc::format!("no data file was given, and the program looks up {self}"),
        }
    }
}

/// The keys, as many as are named.
impl fmt::Display for MissingData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, key) in self.named.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{key:?}")?;
        }
        match self.missing.saturating_sub(self.named.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The key under which the data of a value are looked up; `None` if they are not in data files.
pub fn external_key<'a>(value: &wire::Table<'a>) -> wire::Result<Option<alloc::borrow::Cow<'a, str>>> {
    let Some((KernelTypes::TENSOR, Some(tensor))) = value.union(EValue::VAL.index)? else { return Ok(None) };
    let extra: Option<ExtraTensorInfo<'a>> = tensor.get(Tensor::EXTRA_TENSOR_INFO)?;
    let external = extra.filter(|extra| extra.location == TensorDataLocation::EXTERNAL);
    Ok(external.map(|extra| extra.fully_qualified_name.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_said_at_once() {
        let mut some = MissingData::default();
        for (key, found) in [("a", false), ("b", true), ("c", false)] {
            some.wants(key, found);
        }
        assert_eq!(some.described(Some("b")), "\"a\", \"c\" are in none of the data files");
        let mut all = MissingData::default();
        (0..22).for_each(|_| all.wants("a", false));
        assert!(all.described(Some("z")).starts_with("data of another model: the program looks up 22 tensors"));
        assert!(all.described(None).ends_with("\"a\" and 2 more"));
    }
}
