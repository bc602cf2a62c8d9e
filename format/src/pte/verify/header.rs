//! The head of the file: length, identifier, extended header. What it promises is compared with the file's length
//! before anything behind it is believed.

use alloc::format;

use crate::check::{Checker, Path};
use crate::header::{HEAD_LEN, HeaderError, ProgramHeader, identifier};
use crate::notation::Counted;
use crate::pte::{FileExtent, IDENTIFIER};
use crate::rules::pte as rule;

/// A flatbuffer offset is signed, so no buffer is longer.
const LONGEST_FLATBUFFER: u64 = i32::MAX as u64;

/// Facts about the file from its head.
pub(super) struct Envelope<'a> {
    /// The flatbuffer with the header in it, as far as it was given.
    pub bytes: &'a [u8],
    /// Start of the segments in the file.
    pub base: u64,
    /// Bytes from there on that segments may occupy; `None` if the file has no room for segments.
    pub area: Option<u64>,
}

/// Checks the head; `None` if what follows cannot be a program.
pub(super) fn check<'a>(head: &'a [u8], extent: FileExtent, out: &mut Checker) -> Option<Envelope<'a>> {
    let path = Path::ROOT;
    if extent.len < HEAD_LEN as u64 {
        out.report(&rule::SHORT, &path, None, format!("{} bytes, a program has at least {HEAD_LEN}", extent.len));
    }
    match identifier(head) {
        Some(IDENTIFIER) => {}
        Some(other) => {
            let message = format!("`{}` instead of `ET12`", other.escape_ascii());
            out.report(&rule::IDENTIFIER, &path, Some(4), message);
            return None;
        }
        None => return None,
    }
    let header = match ProgramHeader::read(head) {
        Ok(header) => Some(header),
        Err(HeaderError::Absent) => None,
        Err(error) => {
            let short = matches!(error, HeaderError::Short);
            out.report(if short { &rule::SHORT } else { &rule::HEADER_LENGTH }, &path, Some(12), format!("{error}"));
            return None;
        }
    };
    let size = header.map_or(extent.len, |header| header.program_size);
    let bytes = flatbuffer(head, size, extent, out);
    let Some(header) = header else { return Some(Envelope { bytes, base: 0, area: None }) };
    let area = area(&header, extent, out);
    Some(Envelope { bytes, base: header.segment_base_offset, area })
}

/// The bytes that hold the flatbuffer.
fn flatbuffer<'a>(head: &'a [u8], size: u64, extent: FileExtent, out: &mut Checker) -> &'a [u8] {
    let path = Path::ROOT.field("program_size");
    if size < HEAD_LEN as u64 && extent.len >= HEAD_LEN as u64 {
        out.report(&rule::PROGRAM_SIZE, &path, Some(16), format!("{size} bytes cannot hold a program"));
    } else if size > extent.len {
        out.report(&rule::PROGRAM_SIZE, &path, Some(16), format!("{size} bytes in a file of {}", extent.len));
    } else if size > LONGEST_FLATBUFFER {
        let message = format!("{size} bytes, a flatbuffer has at most {LONGEST_FLATBUFFER}");
        out.report(&rule::PROGRAM_SIZE, &path, Some(16), message);
    } else if size > head.len() as u64 {
        let message = format!("the flatbuffer has {size} bytes, of which {} were given", head.len());
        out.report(&rule::TRUNCATED, &path, None, message);
    }
    // Longer buffers are refused by the reader.
    usize::try_from(size).ok().and_then(|size| head.get(..size)).unwrap_or(head)
}

/// Bytes that segments may occupy.
fn area(header: &ProgramHeader, extent: FileExtent, out: &mut Checker) -> Option<u64> {
    let path = Path::ROOT;
    let (base, declared) = (header.segment_base_offset, header.segment_data_size);
    if base == 0 {
        if let Some(size @ 1..) = declared {
            let message = format!("the base is 0, but {size} bytes of segment data are declared");
            out.report(&rule::BASE, &path.field("segment_base_offset"), Some(24), message);
        }
        trailing(header.program_size, extent, out);
        return None;
    }
    if base < header.program_size {
        let message = format!("{base:#x}, but the program ends at {:#x}", header.program_size);
        out.report(&rule::BASE, &path.field("segment_base_offset"), Some(24), message);
    }
    let available = extent.len.checked_sub(base);
    if available.is_none() {
        let message = format!("{base:#x}, but the file ends at {:#x}", extent.len);
        out.report(&rule::BASE, &path.field("segment_base_offset"), Some(24), message);
    }
    let Some(size) = declared else {
        let message = format!("the header has {} bytes", header.length);
        out.report(&rule::HEADER_OLD, &path, Some(12), message);
        return available;
    };
    match base.checked_add(size) {
        Some(end) if end <= extent.len => trailing(end, extent, out),
        _ => {
            let message = format!("{size} bytes from {base:#x} in a file of {}", extent.len);
            out.report(&rule::TRUNCATED, &path.field("segment_data_size"), Some(32), message);
        }
    }
    Some(size)
}

fn trailing(end: u64, extent: FileExtent, out: &mut Checker) {
    if let Some(more @ 1..) = extent.len.checked_sub(end) {
        out.report(&rule::TRAILING, &Path::ROOT, None, format!("{} from {end:#x} on", Counted(more, "byte")));
    }
}
