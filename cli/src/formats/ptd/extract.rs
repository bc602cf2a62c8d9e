//! Raw pieces of a data file: segments, and entries by key.

use edgepack_format::header::DataHeader;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{Accept, verify};

use super::summary::DataSummary;
use crate::file::read_range;
use crate::formats::Head;
use crate::status::Failure;
use crate::units::amount;

/// The bytes of a segment.
pub fn segment(head: &Head, summary: &DataSummary, index: u32) -> Result<Vec<u8>, Failure> {
    let found = summary.segments.get(index as usize);
    let missing = || {
        Failure::usage(format!(
            "there is no segment {index}; the file has {}",
            amount(summary.segments.len(), "segment")
        ))
    };
    let found = found.ok_or_else(missing)?;
    if summary.header.is_none() {
        return Err(Failure::findings(format!("there is no {} header", DataHeader::MAGIC.escape_ascii())));
    }
    Ok(read_range(&*head.file.source, found.offset.unwrap_or(u64::MAX), found.bytes)?.to_vec())
}

/// The bytes under a key.
pub fn named(head: &Head, summary: &DataSummary, key: &str, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let entry = summary.entries.iter().find(|entry| entry.key == *key);
    let entry = entry.ok_or_else(|| Failure::usage(format!("there is no key {key:?}")))?;
    let verdict = verify::verify(&head.bytes, head.file.head.extent, limits, Accept::ALL);
    match verdict.data.and_then(|data| Some(data.lookup(key)?.range)) {
        // Older files keep several tensors in a segment.
        Some(range) => Ok(read_range(&*head.file.source, range.start, range.end.saturating_sub(range.start))?.to_vec()),
        None => segment(head, summary, entry.segment),
    }
}
