//! The file of a program whose payloads are looked at: its flatbuffer, its segments, and the data files it was given.

use alloc::borrow::Cow;
use core::ops::Range;

use crate::header::ProgramHeader;
use crate::pte::{BackendDelegateInlineData, DataSegment, Program};
use crate::wire;

/// The data files that a program was given.
pub trait DataFiles {
    /// Bytes under a key; `None` if no file has it.
    fn size(&self, key: &str) -> Option<u64>;

    /// The first bytes under a key; `None` if they cannot be read.
    fn read(&self, key: &str, len: u64) -> Option<Cow<'_, [u8]>>;
}

/// Reads ranges of a file, as far as they are there.
pub trait RangeReader {
    /// The bytes of a range; `None` if they cannot be read.
    fn read(&self, range: Range<u64>) -> Option<Cow<'_, [u8]>>;
}

/// A program whose payloads are looked at.
#[derive(Clone, Copy)]
pub struct PayloadFile<'a> {
    pub(super) root: wire::Table<'a>,
    base: u64,
    bytes: Ranges<'a>,
    pub(super) data: Option<&'a dyn DataFiles>,
}

/// The bytes of the file.
#[derive(Clone, Copy)]
enum Ranges<'a> {
    Memory(&'a [u8]),
    Reader(&'a dyn RangeReader),
}

impl<'a> PayloadFile<'a> {
    /// The program in a file that is all in memory. It may be broken, but its root table has to be there.
    pub fn whole(file: &'a [u8]) -> wire::Result<Self> {
        Self::with(file, Ranges::Memory(file))
    }

    /// The program whose flatbuffer is `head`, in a file that `reader` reads.
    pub fn new(head: &'a [u8], reader: &'a dyn RangeReader) -> wire::Result<Self> {
        Self::with(head, Ranges::Reader(reader))
    }

    fn with(head: &'a [u8], bytes: Ranges<'a>) -> wire::Result<Self> {
        let base = ProgramHeader::read(head).map_or(0, |header| header.segment_base_offset);
        Ok(PayloadFile { root: wire::Table::root(head)?, base, bytes, data: None })
    }

    /// The same program with all its data files.
    pub fn with_data(self, data: &'a dyn DataFiles) -> Self {
        PayloadFile { data: Some(data), ..self }
    }

    pub(super) fn read(&self, range: Range<u64>) -> Option<Cow<'a, [u8]>> {
        match self.bytes {
            Ranges::Memory(bytes) => {
                let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
                bytes.get(start..end).map(Cow::Borrowed)
            }
            Ranges::Reader(reader) => reader.read(range),
        }
    }

    /// The range of a segment in the file.
    pub(super) fn segment(&self, index: u32) -> Option<Range<u64>> {
        let segments = self.root.tables(Program::SEGMENTS.index).ok()??;
        let segment = segments.get(usize::try_from(index).ok()?).ok()?;
        let start = self.base.checked_add(segment.get(DataSegment::OFFSET).ok()?)?;
        Some(start..start.checked_add(segment.get(DataSegment::SIZE).ok()?)?)
    }

    /// The bytes of an inline payload, and where they start.
    pub(super) fn inline(&self, index: u32) -> Option<(&'a [u8], u64)> {
        let list = self.root.tables(Program::BACKEND_DELEGATE_DATA.index).ok()??;
        let row = list.get(usize::try_from(index).ok()?).ok()?;
        let vector = row.vector(BackendDelegateInlineData::DATA.index, 1).ok()??;
        Some((vector.bytes(), u64::from(vector.offset())))
    }
}
