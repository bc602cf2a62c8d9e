//! The place that a path names, and whether two paths name one place.
//!
//! Files that exist are told apart by device and number where the system has them, so that hard links and symbolic links
//! are seen through; what does not exist yet by its folder and its name.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};

/// Links that are followed before it is a circle.
const LINKS: u32 = 40;

/// A place to write to.
#[derive(Debug)]
pub(super) enum Target {
    /// A regular file, or none yet.
    File(Box<FileTarget>),
    /// Target that is written into: a device, a pipe, an open descriptor.
    Stream {
        /// Set where content stays and could be lost.
        id: Option<FileId>,
    },
}

/// A regular file, or none yet.
#[derive(Debug)]
pub(super) struct FileTarget {
    pub(super) id: FileId,
    pub(super) folder: PathBuf,
    /// In that folder, no link.
    pub(super) path: PathBuf,
    pub(super) old: Option<Metadata>,
}

/// One file, whatever its names are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum FileId {
    /// Device and number.
    #[cfg(unix)]
    Inode(u64, u64),
    /// Folder and name, without links.
    Path(PathBuf),
}

impl FileId {
    /// Of a file that can be lost by writing: `None` for pipes, terminals and the like, which hold nothing.
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata, _path: &Path) -> Option<FileId> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};

        if metadata.is_file() {
            return Some(FileId::Inode(metadata.dev(), metadata.ino()));
        }
        // Two files that name one block device differ in everything but the device they stand for.
        metadata.file_type().is_block_device().then(|| FileId::Inode(u64::MAX, metadata.rdev()))
    }

    /// The same by name alone.
    #[cfg(not(unix))]
    pub(super) fn of(metadata: &Metadata, path: &Path) -> Option<FileId> {
        metadata.is_file().then(|| FileId::named(&fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())))
    }

    /// A file that is not there yet.
    fn named(path: &Path) -> FileId {
        if cfg!(any(windows, target_vendor = "apple"))
            && let Some(text) = path.to_str()
        {
            // Names that differ in case are one file there, or may be.
            return FileId::Path(text.to_lowercase().into());
        }
        FileId::Path(path.to_path_buf())
    }
}

impl Target {
    /// The place that a path names.
    pub(super) fn of(path: &Path) -> io::Result<Target> {
        let old = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found?),
        };
        match &old {
            Some(old) if old.is_dir() => return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder")),
            Some(old) if !old.is_file() => return Ok(Target::Stream { id: FileId::of(old, path) }),
            _ => {}
        }
        let Some((folder, path)) = followed(path)? else {
            return Ok(Target::Stream { id: old.and_then(|old| FileId::of(&old, path)) });
        };
        let id = old.as_ref().and_then(|old| FileId::of(old, &path)).unwrap_or_else(|| FileId::named(&path));
        Ok(Target::File(Box::new(FileTarget { id, folder, path, old })))
    }

    /// Its identity, if it has one.
    pub(super) fn id(&self) -> Option<&FileId> {
        match self {
            Target::File(file) => Some(&file.id),
            Target::Stream { id } => id.as_ref(),
        }
    }
}

impl FileTarget {
    /// Permissions of the old file.
    pub(super) fn permissions(&self) -> Option<Permissions> {
        self.old.as_ref().map(Metadata::permissions)
    }
}

/// Returns whether a write to this path goes into something that is not a file: a device, a pipe, an open descriptor.
pub fn is_stream(path: impl AsRef<Path>) -> bool {
    matches!(Target::of(path.as_ref()), Ok(Target::Stream { .. }))
}

/// The folder of a path and the path in it, once links are followed, also those to nothing; `None` for an open descriptor,
/// which is known by a name of the system.
fn followed(path: &Path) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
    if path.as_os_str().as_encoded_bytes().last().is_some_and(|last| std::path::is_separator(char::from(*last))) {
        return Err(invalid("a folder's name".to_owned()));
    }
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        let Some(name) = path.file_name() else { return Err(invalid(format!("{} names no file", path.display()))) };
        let above = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = fs::canonicalize(above)?;
        if cfg!(unix) && (folder.starts_with("/proc") || folder.starts_with("/dev/fd")) {
            return Ok(None);
        }
        let plain = folder.join(name);
        match fs::symlink_metadata(&plain) {
            Ok(found) if found.is_symlink() => path = folder.join(fs::read_link(&plain)?),
            _ => return Ok(Some((folder, plain))),
        }
    }
    Err(invalid("a circle of links".to_owned()))
}
