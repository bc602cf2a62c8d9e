//! The folder of compiled libraries. What is in it is loaded and called, so it must be the user's alone.

use std::path::{Path, PathBuf};

use edgepack_executor::private_folder::{self, user};

use crate::error::Error;

/// The folder: the one given, that of the user's cache, or one of the user's own among temporary files. It exists, and
/// no other user can put anything into it.
pub(crate) fn folder(given: Option<&Path>) -> Result<PathBuf, Error> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    chosen(given, home.as_deref(), &std::env::temp_dir())
}

fn chosen(given: Option<&Path>, cache: Option<&Path>, temporary: &Path) -> Result<PathBuf, Error> {
    let folder = match (given, cache) {
        (Some(given), _) => given.to_owned(),
        (None, Some(cache)) => cache.join("edgepack").join("native"),
        (None, None) => {
            // Everybody may make a folder of this name; one that is not the user's own is refused.
            let own = temporary.join(format!("edgepack-{}", user()));
            private_folder::open(&own)?;
            own.join("native")
        }
    };
    private_folder::open(&folder)?;
    Ok(folder)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn without_a_home_the_folder_is_the_users_own_and_checked() {
        let temporary = tempfile::tempdir().unwrap();
        let own = temporary.path().join(format!("edgepack-{}", user()));
        let folder = chosen(None, None, temporary.path()).unwrap();
        assert_eq!(folder, own.join("native"));
        assert_eq!((mode(&own), mode(&folder)), (0o700, 0o700));
        assert_eq!(chosen(None, None, temporary.path()).unwrap(), folder);

        // Another process may have been there first.
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        let error = chosen(None, None, temporary.path()).unwrap_err().to_string();
        assert!(error.contains("others may write to it (mode 777)"), "{error}");
        fs::remove_dir_all(&own).unwrap();
        symlink(temporary.path(), &own).unwrap();
        assert!(chosen(None, None, temporary.path()).unwrap_err().to_string().contains("not a folder"));
    }

    #[test]
    fn a_given_folder_and_the_users_cache_are_checked_too() {
        let folder = tempfile::tempdir().unwrap();
        let cache = chosen(None, Some(folder.path()), Path::new("/nowhere")).unwrap();
        assert_eq!((cache.as_path(), mode(&cache)), (&*folder.path().join("edgepack/native"), 0o700));
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o720)).unwrap();
        assert!(chosen(None, Some(folder.path()), Path::new("/nowhere")).is_err());
        assert!(chosen(Some(&cache), None, Path::new("/nowhere")).is_err());
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
        chosen(Some(&cache), None, Path::new("/nowhere")).unwrap();
    }
}
