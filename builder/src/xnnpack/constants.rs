//! Constants of payloads under construction: named data by digest, a region behind the flatbuffer, or inside of it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use edgepack_format::row::Blob;
use edgepack_format::xnnpack::{Buffer, ConstantDataOffset, Header, NO_OFFSET};
use sha2::{Digest as _, Sha256};

use crate::build_error::BuildError;
use crate::content::{Data, hex};
use crate::envelope::align_up;
use crate::{Error, concurrent};

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
    Bytes { data: Data<'static>, is_scales: bool },
    /// Its key and length: the bytes are somewhere else.
    Key { key: String, size: u64 },
}

/// The key of some bytes among named data.
pub fn key_of(bytes: &[u8], is_scales: bool) -> String {
    key_of_digest(&Sha256::digest(bytes), is_scales)
}

/// The key of bytes of this SHA-256 among named data.
pub fn key_of_digest(digest: &[u8], is_scales: bool) -> String {
    let digest = hex(digest);
    if is_scales { format!("scale_{digest}") } else { digest }
}

/// Named data that a payload asks for.
pub type NamedBytes = Vec<(String, Data<'static>)>;

/// Reads constants of several lists and takes their digests: the longest first, several at a time.
pub(super) fn settle(lists: &mut [&mut [Entry]]) -> Result<(), BuildError> {
    let all = lists.iter_mut().flat_map(|list| list.iter_mut());
    let mut open: Vec<&mut Data<'static>> = all
        .filter_map(|entry| match entry {
            Entry::Bytes { data, .. } => Some(data).filter(|data| !data.is_settled()),
            Entry::Key { .. } => None,
        })
        .collect();
    open.sort_by_key(|data| std::cmp::Reverse(data.len()));
    let bytes = open.iter().fold(0, |sum: u64, data| sum.saturating_add(data.len()));
    let settled = concurrent::map(open, bytes, |data| data.settled().map(|settled| *data = settled));
    settled.into_iter().collect::<std::io::Result<()>>().map_err(BuildError::reading("a constant"))
}

/// The rows of the list, and what goes to named data.
pub(super) fn named(entries: Vec<Entry>) -> Result<(Vec<ConstantDataOffset<'static>>, NamedBytes), BuildError> {
    let row = |key: String, size| ConstantDataOffset { offset: NO_OFFSET, size, named_key: Some(key.into()) };
    let mut rows = vec![ConstantDataOffset { named_key: Some("".into()), ..ConstantDataOffset::default() }];
    let mut data: NamedBytes = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for entry in entries {
        match entry {
            Entry::Key { key, size } => rows.push(row(key, size)),
            Entry::Bytes { data: content, is_scales } => {
                let digest = content.digest().map_err(BuildError::reading("a constant"))?;
                let key = key_of_digest(&digest, is_scales);
                rows.push(row(key.clone(), content.len()));
                if known.insert(key.clone()) {
                    data.push((key, content));
                }
            }
        }
    }
    Ok((rows, data))
}

/// The rows of the list, and the region.
pub(super) fn region(entries: Vec<Entry>) -> Result<(Vec<ConstantDataOffset<'static>>, Vec<u8>), BuildError> {
    let mut rows = vec![ConstantDataOffset::default()];
    let mut region = Vec::new();
    for entry in entries {
        rows.push(match entry {
            Entry::Key { key, size } => ConstantDataOffset { offset: NO_OFFSET, size, named_key: Some(key.into()) },
            Entry::Bytes { data, .. } => {
                let row = ConstantDataOffset { offset: region.len() as u64, size: data.len(), named_key: None };
                data.write_to(&mut region).map_err(BuildError::reading("a constant"))?;
                let end = align_up(region.len() as u64, Header::ALIGNMENT as usize)?;
                region.resize(usize::try_from(end).map_err(|_| Error::Overflow)?, 0);
                row
            }
        });
    }
    Ok((rows, region))
}

/// The rows of the list inside the flatbuffer; a constant whose bytes are not known is an error.
pub(super) fn buffers(entries: Vec<Entry>) -> Result<Vec<Buffer<'static>>, BuildError> {
    let buffer = |bytes: Vec<u8>| Buffer { storage: Some(Blob(Cow::Owned(bytes))) };
    let rest = entries.into_iter().map(|entry| match entry {
        Entry::Bytes { data, .. } => Ok(buffer(data.to_vec().map_err(BuildError::reading("a constant"))?)),
        Entry::Key { key, .. } => Err(BuildError::Name {
            what: "a constant inside the flatbuffer",
            name: key,
            why: "its bytes are not known",
        }),
    });
    std::iter::once(Ok(buffer(Vec::new()))).chain(rest).collect()
}
