//! The flatbuffer behind a [`row::Sink`](edgepack_format::row::Sink): strings, vectors, tables and their vtables.
//!
//! Children come before their parents and the buffer grows towards its start, so every offset points forward, as the
//! format wants it. Equal vtables and equal strings are written once.

use std::collections::HashMap;

use edgepack_format::row::{FieldValue, Sink, Table};

use crate::Error;
use crate::buffer::Buffer;
use crate::layout::Layouts;

pub use crate::buffer::MAX_ALIGNMENT;

/// Smallest alignment of a vector that counts as data that [`FlatSink::with_data_alignment`] concerns.
const DATA_ALIGNMENT: usize = 16;

/// A finished object in a [`FlatSink`]: its distance from the end of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(u32);

/// Writes rows into one flatbuffer.
pub struct FlatSink {
    buffer: Buffer,
    data_alignment: usize,
    most_alignment: usize,
    /// Every vtable and where it is. That, and `strings`, are only asked for one key at a time: the order in which they
    /// keep their keys differs from run to run and is never seen.
    vtables: HashMap<Box<[u8]>, u32>,
    layouts: Layouts,
    strings: HashMap<Box<str>, u32>,
    /// Lists of fields that came back: as many as tables are nested.
    spare: Vec<Vec<(u16, FieldValue<Position>)>>,
}

impl Default for FlatSink {
    fn default() -> Self {
        FlatSink {
            buffer: Buffer::new(),
            data_alignment: 1,
            most_alignment: MAX_ALIGNMENT,
            vtables: HashMap::new(),
            layouts: Layouts::new(),
            strings: HashMap::new(),
            spare: Vec::new(),
        }
    }
}

impl FlatSink {
    /// An empty flatbuffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with vectors that are declared with an alignment of 16 or more aligned to at least `align`.
    pub fn with_data_alignment(self, align: usize) -> Self {
        FlatSink { data_alignment: align, ..self }
    }

    /// The same, but nothing is aligned to more than `most`: small files instead of whole pages.
    pub fn with_most_alignment(self, most: usize) -> Self {
        FlatSink { most_alignment: most, ..self }
    }

    /// The whole buffer of this root, with the identifier at byte 4.
    pub fn finish(self, root: Position, identifier: [u8; 4]) -> Result<Vec<u8>, Error> {
        self.envelope(root, 0, &identifier)
    }

    /// The same without an identifier.
    pub fn finish_bare(self, root: Position) -> Result<Vec<u8>, Error> {
        self.envelope(root, 0, &[])
    }

    /// The same with zeros where the identifier would be.
    pub fn finish_unidentified(self, root: Position) -> Result<Vec<u8>, Error> {
        self.envelope(root, 0, &[0; 4])
    }

    /// The same behind a length: `u32` bytes that follow, root word, identifier. Alignments count from the length.
    pub fn finish_prefixed(self, root: Position, identifier: [u8; 4]) -> Result<Vec<u8>, Error> {
        self.envelope(root, 4, &identifier)
    }

    fn envelope(mut self, root: Position, prefix: usize, identifier: &[u8]) -> Result<Vec<u8>, Error> {
        let len = prefix.saturating_add(4).saturating_add(identifier.len());
        let align = self.buffer.alignment();
        let (start, out) = self.buffer.put(len, align)?;
        // The root word is `prefix` bytes after the start; what follows the length is all but its own 4 bytes.
        let word = start.saturating_sub(prefix as u32);
        let length = word.to_le_bytes();
        let root = word.saturating_sub(root.0).to_le_bytes();
        let head = length.iter().take(prefix).chain(&root).chain(identifier);
        out.iter_mut().zip(head).for_each(|(out, byte)| *out = *byte);
        Ok(self.buffer.into_vec())
    }

    /// A vector: its bytes, the number of elements in front.
    fn vector(&mut self, count: usize, align: usize, bytes: &[u8]) -> Result<Position, Error> {
        fill(self.buffer.put(bytes.len(), align)?.1, bytes);
        self.length(count)
    }

    /// The number of elements in front of a vector whose elements were just written.
    fn length(&mut self, count: usize) -> Result<Position, Error> {
        let (position, out) = self.buffer.put(4, 1)?;
        // The elements are in the buffer, so their number fits.
        fill(out, &(count as u32).to_le_bytes());
        Ok(Position(position))
    }
}

/// One flatbuffer of this row, with the identifier at byte 4.
pub fn flatbuffer<'a, T: Table<'a>>(row: &T, identifier: [u8; 4]) -> Result<Vec<u8>, Error> {
    let mut sink = FlatSink::new();
    let root = row.encode(&mut sink)?;
    sink.finish(root, identifier)
}

impl Sink for FlatSink {
    type Error = Error;
    type Ref = Position;

    fn string(&mut self, text: &str) -> Result<Position, Error> {
        if let Some(&position) = self.strings.get(text) {
            return Ok(Position(position));
        }
        let (position, out) = self.buffer.put(text.len().saturating_add(5), 4)?;
        if let Some((length, content)) = out.split_first_chunk_mut() {
            *length = (text.len() as u32).to_le_bytes();
            // What is not content is zero: the terminator.
            fill(content, text.as_bytes());
        }
        self.strings.insert(text.into(), position);
        Ok(Position(position))
    }

    fn byte_string(&mut self, align: usize, bytes: &[u8]) -> Result<Position, Error> {
        let len = bytes.len().checked_add(1).ok_or(Error::Overflow)?;
        // As above, the last byte stays zero.
        fill(self.buffer.put(len, align.min(self.most_alignment).max(4))?.1, bytes);
        self.length(bytes.len())
    }

    fn scalars(&mut self, size: usize, align: usize, bytes: &[u8]) -> Result<Position, Error> {
        let count = match bytes.len().checked_div(size) {
            Some(count) if bytes.len().checked_rem(size) == Some(0) => count,
            _ => return Err(Error::Elements { bytes: bytes.len(), size }),
        };
        let wanted = if align >= DATA_ALIGNMENT { align.max(self.data_alignment) } else { align };
        // The length in front is a u32, so the elements start at a multiple of 4 whatever they are.
        self.vector(count, wanted.min(self.most_alignment).max(4), bytes)
    }

    fn refs(&mut self, refs: &[Position]) -> Result<Position, Error> {
        let (start, out) = self.buffer.put(refs.len().saturating_mul(4), 4)?;
        let mut left = start;
        for (out, target) in out.as_chunks_mut().0.iter_mut().zip(refs) {
            *out = distance(left, *target);
            left = left.saturating_sub(4);
        }
        self.length(refs.len())
    }

    fn table(&mut self, fields: &[(u16, FieldValue<Position>)]) -> Result<Position, Error> {
        let (buffer, vtables) = (&mut self.buffer, &mut self.vtables);
        let layout = self.layouts.find(fields, |vtable| {
            if let Some(&position) = vtables.get(&*vtable) {
                return Ok(position);
            }
            let (position, out) = buffer.put(vtable.len(), 2)?;
            fill(out, &vtable);
            vtables.insert(vtable.into(), position);
            Ok(position)
        })?;

        // The fields are aligned as their widest asks, the offset to the vtable is right before them.
        let (start, out) = self.buffer.put(layout.len, layout.align)?;
        for (place, (_, value)) in layout.places.iter().zip(fields) {
            let Some(out) = out.get_mut(usize::from(place.offset)..) else { continue };
            match value {
                FieldValue::Ref(target) => fill(out, &distance(start.saturating_sub(place.offset.into()), *target)),
                FieldValue::Scalar(number, 8) => fill(out, number),
                FieldValue::Scalar([number @ .., _, _, _, _], 4) => fill(out, number),
                FieldValue::Scalar(number, width) => fill(out, number.get(..usize::from(*width)).unwrap_or(number)),
            }
        }
        // A table is before its vtable when the vtable was written for it or earlier: the distance, counted back
        // from the table, is negative. Both positions are below 2^31.
        let (position, out) = self.buffer.put(4, 1)?;
        fill(out, &(layout.vtable as i32).wrapping_sub(position as i32).to_le_bytes());
        Ok(Position(position))
    }

    #[inline]
    fn field_list(&mut self) -> Vec<(u16, FieldValue<Position>)> {
        self.spare.pop().unwrap_or_default()
    }

    #[inline]
    fn take_back(&mut self, mut list: Vec<(u16, FieldValue<Position>)>) {
        list.clear();
        self.spare.push(list);
    }
}

/// The first bytes of `out` become these; `out` has room for them.
#[inline(always)]
fn fill(out: &mut [u8], bytes: &[u8]) {
    if let Some(out) = out.get_mut(..bytes.len()) {
        out.copy_from_slice(bytes);
    }
}

/// The offset stored at a position, for a target behind it.
#[inline(always)]
fn distance(place: u32, target: Position) -> [u8; 4] {
    place.saturating_sub(target.0).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::pte::{Frame, FrameList, Program, SubsegmentOffsets};
    use edgepack_format::row::Rows;
    use edgepack_format::wire;

    fn frames(count: i32) -> FrameList<'static> {
        let rows = (0..count).map(|lineno| Frame {
            filename: Some("model.py".into()),
            lineno: lineno + 1,
            name: Some(if lineno % 2 == 0 { "forward" } else { "model.py" }.into()),
            context: None,
        });
        FrameList { items: Some(rows.collect::<Vec<_>>().into()) }
    }

    #[test]
    fn rows_come_back_and_strings_and_vtables_are_shared() {
        let row = frames(20);
        let bytes = flatbuffer(&row, *b"TEST").unwrap();
        assert_eq!(&bytes[4..8], b"TEST");
        assert_eq!(FrameList::decode(wire::Table::root(&bytes).unwrap()).unwrap(), row);
        let text = bytes.windows(8).filter(|window| window == b"model.py").count();
        assert_eq!(text, 1);
        // 20 more frames cost 20 offsets and tables (offset, slots 0, 1, 2), no more vtables.
        assert_eq!(flatbuffer(&frames(40), *b"TEST").unwrap().len() - bytes.len(), 20 * (4 + 16));
    }

    #[test]
    fn wide_numbers_and_declared_vectors_are_aligned() {
        let program = Program {
            version: 7,
            mutable_data_segments: Some(Rows::from(vec![SubsegmentOffsets {
                segment_index: 1,
                offsets: Some(vec![1u64, 2, u64::MAX].into()),
            }])),
            ..Program::default()
        };
        let bytes = flatbuffer(&program, *b"ET12").unwrap();
        let root = wire::Table::root(&bytes).unwrap();
        let sets = root.get(Program::MUTABLE_DATA_SEGMENTS).unwrap().unwrap();
        let offsets = sets.tables().get(0).unwrap().vector(1, 8).unwrap().unwrap();
        assert_eq!(offsets.offset() % 8, 0);
        assert_eq!(Program::decode(root).unwrap(), program);
    }

    #[test]
    fn elements_come_whole() {
        let error = FlatSink::new().scalars(4, 4, &[0; 6]).unwrap_err();
        assert_eq!(error, Error::Elements { bytes: 6, size: 4 });
        assert_eq!(FlatSink::new().scalars(0, 4, &[]).unwrap_err(), Error::Elements { bytes: 0, size: 0 });
    }

    #[test]
    fn a_table_too_wide_for_its_offsets_is_refused() {
        let fields = [(u16::MAX, FieldValue::Scalar([1; 8], 1))];
        assert!(matches!(FlatSink::new().table(&fields), Err(Error::WideTable { slot: u16::MAX, .. })));
    }

    #[test]
    fn the_prefix_counts_what_follows_it() {
        let mut sink = FlatSink::new();
        let root = frames(3).encode(&mut sink).unwrap();
        let bytes = sink.finish_prefixed(root, *b"ED00").unwrap();
        assert_eq!(u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len() - 4);
        assert_eq!(&bytes[8..12], b"ED00");
        assert_eq!(FrameList::decode(wire::Table::root_at(&bytes, 4).unwrap()).unwrap(), frames(3));
    }
}
