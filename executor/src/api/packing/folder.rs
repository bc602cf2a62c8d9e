//! A folder of packed weights: what one process made, the next one reads.
//!
//! Entries are named by the digest of what they were made of, and are read into owned memory and checked before use.
//! Invariant: nothing that happens to the folder is an error of a load. What cannot be read, or is not what it should be,
//! is made again and replaced; what cannot be written is not.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::entry::{self, Digest, HEADER};
use crate::private_folder::{self, FolderError, shared};

/// A private folder of packed weights. Several methods, threads and processes may use it at once.
#[derive(Clone, Debug)]
pub struct PackFolder {
    path: PathBuf,
}

impl PackFolder {
    /// Opens a folder, which is made if it does not exist.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, belongs to another user, or others may write to it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FolderError> {
        private_folder::open(path.as_ref())?;
        Ok(PackFolder { path: path.as_ref().to_owned() })
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads an entry into memory of its length; `false`, with anything there, if there is not a whole one.
    pub(super) fn read(&self, key: &Digest, content: &mut [u8]) -> bool {
        let Some(mut file) = self.found(key, content.len()) else { return false };
        entry::read(&mut file, key, content)
    }

    /// The file of an entry, if it is a plain one of the user's alone and of the right length.
    pub(super) fn found(&self, key: &Digest, length: usize) -> Option<File> {
        let file = open_plain(&self.entry(key)).ok()?;
        let metadata = file.metadata().ok()?;
        let whole = metadata.len() == (length as u64).checked_add(HEADER as u64)?;
        (metadata.is_file() && whole && shared(&metadata).is_none()).then_some(file)
    }

    /// Puts an entry in the place of whatever has its name. A reader finds the old one or the new one, whole.
    pub(super) fn write(&self, key: &Digest, content: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let made = self.path.join(format!("{}.{}.{number}.new", hex(key), std::process::id()));
        let written = write_new(&made, key, content).and_then(|()| fs::rename(&made, self.entry(key)));
        if written.is_err() {
            let _ = fs::remove_file(&made);
        }
        written
    }

    fn entry(&self, key: &Digest) -> PathBuf {
        self.path.join(hex(key))
    }
}

fn write_new(path: &Path, key: &Digest, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    entry::write(&mut options.open(path)?, key, content)
}

/// Opens a file for reading: not what a link leads to, and without waiting for whoever writes into a pipe.
fn open_plain(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.cast_signed());
    }
    options.open(path)
}

pub(super) fn hex(digest: &Digest) -> String {
    use std::fmt::Write;
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
