//! Segments and what is in them: ranges, constants, initial values, named data.
//!
//! Results of this walk answer the questions of tensors and delegates ("does constant 17 exist, how many bytes are
//! there") without reading anything twice.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::header::Envelope;
use crate::check::{Checker, Path};
use crate::pte::{BackendDelegateInlineData, Buffer, DataSegment, NamedData, Program, SubsegmentOffsets};
use crate::room;
use crate::row::Scalars;
use crate::rules::pte as rule;
use crate::wire::{Table, Tables};

/// Flags of a segment.
const USED: u8 = 1;
const INITIAL: u8 = 2;

/// Location of a tensor's bytes.
pub(super) enum Buffers<'a> {
    /// There are none of this kind.
    Absent,
    /// There are, but which was reported and cannot be said.
    Unclear,
    /// In a segment of this many bytes.
    Segment { offsets: Scalars<'a, u64>, size: u64 },
    /// In the flatbuffer.
    Inline(Tables<'a>),
}

/// Bytes from the start of a buffer to the end of what holds it.
pub(super) enum Room {
    /// Number of bytes left from this offset on.
    Bytes { offset: u64, left: u64 },
    /// There is no such buffer; there are only so many.
    Missing(usize),
    /// It was reported before.
    Unclear,
}

impl Buffers<'_> {
    /// Returns the bytes there are for buffer `index`.
    #[inline]
    pub(super) fn room(&self, index: u32) -> Room {
        let index = index as usize;
        match self {
            Buffers::Absent => Room::Missing(0),
            Buffers::Unclear => Room::Unclear,
            Buffers::Segment { offsets, size } => match offsets.get(index) {
                Some(offset) => match size.checked_sub(offset) {
                    Some(left) => Room::Bytes { offset, left },
                    None => Room::Unclear,
                },
                None => Room::Missing(offsets.len()),
            },
            Buffers::Inline(list) => match list.get(index).map(|table| table.get(Buffer::STORAGE)) {
                Ok(Ok(storage)) => {
                    Room::Bytes { offset: 0, left: storage.map_or(0, |storage| storage.as_slice().len() as u64) }
                }
                Ok(Err(_)) => Room::Unclear,
                Err(_) if index >= list.len() => Room::Missing(list.len()),
                Err(_) => Room::Unclear,
            },
        }
    }
}

/// The data of a program.
pub(super) struct Data<'a> {
    /// Of constant tensors.
    pub constants: Buffers<'a>,
    /// Of planned tensors that start with a value: one per entry of `mutable_data_segments`.
    pub initial: Vec<Buffers<'a>>,
    /// Payloads inside the flatbuffer.
    inline: Tables<'a>,
    inline_used: Vec<bool>,
    segments: Tables<'a>,
    segment_flags: Vec<u8>,
}

/// Target of an index into the inline payloads.
pub(super) enum Inline {
    /// Entry with data, or one that cannot be read.
    Found,
    /// An entry without data.
    Empty,
    /// Nothing; there are only so many.
    Missing(usize),
}

impl<'a> Data<'a> {
    /// Checks everything about segments that can be said without looking at plans.
    pub(super) fn check(root: &Table<'a>, file: &Envelope<'a>, out: &mut Checker) -> room::Result<Self> {
        let segments = rows(root.get(Program::SEGMENTS).map(|rows| rows.map(|rows| rows.tables())));
        let inline = rows(root.get(Program::BACKEND_DELEGATE_DATA).map(|rows| rows.map(|rows| rows.tables())));
        let mut data = Data {
            constants: Buffers::Absent,
            initial: Vec::new(),
            inline,
            inline_used: room::filled(false, inline.len())?,
            segments,
            segment_flags: room::filled(0, segments.len())?,
        };
        data.check_segments(file, out);
        data.check_constants(root, out);
        data.check_initial(root, out)?;
        data.check_named(root, out)?;
        Ok(data)
    }

    /// Returns whether there is such a segment; it counts as used from now on.
    pub(super) fn use_segment(&mut self, index: u32) -> bool {
        self.flag(index, USED).is_some()
    }

    /// Looks up an inline payload; it counts as used from now on.
    pub(super) fn use_inline(&mut self, index: u32) -> Inline {
        let at = index as usize;
        let Some(used) = self.inline_used.get_mut(at) else { return Inline::Missing(self.inline.len()) };
        *used = true;
        match self.inline.get(at).map(|table| table.has(BackendDelegateInlineData::DATA.index)) {
            Ok(false) => Inline::Empty,
            _ => Inline::Found,
        }
    }

    /// Number of segments.
    pub(super) fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Says what nothing referred to.
    pub(super) fn report_unused(&self, out: &mut Checker) {
        let path = Path::ROOT.field("segments");
        for (index, _) in self.segment_flags.iter().enumerate().filter(|(_, flags)| **flags == 0) {
            if let Some((_, size @ 1..)) = self.segment(index) {
                out.report(&rule::SEGMENT_UNUSED, &path.index(index), None, format!("{size} bytes"));
            }
        }
        let path = Path::ROOT.field("backend_delegate_data");
        for (index, _) in self.inline_used.iter().enumerate().filter(|(_, used)| !**used) {
            out.report(&rule::DELEGATE_UNREFERENCED, &path.index(index), None, "no delegate refers to it".into());
        }
    }

    /// The flags before.
    fn flag(&mut self, index: u32, flag: u8) -> Option<u8> {
        let flags = self.segment_flags.get_mut(index as usize)?;
        let before = *flags;
        *flags |= flag;
        Some(before)
    }

    /// Offset and size.
    fn segment(&self, index: usize) -> Option<(u64, u64)> {
        let table = self.segments.get(index).ok()?;
        Some((table.get(DataSegment::OFFSET).ok()?, table.get(DataSegment::SIZE).ok()?))
    }

    fn check_segments(&self, file: &Envelope<'a>, out: &mut Checker) {
        let list = Path::ROOT.field("segments");
        let mut end = 0u64;
        for index in 0..self.segments.len() {
            // Empty segments occupy nothing and may be anywhere.
            let Some((offset, size @ 1..)) = self.segment(index) else { continue };
            let path = list.index(index);
            let at = self.segments.position(index).ok().map(|at| at as u32);
            let Some(area) = file.area else {
                let message = format!("{size} bytes, but the file has no segment area");
                out.report(&rule::SEGMENT_BASE, &path, at, message);
                continue;
            };
            if offset < end {
                let message = format!("starts at {offset:#x}, but the segments before it end at {end:#x}");
                out.report(&rule::SEGMENT_ORDER, &path, at, message);
            }
            match offset.checked_add(size) {
                Some(next) if next <= area => end = end.max(next),
                _ => {
                    let message = format!("{size} bytes from {offset:#x} on, the segment area has {area}");
                    out.report(&rule::SEGMENT_RANGE, &path, at, message);
                }
            }
            if !file.base.wrapping_add(offset).is_multiple_of(16) {
                let message = format!("starts at {:#x} of the file", file.base.wrapping_add(offset));
                out.report(&rule::SEGMENT_ALIGNMENT, &path, at, message);
            }
        }
    }

    fn check_constants(&mut self, root: &Table<'a>, out: &mut Checker) {
        let inline = rows(root.get(Program::CONSTANT_BUFFER).map(|rows| rows.map(|rows| rows.tables())));
        let Ok(segment) = root.table(Program::CONSTANT_SEGMENT.index) else {
            self.constants = Buffers::Unclear;
            return;
        };
        let path = Path::ROOT.field("constant_segment");
        let offsets = match segment.as_ref().map(|table| table.get(SubsegmentOffsets::OFFSETS)) {
            Some(Ok(Some(offsets))) => offsets.len(),
            Some(Err(_)) => {
                self.constants = Buffers::Unclear;
                return;
            }
            _ => 0,
        };
        match (inline.len(), segment) {
            (0, Some(table)) if offsets > 0 => {
                // One offset is the reserved one: no data are ever read, so its segment need not exist.
                self.constants = match offsets {
                    1 => {
                        if let Ok(index) = table.get(SubsegmentOffsets::SEGMENT_INDEX) {
                            self.use_segment(index);
                        }
                        Buffers::Segment { offsets: Scalars::from(vec![0]), size: 0 }
                    }
                    _ => self.subsegments(&table, USED, &path, out),
                };
            }
            (0, _) => {
                let message = "`constant_segment` has no offsets, not even the reserved one".into();
                out.report(&rule::CONSTANTS_INLINE, &path, None, message);
            }
            (count, _) => {
                let list = Path::ROOT.field("constant_buffer");
                if offsets > 0 {
                    let message = format!("{count} entries, and `constant_segment` has {offsets}");
                    out.report(&rule::CONSTANTS_TWICE, &list, None, message);
                    self.constants = Buffers::Unclear;
                } else {
                    out.report(&rule::CONSTANTS_INLINE, &list, None, format!("{count} entries in the flatbuffer"));
                    self.constants = Buffers::Inline(inline);
                }
            }
        }
    }

    fn check_initial(&mut self, root: &Table<'a>, out: &mut Checker) -> room::Result<()> {
        let lists = rows(root.get(Program::MUTABLE_DATA_SEGMENTS).map(|rows| rows.map(|rows| rows.tables())));
        let path = Path::ROOT.field("mutable_data_segments");
        if lists.len() > 1 {
            out.report(&rule::MUTABLE_SEGMENTS, &path, None, format!("{} lists", lists.len()));
        }
        for (index, list) in lists.iter().enumerate() {
            let path = path.index(index);
            let buffers = match list {
                Ok(list) => self.subsegments(&list, USED | INITIAL, &path, out),
                Err(_) => Buffers::Unclear,
            };
            room::push(&mut self.initial, buffers)?;
        }
        Ok(())
    }

    /// Checks a list of offsets into a segment.
    fn subsegments(&mut self, table: &Table<'a>, flags: u8, path: &Path<'_>, out: &mut Checker) -> Buffers<'a> {
        let (Ok(index), Ok(offsets)) =
            (table.get(SubsegmentOffsets::SEGMENT_INDEX), table.get(SubsegmentOffsets::OFFSETS))
        else {
            return Buffers::Unclear;
        };
        let at = Some(table.offset());
        let before = self.flag(index, flags);
        let (Some(before), Some((_, size))) = (before, self.segment(index as usize)) else {
            if before.is_none() {
                let message = format!("segment {index} of {}", self.segments.len());
                out.report(&rule::SUBSEGMENT_INDEX, &path.field("segment_index"), at, message);
            }
            return Buffers::Unclear;
        };
        if before & flags & INITIAL != 0 {
            let message = format!("segment {index} has initial values of another list");
            out.report(&rule::MUTABLE_SHARED, &path.field("segment_index"), at, message);
        }
        let Some(offsets) = offsets else { return Buffers::Absent };
        check_offsets(&offsets, size, &path.field("offsets"), at, out);
        Buffers::Segment { offsets, size }
    }

    fn check_named(&mut self, root: &Table<'a>, out: &mut Checker) -> room::Result<()> {
        let named = rows(root.get(Program::NAMED_DATA).map(|rows| rows.map(|rows| rows.tables())));
        let list = Path::ROOT.field("named_data");
        let mut keys = room::with_room(named.len())?;
        for (index, entry) in named.iter().enumerate() {
            let Ok(entry) = entry else { continue };
            let path = list.index(index);
            let at = Some(entry.offset());
            match entry.string(NamedData::KEY.index) {
                Ok(Some(key)) => keys.push((key.bytes(), index)),
                Ok(None) => out.report(&rule::NAMED_KEY, &path.field("key"), at, "there is none".into()),
                Err(_) => {}
            }
            if let Ok(segment) = entry.get(NamedData::SEGMENT_INDEX)
                && !self.use_segment(segment)
            {
                let message = format!("segment {segment} of {}", self.segments.len());
                out.report(&rule::NAMED_SEGMENT, &path.field("segment_index"), at, message);
            }
        }
        for (key, first, again) in duplicates(keys) {
            let message = format!("`{}` is the key of entry {first} already", key.escape_ascii());
            out.report(&rule::NAMED_DUPLICATE, &list.index(again).field("key"), None, message);
        }
        Ok(())
    }
}

fn check_offsets(offsets: &Scalars<'_, u64>, size: u64, list: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    let mut last = 0;
    for (index, offset) in offsets.iter().enumerate() {
        let path = list.index(index);
        if index == 0 && offset != 0 {
            out.report(&rule::SUBSEGMENT_FIRST, &path, at, format!("{offset:#x}"));
        } else if offset < last {
            out.report(&rule::SUBSEGMENT_ORDER, &path, at, format!("{offset:#x} after {last:#x}"));
        }
        if offset > size {
            out.report(&rule::SUBSEGMENT_RANGE, &path, at, format!("{offset:#x} in a segment of {size} bytes"));
        }
        last = offset;
    }
}

/// Each text that occurs again, with the index of its first occurrence and that of the other.
pub(super) fn duplicates(mut texts: Vec<(&[u8], usize)>) -> impl Iterator<Item = (&[u8], usize, usize)> {
    texts.sort_unstable();
    let mut first = None;
    texts.into_iter().filter_map(move |(text, index)| match first {
        Some((seen, at)) if seen == text => Some((text, at, index)),
        _ => {
            first = Some((text, index));
            None
        }
    })
}

/// The tables of a vector; none if it is absent or could not be read, which was reported then.
fn rows<'a>(read: crate::wire::Result<Option<Tables<'a>>>) -> Tables<'a> {
    read.ok().flatten().unwrap_or(Tables::empty())
}
