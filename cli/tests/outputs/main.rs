//! Outputs of commands and their destinations: the binary itself, since devices, signals and descriptors belong to
//! processes.
#![cfg(unix)]

mod conflicts;
mod every_command;
mod examples;
mod explorer;
mod in_memory;
mod mapped;
mod native_code;
mod pages;
mod profile;
// `script` of other systems has other options.
#[cfg(target_os = "linux")]
mod progress;
mod signals;
mod streams;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs, process};

/// The command, in a folder.
fn edgepack(folder: &Folder, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgepack"));
    command.current_dir(&folder.0).args(args).stdin(Stdio::null());
    command
}

fn run(folder: &Folder, args: &[&str]) -> Output {
    edgepack(folder, args).output().expect("the command")
}

#[track_caller]
fn status(output: &Output, want: i32, about: &dyn std::fmt::Debug) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(want), "{about:?}: {said}");
}

/// Runs what must succeed.
#[track_caller]
fn done(folder: &Folder, args: &[&str]) {
    status(&run(folder, args), 0, &args);
}

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("edgepack-outputs-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("a file");
    }

    /// Puts a file of the corpus there.
    fn take(&self, from: &str, name: &str) {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus");
        fs::copy(corpus.join(from), self.path(name)).unwrap_or_else(|error| panic!("{from}: {error}"));
    }

    /// Names and contents, folders left out.
    fn all(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.names().into_iter().filter(|name| self.path(name).is_file());
        names.map(|name| (name.clone(), self.read(&name))).collect()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn hidden(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name.starts_with('.')).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
