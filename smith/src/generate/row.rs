//! Rows of any table, from its description alone.
//!
//! A generated row reads back as sound structure and follows no rule of meaning: indices point anywhere, lists disagree
//! in length.

use std::fmt;
use std::marker::PhantomData;

use arbitrary::{Arbitrary, Unstructured};
use edgepack_builder::Error;
use edgepack_builder::sink::{FlatSink, Position};
use edgepack_format::row::{FieldDesc, FieldKind, FieldValue, ScalarKind, Sink, Table, TableDesc};
use edgepack_format::wire;

use crate::decisions::Decisions;

/// Tables within tables beyond this are left out.
const MAX_DEPTH: usize = 64;

/// A flatbuffer whose root is a row of a table with everything below it: `Row<edgepack_format::pte::Program<'static>>`, or
/// of a table of your own.
///
/// ```
/// use edgepack_format::{pte::Program, row::Table};
/// use edgepack_smith::{Row, arbitrary::{Arbitrary, Unstructured}};
///
/// let input = [3; 200];
/// let row = Row::<Program<'static>>::arbitrary(&mut Unstructured::new(&input)).unwrap();
/// let program = Program::decode(row.table().unwrap()).unwrap();
/// assert!(program.execution_plan.is_some());
/// ```
pub struct Row<T> {
    bytes: Vec<u8>,
    of: PhantomData<fn() -> T>,
}

impl<T> Row<T> {
    /// Returns the flatbuffer, which has the row as its root.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The root, to be decoded as what `T` is.
    pub fn table(&self) -> wire::Result<wire::Table<'_>> {
        wire::Table::root(&self.bytes)
    }
}

impl<T> Clone for Row<T> {
    fn clone(&self) -> Self {
        Row { bytes: self.bytes.clone(), of: PhantomData }
    }
}

impl<T> PartialEq for Row<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> fmt::Debug for Row<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Row").field(&self.bytes).finish()
    }
}

impl<'a, T: Table<'static>> Arbitrary<'a> for Row<T> {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        match row(T::DESC, Values::Any, u) {
            Ok(bytes) => Ok(Row { bytes, of: PhantomData }),
            Err(_) => Err(arbitrary::Error::IncorrectFormat),
        }
    }
}

/// Range of numbers and strings in rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Values {
    /// Everything that a slot can hold. One NaN, since JSON has no room for the payload of others.
    Any,
    /// Values that other implementations preserve: enumerations without unknown numbers, no -0.0 (planus takes it for
    /// the default 0.0 and leaves it out), strings that are text.
    Portable,
}

/// A flatbuffer with the identifier `RAND` and a root of this table. The same input is the same buffer, an input that has
/// ended adds nothing.
pub fn row(desc: &'static TableDesc, values: Values, u: &mut Unstructured<'_>) -> Result<Vec<u8>, Error> {
    let mut grower = Grower { u, portable: values == Values::Portable, sink: FlatSink::new() };
    let root = grower.table(desc, 0)?;
    grower.sink.finish(root, *b"RAND")
}

struct Grower<'s, 't> {
    u: &'s mut Unstructured<'t>,
    portable: bool,
    sink: FlatSink,
}

impl Grower<'_, '_> {
    fn table(&mut self, desc: &'static TableDesc, depth: usize) -> Result<Position, Error> {
        let mut fields = Vec::new();
        for field in desc.fields {
            // Most fields of most tables are there.
            if self.u.below(4) > 0 && depth < MAX_DEPTH {
                self.field(field, depth, &mut fields)?;
            }
        }
        self.sink.table(&fields)
    }

    fn field(
        &mut self,
        field: &'static FieldDesc,
        depth: usize,
        fields: &mut Vec<(u16, FieldValue<Position>)>,
    ) -> Result<(), Error> {
        let written = match field.kind {
            FieldKind::Scalar(kind) => {
                let (bytes, size) = self.number(kind);
                fields.push((field.slot, FieldValue::Scalar(bytes, size)));
                return Ok(());
            }
            FieldKind::Text => {
                let text = self.text();
                self.sink.string(&text)?
            }
            FieldKind::Scalars(kind) => {
                let mut out = Vec::new();
                let size = size_of(kind);
                for _ in 0..self.u.below(5) {
                    out.extend_from_slice(&self.number(kind).0[..size]);
                }
                self.sink.scalars(size, field.align.max(size), &out)?
            }
            FieldKind::Blobs => {
                let mut strings = Vec::new();
                for _ in 0..self.u.below(4) {
                    let bytes = if self.portable { self.text().into_bytes() } else { self.bytes(20) };
                    strings.push(self.sink.byte_string(1, &bytes)?);
                }
                self.sink.refs(&strings)?
            }
            FieldKind::Structs(desc) => {
                let len = self.u.below(4) * desc.size;
                let bytes: Vec<u8> = (0..len).map(|_| self.u.byte()).collect();
                self.sink.scalars(desc.size, desc.align, &bytes)?
            }
            FieldKind::Blob => {
                let bytes = self.bytes(40);
                self.sink.scalars(1, field.align, &bytes)?
            }
            FieldKind::Table(desc) => self.table(desc, depth + 1)?,
            FieldKind::Rows(desc) => {
                let mut rows = Vec::new();
                for _ in 0..self.u.below(4) {
                    rows.push(self.table(desc, depth + 1)?);
                }
                self.sink.refs(&rows)?
            }
            FieldKind::Union(of) => {
                let Some((tag, _, desc)) = of.variants.get(self.u.below(of.variants.len())) else { return Ok(()) };
                let value = self.table(desc, depth + 1)?;
                fields.push((field.slot, FieldValue::Scalar([*tag, 0, 0, 0, 0, 0, 0, 0], 1)));
                fields.push((field.slot + 1, FieldValue::Ref(value)));
                return Ok(());
            }
        };
        fields.push((field.slot, FieldValue::Ref(written)));
        Ok(())
    }

    /// A number as little-endian bytes, and how many of them count.
    fn number(&mut self, kind: ScalarKind) -> ([u8; 8], u8) {
        let zero = if self.portable { 0.0 } else { -0.0 };
        let mut out = [0; 8];
        match kind {
            ScalarKind::Bool => out[0] = self.u.byte() % 2,
            ScalarKind::I8 | ScalarKind::I16 if self.portable => out[0] = self.u.byte() % 2,
            ScalarKind::F32 => {
                let (end, most) = (f32::INFINITY, f32::MIN_POSITIVE);
                let values = [0.0, zero as f32, 0.1, -1.5e30, end, -end, f32::NAN, most];
                out[..4].copy_from_slice(&self.u.pick(&values).to_le_bytes());
            }
            ScalarKind::F64 => {
                let (end, most) = (f64::INFINITY, f64::MIN_POSITIVE);
                let values = [0.0, zero, 0.1, -1.5e300, end, -end, f64::NAN, most];
                out = self.u.pick(&values).to_le_bytes();
            }
            kind => out[..size_of(kind)].fill_with(|| self.u.byte()),
        }
        (out, size_of(kind) as u8)
    }

    fn text(&mut self) -> String {
        const LETTERS: [char; 8] = ['a', 'Z', '.', '\0', '"', '\u{e9}', '\u{1f980}', ' '];
        (0..self.u.below(6)).map(|_| self.u.pick(&LETTERS)).collect()
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.u.below(most)).map(|_| self.u.byte()).collect()
    }
}

fn size_of(kind: ScalarKind) -> usize {
    match kind {
        ScalarKind::Bool | ScalarKind::I8 | ScalarKind::U8 => 1,
        ScalarKind::I16 | ScalarKind::U16 => 2,
        ScalarKind::I32 | ScalarKind::U32 | ScalarKind::F32 => 4,
        ScalarKind::I64 | ScalarKind::U64 | ScalarKind::F64 => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use edgepack_builder::sink::flatbuffer;
    use edgepack_format::{bundle, darwinn, pte, tflite, trace, xnnpack};

    macro_rules! tables {
        ($($module:ident::$table:ident)*) => {
            #[test]
            fn rows_of_every_format_are_read_and_written() {
                $(let mut longest = 0;
                for seed in 0..200 {
                    let mut rng = Rng::new(seed);
                    let input: Vec<u8> = (0..rng.below(600)).map(|_| rng.word() as u8).collect();
                    let row = Row::<$module::$table<'static>>::arbitrary(&mut Unstructured::new(&input)).unwrap();
                    let read = $module::$table::decode(row.table().unwrap()).unwrap();
                    let written = flatbuffer(&read, *b"TEST").unwrap();
                    assert_eq!($module::$table::decode(wire::Table::root(&written).unwrap()).unwrap(), read);
                    longest = longest.max(written.len());
                }
                assert!(longest > 400, "{}: {longest}", stringify!($table));)*
            }
        };
    }

    tables! { pte::Program bundle::BundledProgram trace::ETDump tflite::Model darwinn::Executable xnnpack::Graph }
}
