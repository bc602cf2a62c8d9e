//! The one place that opens a file: detect its kind, locate the head that its rules apply to, read that head.
//!
//! Invariant: nothing else locates a head. A head never reaches past the file, and detecting reads [`DETECT_LEN`] bytes,
//! unless the file may be an Edge TPU package without its identifier.

use edgepack_format::FileKind;
use edgepack_format::darwinn::PackageRef;
use edgepack_format::detect::{DETECT_LEN, detect};
use edgepack_format::extent::FileExtent;
use edgepack_format::header::HEAD_LEN;
use edgepack_format::limits::Limits;
use edgepack_format::{ptd, pte};

use crate::aligned::AlignedBytes;
use crate::error::Error;
use crate::read::{read, room_for};
use crate::source::Source;

/// The head of a file: its flatbuffer with the header, without segments; of a kind without segments, the whole file.
///
/// ```
/// # use edgepack_format::{FileKind, limits::Limits};
/// # use edgepack_loader::{FileHead, FileSource};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/mlp_portable.pte");
/// let source = FileSource::open(path)?;
/// let head = FileHead::detect(&source, &Limits::DEFAULT)?;
/// assert_eq!(head.kind, FileKind::Program);
/// assert_eq!(head.read(&source, &Limits::DEFAULT)?.len() as u64, head.len);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileHead {
    /// The kind of the file.
    pub kind: FileKind,
    /// Length of the file.
    pub extent: FileExtent,
    /// Length of the head, which starts the file.
    pub len: u64,
}

impl FileHead {
    /// Detects the kind of a file by its content and locates its head. Content of no known kind is
    /// [`FileKind::Unknown`], not an error.
    pub fn detect(source: &dyn Source, limits: &Limits) -> Result<FileHead, Error> {
        let mut first = [0; DETECT_LEN];
        let first = start(source, &mut first)?;
        let kind = match detect(first) {
            FileKind::Unknown if is_unidentified_package(source, first, limits)? => FileKind::DarwinnPackage,
            found => found,
        };
        Ok(FileHead::of(kind, first, FileExtent { len: source.len() }))
    }

    /// Locates the head of a file that is taken for one of this kind, whatever it holds.
    pub fn of_source(kind: FileKind, source: &dyn Source) -> Result<FileHead, Error> {
        let mut first = [0; HEAD_LEN];
        let first = start(source, &mut first)?;
        Ok(FileHead::of(kind, first, FileExtent { len: source.len() }))
    }

    /// Locates the head of a file of this kind by its first bytes; [`HEAD_LEN`] of them are enough.
    pub fn of(kind: FileKind, first: &[u8], extent: FileExtent) -> FileHead {
        let len = match kind {
            FileKind::Program => pte::program_len(first, extent),
            FileKind::Data | FileKind::FlatData => ptd::data_len(first, extent),
            _ => extent.len,
        };
        FileHead { kind, extent, len }
    }

    /// Reads the head into memory, 64-byte aligned. One of more bytes than the limits allow for a segment, or than a
    /// flatbuffer can have, is refused before memory is reserved.
    pub fn read(&self, source: &dyn Source, limits: &Limits) -> Result<AlignedBytes, Error> {
        let what = || "the flatbuffer".to_owned();
        let limit = limits.segment_bytes.min(u64::from(u32::MAX));
        let mut head = match usize::try_from(self.len) {
            Ok(len) if self.len <= limit => room_for(len, what)?,
            _ => return Err(Error::Limit { what: what(), bytes: self.len, limit }),
        };
        read(source, 0, head.as_mut_slice())?;
        Ok(head)
    }
}

/// The first bytes of a source: as many as there is room for, or all it has.
fn start<'b>(source: &dyn Source, room: &'b mut [u8]) -> Result<&'b [u8], Error> {
    let len = usize::try_from(source.len()).map_or(room.len(), |len| len.min(room.len()));
    let first = room.split_at_mut(len).0;
    read(source, 0, first)?;
    Ok(first)
}

/// The driver takes Edge TPU packages without their identifier; such a file is recognised by its nested executables.
fn is_unidentified_package(source: &dyn Source, first: &[u8], limits: &Limits) -> Result<bool, Error> {
    if first.get(4..8) != Some(&[0; 4]) || source.len() > limits.segment_bytes {
        return Ok(false);
    }
    let what = || "the file".to_owned();
    let Ok(len) = usize::try_from(source.len()) else { return Ok(false) };
    let mut whole = room_for(len, what)?;
    read(source, 0, whole.as_mut_slice())?;
    Ok(PackageRef::is_unidentified(&whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_source::MemorySource;

    fn detected(bytes: &[u8]) -> FileHead {
        FileHead::detect(&MemorySource::new(bytes), &Limits::DEFAULT).unwrap()
    }

    #[test]
    fn short_and_unknown_files_have_a_head() {
        for bytes in [&[][..], &[1], b"\x04\0\0\0\0\0\0\0\0\0\0\0"] {
            let want = FileHead { kind: FileKind::Unknown, extent: FileExtent::of(bytes), len: bytes.len() as u64 };
            assert_eq!(detected(bytes), want);
        }
    }

    /// A header that says that there is nothing is read, so that verifying finds that out.
    #[test]
    fn a_head_is_never_shorter_than_its_header() {
        for size in [0, 7, 63] {
            let mut bytes = vec![0; 100];
            bytes.splice(4..12, *b"ET12eh00");
            bytes[12] = 24;
            bytes[16] = size;
            assert_eq!(detected(&bytes).len, HEAD_LEN as u64);
            let error = crate::Program::from_bytes(bytes).err().unwrap().to_string();
            assert!(error.contains("PTE-H04"), "{error}");
        }
    }

    #[test]
    fn a_program_without_header_is_all_head() {
        let mut bytes = vec![0; 100];
        bytes.splice(4..8, *b"ET12");
        let head = detected(&bytes);
        assert_eq!((head.kind, head.len), (FileKind::Program, 100));
        let mut limits = Limits::DEFAULT;
        limits.segment_bytes = 99;
        let source = MemorySource::new(bytes);
        assert!(matches!(head.read(&source, &limits), Err(Error::Limit { bytes: 100, limit: 99, .. })));
        assert_eq!(head.read(&source, &Limits::DEFAULT).unwrap().len(), 100);
    }
}
