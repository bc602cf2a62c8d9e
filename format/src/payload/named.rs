//! Data that payloads name by key: entries of the program, and of the data files that are at hand.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

use super::file::PayloadFile;
use crate::check::Checker;
use crate::pte::{NamedData, Program};
use crate::room;
use crate::wire;

/// Data by key: of a program, then of its data files.
pub struct NamedEntries<'a> {
    /// Places in the file of the program, by key.
    sorted: Vec<(&'a [u8], Range<u64>)>,
    file: PayloadFile<'a>,
}

impl<'a> NamedEntries<'a> {
    /// Bytes under a key; `None` if no file at hand has it.
    pub fn size(&self, key: &str) -> Option<u64> {
        match self.find(key) {
            Some(range) => Some(range.end.saturating_sub(range.start)),
            None => self.file.data?.size(key),
        }
    }

    /// The first `len` bytes under a key; `None` if there are fewer, or if they cannot be read.
    pub fn read(&self, key: &str, len: u64) -> Option<Cow<'_, [u8]>> {
        let bytes = match self.find(key) {
            Some(range) => {
                let end = range.start.checked_add(len).filter(|end| *end <= range.end)?;
                self.file.read(range.start..end)?
            }
            None => self.file.data?.read(key, len)?,
        };
        Some(bytes).filter(|bytes| bytes.len() as u64 == len)
    }

    /// Returns whether all data files of the program are at hand: data that are not found do not exist.
    pub fn is_complete(&self) -> bool {
        self.file.data.is_some()
    }

    fn find(&self, key: &str) -> Option<&Range<u64>> {
        let found = self.sorted.binary_search_by(|(have, _)| have.cmp(&key.as_bytes())).ok()?;
        self.sorted.get(found).map(|(_, range)| range)
    }

    /// The entries of a program; each is paid for.
    pub(super) fn of(file: &PayloadFile<'a>, out: &mut Checker) -> wire::Result<Self> {
        let mut sorted = Vec::new();
        let entries = file.root.tables(Program::NAMED_DATA.index).ok().flatten().unwrap_or(wire::Tables::empty());
        for entry in entries.iter().flatten() {
            out.budget().charge(1, entry.offset())?;
            let (Ok(Some(key)), Ok(index)) = (entry.string(NamedData::KEY.index), entry.get(NamedData::SEGMENT_INDEX))
            else {
                continue;
            };
            if let Some(range) = file.segment(index) {
                room::push(&mut sorted, (key.bytes(), range))?;
            }
        }
        sorted.sort_unstable_by_key(|(key, _)| *key);
        Ok(NamedEntries { sorted, file: *file })
    }
}
