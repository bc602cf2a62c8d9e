//! Data that backends find by key: bytes, their alignment, and the file they go to.
//!
//! A key is unique in the whole store, whether its data go into the program or into a data file. Equal bytes are stored
//! once, under every key and for every file that names them, and honour the alignment of each of their keys.

use std::collections::BTreeMap;

use edgepack_format::named::{Entry, Sink};
use edgepack_format::tensor::{TensorLayout, TensorView};

use crate::build_error::{BuildError, check_alignment};
use crate::content::Data;
use crate::pool::Pool;

/// Named data under construction. A backend fills one while it prepares a graph; a program takes it in.
///
/// ```
/// use edgepack_builder::NamedDataStore;
///
/// let mut store = NamedDataStore::new();
/// store.add("packed", vec![1, 2, 3], 16, None)?;
/// store.add("same", vec![1, 2, 3], 64, Some("weights"))?; // in the data file `weights`
/// assert_eq!(store.get("packed").unwrap().buffer, store.get("same").unwrap().buffer);
/// assert!(store.add("packed", vec![4], 1, None).is_err(), "a key is one thing");
/// # Ok::<(), edgepack_builder::BuildError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct NamedDataStore<'d> {
    pool: Pool<'d>,
    entries: Vec<NamedEntry>,
    by_key: BTreeMap<String, usize>,
    /// By buffer: what satisfies every key that shares it.
    alignments: BTreeMap<usize, u64>,
}

/// One key of a [`NamedDataStore`].
#[derive(Clone, PartialEq, Debug)]
pub struct NamedEntry {
    /// Key of the entry, unique in the store.
    pub key: String,
    /// Index into the contents of the store: keys with equal bytes share one content.
    pub buffer: usize,
    /// Alignment of the bytes.
    pub alignment: u64,
    /// The data file they go to; `None` for the program itself.
    pub tag: Option<String>,
    /// Tensor layout of the bytes, if they are a tensor.
    pub layout: Option<TensorLayout>,
}

impl<'d> NamedDataStore<'d> {
    /// A store without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes under a key, into the program or, with a tag, into the data file of that name.
    ///
    /// The same key with the same bytes is the same entry: the first place stays, the alignment grows to satisfy both.
    /// With other bytes it is an error, and the store is as before.
    pub fn add(
        &mut self,
        key: &str,
        data: impl Into<Data<'d>>,
        alignment: u64,
        external: Option<&str>,
    ) -> Result<(), BuildError> {
        self.insert(key, data.into(), None, alignment, external)
    }

    /// Adds bytes that are a tensor of this layout.
    pub fn add_with_layout(
        &mut self,
        key: &str,
        data: impl Into<Data<'d>>,
        layout: TensorLayout,
        alignment: u64,
        external: Option<&str>,
    ) -> Result<(), BuildError> {
        let data = data.into();
        let (have, want) = (data.len(), layout.byte_len() as u64);
        if have != want {
            return Err(BuildError::Length { place: format!("named data `{key}`"), have, want });
        }
        self.insert(key, data, Some(layout), alignment, external)
    }

    /// Adds a tensor: its bytes as they are in memory, and its layout.
    pub fn add_tensor(
        &mut self,
        key: &str,
        tensor: &TensorView<'d>,
        alignment: u64,
        external: Option<&str>,
    ) -> Result<(), BuildError> {
        self.insert(key, tensor.data().into(), Some(tensor.layout().clone()), alignment, external)
    }

    /// Takes over all entries of another store, under the rules of [`NamedDataStore::add`].
    pub fn merge(&mut self, other: NamedDataStore<'d>) -> Result<(), BuildError> {
        let mut merged = self.clone();
        for entry in other.entries {
            let data = other.pool.items().get(entry.buffer).cloned().unwrap_or(Data::zeros(0));
            merged.insert(&entry.key, data, entry.layout, entry.alignment, entry.tag.as_deref())?;
        }
        *self = merged;
        Ok(())
    }

    /// The entries, in the order they were added.
    pub fn entries(&self) -> &[NamedEntry] {
        &self.entries
    }

    /// The entry of this key.
    pub fn get(&self, key: &str) -> Option<&NamedEntry> {
        self.entries.get(*self.by_key.get(key)?)
    }

    /// The distinct contents, by [`NamedEntry::buffer`].
    pub fn buffers(&self) -> &[Data<'d>] {
        self.pool.items()
    }

    /// Returns whether the store has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn insert(
        &mut self,
        key: &str,
        data: Data<'d>,
        layout: Option<TensorLayout>,
        alignment: u64,
        tag: Option<&str>,
    ) -> Result<(), BuildError> {
        let place = format!("named data `{key}`");
        check_alignment(&place, alignment)?;
        if key.is_empty() {
            return Err(BuildError::Name { what: "a key", name: String::new(), why: "it is empty" });
        }
        if let Some(tag) = tag {
            check_tag(tag)?;
        }
        let conflict = |first: String, second: String| BuildError::Conflict {
            what: "the key",
            name: key.to_owned(),
            first,
            second,
        };
        let known = self.by_key.get(key).and_then(|&known| self.entries.get_mut(known));
        let Some(known) = known else {
            let buffer = self.pool.intern(data).map_err(BuildError::reading(&*place))?;
            self.align(buffer, &place, alignment)?;
            self.by_key.insert(key.to_owned(), self.entries.len());
            let entry = NamedEntry { key: key.to_owned(), buffer, alignment, tag: tag.map(str::to_owned), layout };
            self.entries.push(entry);
            return Ok(());
        };
        let shown = |digest: crate::content::Digest, len: u64| {
            let head: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("{len} bytes (SHA-256 {head}…)")
        };
        let kept = self.pool.items().get(known.buffer).cloned().unwrap_or(Data::zeros(0));
        if kept.len() != data.len() {
            return Err(conflict(format!("{} bytes", kept.len()), format!("{} bytes", data.len())));
        }
        let first = kept.digest().map_err(BuildError::reading(place.clone()))?;
        let second = data.digest().map_err(BuildError::reading(place.clone()))?;
        if first != second {
            return Err(conflict(shown(first, kept.len()), shown(second, data.len())));
        }
        if let (Some(first), Some(second)) = (&known.layout, &layout)
            && first != second
        {
            return Err(conflict(first.to_string(), second.to_string()));
        }
        let (buffer, both) = (known.buffer, check_alignment(&place, lcm(known.alignment, alignment))?);
        self.align(buffer, &place, both)?;
        if let Some(known) = self.by_key.get(key).and_then(|&known| self.entries.get_mut(known)) {
            known.alignment = both;
            known.layout = known.layout.take().or(layout);
        }
        Ok(())
    }

    /// Adds to what a buffer is aligned to for all its keys together; beyond the cap it is an error of the call that asks.
    fn align(&mut self, buffer: usize, place: &str, alignment: u64) -> Result<(), BuildError> {
        let before = self.alignments.get(&buffer).copied().unwrap_or(1);
        self.alignments.insert(buffer, check_alignment(place, lcm(before, alignment))?);
        Ok(())
    }
}

/// Stores structs that derive `NamedData`; the struct's bytes stay borrowed until the file is written.
impl<'d> Sink<'d> for NamedDataStore<'d> {
    type Error = BuildError;

    fn add(&mut self, entry: Entry<'d>) -> Result<(), BuildError> {
        let Entry { key, data, layout, alignment, external } = entry;
        match layout {
            Some(layout) => self.add_with_layout(&key, data, layout, alignment, external.as_deref()),
            None => self.add(&key, data, alignment, external.as_deref()),
        }
    }
}

/// A tag is the name of a file next to the program, so it must not lead anywhere else.
pub(crate) fn check_tag(tag: &str) -> Result<(), BuildError> {
    let refuse =
        |why| Err(BuildError::Name { what: "the tag of a data file", name: tag.escape_debug().to_string(), why });
    match tag {
        "" => refuse("it is empty"),
        "." | ".." => refuse("it names a folder"),
        _ if tag.contains(['/', '\\', ':']) => refuse("it has a separator"),
        _ if tag.contains(char::is_control) => refuse("it has a control character"),
        _ if tag.len() > 200 => refuse("it has more than 200 bytes"),
        _ => Ok(()),
    }
}

/// The least common multiple of two positive numbers; saturates.
pub(crate) fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while let Some(rest) = x.checked_rem(y) {
        (x, y) = (y, rest);
    }
    a.checked_div(x).unwrap_or(1).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::scalar::ScalarType;

    fn layout(sizes: &[usize]) -> TensorLayout {
        TensorLayout::contiguous(ScalarType::BYTE, sizes).unwrap()
    }

    #[test]
    fn equal_bytes_share_a_buffer_and_keep_what_is_their_own() {
        let mut store = NamedDataStore::new();
        store.add("a", vec![1; 40], 3, None).unwrap();
        store.add("b", vec![1; 40], 4, Some("weights")).unwrap();
        store.add_with_layout("c", vec![1; 40], layout(&[40]), 1, None).unwrap();
        store.add_with_layout("d", vec![1; 40], layout(&[5, 8]), 1, None).unwrap();
        store.add("e", vec![2; 40], 1, None).unwrap();
        let buffers: Vec<_> = store.entries().iter().map(|entry| entry.buffer).collect();
        assert_eq!(buffers, [0, 0, 0, 0, 1]);
        let alignments: Vec<_> = store.entries().iter().map(|entry| entry.alignment).collect();
        assert_eq!(alignments, [3, 4, 1, 1, 1]);
        assert_eq!(store.get("d").unwrap().layout, Some(layout(&[5, 8])));
    }

    #[test]
    fn a_key_stands_for_one_thing() {
        let mut store = NamedDataStore::new();
        store.add_with_layout("a", vec![1; 40], layout(&[40]), 8, None).unwrap();
        store.add("a", vec![1; 40], 12, Some("elsewhere")).unwrap();
        assert_eq!((store.entries().len(), store.get("a").unwrap().alignment), (1, 24));
        assert_eq!(store.get("a").unwrap().tag, None);
        for (data, tag) in [(vec![2; 40], None), (vec![1; 39], Some("t"))] {
            assert!(matches!(store.add("a", data, 1, tag), Err(BuildError::Conflict { .. })));
        }
        let error = store.add_with_layout("a", vec![1; 40], layout(&[5, 8]), 1, None).unwrap_err();
        assert_eq!(error.to_string(), "the key `a` is u8[40] already, now u8[5, 8]");
        let error = store.add_with_layout("b", vec![1; 40], layout(&[41]), 1, None).unwrap_err();
        assert_eq!(error.to_string(), "named data `b`: 40 bytes of data for a tensor of 41");
        assert_eq!(store.entries().len(), 1);
    }

    #[test]
    fn a_merge_is_all_or_nothing() {
        let mut store = NamedDataStore::new();
        store.add("a", vec![1; 4], 1, None).unwrap();
        let mut other = store.clone();
        other.add("b", vec![1; 4], 16, Some("t")).unwrap();
        store.merge(other.clone()).unwrap();
        assert_eq!((store.entries().len(), store.buffers().len()), (2, 1));
        let mut bad = NamedDataStore::new();
        bad.add("c", vec![3; 4], 1, None).unwrap();
        bad.add("b", vec![2; 4], 1, None).unwrap();
        assert!(store.merge(bad).is_err());
        assert!(store.get("c").is_none());
    }

    #[test]
    fn tags_are_plain_file_names_and_alignments_positive() {
        let mut store = NamedDataStore::new();
        for tag in ["", ".", "..", "a/b", "a\\b", "a\0", "c:d"] {
            assert!(matches!(store.add("a", vec![1], 1, Some(tag)), Err(BuildError::Name { .. })), "{tag:?}");
        }
        for align in [0, MAX + 1] {
            assert!(matches!(store.add("a", vec![1], align, None), Err(BuildError::Alignment { .. })), "{align}");
        }
        assert!(matches!(store.add("", vec![1], 1, None), Err(BuildError::Name { .. })));
        assert!(store.is_empty());
    }

    const MAX: u64 = crate::build_error::MAX_SEGMENT_ALIGNMENT;

    #[test]
    fn multiples() {
        for (a, b, want) in [(3, 4, 12), (4, 6, 12), (1, 128, 128), (128, 1, 128), (24, 24, 24), (12, 32, 96)] {
            assert_eq!(lcm(a, b), want);
        }
    }
}
