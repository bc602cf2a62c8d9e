//! Vectors of structs: numbers side by side, without vtables.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{FieldKind, FieldValue, Optional, ScalarKind, Sink};
use crate::check::{Checker, Path};
use crate::wire;

/// A struct of a schema.
pub trait Struct: Copy + PartialEq + fmt::Debug + 'static {
    /// Its name and fields.
    const DESC: &'static StructDesc;
    /// From exactly [`StructDesc::size`] bytes.
    fn from_le(bytes: &[u8]) -> Option<Self>;
    /// Appends exactly [`StructDesc::size`] bytes.
    fn put_le(self, out: &mut Vec<u8>);
}

/// A struct's name and fields.
#[derive(Debug)]
pub struct StructDesc {
    /// Name in the schema.
    pub name: &'static str,
    /// Bytes of one.
    pub size: usize,
    /// Alignment of one struct.
    pub align: usize,
    /// Names and kinds, in order, without padding between them.
    pub fields: &'static [(&'static str, ScalarKind)],
}

/// A vector of structs: little-endian bytes of a file, or owned.
#[derive(Clone)]
pub struct Structs<'a, T> {
    repr: StructsRepr<'a, T>,
}

#[derive(Clone)]
enum StructsRepr<'a, T> {
    /// A whole number of elements.
    Wire(&'a [u8]),
    Owned(Vec<T>),
}

impl<T: Struct> Structs<'_, T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.repr {
            StructsRepr::Wire(bytes) => bytes.len().checked_div(T::DESC.size).unwrap_or(0),
            StructsRepr::Owned(list) => list.len(),
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `index`.
    pub fn get(&self, index: usize) -> Option<T> {
        match &self.repr {
            StructsRepr::Wire(bytes) => {
                let start = index.checked_mul(T::DESC.size)?;
                T::from_le(bytes.get(start..)?.get(..T::DESC.size)?)
            }
            StructsRepr::Owned(list) => list.get(index).copied(),
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The same, independent of the file.
    pub fn into_owned(self) -> Structs<'static, T> {
        self.iter().collect::<Vec<_>>().into()
    }

    fn to_le_bytes(&self) -> Cow<'_, [u8]> {
        match &self.repr {
            StructsRepr::Wire(bytes) => Cow::Borrowed(bytes),
            StructsRepr::Owned(list) => {
                let mut out = Vec::new();
                list.iter().for_each(|value| value.put_le(&mut out));
                Cow::Owned(out)
            }
        }
    }
}

impl<T> Default for Structs<'_, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Structs<'_, T> {
    fn from(list: Vec<T>) -> Self {
        Structs { repr: StructsRepr::Owned(list) }
    }
}

impl<T: Struct> PartialEq for Structs<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Struct> fmt::Debug for Structs<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Struct + Serialize> Serialize for Structs<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Structs<'_, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl<'a, T: Struct> Optional<'a> for Structs<'a, T> {
    const KIND: FieldKind = FieldKind::Structs(T::DESC);

    fn read(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<Self>> {
        let vector = table.vector(slot, T::DESC.size)?;
        Ok(vector.map(|vector| Structs { repr: StructsRepr::Wire(vector.bytes()) }))
    }

    fn check(table: &wire::Table<'a>, slot: u16, align: usize, checker: &mut Checker, path: &Path<'_>) {
        match table.vector(slot, T::DESC.size) {
            Ok(Some(vector)) => checker.vector(table, slot, &vector, align.max(T::DESC.align), path),
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
        let written = sink.scalars(T::DESC.size, align.max(T::DESC.align), &self.to_le_bytes())?;
        fields.push((slot, FieldValue::Ref(written)));
        Ok(())
    }
}
