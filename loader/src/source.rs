//! Sources of bytes.
//!
//! [`Source`] is the interface the loader needs of a file: its length, reading a range, and borrowing one if that is
//! possible. Sources are shared between threads; reading takes `&self` and an absolute offset.
#![allow(unsafe_code, reason = "mapping a file is unsafe by nature; the contract is on `MappedFile::open`")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
#[cfg(all(feature = "mmap", target_os = "linux"))]
use std::sync::atomic::{AtomicU64, Ordering};

/// A file, a piece of memory, or anything else with bytes at offsets.
///
/// A source of your own:
///
/// ```
/// use std::io;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use edgepack_loader::{OpenOptions, Source};
///
/// /// Bytes that count how many of them are read.
/// struct Counted(Vec<u8>, AtomicU64);
///
/// impl Source for Counted {
///     fn len(&self) -> u64 {
///         self.0.len() as u64
///     }
///     fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
///         let bytes = self.0.get(offset as usize..).and_then(|rest| rest.get(..into.len()));
///         into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
///         self.1.fetch_add(into.len() as u64, Ordering::Relaxed);
///         Ok(())
///     }
///     fn name(&self) -> String {
///         "counted".to_owned()
///     }
/// }
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/classifier_portable.pte");
/// let source = Arc::new(Counted(std::fs::read(path)?, AtomicU64::new(0)));
/// let program = OpenOptions::default().open_source(source.clone())?;
/// // The weights are not read until a method is loaded.
/// assert!(source.1.load(Ordering::Relaxed) < source.len() / 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Source: Send + Sync {
    /// Bytes in all.
    fn len(&self) -> u64;

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` from `offset`. Fails if the range is not inside.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Returns a borrowed range, if this source can. A borrowed range does not move or change while the source lives.
    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        let _ = range;
        None
    }

    /// Takes note that a range will soon be read: it may be brought into memory. Any thread may say so, and loading waits until
    /// this returns. A failure is left for who reads the range to find.
    fn expect(&self, range: Range<u64>) {
        let _ = range;
    }

    /// Takes note that a range will hardly be read again: memory that only mirrors it may be given back. It can still be
    /// read, and what is borrowed of it stays borrowed.
    fn release(&self, range: Range<u64>) {
        let _ = range;
    }

    /// Returns whether [`Source::release`] gives memory back. Then what is small and often read is better copied: where it is in
    /// the source, pages come back with it that hold other things.
    fn gives_back(&self) -> bool {
        false
    }

    /// A name for messages.
    fn name(&self) -> String {
        "the source".to_owned()
    }
}

pub(crate) fn slice(bytes: &[u8], range: Range<u64>) -> Option<&[u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

pub(crate) fn read_slice(bytes: &[u8], offset: u64, into: &mut [u8]) -> io::Result<()> {
    let end = offset.checked_add(into.len() as u64);
    match end.and_then(|end| slice(bytes, offset..end)) {
        Some(from) => {
            into.copy_from_slice(from);
            Ok(())
        }
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Bytes that are part of the executable, borrowed without a copy.
#[derive(Clone, Copy)]
pub struct StaticSource(pub &'static [u8]);

impl Source for StaticSource {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        read_slice(self.0, offset, into)
    }
    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        slice(self.0, range)
    }
    fn name(&self) -> String {
        "bytes of the executable".to_owned()
    }
}

/// A file, read range by range. Its length is that at opening; bytes that vanish later are errors when they are read.
pub struct FileSource {
    file: File,
    len: u64,
    path: PathBuf,
}

impl FileSource {
    /// Opens a file for reading.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let file = File::open(&path)?;
        let len = file.metadata()?.len();
        Ok(FileSource { file, len, path })
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, into, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, mut offset: u64, mut into: &mut [u8]) -> io::Result<()> {
        use std::os::windows::fs::FileExt;
        while !into.is_empty() {
            let read = self.file.seek_read(into, offset)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset = offset.saturating_add(read as u64);
            into = into.split_at_mut(read).1;
        }
        Ok(())
    }

    /// Elsewhere a file has one position: one read at a time. Platforms without files refuse at opening.
    #[cfg(not(any(unix, windows)))]
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        use std::sync::{Mutex, PoisonError};
        static POSITION: Mutex<()> = Mutex::new(());
        let _position = POSITION.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(into)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// A mapped file, borrowed without a copy.
#[cfg(feature = "mmap")]
pub struct MappedFile {
    map: memmap2::Mmap,
    path: PathBuf,
    /// End of what was given back last. Files are read from their begin on: what is in front of that was read before.
    #[cfg(target_os = "linux")]
    released: AtomicU64,
}

/// Fewer bytes are not given back: the system call takes longer than they are worth.
#[cfg(all(feature = "mmap", target_os = "linux"))]
const LEAST_RELEASED: usize = 16 << 10;

#[cfg(feature = "mmap")]
impl MappedFile {
    /// Maps a file.
    ///
    /// # Safety
    /// No code, in this process or another, changes or shortens the file while the map lives: its bytes are handed out
    /// as `&[u8]`.
    pub unsafe fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let file = File::open(&path)?;
        // SAFETY: by the caller.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(MappedFile {
            map,
            path,
            #[cfg(target_os = "linux")]
            released: AtomicU64::new(0),
        })
    }
}

#[cfg(feature = "mmap")]
impl Source for MappedFile {
    fn len(&self) -> u64 {
        self.map.len() as u64
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        read_slice(&self.map, offset, into)
    }
    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        slice(&self.map, range)
    }
    #[cfg(target_os = "linux")]
    fn expect(&self, range: Range<u64>) {
        let (Some(bytes), Ok(start)) = (slice(&self.map, range.clone()), usize::try_from(range.start)) else { return };
        if range.start < self.released.load(Ordering::Relaxed) {
            return;
        }
        let _ = self.map.advise_range(memmap2::Advice::PopulateRead, start, bytes.len());
    }
    #[cfg(target_os = "linux")]
    fn release(&self, range: Range<u64>) {
        let Some(bytes) = slice(&self.map, range.clone()) else { return };
        let (Ok(start), len) = (usize::try_from(range.start), bytes.len()) else { return };
        if len < LEAST_RELEASED {
            return;
        }
        self.released.fetch_max(range.end, Ordering::Relaxed);
        // SAFETY: the map is of a file, is not written to, and by the contract of `open` the file does not change: pages
        // that are given back are read from it again, with the same bytes, when they are accessed.
        let _ = unsafe { self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len) };
    }
    fn gives_back(&self) -> bool {
        cfg!(target_os = "linux")
    }
    fn name(&self) -> String {
        self.path.display().to_string()
    }
}
