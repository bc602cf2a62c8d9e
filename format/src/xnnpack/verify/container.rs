//! The container: header, regions, identifier, padding.

use alloc::format;
use alloc::string::ToString;

use super::Regions;
use crate::check::{Checker, Path};
use crate::header::identifier;
use crate::rules::xnnpack as rule;
use crate::xnnpack::header::Header;
use crate::xnnpack::{IDENTIFIER, OLD_IDENTIFIER};

/// The fewest bytes of a flatbuffer: the offset of its root and its identifier.
const LEAST: u32 = 8;

/// The parts of a payload, if it has them where it says.
pub(super) fn regions<'a>(bytes: &'a [u8], path: &Path<'_>, out: &mut Checker) -> Option<Regions<'a>> {
    let header = match Header::read(bytes) {
        Ok(header) => header,
        Err(error) => {
            out.report(&rule::HEADER, path, Some(0), error.to_string());
            return None;
        }
    };
    let (flatbuffer, constants) = match &header {
        Some(header) => parts(bytes, header, path, out)?,
        None => (bytes, &[][..]),
    };
    let base = header.as_ref().map_or(0, |header| header.flatbuffer_offset);
    let found = identifier(flatbuffer).unwrap_or_default();
    if found != IDENTIFIER && found != OLD_IDENTIFIER {
        let message = format!("the identifier is {}", found.escape_ascii());
        out.report(&rule::IDENTIFIER, path, base.checked_add(4), message);
        return None;
    }
    Some(Regions { header, identifier: found, flatbuffer, base: base.into(), constants })
}

fn parts<'a>(bytes: &'a [u8], header: &Header, path: &Path<'_>, out: &mut Checker) -> Option<(&'a [u8], &'a [u8])> {
    let len = bytes.len() as u64;
    let slice = |start: u32, end: u64| bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?);
    let (start, size, end) = (header.flatbuffer_offset, header.flatbuffer_size, header.flatbuffer_end());
    let flatbuffer = slice(start, end).filter(|_| size >= LEAST);
    if flatbuffer.is_none() {
        let message = format!("{size} bytes at {start:#x}, the payload has {len}");
        out.report(&rule::FLATBUFFER_RANGE, path, Some(10), message);
    }
    let (place, constants_end) = (header.constants_offset, header.constants_end());
    let constants = slice(place, constants_end).filter(|_| u64::from(place) >= end);
    if constants.is_none() {
        let size = header.constants_size;
        let message = format!("{size} bytes at {place:#x}, the flatbuffer ends at {end:#x}, the payload at {len:#x}");
        out.report(&rule::CONSTANTS_RANGE, path, Some(18), message);
    }
    let parts = flatbuffer.zip(constants)?;
    if !start.is_multiple_of(4) {
        let message = format!("starts at {start:#x}");
        out.report(&rule::FLATBUFFER_ALIGNMENT, path, Some(start), message);
    } else if !start.is_multiple_of(Header::ALIGNMENT) {
        out.report(&rule::FLATBUFFER_PLACE, path, Some(start), format!("starts at {start:#x}"));
    }
    padding(slice(header.length.into(), start.into()), header.length.into(), path, out);
    padding(slice(u32::try_from(end).unwrap_or(u32::MAX), place.into()), end, path, out);
    if constants_end < len {
        let message = format!("ends at {constants_end:#x}, the payload at {len:#x}");
        out.report(&rule::TRAILING, path, u32::try_from(constants_end).ok(), message);
    }
    Some(parts)
}

fn padding(bytes: Option<&[u8]>, start: u64, path: &Path<'_>, out: &mut Checker) {
    let Some(place) = bytes.and_then(|bytes| bytes.iter().position(|byte| *byte != 0)) else { return };
    let place = start.saturating_add(place as u64);
    let message = format!("there is something at {place:#x}");
    out.report(&rule::PADDING, path, u32::try_from(place).ok(), message);
}
