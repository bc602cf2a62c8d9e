//! Files in memory, for whoever runs the command where there are no others: a page in a browser.
//!
//! Invariant: a command that is given such files opens no others, and what it writes is among them when all of it is
//! complete. A file that is there is replaced only with `--force`. Folders, which a few commands work with, are those of
//! the system; where there is none they are refused.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use edgepack_loader::{MemorySource, Source};

use crate::file::name_of;
use crate::status::Failure;

/// Files by their names, which commands take for paths. Clones are the same files.
#[derive(Clone, Default)]
pub struct MemoryFiles(Rc<RefCell<BTreeMap<PathBuf, Arc<dyn Source>>>>);

impl MemoryFiles {
    /// Puts a file under a name, in the place of another one of that name.
    pub fn insert(&self, name: impl Into<PathBuf>, source: Arc<dyn Source>) {
        self.0.borrow_mut().insert(name.into(), source);
    }

    /// Takes a file away; `None` if there is none of that name.
    pub fn remove(&self, name: impl AsRef<Path>) -> Option<Arc<dyn Source>> {
        self.0.borrow_mut().remove(name.as_ref())
    }

    /// Returns a file; `None` if there is none of that name.
    pub fn get(&self, name: impl AsRef<Path>) -> Option<Arc<dyn Source>> {
        self.0.borrow().get(name.as_ref()).cloned()
    }

    /// Opens a file for a command.
    pub(crate) fn open(&self, name: &Path) -> Result<Arc<dyn Source>, Failure> {
        let missing = || Failure::unreadable(format!("{}: there is no file of this name in memory", name_of(name)));
        self.get(name).ok_or_else(missing)
    }
}

/// Files that a command has written, before all of them are complete.
pub(crate) struct Pending {
    files: MemoryFiles,
    force: bool,
    waiting: BTreeMap<PathBuf, Vec<u8>>,
}

impl Pending {
    /// Nothing written.
    pub fn new(files: MemoryFiles, force: bool) -> Self {
        Pending { files, force, waiting: BTreeMap::new() }
    }

    /// Adds a file that is complete.
    pub fn add(&mut self, name: &Path, content: Vec<u8>) -> Result<(), Failure> {
        if !self.force && (self.waiting.contains_key(name) || self.files.get(name).is_some()) {
            let name = name_of(name);
            return Err(Failure::usage(format!(
                "{name}: there is a file of this name; --force writes it all the same"
            )));
        }
        self.waiting.insert(name.to_owned(), content);
        Ok(())
    }

    /// Puts all files under their names.
    pub fn commit(&mut self) {
        for (name, content) in std::mem::take(&mut self.waiting) {
            self.files.insert(name, Arc::new(MemorySource::new(content)));
        }
    }
}
