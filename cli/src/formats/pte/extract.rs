//! Raw pieces of a program: segments, payloads of delegates, named data.

use edgepack_format::header::ProgramHeader;
use edgepack_format::payload::{PayloadFile, Place};
use edgepack_format::pte::{BackendDelegate, DataLocation, Program};
use edgepack_format::wire;

use super::payloads::{self, SourceRanges};
use super::summary::ProgramSummary;
use super::tables;
use crate::file::read_range;
use crate::formats::{Head, Piece};
use crate::readable;
use crate::session::Session;
use crate::status::Failure;
use crate::units::amount;

/// A piece of a program; `None` if programs have no such pieces.
pub fn extract(
    head: &Head,
    program: &Program<'_>,
    piece: Piece<'_>,
    session: &Session,
) -> Result<Option<Vec<u8>>, Failure> {
    let bytes = match piece {
        Piece::Segment(index) => segment(head, index)?,
        Piece::Delegate(index) => delegate(head, program, index)?,
        Piece::Weight(index, weight) => self::weight(head, program, index, weight, session)?,
        Piece::Named(key) => named(head, program, key)?,
        Piece::Program | Piece::Package(_) | Piece::Member(_) => return Ok(None),
    };
    Ok(Some(bytes))
}

fn named(head: &Head, program: &Program<'_>, key: &str) -> Result<Vec<u8>, Failure> {
    let mut entries = readable::rows(&program.named_data).into_iter().flatten();
    let entry = entries.find(|entry| entry.key.as_deref() == Some(key));
    let entry = entry.ok_or_else(|| Failure::usage(format!("there is no key {key:?}")))?;
    segment(head, entry.segment_index)
}

/// A weight of a delegate's payload, wherever it is.
fn weight(
    head: &Head,
    program: &Program<'_>,
    index: usize,
    weight: usize,
    session: &Session,
) -> Result<Vec<u8>, Failure> {
    let payload = delegate(head, program, index)?;
    let source = SourceRanges(&*head.file.source);
    let described = payloads::describe(PayloadFile::new(&head.bytes, &source), false, session);
    let mut places = (0..).zip(tables::plans(program)).flat_map(|(method, plan)| {
        let count = readable::rows(&plan.delegates).len();
        (0..count).map(move |delegate| format!("execution_plan[{method}].delegates[{delegate}].processed"))
    });
    let place = places.nth(index).unwrap_or_default();
    let described = described.iter().find(|described| described.path == place);
    let unknown = || Failure::usage(format!("the weights of delegate {index} are not known: its backend is not"));
    let weights = &described.ok_or_else(unknown)?.description.weights;
    let missing =
        || Failure::usage(format!("there is no weight {weight}; the file has {}", amount(weights.len(), "weight")));
    let weight = weights.get(weight).ok_or_else(missing)?;
    match &weight.place {
        Place::Offset(start) => {
            let range = usize::try_from(*start).ok().zip(usize::try_from(start.saturating_add(weight.bytes)).ok());
            let bytes = range.and_then(|(start, end)| payload.get(start..end));
            Ok(bytes.ok_or_else(|| Failure::findings("the weight is outside of the payload"))?.to_vec())
        }
        Place::Key(key) => {
            let mut bytes = named(head, program, key)?;
            bytes.truncate(usize::try_from(weight.bytes).unwrap_or(usize::MAX));
            Ok(bytes)
        }
        Place::DataFile(key) => {
            Err(Failure::findings(format!("the weight is under the key {key:?} in a data file that was not given")))
        }
    }
}

fn segment(head: &Head, index: u32) -> Result<Vec<u8>, Failure> {
    let table = wire::Table::root(&head.bytes)?;
    let summary = ProgramSummary::new(&tables::program(&table), &head.bytes, head.file.source.len());
    let found = summary.segments.get(index as usize);
    let found = found.ok_or_else(|| {
        Failure::usage(format!(
            "there is no segment {index}; the file has {}",
            amount(summary.segments.len(), "segment")
        ))
    })?;
    if ProgramHeader::read(&head.bytes).is_err() {
        return Err(Failure::findings("there is no extended header that says where segments are"));
    }
    let (start, have) = (found.offset.unwrap_or(u64::MAX), head.file.source.len());
    if start.checked_add(found.bytes).is_none_or(|end| end > have) {
        let end = start.saturating_add(found.bytes);
        let message =
            format!("segments[{index}]: cut short: its {} bytes end at {end}, the file has {have}", found.bytes);
        return Err(Failure::findings(message));
    }
    Ok(read_range(&*head.file.source, start, found.bytes)?.to_vec())
}

fn delegate(head: &Head, program: &Program<'_>, index: usize) -> Result<Vec<u8>, Failure> {
    let plans = tables::plans(program);
    let delegates: Vec<Option<BackendDelegate<'_>>> =
        plans.iter().flat_map(|plan| readable::rows(&plan.delegates)).collect();
    let found = delegates.get(index);
    let found = found.ok_or_else(|| {
        Failure::usage(format!("there is no delegate {index}; the file has {}", amount(delegates.len(), "delegate")))
    })?;
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
