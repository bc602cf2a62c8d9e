//! Files that appear whole or not at all.
//!
//! Content goes to a temporary name in the same folder, is forced to the disk and then takes the place of the target in
//! one step. Whatever fails before that step leaves the old file as it was and no temporary behind.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// How much is collected before it goes to the file. Segments arrive in larger pieces and pass by.
const BUFFER: usize = 256 << 10;

/// How often another temporary name is tried.
const ATTEMPTS: u32 = 100;

/// Makes `path` a file with what `content` writes, or leaves everything as it was. What a symbolic link at `path` points
/// at is replaced, not the link.
pub fn replace<E: From<io::Error>>(
    path: impl AsRef<Path>,
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let target = fs::canonicalize(path.as_ref()).unwrap_or_else(|_| path.as_ref().to_path_buf());
    let (temporary, file) = Temporary::create(&target)?;
    let mut out = BufWriter::with_capacity(BUFFER, file);
    content(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Ok(old) = fs::metadata(&target) {
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()?;
    drop(file);
    temporary.rename(&target)?;
    Ok(())
}

/// A file that is removed when dropped.
struct Temporary {
    path: Option<PathBuf>,
}

impl Temporary {
    fn create(target: &Path) -> io::Result<(Temporary, File)> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} names no file", target.display())));
        };
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..ATTEMPTS {
            let mut temporary = OsString::from(".");
            temporary.push(name);
            temporary.push(format!(".{}.{}.tmp", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
            let path = target.with_file_name(temporary);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((Temporary { path: Some(path) }, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        let Some(path) = self.path.take() else { return Ok(()) };
        fs::rename(&path, target).inspect_err(|_| self.path = Some(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nobody is left to tell; the file is only litter.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("edgepack-write-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_new_file_appears_and_an_old_one_is_replaced() {
        let folder = folder("new");
        let path = folder.join("a.pte");
        for content in ["first", "second, longer"] {
            replace(&path, |out| out.write_all(content.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(names(&folder), ["a.pte"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        let folder = folder("failure");
        let path = folder.join("a.pte");
        fs::write(&path, "old").unwrap();
        let failed = replace(&path, |out| {
            out.write_all(&[7; 3 * BUFFER])?;
            Err(io::Error::other("enough"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "enough");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(&folder), ["a.pte"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_is_no_target() {
        let folder = folder("folder");
        assert!(replace::<io::Error>(&folder, |out| out.write_all(b"x")).is_err());
        assert!(replace::<io::Error>("/", |_| Ok(())).is_err());
        assert!(names(&folder).is_empty());
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = folder("link");
        let (file, link) = (folder.join("a"), folder.join("b"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().file_type().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        fs::remove_dir_all(folder).unwrap();
    }
}
