//! Constants of payloads under construction: named data by digest, a region behind the flatbuffer, or inside of it.

use std::borrow::Cow;

use edgepack_format::row::Blob;
use edgepack_format::xnnpack::{Buffer, ConstantDataOffset, Header, NO_OFFSET};
use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::content::hex;
use crate::envelope::align_up;

/// The place of constants, and with it the container.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Storage {
    /// To named data, under their SHA-256: as since release 0.6.
    #[default]
    Named,
    /// Behind the flatbuffer: releases 0.3 to 0.5.
    Region,
    /// Into the flatbuffer, without a header: before 0.3.
    Bare,
}

/// A constant of a payload under construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConstantId(pub(super) u32);

impl ConstantId {
    /// Its index in the payload.
    pub fn index(self) -> u32 {
        self.0
    }
}

/// A constant, as far as it is known.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// Its bytes; they may be scales.
    Bytes { bytes: Vec<u8>, is_scales: bool },
    /// Its key and length: the bytes are somewhere else.
    Key { key: String, size: u64 },
}

/// The key of some bytes among named data.
pub fn key_of(bytes: &[u8], is_scales: bool) -> String {
    let digest = hex(&Sha256::digest(bytes));
    if is_scales { format!("scale_{digest}") } else { digest }
}

/// Named data that a payload asks for.
pub type NamedBytes = Vec<(String, Vec<u8>)>;

/// The rows of the list, and what goes to named data.
pub(super) fn named(entries: Vec<Entry>) -> (Vec<ConstantDataOffset<'static>>, NamedBytes) {
    let row = |key: String, size| ConstantDataOffset { offset: NO_OFFSET, size, named_key: Some(key.into()) };
    let mut rows = vec![ConstantDataOffset { named_key: Some("".into()), ..ConstantDataOffset::default() }];
    let mut data: NamedBytes = Vec::new();
    for entry in entries {
        match entry {
            Entry::Key { key, size } => rows.push(row(key, size)),
            Entry::Bytes { bytes, is_scales } => {
                let key = key_of(&bytes, is_scales);
                rows.push(row(key.clone(), bytes.len() as u64));
                if !data.iter().any(|(have, _)| *have == key) {
                    data.push((key, bytes));
                }
            }
        }
    }
    (rows, data)
}

/// The rows of the list, and the region.
pub(super) fn region(entries: Vec<Entry>) -> Result<(Vec<ConstantDataOffset<'static>>, Vec<u8>), Error> {
    let mut rows = vec![ConstantDataOffset::default()];
    let mut region = Vec::new();
    for entry in entries {
        rows.push(match entry {
            Entry::Key { key, size } => ConstantDataOffset { offset: NO_OFFSET, size, named_key: Some(key.into()) },
            Entry::Bytes { bytes, .. } => {
                let row = ConstantDataOffset { offset: region.len() as u64, size: bytes.len() as u64, named_key: None };
                region.extend_from_slice(&bytes);
                let end = align_up(region.len() as u64, Header::ALIGNMENT as usize)?;
                region.resize(usize::try_from(end).map_err(|_| Error::Overflow)?, 0);
                row
            }
        });
    }
    Ok((rows, region))
}

/// The rows of the list inside the flatbuffer; the first constant whose bytes are not known is the error.
pub(super) fn buffers(entries: Vec<Entry>) -> Result<Vec<Buffer<'static>>, String> {
    let buffer = |bytes: Vec<u8>| Buffer { storage: Some(Blob(Cow::Owned(bytes))) };
    let rest = entries.into_iter().map(|entry| match entry {
        Entry::Bytes { bytes, .. } => Ok(buffer(bytes)),
        Entry::Key { key, .. } => Err(key),
    });
    std::iter::once(Ok(buffer(Vec::new()))).chain(rest).collect()
}
