//! Places in a file of one flatbuffer and segments: programs, data files, bundled programs.
//!
//! Tables, vtables, vectors and texts, shared or not, the form of the header, and every byte between and behind segments.

use std::collections::BTreeMap;
use std::ops::Range;

use edgepack_builder::MAX_SEGMENT_ALIGNMENT;
use edgepack_builder::flat_layout::{FlatLayout, FlatLayoutError};
use edgepack_format::header::{DataHeader, ProgramHeader};
use edgepack_format::row::Blob;
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::error::Error;
use super::flat::{Flat, FlatText, agrees, placed};
use super::root::Root;

/// Bytes between and behind segments that are recorded.
const MOST_REST: u64 = 16 << 20;
/// Bytes behind the last segment, or between the rows and the first: as many as an alignment explains.
const MOST_GAP: u64 = MAX_SEGMENT_ALIGNMENT;

/// Places of everything in one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub(super) struct FilePlaces {
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

impl Placed {
    /// A file without segments.
    pub(super) fn whole(head: Vec<u8>) -> Self {
        let len = head.len() as u64;
        Placed { head, base: len, len, gaps: Vec::new() }
    }
}

impl FilePlaces {
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
        let mut places =
            FilePlaces { flat: flat.map_err(refused)?, file: file.len(), segments: 0, gaps: BTreeMap::new() };
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
            Root::EdgeTpu(_) | Root::Model(_) => {
                Err(Error::refused("places", "they are those of another kind of file"))
            }
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

/// Places in a document. Numbers are hexadecimal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Bytes of the rows with everything in front of them, of the file, and of the segments.
    head: u32,
    file: u64,
    segments: u64,
    /// As in [`FlatText`].
    vtables: Vec<String>,
    objects: Vec<String>,
    /// Bytes that belong to no object and no segment, by their place.
    rest: BTreeMap<String, Blob<'static>>,
}

impl From<FilePlaces> for Written {
    fn from(places: FilePlaces) -> Written {
        let FilePlaces { flat, file, segments, gaps } = places;
        let FlatText { head, vtables, objects, mut rest } = Flat(flat).into();
        rest.extend(gaps.into_iter().map(|(at, bytes)| (format!("{at:x}"), Blob(bytes.into()))));
        Written { head, file, segments, vtables, objects, rest }
    }
}

impl TryFrom<Written> for FilePlaces {
    type Error = String;

    fn try_from(written: Written) -> Result<FilePlaces, String> {
        let Written { head, file, segments, vtables, objects, rest } = written;
        let (mut inside, mut gaps) = (BTreeMap::new(), BTreeMap::new());
        for (text, bytes) in rest {
            let at = u64::from_str_radix(&text, 16).map_err(|_| format!("{text:?} is not a place"))?;
            match at < u64::from(head) {
                true => drop(inside.insert(text, bytes)),
                false => drop(gaps.insert(at, bytes.0.into_owned())),
            }
        }
        let Flat(flat) = FlatText { head, vtables, objects, rest: inside }.try_into()?;
        Ok(FilePlaces { flat, file, segments, gaps })
    }
}
