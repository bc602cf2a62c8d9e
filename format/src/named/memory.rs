//! Named data in memory: what a struct can be stored to and loaded from without a file.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Bound;

use super::{Entry, Found, Lookup, Sink};
use crate::tensor::TensorLayout;

/// A map from keys to data, with what they look like. Data start at multiples of eight.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MemoryData {
    entries: BTreeMap<String, Stored>,
}

#[derive(Clone, PartialEq, Debug)]
struct Stored {
    words: Vec<u64>,
    len: usize,
    layout: Option<TensorLayout>,
    alignment: u64,
    external: Option<String>,
}

impl Stored {
    fn data(&self) -> &[u8] {
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        bytes.get(..self.len).unwrap_or_default()
    }
}

/// The key is there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the key is taken")]
pub struct KeyTaken;

impl MemoryData {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// The keys, in byte order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Everything that was added, in byte order of the keys.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries.iter().map(|(key, stored)| Entry {
            key: key.into(),
            data: stored.data().into(),
            layout: stored.layout.clone(),
            alignment: stored.alignment,
            external: stored.external.as_deref().map(Into::into),
        })
    }

    /// Takes a key out. Whether it was there.
    pub fn remove(&mut self, key: &str) -> bool {
        self.entries.remove(key).is_some()
    }
}

impl<'s> Sink<'s> for MemoryData {
    type Error = KeyTaken;

    fn add(&mut self, entry: Entry<'s>) -> Result<(), KeyTaken> {
        if self.entries.contains_key(&*entry.key) {
            return Err(KeyTaken);
        }
        let mut words = vec![0u64; entry.data.len().div_ceil(8)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes.iter_mut().zip(&*entry.data).for_each(|(to, from)| *to = *from);
        let stored = Stored {
            words,
            len: entry.data.len(),
            layout: entry.layout,
            alignment: entry.alignment,
            external: entry.external.map(Into::into),
        };
        self.entries.insert(entry.key.into(), stored);
        Ok(())
    }
}

impl Lookup for MemoryData {
    fn find(&self, key: &str) -> Result<Option<Found<'_>>, String> {
        let found = self.entries.get(key);
        Ok(found.map(|stored| Found { data: stored.data(), layout: stored.layout.as_ref() }))
    }

    fn key_from(&self, from: &str) -> Option<&str> {
        let mut range = self.entries.range::<str, _>((Bound::Included(from), Bound::Unbounded));
        range.next().map(|(key, _)| key.as_str())
    }
}
