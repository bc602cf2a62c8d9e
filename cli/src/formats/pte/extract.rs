//! Raw pieces of a program: segments, payloads of delegates, named data.

use edgepack_format::header::ProgramHeader;
use edgepack_format::pte::{BackendDelegate, DataLocation, Program};
use edgepack_format::wire;

use super::summary::ProgramSummary;
use super::tables;
use crate::file::read_range;
use crate::formats::{Head, Piece};
use crate::readable;
use crate::status::Failure;

/// A piece of a program; `None` if programs have no such pieces.
pub fn extract(head: &Head, program: &Program<'_>, piece: Piece<'_>) -> Result<Option<Vec<u8>>, Failure> {
    let bytes = match piece {
        Piece::Segment(index) => segment(head, index)?,
        Piece::Delegate(index) => delegate(head, program, index)?,
        Piece::Named(key) => {
            let mut entries = readable::rows(&program.named_data).into_iter().flatten();
            let entry = entries.find(|entry| entry.key.as_deref() == Some(key));
            let entry = entry.ok_or_else(|| Failure::usage(format!("there is no key {key:?}")))?;
            segment(head, entry.segment_index)?
        }
        Piece::Program | Piece::Package(_) | Piece::Member(_) => return Ok(None),
    };
    Ok(Some(bytes))
}

fn segment(head: &Head, index: u32) -> Result<Vec<u8>, Failure> {
    let table = wire::Table::root(&head.bytes)?;
    let summary = ProgramSummary::new(&tables::program(&table), &head.bytes, head.file.source.len());
    let found = summary.segments.get(index as usize);
    let found = found
        .ok_or_else(|| Failure::usage(format!("there is no segment {index}; there are {}", summary.segments.len())))?;
    if ProgramHeader::read(&head.bytes).is_err() {
        return Err(Failure::findings("there is no extended header that says where segments are"));
    }
    Ok(read_range(&*head.file.source, found.offset.unwrap_or(u64::MAX), found.bytes)?.to_vec())
}

fn delegate(head: &Head, program: &Program<'_>, index: usize) -> Result<Vec<u8>, Failure> {
    let plans = tables::plans(program);
    let delegates: Vec<Option<BackendDelegate<'_>>> =
        plans.iter().flat_map(|plan| readable::rows(&plan.delegates)).collect();
    let found = delegates.get(index);
    let found =
        found.ok_or_else(|| Failure::usage(format!("there is no delegate {index}; there are {}", delegates.len())))?;
    let place = found.as_ref().and_then(|delegate| delegate.processed);
    match place {
        Some(place) if place.location == DataLocation::SEGMENT => segment(head, place.index),
        Some(place) if place.location == DataLocation::INLINE => {
            let blobs = program.backend_delegate_data.clone().unwrap_or_default();
            let blob = blobs.get(place.index as usize)?;
            Ok(blob.data.ok_or_else(|| Failure::findings("its payload is absent"))?.0.into_owned())
        }
        _ => Err(Failure::findings(format!("delegate {index} does not say where its payload is"))),
    }
}
