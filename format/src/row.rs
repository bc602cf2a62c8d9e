//! Rows: one Rust struct per table of a schema, read and written through one declaration.
//!
//! `#[derive(Table)]` turns a struct whose fields carry `#[slot(N)]` into a row: [`Table::decode`] reads it from a
//! checked [`wire::Table`], [`Table::encode`] writes it to any [`Sink`], [`Table::check`] verifies it with everything
//! below it, and [`Table::DESC`] lists its fields for tools. `#[derive(Union)]` does the same for unions.
//!
//! | field type | on the wire |
//! |---|---|
//! | a number, `bool`, an [open enum](crate::open_enum) | inline scalar with a default |
//! | `Option<Text>` | string |
//! | `Option<Scalars<T>>` | vector of numbers |
//! | `Option<Blob>` | vector of bytes that is data, not numbers |
//! | `Option<Row>` | sub-table |
//! | `Option<Rows<Row>>` | vector of tables, read lazily |
//! | `Option<Union>` | union: this slot holds the tag, the next the value |
//!
//! Absent is not empty: every `Option` says whether the slot was there.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::check::{Checker, Path};
use crate::wire::{self, ReadError, ReadErrorKind};

pub use edgepack_format_derive::{Table, Union};

/// The kinds of inline numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum ScalarKind {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

/// A number as it is stored in a table or a vector.
pub trait Scalar: Copy + PartialEq + fmt::Debug + 'static {
    /// Which number.
    const KIND: ScalarKind;
    /// Bytes on the wire.
    const SIZE: usize;
    /// From exactly [`Scalar::SIZE`] bytes.
    fn from_le(bytes: &[u8]) -> Option<Self>;
    /// Into the first [`Scalar::SIZE`] bytes of `out`.
    fn put_le(self, out: &mut [u8; 8]);
}

macro_rules! scalars {
    ($($ty:ty => $kind:ident),*) => {
        $(impl Scalar for $ty {
            const KIND: ScalarKind = ScalarKind::$kind;
            const SIZE: usize = size_of::<$ty>();
            #[inline(always)]
            fn from_le(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|bytes| <$ty>::from_le_bytes(*bytes))
            }
            fn put_le(self, out: &mut [u8; 8]) {
                for (out, byte) in out.iter_mut().zip(self.to_le_bytes()) {
                    *out = byte;
                }
            }
        })*
    };
}

scalars!(i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64, f32 => F32, f64 => F64);

impl Scalar for bool {
    const KIND: ScalarKind = ScalarKind::Bool;
    const SIZE: usize = 1;
    #[inline(always)]
    fn from_le(bytes: &[u8]) -> Option<Self> {
        bytes.first().map(|byte| *byte != 0)
    }
    fn put_le(self, out: &mut [u8; 8]) {
        let [first, ..] = out;
        *first = self as u8;
    }
}

/// A table as a Rust struct. Derive it.
pub trait Table<'a>: Sized {
    /// Its name and fields.
    const DESC: &'static TableDesc;

    /// Reads the row. Sub-tables are read with it, vectors of tables are only located.
    fn decode(table: wire::Table<'a>) -> wire::Result<Self>;

    /// Verifies the table and everything below it; what is wrong is reported to the checker under `path`.
    fn check(table: wire::Table<'a>, checker: &mut Checker, path: &Path<'_>);

    /// Writes the row with everything below it, children first.
    fn encode<S: Sink>(&self, sink: &mut S) -> Result<S::Ref, S::Error>;
}

/// A union as a Rust enum. Derive it.
pub trait Union<'a>: Sized {
    /// Its name and variants.
    const DESC: &'static UnionDesc;

    /// Reads the variant of this tag. An unknown tag is kept as such.
    fn decode(tag: u8, table: wire::Table<'a>) -> wire::Result<Self>;

    /// As [`Table::check`].
    fn check(tag: u8, table: wire::Table<'a>, checker: &mut Checker, path: &Path<'_>);

    /// The tag of this variant.
    fn tag(&self) -> u8;

    /// Writes the variant's table.
    fn encode<S: Sink>(&self, sink: &mut S) -> Result<S::Ref, S::Error>;
}

/// What a row is written to.
///
/// Children are written before their parents, so a sink can build the buffer from the back. Same calls, same bytes.
pub trait Sink {
    /// What can go wrong.
    type Error: From<ReadError>;
    /// A finished object that a parent can point at.
    type Ref: Copy;

    /// Writes a string.
    fn string(&mut self, text: &str) -> Result<Self::Ref, Self::Error>;
    /// Writes a vector of numbers of `size` bytes each, already little-endian, its first element aligned to `align`.
    fn scalars(&mut self, size: usize, align: usize, bytes: &[u8]) -> Result<Self::Ref, Self::Error>;
    /// Writes a vector of offsets.
    fn refs(&mut self, refs: &[Self::Ref]) -> Result<Self::Ref, Self::Error>;
    /// Writes a table with these fields, in slot order; absent slots are not listed.
    fn table(&mut self, fields: &[(u16, FieldValue<Self::Ref>)]) -> Result<Self::Ref, Self::Error>;
}

/// A field handed to [`Sink::table`].
#[derive(Clone, Copy, Debug)]
pub enum FieldValue<R> {
    /// An inline number: its little-endian bytes and how many of them count.
    Scalar([u8; 8], u8),
    /// An offset to something written before.
    Ref(R),
}

/// A table's name and fields, for tools: error paths, `inspect`, schema tests, mutators.
#[derive(Debug)]
pub struct TableDesc {
    /// Name in the schema.
    pub name: &'static str,
    /// Fields by slot.
    pub fields: &'static [FieldDesc],
}

/// A union's name and variants.
#[derive(Debug)]
pub struct UnionDesc {
    /// Name in the schema.
    pub name: &'static str,
    /// Tag, name and table of every variant but `NONE`.
    pub variants: &'static [(u8, &'static str, &'static TableDesc)],
}

/// One field of a table.
#[derive(Debug)]
pub struct FieldDesc {
    /// Name in the schema.
    pub name: &'static str,
    /// Its id; for a union the id of the tag, the value has the next.
    pub slot: u16,
    /// What it holds.
    pub kind: FieldKind,
    /// Alignment asked of the first element of a vector, beyond that of its element type.
    pub align: usize,
    /// Default of an inline number as little-endian bytes.
    pub default: [u8; 8],
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum FieldKind {
    Scalar(ScalarKind),
    Text,
    Scalars(ScalarKind),
    Blob,
    Table(&'static TableDesc),
    Rows(&'static TableDesc),
    Union(&'static UnionDesc),
}

/// How a field is declared: its slot, its default, its alignment. The derive makes one per field.
#[derive(Clone, Copy)]
pub struct Slot<F> {
    /// The slot.
    pub index: u16,
    /// The default of an inline number, in little-endian bytes.
    pub default: [u8; 8],
    /// See [`FieldDesc::align`].
    pub align: usize,
    field: PhantomData<fn() -> F>,
}

impl<F> Slot<F> {
    /// A slot whose numbers default to zero.
    pub const fn new(index: u16) -> Self {
        Slot { index, default: [0; 8], align: 1, field: PhantomData }
    }

    /// The same with a default.
    pub const fn or(self, default: [u8; 8]) -> Self {
        Slot { default, ..self }
    }

    /// The same with an alignment.
    pub const fn aligned(self, align: usize) -> Self {
        Slot { align, ..self }
    }
}

impl<'a> wire::Table<'a> {
    /// Reads one field, without building the whole row.
    #[inline(always)]
    pub fn get<F: Field<'a>>(&self, slot: Slot<F>) -> wire::Result<F> {
        F::read(self, slot)
    }
}

/// The type of a field of a row.
pub trait Field<'a>: Sized {
    /// What it holds.
    const KIND: FieldKind;
    /// Reads it.
    fn read(table: &wire::Table<'a>, slot: Slot<Self>) -> wire::Result<Self>;
    /// Verifies it with everything below it.
    fn check(table: &wire::Table<'a>, slot: Slot<Self>, checker: &mut Checker, path: &Path<'_>);
    /// Writes what is below it and appends the field (a union appends two).
    fn write<S: Sink>(
        &self,
        slot: Slot<Self>,
        sink: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error>;
}

impl<'a, T: Scalar> Field<'a> for T {
    const KIND: FieldKind = FieldKind::Scalar(T::KIND);

    #[inline(always)]
    fn read(table: &wire::Table<'a>, slot: Slot<Self>) -> wire::Result<Self> {
        // The arms are constant per type; each reads exactly SIZE bytes.
        let value = match T::SIZE {
            1 => table.scalar::<1>(slot.index)?.and_then(|b| T::from_le(&b)),
            2 => table.scalar::<2>(slot.index)?.and_then(|b| T::from_le(&b)),
            4 => table.scalar::<4>(slot.index)?.and_then(|b| T::from_le(&b)),
            _ => table.scalar::<8>(slot.index)?.and_then(|b| T::from_le(&b)),
        };
        match value.or_else(|| T::from_le(&slot.default)) {
            Some(value) => Ok(value),
            None => Err(ReadError { kind: ReadErrorKind::OutOfBounds, offset: table.offset() }),
        }
    }

    #[inline(always)]
    fn check(table: &wire::Table<'a>, slot: Slot<Self>, checker: &mut Checker, path: &Path<'_>) {
        match table.field(slot.index, T::SIZE as u16) {
            Ok(Some(pos)) if !pos.is_multiple_of(T::SIZE) => checker.misaligned(path, pos, T::SIZE),
            Ok(_) => {}
            Err(error) => checker.unreadable(path, error),
        }
    }

    fn write<S: Sink>(
        &self,
        slot: Slot<Self>,
        _: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error> {
        let mut bytes = [0; 8];
        self.put_le(&mut bytes);
        // Compared as bytes: -0.0 is not the default 0.0, and NaN payloads survive.
        let size = T::SIZE.min(8);
        if bytes.iter().zip(&slot.default).take(size).any(|(a, b)| a != b) {
            fields.push((slot.index, FieldValue::Scalar(bytes, size as u8)));
        }
        Ok(())
    }
}

/// What may be absent: the types that stand inside the `Option` of a field.
pub trait Optional<'a>: Sized {
    /// What it holds.
    const KIND: FieldKind;
    /// Reads it.
    fn read(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<Self>>;
    /// Verifies it.
    fn check(table: &wire::Table<'a>, slot: u16, align: usize, checker: &mut Checker, path: &Path<'_>);
    /// Writes it.
    fn write<S: Sink>(
        &self,
        slot: u16,
        align: usize,
        sink: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error>;
}

impl<'a, T: Optional<'a>> Field<'a> for Option<T> {
    const KIND: FieldKind = T::KIND;

    #[inline(always)]
    fn read(table: &wire::Table<'a>, slot: Slot<Self>) -> wire::Result<Self> {
        T::read(table, slot.index)
    }

    #[inline(always)]
    fn check(table: &wire::Table<'a>, slot: Slot<Self>, checker: &mut Checker, path: &Path<'_>) {
        if table.has(slot.index) {
            T::check(table, slot.index, slot.align, checker, path);
        }
    }

    fn write<S: Sink>(
        &self,
        slot: Slot<Self>,
        sink: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error> {
        match self {
            Some(value) => value.write(slot.index, slot.align, sink, fields),
            None => Ok(()),
        }
    }
}

/// Text of a file: borrowed from it, or owned after an edit.
pub type Text<'a> = Cow<'a, str>;

impl<'a> Optional<'a> for Text<'a> {
    const KIND: FieldKind = FieldKind::Text;

    fn read(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<Self>> {
        let Some(vector) = table.string(slot)? else { return Ok(None) };
        match core::str::from_utf8(vector.bytes()) {
            Ok(text) => Ok(Some(Cow::Borrowed(text))),
            Err(_) => Err(ReadError { kind: ReadErrorKind::NotUtf8, offset: vector.offset() }),
        }
    }

    fn check(table: &wire::Table<'a>, slot: u16, _: usize, checker: &mut Checker, path: &Path<'_>) {
        match table.string(slot) {
            Ok(Some(vector)) => {
                checker.vector(table, slot, &vector, 4, path);
                if core::str::from_utf8(vector.bytes()).is_err() {
                    checker.unreadable(path, ReadError { kind: ReadErrorKind::NotUtf8, offset: vector.offset() });
                }
            }
            Ok(None) => {}
            Err(error) => checker.unreadable(path, error),
        }
    }

    fn write<S: Sink>(
        &self,
        slot: u16,
        _: usize,
        sink: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error> {
        fields.push((slot, FieldValue::Ref(sink.string(self)?)));
        Ok(())
    }
}

/// A vector of numbers: little-endian bytes of a file, or owned.
#[derive(Clone)]
pub struct Scalars<'a, T> {
    repr: ScalarsRepr<'a, T>,
}

#[derive(Clone)]
enum ScalarsRepr<'a, T> {
    /// A whole number of elements.
    Wire(&'a [u8]),
    Owned(Vec<T>),
}

impl<'a, T: Scalar> Scalars<'a, T> {
    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.repr {
            ScalarsRepr::Wire(bytes) => bytes.len().checked_div(T::SIZE).unwrap_or(0),
            ScalarsRepr::Owned(list) => list.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T> {
        match &self.repr {
            ScalarsRepr::Wire(bytes) => {
                let start = index.checked_mul(T::SIZE)?;
                bytes.get(start..).and_then(T::from_le_exact)
            }
            ScalarsRepr::Owned(list) => list.get(index).copied(),
        }
    }

    /// The elements in order.
    #[inline]
    pub fn iter(&self) -> ScalarsIter<'_, T> {
        match &self.repr {
            ScalarsRepr::Wire(bytes) => ScalarsIter { wire: bytes.chunks_exact(T::SIZE), owned: [].iter() },
            ScalarsRepr::Owned(list) => ScalarsIter { wire: [].chunks_exact(1), owned: list.iter() },
        }
    }

    /// The elements as an owned list, for editing.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let ScalarsRepr::Wire(_) = self.repr {
            self.repr = ScalarsRepr::Owned(self.iter().collect());
        }
        match &mut self.repr {
            ScalarsRepr::Owned(list) => list,
            // Replaced just above.
            ScalarsRepr::Wire(_) => unreachable!(),
        }
    }

    /// The same, independent of the file.
    pub fn into_owned(self) -> Scalars<'static, T> {
        Scalars { repr: ScalarsRepr::Owned(self.iter().collect()) }
    }

    /// All elements, little-endian.
    pub fn to_le_bytes(&self) -> Cow<'_, [u8]> {
        match &self.repr {
            ScalarsRepr::Wire(bytes) => Cow::Borrowed(bytes),
            ScalarsRepr::Owned(list) => {
                let mut out = Vec::with_capacity(list.len().saturating_mul(T::SIZE));
                for value in list {
                    let mut bytes = [0; 8];
                    value.put_le(&mut bytes);
                    out.extend(bytes.iter().take(T::SIZE));
                }
                Cow::Owned(out)
            }
        }
    }
}

/// An iterator over [`Scalars`].
#[derive(Clone)]
pub struct ScalarsIter<'s, T> {
    wire: core::slice::ChunksExact<'s, u8>,
    owned: core::slice::Iter<'s, T>,
}

impl<T: Scalar> Iterator for ScalarsIter<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        match self.wire.next() {
            Some(bytes) => T::from_le(bytes),
            None => self.owned.next().copied(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.wire.len().saturating_add(self.owned.len());
        (len, Some(len))
    }
}

impl<T: Scalar> ExactSizeIterator for ScalarsIter<'_, T> {}

trait FromLeExact: Scalar {
    /// From the first `SIZE` bytes of a longer slice.
    fn from_le_exact(bytes: &[u8]) -> Option<Self> {
        bytes.get(..Self::SIZE).and_then(Self::from_le)
    }
}

impl<T: Scalar> FromLeExact for T {}

impl<T> From<Vec<T>> for Scalars<'_, T> {
    fn from(list: Vec<T>) -> Self {
        Scalars { repr: ScalarsRepr::Owned(list) }
    }
}

impl<T: Scalar> PartialEq for Scalars<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        // By the bytes of each number, so that NaN equals itself and every bool that is not zero is true.
        let bytes = |number: T| {
            let mut bytes = [0; 8];
            number.put_le(&mut bytes);
            bytes
        };
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| bytes(a) == bytes(b))
    }
}

impl<T: Scalar> fmt::Debug for Scalars<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Scalar + Serialize> Serialize for Scalars<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Scalars<'_, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl<'a, T: Scalar> Optional<'a> for Scalars<'a, T> {
    const KIND: FieldKind = FieldKind::Scalars(T::KIND);

    #[inline]
    fn read(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<Self>> {
        let vector = table.vector(slot, T::SIZE)?;
        Ok(vector.map(|vector| Scalars { repr: ScalarsRepr::Wire(vector.bytes()) }))
    }

    #[inline]
    fn check(table: &wire::Table<'a>, slot: u16, align: usize, checker: &mut Checker, path: &Path<'_>) {
        match table.vector(slot, T::SIZE) {
            Ok(Some(vector)) => checker.vector(table, slot, &vector, align.max(T::SIZE), path),
            Ok(None) => {}
            Err(error) => checker.unreadable(path, error),
        }
    }

    fn write<S: Sink>(
        &self,
        slot: u16,
        align: usize,
        sink: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error> {
        let written = sink.scalars(T::SIZE, align.max(T::SIZE), &self.to_le_bytes())?;
        fields.push((slot, FieldValue::Ref(written)));
        Ok(())
    }
}

/// A vector of bytes that is data: borrowed from the file, or owned. Base64 in JSON.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Blob<'a>(pub Cow<'a, [u8]>);

impl Blob<'_> {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The same, independent of the file.
    pub fn into_owned(self) -> Blob<'static> {
        Blob(Cow::Owned(self.0.into_owned()))
    }
}

impl fmt::Debug for Blob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Blob<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match BASE64.decode(&text) {
            Ok(bytes) => Ok(Blob(Cow::Owned(bytes))),
            Err(error) => Err(D::Error::custom(error)),
        }
    }
}

impl<'a> Optional<'a> for Blob<'a> {
    const KIND: FieldKind = FieldKind::Blob;

    fn read(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<Self>> {
        Ok(table.vector(slot, 1)?.map(|vector| Blob(Cow::Borrowed(vector.bytes()))))
    }

    fn check(table: &wire::Table<'a>, slot: u16, align: usize, checker: &mut Checker, path: &Path<'_>) {
        match table.vector(slot, 1) {
            // A blob is data: locating it is all the work there is, whatever its length.
            Ok(Some(vector)) => checker.vector_at(table, slot, vector.offset(), 0, align, path),
            Ok(None) => {}
            Err(error) => checker.unreadable(path, error),
        }
    }

    fn write<S: Sink>(
        &self,
        slot: u16,
        align: usize,
        sink: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error> {
        fields.push((slot, FieldValue::Ref(sink.scalars(1, align, &self.0)?)));
        Ok(())
    }
}

/// A vector of tables: borrowed and read row by row, or an owned list, like [`Cow`].
#[derive(Clone)]
pub struct Rows<'a, T> {
    repr: RowsRepr<'a, T>,
}

#[derive(Clone)]
enum RowsRepr<'a, T> {
    Wire(wire::Tables<'a>),
    Owned(Vec<T>),
}

impl<T> Default for Rows<'_, T> {
    fn default() -> Self {
        Rows { repr: RowsRepr::Owned(Vec::new()) }
    }
}

impl<T> From<Vec<T>> for Rows<'_, T> {
    fn from(list: Vec<T>) -> Self {
        Rows { repr: RowsRepr::Owned(list) }
    }
}

impl<'a, T: Table<'a> + Clone> Rows<'a, T> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.repr {
            RowsRepr::Wire(tables) => tables.len(),
            RowsRepr::Owned(list) => list.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `index`; an error also when there is no such row.
    pub fn get(&self, index: usize) -> wire::Result<T> {
        match &self.repr {
            RowsRepr::Wire(tables) => T::decode(tables.get(index)?),
            RowsRepr::Owned(list) => match list.get(index) {
                Some(row) => Ok(row.clone()),
                None => Err(ReadError { kind: ReadErrorKind::OutOfBounds, offset: 0 }),
            },
        }
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = wire::Result<T>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The tables of the file, without building rows; empty for an owned list.
    pub fn tables(&self) -> wire::Tables<'a> {
        match &self.repr {
            RowsRepr::Wire(tables) => *tables,
            RowsRepr::Owned(_) => wire::Tables::empty(),
        }
    }

    /// The rows as an owned list, for editing.
    pub fn to_mut(&mut self) -> wire::Result<&mut Vec<T>> {
        if let RowsRepr::Wire(_) = self.repr {
            self.repr = RowsRepr::Owned(self.iter().collect::<wire::Result<_>>()?);
        }
        match &mut self.repr {
            RowsRepr::Owned(list) => Ok(list),
            // Replaced just above.
            RowsRepr::Wire(_) => unreachable!(),
        }
    }
}

impl<'a, T: Table<'a> + Clone + PartialEq> PartialEq for Rows<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a == b)
    }
}

impl<'a, T: Table<'a> + Clone + fmt::Debug> fmt::Debug for Rows<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Table<'a> + Clone + Serialize> Serialize for Rows<'a, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{Error as _, SerializeSeq};
        let mut seq = serializer.serialize_seq(Some(self.len()))?;
        for row in self.iter() {
            seq.serialize_element(&row.map_err(S::Error::custom)?)?;
        }
        seq.end()
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Rows<'_, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl<'a, T: Table<'a> + Clone> Optional<'a> for Rows<'a, T> {
    const KIND: FieldKind = FieldKind::Rows(T::DESC);

    #[inline]
    fn read(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<Self>> {
        Ok(table.tables(slot)?.map(|tables| Rows { repr: RowsRepr::Wire(tables) }))
    }

    fn check(table: &wire::Table<'a>, slot: u16, _: usize, checker: &mut Checker, path: &Path<'_>) {
        let tables = match table.tables(slot) {
            Ok(Some(tables)) => tables,
            Ok(None) => return,
            Err(error) => return checker.unreadable(path, error),
        };
        checker.vector_at(table, slot, tables.offset(), tables.len().saturating_mul(4), 4, path);
        if checker.leaves_out(T::DESC) {
            return;
        }
        for index in 0..tables.len() {
            if checker.is_spent() {
                return;
            }
            let path = path.index(index);
            match tables.get(index) {
                Ok(row) => checker.table::<T>(row, &path),
                Err(error) => checker.unreadable(&path, error),
            }
        }
    }

    fn write<S: Sink>(
        &self,
        slot: u16,
        _: usize,
        sink: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error> {
        let mut refs = Vec::with_capacity(self.len());
        for row in self.iter() {
            refs.push(row?.encode(sink)?);
        }
        fields.push((slot, FieldValue::Ref(sink.refs(&refs)?)));
        Ok(())
    }
}

/// Reads a union: its tag at `slot`, its value at the next. A tag without a value reads as the variant's empty table.
pub fn read_union<'a, U: Union<'a>>(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<U>> {
    match table.union(slot)? {
        Some((tag, value)) => U::decode(tag, value.unwrap_or(wire::Table::empty())).map(Some),
        None => Ok(None),
    }
}

/// Appends the two fields of a union.
pub fn push_union<R>(slot: u16, tag: u8, value: R, fields: &mut Vec<(u16, FieldValue<R>)>) {
    let mut bytes = [0; 8];
    tag.put_le(&mut bytes);
    fields.push((slot, FieldValue::Scalar(bytes, 1)));
    fields.push((slot.saturating_add(1), FieldValue::Ref(value)));
}

/// The default of a slot as [`Slot::or`] wants it. A `const fn` cannot call the trait, so numbers go through their
/// widest form.
pub const fn le_bytes(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}
