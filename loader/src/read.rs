//! Ranges of a source in memory.

use std::ops::Range;
use std::sync::Arc;

use edgepack_format::limits::Limits;

use crate::aligned::AlignedBytes;
use crate::bytes::Bytes;
use crate::error::Error;
use crate::live::Live;
use crate::source::Source;

/// Fills a buffer from a source.
pub(crate) fn read(source: &dyn Source, offset: u64, into: &mut [u8]) -> Result<(), Error> {
    source.read_at(offset, into).map_err(|error| Error::Io { what: source.name(), error })
}

/// Zeros to read into.
pub(crate) fn room_for(len: usize, what: impl FnOnce() -> String) -> Result<AlignedBytes, Error> {
    AlignedBytes::zeroed(len).ok_or_else(|| Error::Memory { what: what(), bytes: len as u64 })
}

/// Borrows or reads a range of a source.
pub(crate) fn read_range(
    source: &Arc<dyn Source>,
    live: &Live,
    range: Range<u64>,
    limits: &Limits,
    what: impl Fn() -> String,
) -> Result<Bytes, Error> {
    // An empty segment may have any offset.
    if range.start == range.end {
        return Ok(AlignedBytes::default().into());
    }
    if let Some(bytes) = Bytes::lent(source.clone(), range.clone()) {
        return Ok(bytes);
    }
    let len = range.end.saturating_sub(range.start);
    if range.end > source.len() || range.start > range.end {
        return Err(Error::Range { what: what(), offset: range.start, len, source_len: source.len() });
    }
    let bytes = match usize::try_from(len) {
        Ok(bytes) if len <= limits.segment_bytes => bytes,
        _ => return Err(Error::Limit { what: what(), bytes: len, limit: limits.segment_bytes }),
    };
    let bytes = live.bytes(range.clone(), || {
        let mut bytes = room_for(bytes, what)?;
        read(&**source, range.start, bytes.as_mut_slice())?;
        Ok::<_, Error>(bytes)
    })?;
    Ok(bytes.into())
}
