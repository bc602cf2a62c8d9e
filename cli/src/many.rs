//! Several files for one command: those that are named, and those of folders.
//!
//! Invariant: a file that is named is answered for, whatever it is; one that a folder holds is left out if the command
//! does not open its kind, and how many were is said.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::file::{self, name_of};
use crate::formats;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::units::count;

/// Files to read.
#[derive(clap::Args, Debug)]
pub struct Files {
    /// The files; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "folders")]
    pub files: Vec<PathBuf>,

    /// Also every file in this folder and those below it of a kind that the command opens
    #[arg(short = 'r', long = "recursive", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
}

/// A file of the command line or of a folder.
pub struct Found {
    /// Path of the file.
    pub path: PathBuf,
    /// Path below the folder that was asked for; `None` for a file that was named.
    pub below: Option<PathBuf>,
}

impl Files {
    /// Returns the number of files if they were all named.
    pub fn named(&self) -> Option<usize> {
        self.folders.is_empty().then_some(self.files.len())
    }

    /// The named files, then those of the folders, by path.
    pub fn found(&self) -> Result<Vec<Found>, Failure> {
        let mut found: Vec<Found> = self.files.iter().map(|path| Found { path: path.clone(), below: None }).collect();
        for folder in &self.folders {
            let mut paths = Vec::new();
            walk(folder, &mut paths)?;
            paths.sort();
            let below = |path: &Path| path.strip_prefix(folder).unwrap_or(path).to_owned();
            found.extend(paths.into_iter().map(|path| Found { below: Some(below(&path)), path }));
        }
        Ok(found)
    }

    /// Asks something of each file; the highest status. A failure about a file is reported, and the others go on. A single
    /// file is asked as if there were no others.
    pub fn each(
        &self,
        session: &mut Session,
        mut ask: impl FnMut(&Found, &mut Session) -> Result<Status, Failure>,
    ) -> Result<Status, Failure> {
        let found = self.found()?;
        if self.named() == Some(1) {
            return found.iter().try_fold(Status::Fine, |_, file| {
                named_folder(&file.path)?;
                ask(file, session)
            });
        }
        session.several()?;
        let (mut status, mut left_out) = (Status::Fine, LeftOut::default());
        for file in &found {
            let asked = match left_out.takes(file, session) {
                Ok(false) => continue,
                Ok(true) => named_folder(&file.path).and_then(|()| ask(file, session)),
                Err(failure) => Err(failure),
            };
            match asked {
                Ok(one) => {
                    session.reach(one);
                    status = status.max(one);
                }
                Err(failure) if failure.output => return Err(failure),
                Err(failure) if file.below.is_some() && failure.status == Status::Usage => left_out.count += 1,
                Err(failure) => {
                    status = status.max(failure.status);
                    session.failed(&name_of(&file.path), &failure)?;
                }
            }
        }
        left_out.report(found.len(), session)?;
        Ok(status)
    }
}

/// Files of folders that the command does not open.
#[derive(Default)]
pub struct LeftOut {
    count: usize,
}

impl LeftOut {
    /// Returns whether the command is for the file: it was named, or it is of a kind that commands open.
    pub fn takes(&mut self, file: &Found, session: &mut Session) -> Result<bool, Failure> {
        if file.below.is_none() {
            return Ok(true);
        }
        let known = formats::of(session.open(&file.path)?.head.kind).is_some();
        self.count += usize::from(!known);
        Ok(known)
    }

    /// Says how many there were of all files. That the command is for none of them is a failure: who checks a folder does not
    /// expect to check nothing.
    pub fn report(&self, all: usize, session: &mut Session) -> Result<(), Failure> {
        let files = count(self.count, "file");
        if all == 0 {
            return Err(Failure::unreadable("there is nothing to read: the folder holds no file"));
        }
        if self.count == all {
            let message =
                format!("there is nothing to read: {files}, of which none is of a kind that this command opens");
            return Err(Failure::unreadable(message));
        }
        if self.count > 0 && !session.json {
            session.out.flush()?;
            writeln!(session.err, "left out: {files} of other kinds")?;
        }
        Ok(())
    }
}

/// Refuses a folder in the place of a file, with a way out.
pub fn named_folder(path: &Path) -> Result<(), Failure> {
    if !file::is_stdin(path) && path.is_dir() {
        let name = name_of(path);
        return Err(Failure::unreadable(format!("{name}: this is a folder; `-r {name}` takes the files in it")));
    }
    Ok(())
}

/// Collects the regular files below a folder. Links to folders are not followed, so that no folder is its own.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |folder: &Path, error: std::io::Error| Failure::unreadable(format!("{}: {error}", folder.display()));
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, error))? {
            let entry = entry.map_err(|error| failed(&folder, error))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(|error| failed(&folder, error))?);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() || kind.is_symlink() && path.is_file() {
                files.push(path);
            }
        }
    }
    Ok(())
}
