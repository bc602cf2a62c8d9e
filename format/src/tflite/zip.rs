//! A ZIP archive behind the flatbuffer: where it is, and what is in it. Its offsets count from the start of the file.

use alloc::string::String;
use alloc::vec::Vec;

use crate::room::{self, NoRoom};

/// Bytes of the end record without its comment.
const END_LEN: usize = 22;
/// Bytes of a directory entry without its texts.
const ENTRY_LEN: usize = 46;

/// An archive at the end of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppendedZip {
    /// Start of the first member.
    pub start: usize,
    /// Start of the directory.
    pub directory: usize,
    /// Start of the end record.
    pub end: usize,
    /// Its members, by their place in the directory.
    pub members: Vec<ZipMember>,
}

/// Reason an archive cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZipError {
    /// The end record at this place does not lead to a directory.
    Directory(usize),
    /// There is no memory for the list of its members.
    Memory(NoRoom),
}

impl From<NoRoom> for ZipError {
    fn from(error: NoRoom) -> Self {
        ZipError::Memory(error)
    }
}

/// A member of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZipMember {
    /// Path in the archive.
    pub name: String,
    /// Its bytes when unpacked.
    pub size: u32,
    /// Start of the member's local header.
    pub header: usize,
    /// Start of the member's entry in the directory.
    pub entry: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..)?.first_chunk().map(|bytes| usize::from(u16::from_le_bytes(*bytes)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

impl AppendedZip {
    /// The archive that ends the file, if there is an end record. An end record whose directory cannot be read is an
    /// error.
    pub fn find(bytes: &[u8]) -> Result<Option<Self>, ZipError> {
        let Some(last) = bytes.len().checked_sub(END_LEN) else { return Ok(None) };
        // The comment behind the record has at most 65535 bytes and ends the file.
        let first = last.saturating_sub(usize::from(u16::MAX));
        let is_end = |at: &usize| {
            let comment = last.saturating_sub(*at);
            bytes.get(*at..).is_some_and(|rest| rest.starts_with(b"PK\x05\x06"))
                && u16_at(bytes, at.saturating_add(20)) == Some(comment)
        };
        let Some(end) = (first..=last).rev().find(is_end) else { return Ok(None) };
        Ok(Some(Self::read(bytes, end).ok_or(ZipError::Directory(end))??))
    }

    fn read(bytes: &[u8], end: usize) -> Option<room::Result<Self>> {
        let count = u16_at(bytes, end.checked_add(10)?)?;
        let directory = usize::try_from(u32_at(bytes, end.checked_add(16)?)?).ok()?;
        let mut members = Vec::new();
        let mut at = directory;
        for _ in 0..count {
            let entry = bytes.get(at..end)?;
            if !entry.starts_with(b"PK\x01\x02") {
                return None;
            }
            let name_len = u16_at(entry, 28)?;
            let name = entry.get(ENTRY_LEN..ENTRY_LEN.checked_add(name_len)?)?;
            let header = usize::try_from(u32_at(entry, 42)?).ok()?;
            if !bytes.get(header..directory)?.starts_with(b"PK\x03\x04") {
                return None;
            }
            let name = String::from_utf8_lossy(name).into_owned();
            let member = ZipMember { name, size: u32_at(entry, 24)?, header, entry: at };
            if let Err(error) = room::push(&mut members, member) {
                return Some(Err(error));
            }
            let texts = name_len.checked_add(u16_at(entry, 30)?)?.checked_add(u16_at(entry, 32)?)?;
            at = at.checked_add(ENTRY_LEN)?.checked_add(texts)?;
        }
        let start = members.iter().map(|member| member.header).min().unwrap_or(directory);
        (at <= end).then_some(Ok(AppendedZip { start, directory, end, members }))
    }
}
