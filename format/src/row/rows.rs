//! Vectors of tables, read row by row.

use alloc::vec::Vec;
use core::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{FieldKind, FieldValue, Optional, Sink, Table};
use crate::check::{Checker, Path};
use crate::wire::{self, ReadError, ReadErrorKind};

/// A vector of tables: borrowed and read row by row, or an owned list, like a `Cow`.
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

    /// Returns whether there are no rows.
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
        if checker.leaves_out(T::DESC.name) {
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
        match &self.repr {
            RowsRepr::Wire(tables) => {
                for index in 0..tables.len() {
                    refs.push(T::decode(tables.get(index)?)?.encode(sink)?);
                }
            }
            RowsRepr::Owned(list) => {
                for row in list {
                    refs.push(row.encode(sink)?);
                }
            }
        }
        fields.push((slot, FieldValue::Ref(sink.refs(&refs)?)));
        Ok(())
    }
}
