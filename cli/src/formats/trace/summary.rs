//! Summary of a trace.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use edgepack_format::trace::{ETDump, Event, RunData};
use edgepack_format::wire::Table;
use serde::Serialize;

use crate::{readable, spelling};

/// Facts about a trace that `inspect` shows.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TraceSummary {
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Version of the schema that the file states.
    pub version: u32,
    /// Blocks in the order of the file.
    pub blocks: Vec<BlockSummary>,
}

/// A block of events.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct BlockSummary {
    /// Name of the block, usually `Default` or `Execute`; `?` if there is none.
    pub name: String,
    /// Index of the recorded input that was run.
    pub bundled_input: Option<i32>,
    /// Allocators with the bytes taken from each.
    pub allocators: Vec<AllocatorSummary>,
    /// Time, by name of what it was spent on; most first.
    pub times: Vec<TimeSummary>,
    /// Recorded values.
    pub values: usize,
    /// All events.
    pub events: usize,
}

/// Allocator of a block, and the bytes taken from it.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct AllocatorSummary {
    /// Name of the allocator.
    pub name: String,
    /// Bytes taken from it.
    pub bytes: u64,
}

/// Time spent on something.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TimeSummary {
    /// Name that the events have in common; `?` if they have none.
    pub name: String,
    /// Number of times the event was recorded.
    pub count: usize,
    /// Ticks of the runtime's clock, all in all.
    pub ticks: u64,
}

impl TraceSummary {
    /// Summarises a trace with this root table.
    pub fn new(root: &Table<'_>, bytes: u64) -> Self {
        let blocks = root.get(ETDump::RUN_DATA).unwrap_or_default();
        TraceSummary {
            bytes,
            version: root.get(ETDump::VERSION).unwrap_or_default(),
            blocks: readable::rows(&blocks).into_iter().flatten().map(|block| BlockSummary::new(&block)).collect(),
        }
    }
}

impl BlockSummary {
    fn new(block: &RunData<'_>) -> Self {
        let allocators = readable::rows(&block.allocators).into_iter().flatten();
        let mut summary = BlockSummary {
            name: spelling::name(block.name.as_deref().unwrap_or("?")),
            bundled_input: (block.bundled_input_index >= 0).then_some(block.bundled_input_index),
            allocators: allocators
                .map(|allocator| AllocatorSummary {
                    name: spelling::name(&allocator.name.unwrap_or_default()),
                    bytes: 0,
                })
                .collect(),
            times: Vec::new(),
            values: 0,
            events: 0,
        };
        let mut times: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        for event in readable::rows(&block.events) {
            summary.events += 1;
            let Some(Event { profile_event, allocation_event, debug_event }) = event else { continue };
            if let Some(time) = profile_event {
                let slot = times.entry(spelling::name(time.name.as_deref().unwrap_or("?"))).or_default();
                slot.0 += 1;
                slot.1 = slot.1.saturating_add(time.end_time.saturating_sub(time.start_time));
            }
            if let Some(event) = allocation_event {
                // Allocators count from 1.
                let allocator = usize::try_from(event.allocator_id).ok().and_then(|id| id.checked_sub(1));
                if let Some(allocator) = allocator.and_then(|index| summary.allocators.get_mut(index)) {
                    allocator.bytes = allocator.bytes.saturating_add(event.allocation_size);
                }
            }
            summary.values += usize::from(debug_event.is_some());
        }
        let rows = times.into_iter().map(|(name, (count, ticks))| TimeSummary { name, count, ticks });
        summary.times = rows.collect();
        summary.times.sort_by_key(|time| Reverse(time.ticks));
        summary
    }
}
