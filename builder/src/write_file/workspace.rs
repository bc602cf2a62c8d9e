//! Hidden folders for what is not finished.
//!
//! A folder is named `.edgepack-PROCESS-NUMBER.tmp`, readable by its owner alone, and locked for as long as its process
//! lives. The first workspace a process makes in a folder removes those that killed processes left there: folders of
//! exactly such a name whose lock no process holds.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::live::live;
use super::lock::{self, Attempt, Lock};

/// Number of names that are tried.
const ATTEMPTS: u32 = 100;
const PREFIX: &str = ".edgepack-";
const SUFFIX: &str = ".tmp";
/// The file whose lock says that the owner is alive.
const LOCK: &str = "lock";

/// A hidden folder that is removed with everything in it when this is dropped, when the process is interrupted
/// ([`abandon`](super::abandon)), or by the next process that writes next to it.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    lock: Option<Lock>,
    /// Files made so far.
    files: u64,
}

impl Workspace {
    /// A new one in this folder.
    pub fn new(folder: impl AsRef<Path>) -> io::Result<Workspace> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Neither files nor a number of the process.
        if cfg!(all(target_family = "wasm", target_os = "unknown")) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let folder = folder.as_ref();
        sweep(folder);
        for _ in 0..ATTEMPTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{PREFIX}{}-{number}{SUFFIX}", process::id()));
            let mut live = live();
            match private(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            live.insert(path.clone());
            drop(live);
            let mut workspace = Workspace { path, lock: None, files: 0 };
            match lock::attempt(&workspace.path.join(LOCK)) {
                Ok(Attempt::Held(lock)) => workspace.lock = Some(lock),
                Ok(Attempt::Unknown) => {}
                // Somebody takes it for one that was left, because it had no lock yet: dropped, and another one made.
                Ok(Attempt::Taken) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            return Ok(workspace);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns the path of the folder, which is removed with all its files when the workspace is dropped.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new file in it.
    pub(super) fn file(&mut self) -> io::Result<(PathBuf, File)> {
        let path = self.name();
        let _live = live();
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok((path, file))
    }

    /// A name that no file in it has.
    pub(super) fn name(&mut self) -> PathBuf {
        self.files = self.files.saturating_add(1);
        self.path.join(self.files.to_string())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let mut live = live();
        // Nobody is left to tell; the next run tries again.
        let _ = fs::remove_dir_all(&self.path);
        live.remove(&self.path);
        self.lock = None;
    }
}

/// Makes a folder that only its owner can look into.
fn private(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "elsewhere the folder around it decides"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Returns whether the name has the form of a workspace's.
fn is_ours(name: &OsStr) -> bool {
    let numbers = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-'));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, count)| number(process) && number(count))
}

/// Removes what killed processes left in a folder, once for each folder. Whatever speaks against it is not an error.
fn sweep(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_path_buf()) {
        remove_left(folder);
    }
}

/// The same each time.
pub(super) fn remove_left(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_ours(&entry.file_name())) {
        // A link is none of ours.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        // The lock is held until the folder is gone.
        if let Ok(Attempt::Held(_lock)) = lock::attempt(&path.join(LOCK)) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        for name in [".edgepack-1-0.tmp", ".edgepack-4711-12.tmp"] {
            assert!(is_ours(OsStr::new(name)), "{name}");
        }
        for name in [".edgepack-.tmp", ".edgepack-1.tmp", "edgepack-1-0.tmp", ".edgepack-1-0.tmp2", ".edgepack-a-0.tmp"]
        {
            assert!(!is_ours(OsStr::new(name)), "{name}");
        }
    }
}
