//! Places of everything in a file, for a file that is to come back byte for byte.
//!
//! Rows say what is in a file; places say where its writer put it: tables, vtables, vectors and texts, shared or not, the
//! form of the header, and every byte between and behind segments. A document is untrusted: what is written at its places
//! is read again, and has the rows it was made of or is not used.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use edgepack_builder::flat_layout::{FlatLayout, FlatLayoutError, Object, ObjectKind};
use edgepack_builder::{MAX_SEGMENT_ALIGNMENT, sink};
use edgepack_format::check::{Checker, Path as Place, StructureRules};
use edgepack_format::header::{DataHeader, ProgramHeader};
use edgepack_format::limits::Limits;
use edgepack_format::row::{Blob, Table};
use edgepack_format::{rules, wire};
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::error::Error;
use super::root::Root;

/// Bytes between and behind segments that are recorded.
const MOST_REST: u64 = 16 << 20;
/// Bytes behind the last segment, or between the rows and the first: as many as an alignment explains.
const MOST_GAP: u64 = MAX_SEGMENT_ALIGNMENT;
/// Objects in a line of the document.
const PER_LINE: usize = 12;

/// Places of everything in one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Places {
    flat: FlatLayout,
    /// Bytes of the file.
    file: u64,
    /// Bytes from the start of the first segment to the end of the last.
    segments: u64,
    /// Bytes other than zero that are in no segment, behind the rows.
    gaps: BTreeMap<u64, Vec<u8>>,
}

/// A file put at its places: its head, the start of its first segment, its length, and what is between segments.
pub(super) struct Placed {
    pub(super) head: Vec<u8>,
    pub(super) base: u64,
    pub(super) len: u64,
    pub(super) gaps: Vec<(u64, Content)>,
}

impl Places {
    /// Places in the file of this head, whose segments with bytes are at these ranges of the file, in their order.
    pub(super) fn of(root: &Root<'_>, head: &[u8], file: &Content, segments: &[Range<u64>]) -> Result<Self, Error> {
        let refused = |error: FlatLayoutError| Error::refused("layout", error.to_string());
        let flat = match root {
            Root::Program(row) => FlatLayout::read(row, head),
            Root::Data(row) => FlatLayout::read(row, head),
            Root::LegacyData(row) => FlatLayout::read(row, head),
            Root::FlatData(row) => FlatLayout::read(row, head),
            Root::Bundle(row) => FlatLayout::read(row, head),
            Root::EdgeTpu(_) | Root::Model(_) => {
                let wanted = "a program, data file or bundled program";
                return Err(Error::Kind { found: root.kind(), wanted });
            }
        };
        let mut places = Places { flat: flat.map_err(refused)?, file: file.len(), segments: 0, gaps: BTreeMap::new() };
        let (mut at, mut recorded) = (head.len() as u64, 0u64);
        let end = file.len()..file.len();
        for segment in segments.iter().chain([&end]) {
            let gap = file.slice(at..segment.start.max(at)).unwrap_or_default();
            if gap.len() > MOST_GAP {
                return Err(Error::refused("layout", format!("{} bytes in no segment at {at:#x}", gap.len())));
            }
            gap.nonzero(&mut |place, bytes| {
                recorded = recorded.saturating_add(bytes.len() as u64);
                if recorded <= MOST_REST {
                    places.gaps.insert(at.saturating_add(place), bytes.to_vec());
                }
            })?;
            at = at.max(segment.end);
        }
        if recorded > MOST_REST {
            let message = format!("{recorded} bytes other than zero are in no segment, {MOST_REST} are recorded");
            return Err(Error::refused("layout", message));
        }
        places.segments = match segments.last() {
            Some(last) => last.end.saturating_sub(places.base(head).unwrap_or_default()),
            None => 0,
        };
        places.place(root, places.segments)?;
        Ok(places)
    }

    /// The start of the first segment, as the header of this head states it.
    fn base(&self, head: &[u8]) -> Option<u64> {
        let program = ProgramHeader::read(head).map(|header| header.segment_base_offset);
        program.ok().or_else(|| Some(DataHeader::read(head).ok()?.segment_base_offset))
    }

    /// Puts rows, and segments that end `end` bytes behind the start of the first, at these places; the error says why
    /// they do not fit.
    pub(super) fn place(&self, root: &Root<'_>, end: u64) -> Result<Placed, Error> {
        if end != self.segments {
            let message = format!("the segments have {end} bytes, in the layout {}", self.segments);
            return Err(Error::refused("segments", message));
        }
        let head = match root {
            Root::Program(row) => placed(&self.flat, row, |bytes| agrees(bytes, row)),
            Root::Data(row) => placed(&self.flat, row, |bytes| agrees(bytes, row)),
            Root::LegacyData(row) => placed(&self.flat, row, |bytes| agrees(bytes, row)),
            Root::FlatData(row) => placed(&self.flat, row, |bytes| agrees(bytes, row)),
            Root::Bundle(row) => placed(&self.flat, row, |bytes| agrees(bytes, row)),
            Root::EdgeTpu(_) | Root::Model(_) => Err(Error::refused("places", "compiled models have none")),
        }?;
        let base = match (self.base(&head), end) {
            (_, 0) => head.len() as u64,
            (Some(base), _) => base,
            (None, _) => return Err(Error::refused("places", "there are segments, and no header says where")),
        };
        let last = base.checked_add(end).ok_or(edgepack_builder::Error::Overflow)?;
        let gaps = [(head.len() as u64, base), (last, self.file)];
        for (from, to) in gaps {
            if to.checked_sub(from).is_none_or(|gap| gap > MOST_GAP) {
                return Err(Error::refused("places", format!("a gap from {from:#x} to {to:#x}")));
            }
        }
        let gaps = self.gaps.iter().map(|(at, bytes)| (*at, Content::from(bytes.as_slice()))).collect();
        Ok(Placed { head, base, len: self.file, gaps })
    }
}

/// Writes rows at their places; what was written is checked.
fn placed<'a, T: Table<'a>>(
    flat: &FlatLayout,
    row: &T,
    agrees: impl FnOnce(&[u8]) -> Result<bool, Error>,
) -> Result<Vec<u8>, Error> {
    let bytes = flat.write(row).map_err(|error| Error::refused("places", error.to_string()))?;
    match agrees(&bytes)? {
        true => Ok(bytes),
        false => Err(Error::refused("places", "at these places the rows cover each other, or one is not stored")),
    }
}

/// Returns whether a buffer has exactly these rows.
fn agrees<'a, T: Table<'a> + PartialEq>(bytes: &'a [u8], row: &T) -> Result<bool, Error> {
    let rules = StructureRules {
        malformed: &rules::pte::MALFORMED,
        misaligned: &rules::pte::MISALIGNED,
        text: &rules::pte::TEXT,
        limits: &rules::pte::LIMITS,
    };
    let root = wire::Table::root(bytes)?;
    let mut checker = Checker::new(&Limits::DEFAULT.unfolding(bytes.len() as u64), rules);
    checker.table::<T>(root, &Place::ROOT);
    if checker.findings.has_errors() {
        return Ok(false);
    }
    let found = T::decode(root)?;
    if found == *row {
        return Ok(true);
    }
    // A number that is not one does not equal itself: then the bytes count that our writer makes of both.
    Ok(sink::flatbuffer(&found, [0; 4])? == sink::flatbuffer(row, [0; 4])?)
}

/// Places in a document. Numbers are hexadecimal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Bytes of the rows with everything in front of them, of the file, and of the segments.
    head: u32,
    file: u64,
    segments: u64,
    /// `PLACE: WORDS`.
    vtables: Vec<String>,
    /// A letter for the kind, the place, and for tables `/` and the place of the vtable.
    objects: Vec<String>,
    /// Bytes that belong to no object and no segment, by their place.
    rest: BTreeMap<String, Blob<'static>>,
}

fn letter(kind: ObjectKind) -> char {
    match kind {
        ObjectKind::Text => 's',
        ObjectKind::Bytes => 'b',
        ObjectKind::Numbers => 'n',
        ObjectKind::Offsets => 'o',
        ObjectKind::Table => 't',
    }
}

impl From<Places> for Written {
    fn from(places: Places) -> Written {
        let Places { flat, file, segments, gaps } = places;
        let vtable = |(at, words): (&u32, &Vec<u16>)| {
            let words = words.iter().fold(String::new(), |mut text, word| {
                let _ = write!(text, " {word:x}");
                text
            });
            format!("{at:x}:{words}")
        };
        let line = |objects: &[Object]| {
            let text = |object: &Object| match object.kind {
                ObjectKind::Table => format!("t{:x}/{:x}", object.at, object.vtable),
                kind => format!("{}{:x}", letter(kind), object.at),
            };
            objects.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        let rest = flat.rest.into_iter().map(|(at, bytes)| (u64::from(at), bytes)).chain(gaps);
        Written {
            head: flat.len,
            file,
            segments,
            vtables: flat.vtables.iter().map(vtable).collect(),
            objects: flat.objects.chunks(PER_LINE).map(line).collect(),
            rest: rest.map(|(at, bytes)| (format!("{at:x}"), Blob(bytes.into()))).collect(),
        }
    }
}

impl TryFrom<Written> for Places {
    type Error = String;

    fn try_from(written: Written) -> Result<Places, String> {
        let Written { head, file, segments, vtables, objects, rest } = written;
        let mut flat = FlatLayout { len: head, ..FlatLayout::default() };
        let hex = |text: &str| u32::from_str_radix(text, 16).map_err(|_| format!("{text:?} is not a place"));
        for line in &vtables {
            let (at, words) = line.split_once(':').ok_or_else(|| format!("{line:?} is not `PLACE: WORDS`"))?;
            let word = |word| u16::from_str_radix(word, 16).map_err(|_| format!("{word:?} is not a 16-bit number"));
            let words = words.split_ascii_whitespace().map(word).collect::<Result<_, _>>()?;
            flat.vtables.insert(hex(at)?, words);
        }
        for text in objects.iter().flat_map(|line| line.split_ascii_whitespace()) {
            let kinds =
                [ObjectKind::Text, ObjectKind::Bytes, ObjectKind::Numbers, ObjectKind::Offsets, ObjectKind::Table];
            let kind = kinds.into_iter().find(|kind| text.starts_with(letter(*kind)));
            let kind = kind.ok_or_else(|| format!("{text:?} is not an object: s, b, n, o or t and a place"))?;
            let place = text.get(1..).unwrap_or_default();
            let (at, vtable) = match (kind, place.split_once('/')) {
                (ObjectKind::Table, Some((at, vtable))) => (hex(at)?, hex(vtable)?),
                (ObjectKind::Table, None) => return Err(format!("{text:?} is a table without `/` and its vtable")),
                _ => (hex(place)?, 0),
            };
            flat.objects.push(Object { kind, at, vtable });
        }
        let mut gaps = BTreeMap::new();
        for (text, bytes) in rest {
            let at = u64::from_str_radix(&text, 16).map_err(|_| format!("{text:?} is not a place"))?;
            let bytes = bytes.0.into_owned();
            match u32::try_from(at) {
                Ok(at) if at < head => drop(flat.rest.insert(at, bytes)),
                _ => drop(gaps.insert(at, bytes)),
            }
        }
        Ok(Places { flat, file, segments, gaps })
    }
}
