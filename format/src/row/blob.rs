//! Bytes that are data, not numbers.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{FieldKind, FieldValue, Optional, Sink};
use crate::check::{Checker, Path};
use crate::wire;

/// A vector of bytes that is data: borrowed from the file, or owned. Base64 in JSON.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Blob<'a>(pub Cow<'a, [u8]>);

impl Blob<'_> {
    /// Returns the bytes of the blob.
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
