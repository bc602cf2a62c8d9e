//! Vectors of numbers, at any alignment.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{FieldKind, FieldValue, Optional, Scalar, ScalarKind, Sink};
use crate::check::{Checker, Path};
use crate::wire;

/// Bytes of a list that is written without allocating.
const SHORT: usize = 64;

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

impl<T> Default for Scalars<'_, T> {
    fn default() -> Self {
        Scalars { repr: ScalarsRepr::Owned(Vec::new()) }
    }
}

impl<'a, T: Scalar> Scalars<'a, T> {
    /// Numbers that are in memory as in a file, little-endian; bytes that make no whole number at the end are left out.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        let rest = bytes.len().checked_rem(T::SIZE).unwrap_or(0);
        let whole = bytes.get(..bytes.len().saturating_sub(rest)).unwrap_or_default();
        Scalars { repr: ScalarsRepr::Wire(whole) }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.repr {
            ScalarsRepr::Wire(bytes) => bytes.len().checked_div(T::SIZE).unwrap_or(0),
            ScalarsRepr::Owned(list) => list.len(),
        }
    }

    /// Returns whether there are no elements.
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

    /// All elements, little-endian; of a `bool`, whatever the file has for true is 1.
    pub fn to_le_bytes(&self) -> Cow<'_, [u8]> {
        match &self.repr {
            ScalarsRepr::Wire(bytes) if T::KIND != ScalarKind::Bool || bytes.iter().all(|byte| *byte <= 1) => {
                Cow::Borrowed(bytes)
            }
            _ => {
                let mut out = vec![0; self.len().saturating_mul(T::SIZE)];
                self.put_le(&mut out);
                Cow::Owned(out)
            }
        }
    }

    /// As many elements as `out` has room for.
    fn put_le(&self, out: &mut [u8]) {
        for (out, value) in out.chunks_exact_mut(T::SIZE).zip(self.iter()) {
            let mut bytes = [0; 8];
            value.put_le(&mut bytes);
            out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = byte);
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
        // Most lists are shapes: they need no memory of their own.
        let mut short = [0; SHORT];
        let len = self.len().saturating_mul(T::SIZE);
        let written = match (&self.repr, short.get_mut(..len)) {
            (ScalarsRepr::Owned(_), Some(bytes)) => {
                self.put_le(bytes);
                sink.scalars(T::SIZE, align.max(T::SIZE), bytes)?
            }
            _ => sink.scalars(T::SIZE, align.max(T::SIZE), &self.to_le_bytes())?,
        };
        fields.push((slot, FieldValue::Ref(written)));
        Ok(())
    }
}
