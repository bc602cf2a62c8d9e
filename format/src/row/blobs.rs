//! Vectors of strings that hold any bytes.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Blob, FieldKind, FieldValue, Optional, Sink};
use crate::check::{Checker, Path};
use crate::wire::{self, ReadError, ReadErrorKind};

/// A vector of strings by the schema, of bytes by their content: borrowed from the file, or owned. Base64 in JSON.
#[derive(Clone)]
pub struct Blobs<'a> {
    repr: BlobsRepr<'a>,
}

#[derive(Clone)]
enum BlobsRepr<'a> {
    Wire(wire::Strings<'a>),
    Owned(Vec<Vec<u8>>),
}

impl<'a> Blobs<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.repr {
            BlobsRepr::Wire(strings) => strings.len(),
            BlobsRepr::Owned(list) => list.len(),
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `index`; an error also when there is no such element.
    pub fn get(&self, index: usize) -> wire::Result<Cow<'a, [u8]>> {
        match &self.repr {
            BlobsRepr::Wire(strings) => Ok(Cow::Borrowed(strings.get(index)?.bytes())),
            BlobsRepr::Owned(list) => match list.get(index) {
                Some(bytes) => Ok(Cow::Owned(bytes.clone())),
                None => Err(ReadError { kind: ReadErrorKind::OutOfBounds, offset: 0 }),
            },
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = wire::Result<Cow<'a, [u8]>>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

impl Default for Blobs<'_> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl From<Vec<Vec<u8>>> for Blobs<'_> {
    fn from(list: Vec<Vec<u8>>) -> Self {
        Blobs { repr: BlobsRepr::Owned(list) }
    }
}

impl PartialEq for Blobs<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a == b)
    }
}

impl fmt::Debug for Blobs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|bytes| bytes.map(Blob))).finish()
    }
}

impl Serialize for Blobs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{Error as _, SerializeSeq};
        let mut seq = serializer.serialize_seq(Some(self.len()))?;
        for bytes in self.iter() {
            seq.serialize_element(&Blob(bytes.map_err(S::Error::custom)?))?;
        }
        seq.end()
    }
}

impl<'de> Deserialize<'de> for Blobs<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = Vec::<Blob<'_>>::deserialize(deserializer)?;
        Ok(list.into_iter().map(|blob| blob.0.into_owned()).collect::<Vec<_>>().into())
    }
}

impl<'a> Optional<'a> for Blobs<'a> {
    const KIND: FieldKind = FieldKind::Blobs;

    fn read(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<Self>> {
        Ok(table.strings(slot)?.map(|strings| Blobs { repr: BlobsRepr::Wire(strings) }))
    }

    fn check(table: &wire::Table<'a>, slot: u16, align: usize, checker: &mut Checker, path: &Path<'_>) {
        let strings = match table.strings(slot) {
            Ok(Some(strings)) => strings,
            Ok(None) => return,
            Err(error) => return checker.unreadable(path, error),
        };
        checker.vector_at(table, slot, strings.offset(), strings.len().saturating_mul(4), 4, path);
        for index in 0..strings.len() {
            let path = path.index(index);
            // As with blobs, locating each is all the work there is.
            match strings.get(index) {
                Ok(bytes) if !(bytes.offset() as usize).is_multiple_of(align.max(4)) => {
                    checker.misaligned(&path, bytes.offset() as usize, align.max(4));
                }
                Ok(bytes) => {
                    if let Err(error) = checker.budget().charge(1, bytes.offset()) {
                        return checker.unreadable(&path, error);
                    }
                }
                Err(error) => checker.unreadable(&path, error),
            }
        }
    }

    fn write<S: Sink>(
        &self,
        slot: u16,
        align: usize,
        sink: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error> {
        let mut refs = Vec::with_capacity(self.len());
        for bytes in self.iter() {
            refs.push(sink.byte_string(align, &bytes?)?);
        }
        fields.push((slot, FieldValue::Ref(sink.refs(&refs)?)));
        Ok(())
    }
}
