//! Several files that take their places together.
//!
//! Invariant: nothing that exists is changed before [`Batch::commit`], but for what is not a regular file and therefore gets
//! its content at once.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::live::live;
use super::target::{FileId, FileTarget, Target};
use super::workspace::Workspace;

/// Bytes collected before they go to the file. Segments arrive in larger pieces and pass by.
const BUFFER: usize = 256 << 10;

/// Files to be written together, and files that they must not take the place of.
#[derive(Debug, Default)]
pub struct Batch {
    force: bool,
    inputs: HashMap<FileId, PathBuf>,
    outputs: HashMap<FileId, PathBuf>,
    workspaces: HashMap<PathBuf, Workspace>,
    staged: Vec<Staged>,
}

/// A file that is complete but not in its place.
#[derive(Debug)]
struct Staged {
    /// As the caller names it.
    name: PathBuf,
    content: PathBuf,
    target: FileTarget,
}

/// A path that a batch does not write to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// It is one of the files that are read.
    #[error("{}", read_as(output, input))]
    Input {
        /// Path that was to be written.
        output: PathBuf,
        /// The file that is read, as it was named.
        input: PathBuf,
    },
    /// Something else is written there.
    #[error("{}", one_file(first, second))]
    Outputs {
        /// The path that came first.
        first: PathBuf,
        /// Path that came later and names that file again.
        second: PathBuf,
    },
}

fn read_as(output: &Path, input: &Path) -> String {
    let shown = output.display();
    if output == input {
        format!("{shown} is the file that is read")
    } else {
        format!("{shown} is the file that is read as {}", input.display())
    }
}

fn one_file(first: &Path, second: &Path) -> String {
    let shown = first.display();
    if first == second {
        format!("two outputs go to {shown}")
    } else {
        format!("{shown} and {} are one file", second.display())
    }
}

impl From<Conflict> for io::Error {
    fn from(conflict: Conflict) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, conflict)
    }
}

impl Conflict {
    /// The conflict that an error is about, if it is one.
    pub fn of(error: &io::Error) -> Option<&Conflict> {
        error.get_ref()?.downcast_ref()
    }
}

impl Batch {
    /// One that also writes over files that are read, and lets the last of several outputs win.
    pub fn forced() -> Batch {
        Batch { force: true, ..Batch::default() }
    }

    /// Notes a file that is read. A file that does not exist, or holds nothing, need not be protected.
    pub fn reads(&mut self, path: impl AsRef<Path>) {
        let path = path.as_ref();
        if let Ok(found) = fs::metadata(path) {
            self.note(&found, path, path);
        }
    }

    /// The same for a file that is open, as standard input may be; `name` is what people call it.
    pub fn reads_open(&mut self, metadata: &Metadata, name: impl AsRef<Path>) {
        // Where files are known by path, an open one is not known.
        if cfg!(unix) {
            self.note(metadata, Path::new(""), name.as_ref());
        }
    }

    fn note(&mut self, metadata: &Metadata, path: &Path, name: &Path) {
        if let Some(id) = FileId::of(metadata, path) {
            self.inputs.entry(id).or_insert_with(|| name.to_path_buf());
        }
    }

    /// Forgets that a file is read: it is to be changed in place.
    pub fn changes(&mut self, path: impl AsRef<Path>) {
        let path = path.as_ref();
        if let Some(id) = fs::metadata(path).ok().and_then(|found| FileId::of(&found, path)) {
            self.inputs.remove(&id);
        }
    }

    /// Writes all content of a file that takes its place with [`commit`](Self::commit). What is not a regular file gets it
    /// at once.
    pub fn write<E: From<io::Error>>(
        &mut self,
        path: impl AsRef<Path>,
        content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = path.as_ref();
        let target = Target::of(path)?;
        if let Some(id) = target.id() {
            self.claim(id, path).map_err(io::Error::from)?;
        }
        match target {
            Target::Stream { .. } => into(path, content),
            Target::File(target) => self.stage(path, *target, content),
        }
    }

    fn claim(&mut self, id: &FileId, path: &Path) -> Result<(), Conflict> {
        if self.force {
            return Ok(());
        }
        if let Some(input) = self.inputs.get(id) {
            return Err(Conflict::Input { output: path.to_path_buf(), input: input.clone() });
        }
        match self.outputs.insert(id.clone(), path.to_path_buf()) {
            None => Ok(()),
            Some(first) => Err(Conflict::Outputs { first, second: path.to_path_buf() }),
        }
    }

    fn stage<E: From<io::Error>>(
        &mut self,
        path: &Path,
        target: FileTarget,
        content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let workspace = match self.workspaces.remove(&target.folder) {
            Some(workspace) => workspace,
            None => Workspace::new(&target.folder)?,
        };
        let workspace = self.workspaces.entry(target.folder.clone()).or_insert(workspace);
        let (temporary, file) = workspace.file()?;
        let mut out = BufWriter::with_capacity(BUFFER, file);
        content(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        like_before(&file, &target)?;
        file.sync_all()?;
        self.staged.push(Staged { name: path.to_path_buf(), content: temporary, target });
        Ok(())
    }

    /// Puts all files in their places, in the order in which they were written. An interruption waits until all are there;
    /// if one cannot be put there, those before it get back what was there before, as far as the file system has hard
    /// links.
    pub fn commit(&mut self) -> io::Result<()> {
        let staged = std::mem::take(&mut self.staged);
        let guard = live();
        // One file needs no undoing.
        let several = staged.len() > 1;
        let old: Vec<Option<PathBuf>> =
            staged.iter().map(|file| if several { self.second_name(file) } else { None }).collect();
        let mut outcome = Ok(());
        let mut done = 0usize;
        for file in &staged {
            if let Err(error) = fs::rename(&file.content, &file.target.path) {
                let message = format!("{}: {error}", file.name.display());
                outcome = Err(io::Error::new(error.kind(), message));
                break;
            }
            done = done.saturating_add(1);
        }
        if outcome.is_err() {
            for (file, old) in staged.iter().zip(old).take(done).rev() {
                // The first failure is told; this is the best that can be done about it.
                let _ = match old {
                    Some(old) => fs::rename(old, &file.target.path),
                    None if file.target.old.is_none() => fs::remove_file(&file.target.path),
                    None => Ok(()),
                };
            }
        }
        drop(guard);
        self.workspaces.clear();
        self.outputs.clear();
        outcome
    }

    /// Another name of the file that will be replaced, if there is one and the file system has such names.
    fn second_name(&mut self, file: &Staged) -> Option<PathBuf> {
        file.target.old.as_ref()?;
        let name = self.workspaces.get_mut(&file.target.folder)?.name();
        fs::hard_link(&file.target.path, &name).ok().map(|()| name)
    }
}

/// Gives a new file the permissions of the old one and, where we may, its owner.
fn like_before(file: &File, target: &FileTarget) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(old) = &target.old {
        use std::os::unix::fs::{MetadataExt, fchown};

        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only some users may; for others the file is theirs, as if they had made it.
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
        }
    }
    match target.permissions() {
        Some(permissions) => file.set_permissions(permissions),
        None => Ok(()),
    }
}

/// Writes into what is not a regular file. A descriptor that is one gets the content behind what it has.
fn into<E: From<io::Error>>(path: &Path, content: impl FnOnce(&mut dyn Write) -> Result<(), E>) -> Result<(), E> {
    let append = fs::metadata(path)?.is_file();
    let file = OpenOptions::new().write(true).append(append).open(path)?;
    let mut out = BufWriter::with_capacity(BUFFER, file);
    content(&mut out)?;
    out.flush()?;
    Ok(())
}
