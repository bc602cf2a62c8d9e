//! The flatbuffer behind a [`row::Sink`](edgepack_format::row::Sink): strings, vectors, tables and their vtables.
//!
//! Children come before their parents and the buffer grows towards its start, so every offset points forward, as the
//! format wants it. Equal vtables and equal strings are written once.

use std::collections::BTreeMap;

use edgepack_format::row::{FieldValue, Sink, Table};

use crate::Error;
use crate::buffer::Buffer;

/// The largest alignment that can be asked for: 64 KiB, the largest page of common systems.
pub const MAX_ALIGNMENT: usize = 1 << 16;

/// What a vector must ask for at least to count as data that [`FlatSink::with_data_alignment`] concerns.
const DATA_ALIGNMENT: usize = 16;

/// A finished object in a [`FlatSink`]: its distance from the end of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(u32);

/// Writes rows into one flatbuffer.
pub struct FlatSink {
    buffer: Buffer,
    data_alignment: usize,
    most_alignment: usize,
    vtables: BTreeMap<Vec<u8>, u32>,
    strings: BTreeMap<String, u32>,
}

impl Default for FlatSink {
    fn default() -> Self {
        FlatSink {
            buffer: Buffer::new(),
            data_alignment: 1,
            most_alignment: MAX_ALIGNMENT,
            vtables: BTreeMap::new(),
            strings: BTreeMap::new(),
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
        self.buffer.put(len, align, |start| {
            // The root word is `prefix` bytes after the start; what follows the length is all but its own 4 bytes.
            let word = start.saturating_sub(prefix as u32);
            let mut head = Vec::with_capacity(len);
            if prefix > 0 {
                head.extend(word.to_le_bytes());
            }
            head.extend(word.saturating_sub(root.0).to_le_bytes());
            head.extend(identifier);
            head
        })?;
        Ok(self.buffer.as_slice().to_vec())
    }

    /// The vtable of these bytes, written if there is none yet.
    fn vtable(&mut self, vtable: Vec<u8>) -> Result<u32, Error> {
        if let Some(&position) = self.vtables.get(&vtable) {
            return Ok(position);
        }
        let position = self.buffer.put(vtable.len(), 2, |_| &vtable)?;
        self.vtables.insert(vtable, position);
        Ok(position)
    }

    /// The number of elements in front of a vector whose elements were just written.
    fn length(&mut self, count: usize) -> Result<Position, Error> {
        // The elements are in the buffer, so their number fits.
        self.buffer.put(4, 1, |_| (count as u32).to_le_bytes()).map(Position)
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
        let len = text.len().saturating_add(5);
        let position = self.buffer.put(len, 4, |_| {
            let mut bytes = Vec::with_capacity(len);
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
            bytes.push(0);
            bytes
        })?;
        self.strings.insert(text.to_owned(), position);
        Ok(Position(position))
    }

    fn byte_string(&mut self, align: usize, bytes: &[u8]) -> Result<Position, Error> {
        let len = bytes.len().checked_add(1).ok_or(Error::Overflow)?;
        // What is not content is zero: the terminator.
        self.buffer.put(len, align.min(self.most_alignment).max(4), |_| bytes)?;
        self.length(bytes.len())
    }

    fn scalars(&mut self, size: usize, align: usize, bytes: &[u8]) -> Result<Position, Error> {
        let count = match bytes.len().checked_div(size) {
            Some(count) if bytes.len().checked_rem(size) == Some(0) => count,
            _ => return Err(Error::Elements { bytes: bytes.len(), size }),
        };
        let wanted = if align >= DATA_ALIGNMENT { align.max(self.data_alignment) } else { align };
        // The length in front is a u32, so the elements start at a multiple of 4 whatever they are.
        self.buffer.put(bytes.len(), wanted.min(self.most_alignment).max(4), |_| bytes)?;
        self.length(count)
    }

    fn refs(&mut self, refs: &[Position]) -> Result<Position, Error> {
        let len = refs.len().saturating_mul(4);
        self.buffer.put(len, 4, |start| {
            let mut bytes = Vec::with_capacity(len);
            for target in refs {
                bytes.extend(distance(start, bytes.len(), *target));
            }
            bytes
        })?;
        self.length(refs.len())
    }

    fn table(&mut self, fields: &[(u16, FieldValue<Position>)]) -> Result<Position, Error> {
        let highest = fields.iter().map(|(slot, _)| *slot).max();
        let wide = Error::WideTable { fields: fields.len(), slot: highest.unwrap_or(0) };
        let slots = highest.map_or(0, |slot| usize::from(slot).saturating_add(1));
        let vtable_len = u16::try_from(slots.saturating_mul(2).saturating_add(4)).map_err(|_| wide)?;

        // Widest fields first, then by slot: no padding between them.
        let mut order: Vec<_> = fields.iter().map(|(slot, value)| (*slot, *value, width(value))).collect();
        order.sort_by_key(|&(slot, _, width)| (std::cmp::Reverse(width), slot));
        let align = order.first().map_or(4, |&(_, _, width)| usize::from(width).max(4));

        let mut offsets = vec![0u16; slots];
        let mut inline_len = 4u16;
        for &(slot, _, width) in &order {
            if let Some(offset) = offsets.get_mut(usize::from(slot)) {
                *offset = inline_len;
            }
            inline_len = inline_len.checked_add(width).ok_or(wide)?;
        }
        let header = [vtable_len, inline_len];
        let vtable: Vec<u8> = header.iter().chain(&offsets).flat_map(|number| number.to_le_bytes()).collect();
        let vtable = self.vtable(vtable)?;

        // The fields are aligned as their widest asks, the offset to the vtable stands right before them.
        self.buffer.put(usize::from(inline_len).saturating_sub(4), align, |start| {
            let mut bytes = Vec::with_capacity(usize::from(inline_len));
            for (_, value, width) in &order {
                match value {
                    FieldValue::Scalar(number, _) => bytes.extend(number.iter().take(usize::from(*width))),
                    FieldValue::Ref(target) => bytes.extend(distance(start, bytes.len(), *target)),
                }
            }
            bytes
        })?;
        // A table lies before its vtable when the vtable was written for it or earlier: the distance, counted back
        // from the table, is negative. Both positions are below 2^31.
        let position = self.buffer.put(4, 1, |place| (vtable as i32).wrapping_sub(place as i32).to_le_bytes())?;
        Ok(Position(position))
    }
}

/// The offset stored `within` bytes into what starts at `start`. It lies before all it can point at.
fn distance(start: u32, within: usize, target: Position) -> [u8; 4] {
    start.saturating_sub(within as u32).saturating_sub(target.0).to_le_bytes()
}

/// Bytes of a field inside its table.
fn width(value: &FieldValue<Position>) -> u16 {
    match value {
        FieldValue::Scalar(_, size) => u16::from(*size),
        FieldValue::Ref(_) => 4,
    }
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
