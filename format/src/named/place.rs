//! Place of a value: its key, and the attributes around it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Lookup;

/// The place of one value. Derived code makes the places of fields from that of the struct.
#[derive(Clone, Debug)]
pub struct Place<'p> {
    key: String,
    /// Text between the key and those below it.
    joint: &'static str,
    alignment: u64,
    external: Option<&'p str>,
    shape: Option<&'p [Option<usize>]>,
}

impl<'p> Place<'p> {
    /// Of a struct whose fields have their names as keys.
    pub fn root() -> Self {
        Place { key: String::new(), joint: "", alignment: 1, external: None, shape: None }
    }

    /// Of a struct whose fields are under `key.`; the root for an empty key.
    pub fn at(key: &str) -> Self {
        Place { key: key.into(), joint: if key.is_empty() { "" } else { "." }, ..Self::root() }
    }

    /// Of a field.
    pub fn field(&self, name: &str) -> Self {
        Place { key: self.below(name), joint: ".", shape: None, ..self.clone() }
    }

    /// Of a struct whose keys start with this text instead of a name and a dot.
    pub fn prefixed(&self, prefix: &str) -> Self {
        Place { key: self.below(prefix), joint: "", shape: None, ..self.clone() }
    }

    /// Of an item of a list.
    pub(crate) fn item(&self, index: &str) -> Self {
        Place { key: self.below(index), joint: ".", ..self.clone() }
    }

    /// The same with an alignment.
    pub fn aligned(self, alignment: u64) -> Self {
        Place { alignment, ..self }
    }

    /// The same in a data file.
    pub fn external(self, tag: &'p str) -> Self {
        Place { external: Some(tag), ..self }
    }

    /// The same with sizes, of which some may be open.
    pub fn shaped(self, shape: &'p [Option<usize>]) -> Self {
        Place { shape: Some(shape), ..self }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn alignment(&self) -> u64 {
        self.alignment
    }

    pub(crate) fn tag(&self) -> Option<&str> {
        self.external
    }

    pub(crate) fn shape(&self) -> Option<&'p [Option<usize>]> {
        self.shape
    }

    fn below(&self, name: &str) -> String {
        [&self.key, self.joint, name].concat()
    }

    /// The keys below this one, without what they have in common.
    fn keys_below<'l>(&self, lookup: &'l dyn Lookup) -> impl Iterator<Item = &'l str> + use<'l> {
        let start = self.below("");
        let mut next = lookup.key_from(&start);
        core::iter::from_fn(move || {
            let key = next.take()?;
            let rest = key.strip_prefix(start.as_str())?;
            // The smallest text after a text is that text and a zero.
            next = lookup.key_from(&format!("{key}\0"));
            Some(rest)
        })
    }

    /// Returns whether an item of a list is there.
    pub(crate) fn has_items(&self, lookup: &dyn Lookup) -> bool {
        self.keys_below(lookup).any(|rest| index_of(rest).is_some())
    }

    /// Returns the number of items in the list, or the first one that is missing before the last.
    pub(crate) fn count_items(&self, lookup: &dyn Lookup) -> Result<usize, usize> {
        let mut indices: Vec<usize> = self.keys_below(lookup).filter_map(index_of).collect();
        indices.sort_unstable();
        indices.dedup();
        match indices.iter().enumerate().find(|(position, index)| position != *index) {
            Some((missing, _)) => Err(missing),
            None => Ok(indices.len()),
        }
    }
}

/// The index a key starts with, if it is written as indices are.
fn index_of(rest: &str) -> Option<usize> {
    let digits = rest.split('.').next()?;
    let canonical = digits == "0" || (digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0'));
    if canonical { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::{Entry, MemoryData, Sink};

    fn data(keys: &[&'static str]) -> MemoryData {
        let mut data = MemoryData::new();
        for key in keys {
            let bytes = [0u8; 1].to_vec().into();
            data.add(Entry { key: (*key).into(), data: bytes, layout: None, alignment: 1, external: None }).unwrap();
        }
        data
    }

    #[test]
    fn places_make_keys() {
        let root = Place::root();
        assert_eq!(root.field("a").field("b").key(), "a.b");
        assert_eq!(root.field("a").prefixed("").field("b").key(), "a.b");
        assert_eq!(root.prefixed("").field("b").key(), "b");
        assert_eq!(root.prefixed("p_").field("b").item("3").key(), "p_b.3");
        assert_eq!(Place::at("x").prefixed("y/").field("z").key(), "x.y/z");
        assert_eq!(Place::at("").field("z").key(), "z");
    }

    #[test]
    fn items_are_counted_by_their_indices() {
        let at = Place::at("l");
        let count = |keys: &[&'static str]| at.count_items(&data(keys));
        assert_eq!(count(&["k.0", "l", "l0", "l.x", "m.0"]), Ok(0));
        assert_eq!(count(&["l.0.a", "l.0.b", "l.0-.x", "l.1", "l.01", "l.+2", "l."]), Ok(2));
        assert_eq!(count(&["l.0", "l.2", "l.10"]), Err(1));
        assert_eq!(count(&["l.18446744073709551615", "l.18446744073709551616"]), Err(0));
        assert!(!at.has_items(&data(&["l.x", "l."])) && at.has_items(&data(&["l.x", "l.7"])));
    }
}
