//! Memory that a graph needs: one piece per storage id, as large as the largest entry in it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::graph::Graph;
use crate::room;

/// The alignment of every storage, as the runtimes allocate it.
pub const ALIGNMENT: usize = 128;

/// The memory of a graph. Storage ids need not be dense; places in the plan are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoragePlan {
    /// The pieces, by rising id.
    pub storages: Vec<Storage>,
    /// For each entry the place of its piece.
    pub of_entry: Vec<u32>,
}

/// A piece of memory.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Storage {
    /// Its number in the graph.
    pub id: u32,
    /// Its size: of its largest entry.
    pub bytes: u64,
    /// The type of its device.
    pub device: Option<i32>,
    /// The entries that are held in it, at one time or another.
    pub entries: Vec<u32>,
}

impl StoragePlan {
    /// Of a graph whose shapes have been checked; entries that overflow count as empty.
    pub fn of(graph: &Graph) -> room::Result<StoragePlan> {
        let mut by_id: BTreeMap<u32, Storage> = BTreeMap::new();
        for (index, entry) in (0u32..).zip(&graph.entries) {
            let fresh = Storage { id: entry.storage, device: entry.device, ..Storage::default() };
            let storage = by_id.entry(entry.storage).or_insert(fresh);
            storage.bytes = storage.bytes.max(entry.bytes().unwrap_or_default());
            room::push(&mut storage.entries, index)?;
        }
        let places = room::map(by_id.keys().copied().zip(0u32..));
        let of_entry = graph.entries.iter().filter_map(|entry| places.get(&entry.storage).copied());
        let of_entry = room::collect(of_entry)?;
        Ok(StoragePlan { storages: room::collect(by_id.into_values())?, of_entry })
    }

    /// The place of an entry's memory.
    pub fn place(&self, entry: u32) -> Option<u32> {
        self.of_entry.get(entry as usize).copied()
    }

    /// Bytes of all pieces.
    pub fn bytes(&self) -> u64 {
        self.storages.iter().fold(0, |sum, storage| sum.saturating_add(storage.bytes))
    }
}
