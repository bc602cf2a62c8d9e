//! The bytes of segments: known by length, written when the file is, from wherever they are.
//!
//! Nothing here holds on to more than the caller gave it, so the memory a build takes does not depend on the size of its
//! weights. What a content writes is counted against the length it declared.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use edgepack_format::room;
use sha2::{Digest as _, Sha256};

/// Bytes that can be written as often as asked.
pub trait Content: Send + Sync {
    /// Returns the number of bytes.
    fn byte_len(&self) -> u64;

    /// Writes all of them: the same ones every time, and exactly [`Content::byte_len`] of them.
    fn write_to(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Appends all of them; a content that can do without a copy in between says how.
    fn append_to(&self, out: &mut Vec<u8>) -> io::Result<()> {
        self.write_to(&mut Counted { out, left: self.byte_len() })
    }

    /// Appends `len` bytes from `start` on, which there must be. A content of which parts can be had alone says how.
    fn append_part(&self, start: u64, len: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let mut whole = Vec::new();
        let bytes = match self.as_slice() {
            Some(bytes) => bytes,
            None => {
                self.append_to(&mut whole)?;
                &whole
            }
        };
        out.extend_from_slice(part(bytes, start, len)?);
        Ok(())
    }

    /// Returns the bytes where they are in memory.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// Returns whether every writing computes the bytes, so that who needs them twice had better retain them.
    fn is_computed(&self) -> bool {
        false
    }
}

/// The SHA-256 of a content.
pub type Digest = [u8; 32];

/// A content of any kind; a clone is a reference to the same.
#[derive(Clone)]
pub struct Data<'d>(Repr<'d>);

#[derive(Clone)]
enum Repr<'d> {
    Borrowed(&'d [u8]),
    Shared(Arc<Shared<dyn Content + 'd>>),
}

/// A content and its digest, once it was taken.
struct Shared<C: ?Sized> {
    digest: OnceLock<Digest>,
    content: C,
}

impl<'d> Data<'d> {
    /// Bytes from a source of the caller's own.
    pub fn new(content: impl Content + 'd) -> Self {
        Data(Repr::Shared(Arc::new(Shared { digest: OnceLock::new(), content })))
    }

    /// `len` bytes from `offset` of a file, read when they are written. The file must not change until then.
    pub fn file(path: impl Into<PathBuf>, offset: u64, len: u64) -> Self {
        Data::new(FileRange { path: path.into(), offset, len })
    }

    /// `len` zeros.
    pub fn zeros(len: u64) -> Self {
        Data::new(Zeros(len))
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Repr::Borrowed(bytes) => bytes.len() as u64,
            Repr::Shared(shared) => shared.content.byte_len(),
        }
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the bytes. A content that yields more or fewer than it declared is an error of kind `InvalidData`.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.0 {
            Repr::Borrowed(bytes) => out.write_all(bytes),
            Repr::Shared(shared) => {
                let want = shared.content.byte_len();
                let mut counted = Counted { out, left: want };
                shared.content.write_to(&mut counted)?;
                match counted.left {
                    0 => Ok(()),
                    left => Err(miscounted(want, want.saturating_sub(left))),
                }
            }
        }
    }

    /// All bytes in memory; an error of kind `OutOfMemory` if they do not fit.
    pub fn to_vec(&self) -> io::Result<Vec<u8>> {
        let len = usize::try_from(self.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = room::with_room(len).map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))?;
        self.append_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends the bytes to others.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let (before, want) = (out.len(), self.len());
        match &self.0 {
            Repr::Borrowed(bytes) => out.extend_from_slice(bytes),
            Repr::Shared(shared) => shared.content.append_to(out)?,
        }
        match out.len().saturating_sub(before) as u64 {
            have if have == want => Ok(()),
            have => Err(miscounted(want, have)),
        }
    }

    /// Appends `len` bytes from `start` on to others.
    pub fn append_part(&self, start: u64, len: u64, out: &mut Vec<u8>) -> io::Result<()> {
        match &self.0 {
            Repr::Borrowed(bytes) => out.extend_from_slice(part(bytes, start, len)?),
            Repr::Shared(shared) => shared.content.append_part(start, len, out)?,
        }
        Ok(())
    }

    /// Returns the bytes, if they are in memory.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.0 {
            Repr::Borrowed(bytes) => Some(bytes),
            Repr::Shared(shared) => shared.content.as_slice(),
        }
    }

    /// Returns whether every writing computes the bytes.
    pub fn is_computed(&self) -> bool {
        match &self.0 {
            Repr::Borrowed(_) => false,
            Repr::Shared(shared) => shared.content.is_computed(),
        }
    }

    /// Returns whether [`Data::settled`] has nothing to add: the digest is kept already, or, of borrowed bytes, never is.
    pub(crate) fn is_settled(&self) -> bool {
        match &self.0 {
            Repr::Borrowed(_) => true,
            Repr::Shared(shared) => shared.digest.get().is_some() && !self.is_computed(),
        }
    }

    /// The same bytes with their digest taken, and in memory where every writing would compute them.
    pub(crate) fn settled(&self) -> io::Result<Self> {
        if self.is_computed() {
            let bytes = self.to_vec()?;
            let digest = OnceLock::from(Digest::from(Sha256::digest(&bytes)));
            return Ok(Data(Repr::Shared(Arc::new(Shared { digest, content: bytes }))));
        }
        self.digest()?;
        Ok(self.clone())
    }

    /// The SHA-256 of the bytes. Clones of a content that is not borrowed take it once.
    pub fn digest(&self) -> io::Result<Digest> {
        let known = match &self.0 {
            Repr::Borrowed(_) => None,
            Repr::Shared(shared) => Some(&shared.digest),
        };
        if let Some(digest) = known.and_then(OnceLock::get) {
            return Ok(*digest);
        }
        let digest = digest_of(|out| self.write_to(out))?;
        Ok(known.map_or(digest, |known| *known.get_or_init(|| digest)))
    }
}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Data({} bytes)", self.len())
    }
}

impl<'d> From<&'d [u8]> for Data<'d> {
    fn from(bytes: &'d [u8]) -> Self {
        Data(Repr::Borrowed(bytes))
    }
}

impl<'d, const N: usize> From<&'d [u8; N]> for Data<'d> {
    fn from(bytes: &'d [u8; N]) -> Self {
        Data(Repr::Borrowed(bytes))
    }
}

impl<const N: usize> From<[u8; N]> for Data<'_> {
    fn from(bytes: [u8; N]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<Vec<u8>> for Data<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Data::new(bytes)
    }
}

impl<'d> From<Cow<'d, [u8]>> for Data<'d> {
    fn from(bytes: Cow<'d, [u8]>) -> Self {
        match bytes {
            Cow::Borrowed(bytes) => bytes.into(),
            Cow::Owned(bytes) => bytes.into(),
        }
    }
}

impl Content for Vec<u8> {
    fn byte_len(&self) -> u64 {
        self.len() as u64
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self)
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(self)
    }
}

/// A part of a file.
struct FileRange {
    path: PathBuf,
    offset: u64,
    len: u64,
}

impl Content for FileRange {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let named = |error| self.named(error);
        let mut file = self.open(0, self.len).map_err(named)?;
        let mut buffer = vec![0; usize::try_from(self.len).unwrap_or(usize::MAX).min(PIECE)];
        let mut have = 0u64;
        loop {
            let count = file.read(&mut buffer).map_err(named)?;
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
            out.write_all(bytes)?;
            have = have.saturating_add(count as u64);
        }
        if have < self.len {
            return Err(named(miscounted(self.len, have)));
        }
        Ok(())
    }

    fn append_to(&self, out: &mut Vec<u8>) -> io::Result<()> {
        self.append_part(0, self.len, out)
    }

    fn append_part(&self, start: u64, len: u64, out: &mut Vec<u8>) -> io::Result<()> {
        if start.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(self.named(miscounted(start.saturating_add(len), self.len)));
        }
        let read = self.open(start, len).and_then(|mut file| file.read_to_end(out));
        match read.map_err(|error| self.named(error))? as u64 {
            have if have < len => Err(self.named(miscounted(len, have))),
            _ => Ok(()),
        }
    }
}

impl FileRange {
    /// The file from `start` of the part on, for `len` bytes.
    fn open(&self, start: u64, len: u64) -> io::Result<io::Take<File>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset.saturating_add(start)))?;
        Ok(file.take(len))
    }

    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

/// Bytes read or written at a time.
const PIECE: usize = 1 << 20;

struct Zeros(u64);

impl Content for Zeros {
    fn byte_len(&self) -> u64 {
        self.0
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        pad(out, self.0)
    }
}

/// Writes `len` zeros.
pub(crate) fn pad(out: &mut dyn Write, len: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut left = len;
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
        out.write_all(ZEROS.get(..piece).unwrap_or_default())?;
        left = left.saturating_sub(piece as u64);
    }
    Ok(())
}

/// `len` bytes from `start` on.
fn part(bytes: &[u8], start: u64, len: u64) -> io::Result<&[u8]> {
    let from = usize::try_from(start).ok().and_then(|start| bytes.get(start..));
    let part = from.zip(usize::try_from(len).ok()).and_then(|(from, len)| from.get(..len));
    part.ok_or_else(|| miscounted(start.saturating_add(len), bytes.len() as u64))
}

fn miscounted(want: u64, have: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("content of {want} bytes yields {have}"))
}

/// Lets `left` more bytes through.
struct Counted<'o> {
    out: &'o mut dyn Write,
    left: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            let message = format!("content yields at least {} bytes more than it declared", bytes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let count = self.out.write(bytes)?;
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The SHA-256 of what is written.
pub fn digest_of<E>(write: impl FnOnce(&mut dyn Write) -> Result<(), E>) -> Result<Digest, E> {
    let mut hasher = Hasher(Sha256::new());
    write(&mut hasher)?;
    Ok(hasher.0.finalize().into())
}

/// A digest in hexadecimal digits.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

struct Hasher(Sha256);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Liar(u64);

    impl Content for Liar {
        fn byte_len(&self) -> u64 {
            self.0
        }

        fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
            out.write_all(b"four")
        }
    }

    #[test]
    fn all_kinds_yield_their_bytes() {
        let path = std::env::temp_dir().join(format!("edgepack-content-{}", std::process::id()));
        std::fs::write(&path, b"head and tail").unwrap();
        assert_eq!(Data::file(&path, 5, 3).to_vec().unwrap(), b"and");
        assert_eq!(Data::file(&path, 9, 5).to_vec().unwrap_err().kind(), io::ErrorKind::InvalidData);
        for whole in [Data::file(&path, 5, 8), Data::from(b"and tail"), Data::from(b"and tail".to_vec())] {
            let part = |start, len| {
                let mut out = b">".to_vec();
                whole.append_part(start, len, &mut out).map(|()| out)
            };
            assert_eq!(part(4, 4).unwrap(), b">tail");
            assert_eq!(part(8, 0).unwrap(), b">");
            for (start, len) in [(4, 5), (9, 0), (u64::MAX, 1), (1, u64::MAX)] {
                assert_eq!(part(start, len).unwrap_err().kind(), io::ErrorKind::InvalidData, "{start} {len}");
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert!(Data::file(&path, 0, 1).to_vec().unwrap_err().to_string().contains("edgepack-content"));
        assert_eq!(Data::from(b"and").to_vec().unwrap(), b"and");
        assert_eq!(Data::from(vec![1, 2]).to_vec().unwrap(), [1, 2]);
        assert_eq!(Data::zeros(200_000).to_vec().unwrap(), vec![0; 200_000]);
    }

    #[test]
    fn equal_bytes_have_equal_digests_wherever_they_are() {
        assert_eq!(Data::zeros(100_000).digest().unwrap(), Data::from(vec![0; 100_000]).digest().unwrap());
        assert_ne!(Data::zeros(1).digest().unwrap(), Data::zeros(2).digest().unwrap());
    }

    #[test]
    fn a_content_that_lies_about_its_length_is_caught() {
        assert_eq!(Data::new(Liar(4)).to_vec().unwrap(), b"four");
        for len in [3, 5] {
            assert_eq!(Data::new(Liar(len)).to_vec().unwrap_err().kind(), io::ErrorKind::InvalidData, "{len}");
        }
    }
}
