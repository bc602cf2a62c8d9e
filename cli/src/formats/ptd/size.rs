//! Sizes of the parts of a data file.

use std::collections::BTreeMap;

use edgepack_format::ptd::{self, Accept};
use edgepack_loader::machine_limits;

use super::summary::DataSummary;
use crate::formats::Head;
use crate::formats::size::{Range, Size, StoredTensor};
use crate::spelling;
use crate::status::Failure;
use crate::units::count;

/// Measures the parts of a data file in bytes.
pub fn size(head: &Head, summary: &DataSummary) -> Result<Size, Failure> {
    let mut size = Size::new(head.file_len());
    let mut ranges = Vec::new();
    let tables = head.bytes.len() as u64;
    let names = if summary.header.is_some() { "tables and keys" } else { "all of it: there is no header" };
    size.part(names, tables);
    let mut used = vec![(0, tables)];
    let mut first: BTreeMap<u32, &str> = BTreeMap::new();
    for entry in &summary.entries {
        first.entry(entry.segment).or_insert(&entry.key);
    }
    for (index, segment) in (0..).zip(&summary.segments) {
        let Some(offset) = segment.offset.filter(|_| segment.bytes > 0) else { continue };
        used.push((offset, segment.bytes));
        let what = match first.get(&index) {
            None => "nothing refers to it".to_owned(),
            Some(only) if segment.entries < 2 => (*only).to_owned(),
            Some(first) => format!("{first} and {}", count(segment.entries - 1, "other")),
        };
        size.part(format!("segment {index}: {what}"), segment.bytes);
        ranges.push(Range { name: format!("segment {index} ({what})"), offset, bytes: segment.bytes });
    }
    size.gaps(used);
    let limits = machine_limits();
    let verdict = ptd::verify::verify(&head.bytes, head.file.head.extent, &limits, Accept::ALL);
    let entries = verdict.data.iter().flat_map(|data| (0..data.len()).filter_map(|index| data.entry(index)));
    for entry in entries {
        if let Some(layout) = entry.layout {
            let bytes = layout.byte_len() as u64;
            size.tensors.push(StoredTensor {
                name: spelling::name(entry.key),
                layout: spelling::layout(&layout),
                bytes,
                offset: Some(entry.range.start),
            });
        }
    }
    size.duplicates_among(&*head.file.source, ranges)?;
    Ok(size.sorted())
}
