//! Folders whose content is believed: they must be the user's alone.
//!
//! Invariant: a folder that [`open`] returned existed, was the user's (or the administrator's), and no other user could
//! put anything into it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Reason for which a folder is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// It cannot be made or looked at.
    #[error("{}: {error}", folder.display())]
    Io {
        /// Path of the folder.
        folder: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// It is not the user's alone.
    #[error("{}: {why}", folder.display())]
    Open {
        /// Path of the folder.
        folder: PathBuf,
        /// Description of the error.
        why: String,
    },
}

/// Makes a folder, and those above it, for the user alone, and checks it.
pub fn open(folder: &Path) -> Result<(), FolderError> {
    let failed = |error| FolderError::Io { folder: folder.to_owned(), error };
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder).map_err(failed)?;
    let metadata = fs::symlink_metadata(folder).map_err(failed)?;
    let why = match metadata.is_dir() {
        true => shared(&metadata),
        false => Some("it is not a folder".to_owned()),
    };
    match why {
        Some(why) => Err(FolderError::Open { folder: folder.to_owned(), why }),
        None => Ok(()),
    }
}

/// The user, as names of folders have it.
#[cfg(unix)]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user, as names of folders have it.
#[cfg(not(unix))]
pub fn user() -> &'static str {
    "user"
}

/// Says why a file or folder is not the user's (or the administrator's) alone, if it is not.
#[cfg(unix)]
pub(crate) fn shared(metadata: &fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    if owner != user() && owner != 0 {
        Some(format!("user {owner} owns it, not user {}", user()))
    } else if mode & 0o022 != 0 {
        Some(format!("others may write to it (mode {mode:03o})"))
    } else {
        None
    }
}

/// Elsewhere the folders of a user are that user's by default.
#[cfg(not(unix))]
pub(crate) fn shared(_: &fs::Metadata) -> Option<String> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn only_a_folder_of_the_user_alone_is_opened() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("a/b");
        open(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        for (mode, fits) in [(0o720, false), (0o702, false), (0o755, true)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(open(&folder).is_ok(), fits, "{mode:o}");
        }
        let link = outer.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(open(&link).unwrap_err().to_string().ends_with("it is not a folder"));
        fs::write(outer.path().join("file"), "").unwrap();
        assert!(open(&outer.path().join("file")).is_err());
    }
}
