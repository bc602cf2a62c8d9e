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
//! | `Option<Blobs>` | vector of strings that hold any bytes, read lazily |
//! | `Option<Structs<T>>` | vector of structs |
//! | `Option<Row>` | sub-table |
//! | `Option<Rows<Row>>` | vector of tables, read lazily |
//! | `Option<Union>` | union: this slot holds the tag, the next the value |
//!
//! Absent is not empty: every `Option` says whether the slot was there.

mod blob;
mod blobs;
mod rows;
mod scalars;
mod structs;
mod text;
mod walk;

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use crate::check::{Checker, Path};
use crate::wire::{self, ReadError, ReadErrorKind};

pub use blob::Blob;
pub use blobs::Blobs;
pub use edgepack_format_derive::{Table, Union};
pub use rows::Rows;
pub use scalars::{Scalars, ScalarsIter};
pub use structs::{Struct, StructDesc, Structs};
pub use text::Text;

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
    /// Kind of the number.
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

    /// Reads the variant of this tag. An unknown tag is retained as such.
    fn decode(tag: u8, table: wire::Table<'a>) -> wire::Result<Self>;

    /// As [`Table::check`].
    fn check(tag: u8, table: wire::Table<'a>, checker: &mut Checker, path: &Path<'_>);

    /// The tag of this variant.
    fn tag(&self) -> u8;

    /// Writes the variant's table.
    fn encode<S: Sink>(&self, sink: &mut S) -> Result<S::Ref, S::Error>;
}

/// Receiver of written rows.
///
/// Children are written before their parents, so a sink can build the buffer from the back. Same calls, same bytes.
pub trait Sink {
    /// Error of a write.
    type Error: From<ReadError>;
    /// A finished object that a parent can point at.
    type Ref: Copy;

    /// Writes a string.
    fn string(&mut self, text: &str) -> Result<Self::Ref, Self::Error>;
    /// Writes a string of any bytes, its first byte aligned to `align`.
    fn byte_string(&mut self, align: usize, bytes: &[u8]) -> Result<Self::Ref, Self::Error>;
    /// Writes a vector of numbers of `size` bytes each, already little-endian, its first element aligned to `align`.
    fn scalars(&mut self, size: usize, align: usize, bytes: &[u8]) -> Result<Self::Ref, Self::Error>;
    /// Writes a vector of offsets.
    fn refs(&mut self, refs: &[Self::Ref]) -> Result<Self::Ref, Self::Error>;
    /// Writes a table with these fields, in any order; absent slots are not listed.
    fn table(&mut self, fields: &[(u16, FieldValue<Self::Ref>)]) -> Result<Self::Ref, Self::Error>;

    /// An empty list for the fields of a table. A sink that keeps the lists it is given back has one at hand.
    fn field_list(&mut self) -> Vec<(u16, FieldValue<Self::Ref>)> {
        Vec::new()
    }
    /// Takes back a list that is no longer needed.
    fn take_back(&mut self, list: Vec<(u16, FieldValue<Self::Ref>)>) {
        drop(list);
    }
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
    /// Kind of the field's content.
    pub kind: FieldKind,
    /// Alignment asked of the first element of a vector, beyond that of its element type.
    pub align: usize,
    /// Default of an inline number as little-endian bytes.
    pub default: [u8; 8],
}

/// Kind of a field's content.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum FieldKind {
    Scalar(ScalarKind),
    Text,
    Scalars(ScalarKind),
    Blob,
    Blobs,
    Structs(&'static StructDesc),
    Table(&'static TableDesc),
    Rows(&'static TableDesc),
    Union(&'static UnionDesc),
}

/// Declaration of a field: its slot, its default, its alignment. The derive makes one per field.
#[derive(Clone, Copy)]
pub struct Slot<F> {
    /// Id of the field; for a union that of the tag, and the value has the next.
    pub index: u16,
    /// The default of an inline number, in little-endian bytes.
    pub default: [u8; 8],
    /// See [`FieldDesc::align`].
    pub align: usize,
    /// Alignment of the data that writers keep to and readers do not ask for. Such data is written last and so is
    /// right behind its table.
    pub page: usize,
    field: PhantomData<fn() -> F>,
}

impl<F> Slot<F> {
    /// A slot whose numbers default to zero.
    pub const fn new(index: u16) -> Self {
        Slot { index, default: [0; 8], align: 1, page: 1, field: PhantomData }
    }

    /// The same with a default.
    pub const fn or(self, default: [u8; 8]) -> Self {
        Slot { default, ..self }
    }

    /// The same with an alignment.
    pub const fn aligned(self, align: usize) -> Self {
        Slot { align, ..self }
    }

    /// The same with data that writers align.
    pub const fn paged(self, page: usize) -> Self {
        Slot { page, ..self }
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
    /// Kind of the field's content.
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

/// Value that may be absent: a type inside the `Option` of a field.
pub trait Optional<'a>: Sized {
    /// Kind of the field's content.
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
            Some(value) => value.write(slot.index, slot.align.max(slot.page), sink, fields),
            None => Ok(()),
        }
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
