//! Files that a command writes: one rule for all of them.
//!
//! No file that the command reads is overwritten, and no two outputs go to one file, unless `--force` is given. All
//! files are complete before the first one replaces its target. A target that is not a regular file is written into.
//! `edgepack::builder::write_file` implements this; the command passes the files it reads, and its failures get their
//! messages here.

use std::io::{self, Write};
use std::path::Path;

use edgepack::builder::write_file::{self, Batch, Conflict};
use edgepack_format::finding::Findings;

use crate::file::name_of;
use crate::in_memory::{MemoryFiles, Pending};
use crate::remote::remote;
use crate::status::Failure;

/// Files read so far, and files that wait to replace others.
pub struct Outputs {
    batch: Batch,
    /// Files in memory, where the command is about those.
    memory: Option<Pending>,
    force: bool,
}

/// Reason a file was not written.
enum Unwritten {
    /// The content could not be made.
    Content(Failure),
    /// The file itself.
    File(io::Error),
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Unwritten::File(error)
    }
}

/// Returns whether a path is standard output, by one of its names.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path.as_os_str() == *name)
}

/// Returns whether the destination is not a file by itself: standard output, a device, a pipe.
pub fn is_stream(path: &Path) -> bool {
    is_stdout(path) || write_file::is_stream(path)
}

impl Outputs {
    /// Nothing read, nothing written; files go into memory if it has some.
    pub fn new(force: bool, memory: Option<MemoryFiles>) -> Outputs {
        let batch = if force { Batch::forced() } else { Batch::default() };
        Outputs { batch, memory: memory.map(|files| Pending::new(files, force)), force }
    }

    /// The files that wait, for what writes several by itself.
    pub fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Notes a file that is read; `-` is the standard input of the process.
    pub fn reads(&mut self, path: &Path) {
        match path.as_os_str() == "-" {
            true => self.reads_standard_input(),
            false if self.memory.is_some() => {}
            false => self.batch.reads(path),
        }
    }

    /// Files are known by their identity on Unix alone.
    #[cfg(not(unix))]
    fn reads_standard_input(&mut self) {}

    #[cfg(unix)]
    fn reads_standard_input(&mut self) {
        use std::os::fd::AsFd;

        let input = io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
        if let Ok(found) = input.and_then(|input| input.metadata()) {
            self.batch.reads_open(&found, "standard input");
        }
    }

    /// Writes all content of a file that takes its place with [`commit`](Self::commit).
    pub fn stage(
        &mut self,
        path: &Path,
        content: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if remote(path).is_some() {
            return Err(Failure::usage(format!("{}: nothing is written to servers", name_of(path))));
        }
        if let Some(memory) = &mut self.memory {
            let mut written = Vec::new();
            content(&mut written)?;
            return memory.add(path, written);
        }
        let staged = self.batch.write(path, |out| content(out).map_err(Unwritten::Content));
        staged.map_err(|error| match error {
            Unwritten::Content(failure) => failure,
            Unwritten::File(error) => unwritten(&error, path),
        })
    }

    /// Puts all files in their places.
    pub fn commit(&mut self) -> Result<(), Failure> {
        if let Some(memory) = &mut self.memory {
            memory.commit();
        }
        self.batch.commit().map_err(|error| Failure::unreadable(format!("cannot write {error}")))
    }

    /// Refuses to write what its verifier has errors for, unless that is wanted.
    pub fn verified(&self, path: &Path, findings: &Findings) -> Result<(), Failure> {
        match findings.first_error() {
            Some(error) if !self.force => {
                let (path, count) = (path.display(), findings.errors());
                let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
                let message =
                    format!("{path} would not be valid, so it is not written: {error}{more}; --force writes it");
                Err(Failure::findings(message))
            }
            _ => Ok(()),
        }
    }
}

/// The failure that an error about this path is.
pub fn unwritten(error: &io::Error, path: &Path) -> Failure {
    match Conflict::of(error) {
        Some(conflict) => Failure::usage(format!("{conflict}; --force writes it all the same")),
        None => Failure::unreadable(format!("cannot write {}: {error}", path.display())),
    }
}
