//! Whole or not at all: what is there before, between and after.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

use super::workspace::remove_left;
use super::*;

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("edgepack-write-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<OsString> {
        let mut names: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(text: &'static str) -> impl FnOnce(&mut dyn Write) -> io::Result<()> {
    |out| out.write_all(text.as_bytes())
}

fn holds(path: impl AsRef<Path>, want: &str) {
    assert_eq!(fs::read_to_string(path).unwrap(), want);
}

#[test]
fn a_new_file_appears_and_an_old_one_is_replaced() {
    let folder = Folder::new("new");
    let path = folder.join("a.pte");
    for content in ["first", "second, longer"] {
        replace(&path, text(content)).unwrap();
        holds(&path, content);
    }
    assert_eq!(folder.names(), ["a.pte"]);
    // As long as a name can be.
    replace(folder.join(&"n".repeat(255)), text("long")).unwrap();
    assert_eq!(folder.names().len(), 2);
}

#[test]
fn a_failure_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new("failure");
    let path = folder.join("a.pte");
    fs::write(&path, "old").unwrap();
    let failed = replace(&path, |out| {
        out.write_all(&[7; 1 << 20])?;
        Err(io::Error::other("enough"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "enough");
    holds(&path, "old");
    assert_eq!(folder.names(), ["a.pte"]);
}

#[test]
fn a_folder_is_no_target() {
    let folder = Folder::new("folder");
    assert!(replace(&folder.0, text("x")).is_err());
    assert!(replace::<io::Error>("/", |_| Ok(())).is_err());
    assert!(replace(folder.join("none/"), text("x")).is_err());
    assert!(replace(folder.join("none/a"), text("x")).is_err());
    assert!(folder.names().is_empty());
}

/// A process that is killed at any moment before the first file takes its place leaves everything as it was.
#[test]
fn several_files_take_their_places_at_the_end() {
    let folder = Folder::new("several");
    let (program, data, new) = (folder.join("a.pte"), folder.join("a.ptd"), folder.join("b.pte"));
    fs::write(&program, "old program").unwrap();
    fs::write(&data, "old data").unwrap();
    let mut batch = Batch::default();
    for (path, content) in [(&data, "new data"), (&program, "new program"), (&new, "another")] {
        batch.write(path, text(content)).unwrap();
        holds(&program, "old program");
        holds(&data, "old data");
        assert!(!new.exists());
    }
    batch.commit().unwrap();
    holds(&program, "new program");
    holds(&data, "new data");
    holds(&new, "another");
    assert_eq!(folder.names(), ["a.ptd", "a.pte", "b.pte"]);
}

#[test]
fn a_batch_that_is_dropped_was_never_there() {
    let folder = Folder::new("dropped");
    let path = folder.join("a.pte");
    fs::write(&path, "old").unwrap();
    let mut batch = Batch::default();
    batch.write(&path, text("new")).unwrap();
    batch.write(folder.join("b"), text("new")).unwrap();
    drop(batch);
    holds(&path, "old");
    assert_eq!(folder.names(), ["a.pte"]);
}

/// The second of three cannot take its place: the first gets back what it was.
#[test]
fn a_place_that_is_refused_undoes_those_before_it() {
    let folder = Folder::new("undone");
    let (old, new, refused) = (folder.join("old"), folder.join("new"), folder.join("refused"));
    fs::write(&old, "old").unwrap();
    let mut batch = Batch::default();
    for path in [&old, &new, &refused] {
        batch.write(path, text("changed")).unwrap();
    }
    // Meanwhile another process makes a folder of that name.
    fs::create_dir_all(refused.join("full")).unwrap();
    let error = batch.commit().unwrap_err().to_string();
    assert!(error.contains("refused"), "{error}");
    holds(&old, "old");
    assert!(!new.exists());
    assert_eq!(folder.names(), ["old", "refused"]);
}

#[test]
fn what_is_read_is_not_written_and_no_place_is_written_twice() {
    let folder = Folder::new("conflicts");
    let (input, output) = (folder.join("in"), folder.join("out"));
    fs::write(&input, "input").unwrap();
    fs::hard_link(&input, folder.join("hard")).unwrap();
    let mut names = vec!["in", "hard", "./in"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("in", folder.join("soft")).unwrap();
        names.push("soft");
    }
    for name in names {
        let mut batch = Batch::default();
        batch.reads(&input);
        let error = batch.write(folder.join(name), text("lost")).unwrap_err();
        assert!(matches!(Conflict::of(&error), Some(Conflict::Input { .. })), "{name}: {error}");
    }
    holds(&input, "input");

    let mut batch = Batch::default();
    batch.write(&output, text("first")).unwrap();
    let error = batch.write(folder.join("../").join(folder.0.file_name().unwrap()).join("out"), text("second"));
    assert!(matches!(Conflict::of(&error.unwrap_err()), Some(Conflict::Outputs { .. })));
    drop(batch);
    assert!(!output.exists());

    let mut batch = Batch::default();
    batch.reads(&input);
    batch.changes(&input);
    batch.write(&input, text("in place")).unwrap();
    batch.commit().unwrap();
    holds(&input, "in place");
    let mut batch = Batch::forced();
    batch.reads(&input);
    batch.write(&input, text("first")).unwrap();
    batch.write(&input, text("forced")).unwrap();
    batch.commit().unwrap();
    holds(&input, "forced");
}

#[test]
fn what_killed_processes_left_is_removed_and_nothing_else() {
    let folder = Folder::new("left");
    let left = |name: &str| {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("1"), "half").unwrap();
    };
    for name in [".edgepack-1-0.tmp", ".edgepack-1-1.tmp", ".edgepack-x-1.tmp", "edgepack-1-1.tmp"] {
        left(name);
    }
    fs::write(folder.join(".edgepack-1-1.tmp").join("lock"), "").unwrap();
    fs::write(folder.join(".edgepack-2-2.tmp"), "a file").unwrap();
    let living = Workspace::new(&folder.0).unwrap();
    fs::write(living.path().join("1"), "mine").unwrap();
    // The process lives, whatever its number is.
    left(".edgepack-3-3.tmp");
    let lock = lock::attempt(&folder.join(".edgepack-3-3.tmp").join("lock")).unwrap();
    remove_left(&folder.0);
    let mut want = vec![".edgepack-2-2.tmp", ".edgepack-3-3.tmp", ".edgepack-x-1.tmp", "edgepack-1-1.tmp"];
    let mine = living.path().file_name().unwrap().to_str().unwrap();
    want.push(mine);
    want.sort_unstable();
    assert_eq!(folder.names(), want);
    holds(living.path().join("1"), "mine");
    drop(lock);
    remove_left(&folder.0);
    assert!(!folder.join(".edgepack-3-3.tmp").exists());
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::thread;

    #[test]
    fn a_link_stays_a_link_also_one_to_nothing() {
        let folder = Folder::new("link");
        let (file, link) = (folder.join("a"), folder.join("b"));
        symlink("a", &link).unwrap();
        for content in ["new", "newer"] {
            replace(&link, text(content)).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().file_type().is_symlink());
            holds(&file, content);
        }
        symlink("circle", folder.join("circle")).unwrap();
        assert!(replace(folder.join("circle"), text("x")).is_err());
    }

    #[test]
    fn permissions_stay() {
        let folder = Folder::new("permissions");
        let path = folder.join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, text("new")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_pipe_gets_the_content_and_stays() {
        let folder = Folder::new("pipe");
        let (pipe, link) = (folder.join("pipe"), folder.join("link"));
        assert!(process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link] {
            let reader = thread::spawn({
                let pipe = pipe.clone();
                move || fs::read_to_string(pipe).unwrap()
            });
            replace(path, text("through the pipe")).unwrap();
            assert_eq!(reader.join().unwrap(), "through the pipe");
            assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        }
        assert_eq!(folder.names(), ["link", "pipe"]);
    }

    #[test]
    fn a_socket_is_an_error_and_stays() {
        let folder = Folder::new("socket");
        let path = folder.join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(replace(&path, text("x")).is_err());
        assert!(fs::metadata(&path).unwrap().file_type().is_socket());
        assert_eq!(folder.names(), ["socket"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_and_descriptors_are_written_into() {
        let full = replace("/dev/full", text("x")).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
        assert!(is_stream("/dev/full") && is_stream("/proc/self/fd/0"));

        use std::os::fd::AsRawFd;
        let folder = Folder::new("descriptor");
        let path = folder.join("a");
        fs::write(&path, "kept, ").unwrap();
        let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        replace(format!("/proc/self/fd/{}", file.as_raw_fd()), text("added")).unwrap();
        holds(&path, "kept, added");
        assert_eq!(folder.names(), ["a"]);
    }

    /// Two outputs may well go to one device, and what holds nothing cannot be lost.
    #[test]
    fn devices_are_no_conflict() {
        let mut batch = Batch::default();
        batch.reads("/dev/null");
        for _ in 0..2 {
            batch.write("/dev/null", text("x")).unwrap();
        }
        batch.commit().unwrap();
    }
}
