//! Puts another package into a model, and leaves everything else as it is.
//!
//! A package of the same length takes the place of the old one. Another length makes a new vector of custom options at
//! the end of the flatbuffer, in front of an archive that may follow it; the old bytes stay as dead weight, and the
//! archive's offsets, which count from the start of the file, move along.

use edgepack_format::tflite::{AppendedZip, ModelRef};

use super::rewrite_options;
use crate::{BuildError, Error};

/// The model with this package in the place of the one of its compiled operator `operator`. The package is taken as it
/// is.
pub fn embed(model: &ModelRef<'_>, operator: usize, package: &[u8]) -> Result<Vec<u8>, BuildError> {
    let count = model.operators().len();
    let found = model.operators().get(operator).and_then(|op| Some((op, op.options.as_ref()?)));
    let Some((op, options)) = found else {
        return Err(BuildError::Compiled {
            place: format!("compiled operator {operator} of {count}"),
            message: "there is none with readable custom options".to_owned(),
        });
    };
    let fresh = rewrite_options(options, package)?;
    let mut bytes = model.bytes().to_vec();
    if fresh.len() == op.range.len() {
        if let Some(place) = bytes.get_mut(op.range.clone()) {
            place.copy_from_slice(&fresh);
        }
        return Ok(bytes);
    }
    let Some(slot) = op.slot else {
        return Err(BuildError::Compiled {
            place: format!("compiled operator {operator} of {count}"),
            message: "its custom options lie behind the flatbuffer and keep their length".to_owned(),
        });
    };
    let end = model.zip().map_or(bytes.len(), |zip| zip.start);
    let tail = bytes.split_off(end);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let offset = bytes.len().checked_sub(slot).and_then(|offset| u32::try_from(offset).ok()).ok_or(Error::Overflow)?;
    let len = u32::try_from(fresh.len()).map_err(|_| Error::Overflow)?;
    bytes.extend(len.to_le_bytes());
    bytes.extend(&fresh);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    put(&mut bytes, slot, offset)?;
    let shift = u32::try_from(bytes.len().saturating_sub(end)).map_err(|_| Error::Overflow)?;
    bytes.extend(tail);
    if let Some(zip) = model.zip() {
        move_archive(&mut bytes, zip, shift)?;
    }
    Ok(bytes)
}

fn put(bytes: &mut [u8], at: usize, number: u32) -> Result<(), Error> {
    match bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        Some(place) => {
            *place = number.to_le_bytes();
            Ok(())
        }
        None => Err(Error::Overflow),
    }
}

/// Adds `shift` to the offsets of an archive that has moved by as much.
fn move_archive(bytes: &mut [u8], zip: &AppendedZip, shift: u32) -> Result<(), Error> {
    /// Position of the directory's offset in the end record, and of a member's offset in its entry.
    const DIRECTORY: usize = 16;
    const MEMBER: usize = 42;
    let moved = |at: usize| u32::try_from(at).ok().and_then(|at| at.checked_add(shift)).ok_or(Error::Overflow);
    let place = |at: usize| at.checked_add(shift as usize).ok_or(Error::Overflow);
    let at = place(zip.end)?.saturating_add(DIRECTORY);
    put(bytes, at, moved(zip.directory)?)?;
    for member in &zip.members {
        let at = place(member.entry)?.saturating_add(MEMBER);
        put(bytes, at, moved(member.header)?)?;
    }
    Ok(())
}
