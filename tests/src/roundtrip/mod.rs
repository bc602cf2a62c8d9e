//! Random rows of any table, grown from its description.
//!
//! A [`Tape`] of bytes decides everything, so that proptest shrinks it; a tape that has ended answers zero, and zero
//! always means "nothing more", so a row is no larger than its tape. What grows reads back as sound structure; it
//! follows no rule of meaning.

use edgepack_builder::sink::{FlatSink, Position};
use edgepack_format::row::{FieldDesc, FieldKind, FieldValue, ScalarKind, Sink, TableDesc};

/// Where random rows come from.
pub struct Tape<'t> {
    bytes: std::slice::Iter<'t, u8>,
    /// Whether numbers are restricted as [`Tape::closed`] says.
    closed: bool,
}

impl<'t> Tape<'t> {
    /// Every number a slot can hold.
    pub fn new(bytes: &'t [u8]) -> Self {
        Tape { bytes: bytes.iter(), closed: false }
    }

    /// Only what other implementations keep: enumerations without unknown numbers, and no -0.0, which planus takes for
    /// the default 0.0 and leaves out.
    pub fn closed(bytes: &'t [u8]) -> Self {
        Tape { closed: true, ..Self::new(bytes) }
    }

    fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    fn number(&mut self, kind: ScalarKind) -> ([u8; 8], u8) {
        let mut out = [0; 8];
        let mut put = |bytes: &[u8]| {
            out[..bytes.len()].copy_from_slice(bytes);
            bytes.len() as u8
        };
        let size = match kind {
            ScalarKind::Bool => put(&[self.byte() % 2]),
            ScalarKind::I8 if self.closed => put(&[self.byte() % 2]),
            ScalarKind::I16 if self.closed => put(&[self.byte() % 2, 0]),
            ScalarKind::I8 | ScalarKind::U8 => put(&[self.byte()]),
            ScalarKind::I16 | ScalarKind::U16 => put(&[self.byte(), self.byte()]),
            ScalarKind::I32 | ScalarKind::U32 => put(&[(); 4].map(|()| self.byte())),
            ScalarKind::I64 | ScalarKind::U64 => put(&[(); 8].map(|()| self.byte())),
            // One NaN: JSON does not keep the payload of others.
            ScalarKind::F32 => {
                let values = [
                    0.0,
                    self.zero() as f32,
                    0.1,
                    -1.5e30,
                    f32::INFINITY,
                    f32::NEG_INFINITY,
                    f32::NAN,
                    f32::MIN_POSITIVE,
                ];
                put(&values[self.below(8)].to_le_bytes())
            }
            ScalarKind::F64 => {
                let values =
                    [0.0, self.zero(), 0.1, -1.5e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE];
                put(&values[self.below(8)].to_le_bytes())
            }
        };
        (out, size)
    }

    fn zero(&self) -> f64 {
        if self.closed { 0.0 } else { -0.0 }
    }

    fn text(&mut self) -> String {
        const LETTERS: [char; 8] = ['a', 'Z', '.', '\0', '"', '\u{e9}', '\u{1f980}', ' '];
        (0..self.below(6)).map(|_| LETTERS[self.below(8)]).collect()
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.byte()).collect()
    }

    /// Bytes of a string; other implementations want it to be text.
    fn byte_string(&mut self) -> Vec<u8> {
        if self.closed { self.text().into_bytes() } else { self.bytes(20) }
    }

    fn numbers(&mut self, kind: ScalarKind) -> (usize, Vec<u8>) {
        let count = self.below(5);
        let mut out = Vec::new();
        let mut size = usize::from(Tape::new(&[]).number(kind).1);
        for _ in 0..count {
            let (bytes, width) = self.number(kind);
            size = usize::from(width);
            out.extend(&bytes[..size]);
        }
        (size, out)
    }
}

/// A flatbuffer with a random root of this table.
pub fn grow(desc: &'static TableDesc, tape: &mut Tape<'_>) -> Vec<u8> {
    let mut sink = FlatSink::new();
    let root = table(desc, tape, &mut sink);
    sink.finish(root, *b"RAND").expect("random rows are small")
}

fn table(desc: &'static TableDesc, tape: &mut Tape<'_>, sink: &mut FlatSink) -> Position {
    let mut fields = Vec::new();
    for field in desc.fields {
        // Most fields of most tables are there, but a tape that has ended adds nothing.
        if tape.below(4) > 0 {
            grow_field(field, tape, sink, &mut fields);
        }
    }
    sink.table(&fields).expect("few fields")
}

fn grow_field(
    field: &'static FieldDesc,
    tape: &mut Tape<'_>,
    sink: &mut FlatSink,
    fields: &mut Vec<(u16, FieldValue<Position>)>,
) {
    let written = match field.kind {
        FieldKind::Scalar(kind) => {
            let (bytes, size) = tape.number(kind);
            return fields.push((field.slot, FieldValue::Scalar(bytes, size)));
        }
        FieldKind::Text => sink.string(&tape.text()),
        FieldKind::Scalars(kind) => {
            let (size, bytes) = tape.numbers(kind);
            sink.scalars(size, field.align.max(size), &bytes)
        }
        FieldKind::Blobs => {
            let strings: Vec<_> = (0..tape.below(4))
                .map(|_| sink.byte_string(1, &tape.byte_string()).expect("random rows are small"))
                .collect();
            sink.refs(&strings)
        }
        FieldKind::Structs(desc) => {
            let bytes: Vec<u8> = (0..tape.below(4) * desc.size).map(|_| tape.byte()).collect();
            sink.scalars(desc.size, desc.align, &bytes)
        }
        FieldKind::Blob => sink.scalars(1, field.align, &tape.bytes(40)),
        FieldKind::Table(desc) => Ok(table(desc, tape, sink)),
        FieldKind::Rows(desc) => {
            let rows: Vec<_> = (0..tape.below(4)).map(|_| table(desc, tape, sink)).collect();
            sink.refs(&rows)
        }
        FieldKind::Union(desc) => {
            let (tag, _, variant) = desc.variants[tape.below(desc.variants.len())];
            let value = table(variant, tape, sink);
            fields.push((field.slot, FieldValue::Scalar([tag, 0, 0, 0, 0, 0, 0, 0], 1)));
            return fields.push((field.slot + 1, FieldValue::Ref(value)));
        }
    };
    fields.push((field.slot, FieldValue::Ref(written.expect("random rows are small"))));
}
