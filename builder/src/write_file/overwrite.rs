//! Bytes of a file replaced where they are; everything else of it is not touched.
//!
//! A journal next to the file, `.NAME.edgepack-journal`, has the old bytes and the new ones. It is complete and on the disk
//! before the first byte of the file changes, and is removed when the last one is on the disk. So a process that is killed
//! at any moment leaves a file that is as it was, as it is to be, or has a journal, by which [`recover`] makes it as it was.
//!
//! Invariant: a journal never changes a file that it was not written for: every byte in its ranges is the old one or the new
//! one, or nothing is done.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::lock::{self, Attempt};
use super::target::{FileTarget, Target};
use super::workspace::Workspace;

/// First bytes of a journal.
const MAGIC: [u8; 16] = *b"edgepack-undo-1\n";
/// Bytes in front of the ranges, of a range, and of the digest at the end.
const HEAD: u64 = 32;
const RANGE: u64 = 16;
const DIGEST: u64 = 32;
/// Bytes that are read and written at a time.
const PIECE: usize = 1 << 20;

/// New bytes for a range of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Place of the first.
    pub at: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Replaces bytes of a file where they are. Ranges are inside the file and do not overlap. If it fails, or is killed and
/// [`recover`] is called later, no byte has changed.
pub fn overwrite(path: impl AsRef<Path>, changes: &[Change]) -> io::Result<()> {
    let place = Place::of(path.as_ref())?;
    let lock = place.lock()?;
    place.undo(&mut Steps::all())?;
    let outcome = place.overwrite(changes, &mut Steps::all());
    if outcome.is_err() {
        // What made it fail may keep it from being undone; then the journal stays, and the next process tries again.
        let _ = place.undo(&mut Steps::all());
    }
    place.unlock(lock);
    outcome
}

/// Makes a file as it was if [`overwrite`] was killed while it changed it; returns whether that was so. A file without a
/// journal is not touched, nor opened.
pub fn recover(path: impl AsRef<Path>) -> io::Result<bool> {
    let Ok(place) = Place::of(path.as_ref()) else { return Ok(false) };
    if !place.journal.exists() && !place.lock.exists() {
        return Ok(false);
    }
    let lock = match place.lock() {
        // A lock without a journal may be that of a process that has not begun.
        Err(_) if !place.journal.exists() => return Ok(false),
        lock => lock?,
    };
    let undone = place.undo(&mut Steps::all());
    place.unlock(lock);
    undone
}

/// Steps that happen one after another, so that a test can end them anywhere.
struct Steps<'s> {
    piece: usize,
    before: Option<&'s mut dyn FnMut() -> io::Result<()>>,
}

impl Steps<'_> {
    fn all() -> Self {
        Steps { piece: PIECE, before: None }
    }

    fn next(&mut self) -> io::Result<()> {
        self.before.as_mut().map_or(Ok(()), |before| before())
    }
}

/// A file with the names next to it.
struct Place {
    file: FileTarget,
    journal: PathBuf,
    lock: PathBuf,
}

impl Place {
    fn of(path: &Path) -> io::Result<Place> {
        let invalid = |message| io::Error::new(io::ErrorKind::InvalidInput, message);
        let Target::File(file) = Target::of(path)? else { return Err(invalid("this is not a regular file")) };
        let name = file.path.file_name().ok_or_else(|| invalid("a path that names no file"))?;
        let beside = |end: &str| {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(end);
            file.folder.join(hidden)
        };
        Ok(Place { journal: beside(".edgepack-journal"), lock: beside(".edgepack-lock"), file: *file })
    }

    fn lock(&self) -> io::Result<Attempt> {
        match lock::attempt(&self.lock)? {
            Attempt::Taken => {
                let message = "another process is changing this file";
                Err(io::Error::new(io::ErrorKind::WouldBlock, message))
            }
            held => Ok(held),
        }
    }

    /// Gives the lock back. While it is held, its file is removed, so that no other process takes a file that is gone.
    fn unlock(&self, lock: Attempt) {
        let _ = fs::remove_file(&self.lock);
        drop(lock);
    }

    fn overwrite(&self, changes: &[Change], steps: &mut Steps<'_>) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).write(true).open(&self.file.path)?;
        let len = file.metadata()?.len();
        let mut changes: Vec<&Change> = changes.iter().filter(|change| !change.bytes.is_empty()).collect();
        changes.sort_by_key(|change| change.at);
        let mut last = 0u64;
        for change in &changes {
            let end = change.at.checked_add(change.bytes.len() as u64).filter(|end| change.at >= last && *end <= len);
            let message = || format!("{} bytes at {} of {len}, behind {last}", change.bytes.len(), change.at);
            last = end.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, message()))?;
        }
        steps.next()?;
        let mut workspace = Workspace::new(&self.file.folder)?;
        let (temporary, journal) = workspace.file()?;
        // It holds what the file holds, for the same readers.
        journal.set_permissions(file.metadata()?.permissions())?;
        steps.next()?;
        write_journal(journal, &mut file, len, &changes)?;
        steps.next()?;
        fs::rename(&temporary, &self.journal)?;
        steps.next()?;
        sync_folder(&self.file.folder)?;
        for change in &changes {
            let mut at = change.at;
            for piece in change.bytes.chunks(steps.piece) {
                steps.next()?;
                file.seek(SeekFrom::Start(at))?;
                file.write_all(piece)?;
                at = at.saturating_add(piece.len() as u64);
            }
        }
        steps.next()?;
        file.sync_all()?;
        steps.next()?;
        fs::remove_file(&self.journal)?;
        steps.next()?;
        sync_folder(&self.file.folder)
    }

    /// Puts the old bytes back if there is a journal.
    fn undo(&self, steps: &mut Steps<'_>) -> io::Result<bool> {
        let journal = match File::open(&self.journal) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            journal => journal?,
        };
        let mut journal = self.own(journal).and_then(Journal::open).map_err(|error| self.explained(&error))?;
        let mut file = OpenOptions::new().read(true).write(true).open(&self.file.path)?;
        if file.metadata()?.len() != journal.len || !journal.matches(&mut file)? {
            let message = "it has other bytes than the journal of this change";
            return Err(self.explained(&io::Error::new(io::ErrorKind::InvalidData, message)));
        }
        journal.each(|at, old, _| {
            let mut at = at;
            for piece in old.chunks(steps.piece) {
                steps.next()?;
                file.seek(SeekFrom::Start(at))?;
                file.write_all(piece)?;
                at = at.saturating_add(piece.len() as u64);
            }
            Ok(())
        })?;
        steps.next()?;
        file.sync_all()?;
        drop(journal);
        steps.next()?;
        fs::remove_file(&self.journal)?;
        steps.next()?;
        sync_folder(&self.file.folder)?;
        Ok(true)
    }

    /// The journal, if it is a file of the owner of the file it is for: in a folder that others write to, another could have
    /// made one.
    fn own(&self, journal: File) -> io::Result<File> {
        let refused = |message| Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        if !fs::symlink_metadata(&self.journal)?.is_file() {
            return refused("its journal is not a regular file");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;

            if journal.metadata()?.uid() != fs::metadata(&self.file.path)?.uid() {
                return refused("its journal is another user's");
            }
        }
        Ok(journal)
    }

    fn explained(&self, error: &io::Error) -> io::Error {
        let journal = self.journal.display();
        let message = format!(
            "a change of this file was interrupted and cannot be undone: {error}; remove {journal} if this is another file by now"
        );
        io::Error::new(error.kind(), message)
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere folders are not opened.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Writes a journal and its digest to the disk.
fn write_journal(out: File, file: &mut File, len: u64, changes: &[&Change]) -> io::Result<()> {
    let mut out = Digested { out: BufWriter::with_capacity(PIECE, out), digest: Sha256::new() };
    out.write_all(&MAGIC)?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(&(changes.len() as u64).to_le_bytes())?;
    for change in changes {
        out.write_all(&change.at.to_le_bytes())?;
        out.write_all(&(change.bytes.len() as u64).to_le_bytes())?;
    }
    for change in changes {
        let mut at = change.at;
        for new in change.bytes.chunks(PIECE) {
            let mut old = vec![0; new.len()];
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut old)?;
            out.write_all(&old)?;
            out.write_all(new)?;
            at = at.saturating_add(new.len() as u64);
        }
    }
    let digest = out.digest.finalize();
    let mut out = out.out;
    out.write_all(&digest)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

struct Digested {
    out: BufWriter<File>,
    digest: Sha256,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A journal that is complete.
struct Journal {
    file: BufReader<File>,
    /// Length of the file it is for.
    len: u64,
    /// Places and lengths.
    ranges: Vec<(u64, u64)>,
}

impl Journal {
    fn open(file: File) -> io::Result<Journal> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the journal is damaged");
        let whole = file.metadata()?.len();
        let mut file = BufReader::with_capacity(PIECE, file);
        let mut content = whole.checked_sub(DIGEST).ok_or_else(invalid)?;
        let mut digest = Sha256::new();
        let mut piece = vec![0; PIECE];
        while content > 0 {
            let count = content.min(PIECE as u64);
            let part = piece.get_mut(..count as usize).ok_or_else(invalid)?;
            file.read_exact(part)?;
            digest.update(&*part);
            content = content.saturating_sub(count);
        }
        let mut stated = [0; DIGEST as usize];
        file.read_exact(&mut stated)?;
        if digest.finalize().as_slice() != stated {
            return Err(invalid());
        }
        file.seek(SeekFrom::Start(0))?;
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic)?;
        let (len, count) = (number(&mut file)?, number(&mut file)?);
        if magic != MAGIC || count > whole / RANGE {
            return Err(invalid());
        }
        let (mut ranges, mut bytes) = (Vec::new(), 0u64);
        for _ in 0..count {
            let range = (number(&mut file)?, number(&mut file)?);
            bytes = bytes.checked_add(range.1).ok_or_else(invalid)?;
            ranges.push(range);
        }
        let ends = bytes.checked_mul(2).and_then(|bytes| bytes.checked_add(HEAD + DIGEST));
        let ends = ends.and_then(|ends| ends.checked_add(count.checked_mul(RANGE)?));
        if ends != Some(whole) {
            return Err(invalid());
        }
        Ok(Journal { file, len, ranges })
    }

    /// Visits the pieces of all ranges: place, old bytes, new bytes.
    fn each(&mut self, mut visit: impl FnMut(u64, &[u8], &[u8]) -> io::Result<()>) -> io::Result<()> {
        let start = (self.ranges.len() as u64).saturating_mul(RANGE).saturating_add(HEAD);
        self.file.seek(SeekFrom::Start(start))?;
        for (at, len) in &self.ranges {
            let (mut at, mut left) = (*at, *len);
            while left > 0 {
                let count = left.min(PIECE as u64);
                let (mut old, mut new) = (vec![0; count as usize], vec![0; count as usize]);
                self.file.read_exact(&mut old)?;
                self.file.read_exact(&mut new)?;
                visit(at, &old, &new)?;
                at = at.saturating_add(count);
                left = left.saturating_sub(count);
            }
        }
        Ok(())
    }

    /// Returns whether every byte of the ranges is the old one or the new one.
    fn matches(&mut self, file: &mut File) -> io::Result<bool> {
        let mut matches = true;
        self.each(|at, old, new| {
            let mut found = vec![0; old.len()];
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut found)?;
            matches &= found.iter().zip(old.iter().zip(new)).all(|(found, (old, new))| found == old || found == new);
            Ok(())
        })?;
        Ok(matches)
    }
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests;
