//! Layout of the archive around a package: which members in which order, with which headers, and zeros at the end. With it
//! an archive is written as it was read, to the byte.
//!
//! Headers are kept as their fields, which are texts in tar: what people read is what is written.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::room;

/// Bytes of a block: headers are one, contents are padded to whole ones.
const BLOCK: usize = 512;

/// Most zeros behind the last entry: far beyond what pads archives.
const MOST_ZEROS: u64 = 1 << 20;

/// Layout of an archive.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ArchiveLayout {
    /// Entries, in order.
    pub entries: Vec<ArchiveEntry>,
    /// Bytes of zeros behind the last entry.
    pub zeros: u64,
    /// Files whose text is not what the writer makes of their content, by path: blanks, and the order of keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
}

/// Entry of an archive: a header, and what follows it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ArchiveEntry {
    /// Path of the file that it is, in its shortest form; absent for folders and for headers that only extend the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Content of a header that extends the next: records of pax, a long name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub records: String,
    /// Fields of the header, by name; those that are empty are left out.
    pub header: BTreeMap<String, String>,
}

/// Fields of a header: their names and lengths. Together they are a block.
const FIELDS: [(&str, usize); 15] = [
    ("name", 100),
    ("mode", 8),
    ("uid", 8),
    ("gid", 8),
    (SIZE, 12),
    ("mtime", 12),
    (CHECKSUM, 8),
    ("kind", 1),
    ("link", 100),
    ("magic", 8),
    ("user", 32),
    ("group", 32),
    ("major", 8),
    ("minor", 8),
    ("prefix", 167),
];
const SIZE: &str = "size";
const CHECKSUM: &str = "checksum";

impl ArchiveLayout {
    /// Reads the layout of an archive whose files are where `files` says. The reason that it cannot be kept, if
    /// something of it would be lost.
    pub fn read<'p>(
        bytes: &[u8],
        files: impl Iterator<Item = (&'p str, Range<usize>)>,
    ) -> Result<ArchiveLayout, String> {
        let paths: BTreeMap<usize, &str> = room::map(files.map(|(path, range)| (range.start, path)));
        let mut layout = ArchiveLayout::default();
        let mut rest = bytes;
        let mut at = 0usize;
        while let Some((block, behind)) =
            rest.split_at_checked(BLOCK).filter(|(block, _)| block.iter().any(|b| *b != 0))
        {
            let place = || format!("the header at {at:#x}");
            let header = fields(block).ok_or_else(|| format!("{} has fields that are no texts", place()))?;
            let size = header.get(SIZE).map_or(Some(0), |text| octal(text));
            let size = size.ok_or_else(|| format!("{} has a size that is not octal", place()))?;
            let start = at.saturating_add(BLOCK);
            let padded = size.checked_next_multiple_of(BLOCK).filter(|padded| *padded <= behind.len());
            let padded = padded.ok_or_else(|| format!("{} is longer than the archive", place()))?;
            let (content, padding) = behind.split_at(padded).0.split_at(size);
            if padding.iter().any(|byte| *byte != 0) {
                return Err(format!("bytes behind the content of {} are not zeros", place()));
            }
            let path = paths.get(&start).map(|path| (*path).to_owned());
            let records = match path {
                Some(_) => "",
                None => {
                    core::str::from_utf8(content).map_err(|_| format!("{} has content that is no text", place()))?
                }
            };
            layout.entries.push(ArchiveEntry { path, records: records.to_owned(), header });
            rest = behind.split_at(padded).1;
            at = start.saturating_add(padded);
        }
        if rest.iter().any(|byte| *byte != 0) {
            return Err(format!("what follows the end at {at:#x} is not all zeros"));
        }
        layout.zeros = rest.len() as u64;
        if layout.zeros > MOST_ZEROS {
            return Err(format!("{} zeros follow the end, at most {MOST_ZEROS} are kept", layout.zeros));
        }
        let listed = room::set(layout.entries.iter().filter_map(|entry| entry.path.as_deref()));
        match paths.values().find(|path| !listed.contains(**path)) {
            Some(path) => Err(format!("{path} has no header of its own")),
            None => Ok(layout),
        }
    }

    /// Writes an archive of these files. A file of another length than the archive had gets a header that says so. The
    /// reason that the layout does not fit, if it has other files.
    pub fn write(&self, files: &BTreeMap<&str, &[u8]>) -> Result<Vec<u8>, String> {
        let listed = room::set(self.entries.iter().filter_map(|entry| entry.path.as_deref()));
        if let Some(path) = files.keys().find(|path| !listed.contains(**path)) {
            return Err(format!("{path} is not in the recorded archive"));
        }
        let mut out = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let content = match &entry.path {
                Some(path) => {
                    files.get(path.as_str()).ok_or_else(|| format!("{path} is not in the package any more"))?
                }
                None => entry.records.as_bytes(),
            };
            let refused = || format!("entry {index} has a field that does not fit its header");
            let block = entry.block(content.len()).ok_or_else(refused)?;
            out.extend(block);
            out.extend_from_slice(content);
            out.resize(out.len().checked_next_multiple_of(BLOCK).ok_or_else(refused)?, 0);
        }
        let zeros = usize::try_from(self.zeros.min(MOST_ZEROS)).unwrap_or_default();
        out.resize(out.len().saturating_add(zeros), 0);
        Ok(out)
    }
}

/// Returns the fields of a header; `None` if one is not a text.
fn fields(block: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut fields = BTreeMap::new();
    let mut rest = block;
    for (name, len) in FIELDS {
        let (field, behind) = rest.split_at_checked(len)?;
        rest = behind;
        let end = field.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
        let text = core::str::from_utf8(field.get(..end)?).ok()?;
        if !text.is_empty() {
            fields.insert(name.to_owned(), text.to_owned());
        }
    }
    Some(fields)
}

/// Reads an octal number as headers have them: blanks and zeros around it.
fn octal(text: &str) -> Option<usize> {
    match text.trim_matches([' ', '\0']) {
        "" => Some(0),
        digits => usize::from_str_radix(digits, 8).ok(),
    }
}

impl ArchiveEntry {
    /// The header of content of this length; `None` if a field does not fit.
    fn block(&self, len: usize) -> Option<Vec<u8>> {
        let recorded = self.header.get(SIZE).map_or(Some(0), |text| octal(text))?;
        // A record of pax may say the size, too.
        let is_known = recorded == len;
        let mut block = Vec::new();
        for (name, width) in FIELDS {
            let size = format!("{len:011o}\0");
            let text = match name {
                SIZE if !is_known => size.as_str(),
                CHECKSUM if !is_known => "        ",
                name => self.header.get(name).map_or("", String::as_str),
            };
            let end = block.len().checked_add(width)?;
            block.extend_from_slice(text.as_bytes());
            if block.len() > end {
                return None;
            }
            block.resize(end, 0);
        }
        if !is_known {
            let sum = block.iter().fold(0u32, |sum, byte| sum.saturating_add(u32::from(*byte)));
            let start = FIELDS.iter().take_while(|(name, _)| *name != CHECKSUM);
            let start = start.fold(0usize, |sum, (_, width)| sum.saturating_add(*width));
            let field = block.get_mut(start..)?.get_mut(..8)?;
            field.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn fields_fill_a_block() {
        assert_eq!(FIELDS.iter().map(|(_, len)| len).sum::<usize>(), BLOCK);
    }

    /// Archive of one file with a header of pax in front, as exporters write it.
    fn archive(content: &[u8]) -> Vec<u8> {
        let header = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
        };
        let records = "30 mtime=1637.25\n";
        let pax = [("name", "././@PaxHeader"), ("mode", "0000000"), ("kind", "x"), ("magic", "ustar\u{0}00")];
        let file = [("name", "./a/b"), ("mode", "0000644"), ("kind", "0"), ("magic", "ustar\u{0}00"), ("user", "root")];
        let layout = ArchiveLayout {
            entries: vec![
                ArchiveEntry { path: None, records: records.into(), header: header(&pax) },
                ArchiveEntry { path: Some("a/b".into()), records: String::new(), header: header(&file) },
            ],
            zeros: 1024,
            texts: BTreeMap::new(),
        };
        layout.write(&BTreeMap::from([("a/b", content)])).unwrap()
    }

    #[test]
    fn an_archive_is_written_as_it_was_read() {
        let bytes = archive(b"content");
        assert_eq!(bytes.len(), 4 * BLOCK + 1024);
        let layout = ArchiveLayout::read(&bytes, [("a/b", 1536..1543)].into_iter()).unwrap();
        assert_eq!(layout.write(&BTreeMap::from([("a/b", &b"content"[..])])).unwrap(), bytes);
        // A longer file has another size and checksum in its header.
        let longer = layout.write(&BTreeMap::from([("a/b", &[7; 600][..])])).unwrap();
        assert_eq!(longer, archive(&[7; 600]));
        assert_eq!(longer.len(), 5 * BLOCK + 1024);
    }

    #[test]
    fn what_cannot_be_kept_is_named() {
        let read = |bytes: &[u8]| ArchiveLayout::read(bytes, [("a/b", 1536..1543)].into_iter()).unwrap_err();
        let changed = |at: usize, byte: u8| {
            let mut bytes = archive(b"content");
            bytes[at] = byte;
            bytes
        };
        assert_eq!(read(&changed(1600, 1)), "bytes behind the content of the header at 0x400 are not zeros");
        assert_eq!(read(&changed(2048, 0)[..2047]), "the header at 0x400 is longer than the archive");
        assert_eq!(read(&changed(3000, 9)), "what follows the end at 0x800 is not all zeros");
        assert_eq!(read(&changed(1024, 0xff)), "the header at 0x400 has fields that are no texts");
        assert_eq!(read(&changed(1024 + 124, b'9')), "the header at 0x400 has a size that is not octal");
        let layout = ArchiveLayout::read(&archive(b"content"), [("a/b", 1536..1543)].into_iter()).unwrap();
        let none = layout.write(&BTreeMap::new()).unwrap_err();
        assert_eq!(none, "a/b is not in the package any more");
        let more = layout.write(&BTreeMap::from([("a/b", &b""[..]), ("c", b"")])).unwrap_err();
        assert_eq!(more, "c is not in the recorded archive");
    }
}
