//! Destinations of the data files of a program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use edgepack::builder::pte::BuiltProgram;

use crate::outputs::is_stdout;
use crate::session::Session;
use crate::status::Failure;

/// The data files that were asked for, by tag.
#[derive(Default)]
pub struct DataFiles {
    paths: BTreeMap<String, PathBuf>,
    /// Patterns of names that at least one weight must have, with the tag of their file.
    asked: Vec<(String, String)>,
}

impl DataFiles {
    /// Asks for a file, and answers with its tag: its name without extension, by which runtimes look for it.
    pub fn add(&mut self, path: &Path) -> Result<String, Failure> {
        let tag = path.file_stem().map_or("weights".to_owned(), |stem| stem.to_string_lossy().into_owned());
        match self.paths.insert(tag.clone(), path.to_owned()) {
            Some(other) if other != path => {
                let (path, other) = (path.display(), other.display());
                Err(Failure::usage(format!("{path} and {other} have one name: runtimes could not tell them apart")))
            }
            _ => Ok(tag),
        }
    }

    /// Asks for the file of the weights whose names match `pattern`, and returns its tag; at least one weight must
    /// match.
    pub fn asked(&mut self, pattern: &str, path: &Path) -> Result<String, Failure> {
        let tag = self.add(path)?;
        self.asked.push((pattern.to_owned(), tag.clone()));
        Ok(tag)
    }

    /// Writes the data files of a program; they are committed together with it. Files that no option asked for, such as
    /// those of backends, go next to the program.
    pub fn stage(&self, built: &BuiltProgram<'_>, output: &Path, session: &mut Session) -> Result<(), Failure> {
        let has = |tag: &str| built.data_files().any(|(known, _)| known == tag);
        if let Some((pattern, _)) = self.asked.iter().find(|(_, tag)| !has(tag)) {
            return Err(Failure::usage(format!("no weight has a name like {pattern:?}")));
        }
        for (tag, file) in built.data_files() {
            let path = match self.paths.get(tag) {
                Some(path) => path.clone(),
                None if is_stdout(output) => {
                    return Err(Failure::usage(format!("the program comes with the data file {tag}: name it with -o")));
                }
                None => output.with_file_name(format!("{tag}.ptd")),
            };
            session.stage(&path, |out| Ok(file.write_to(out)?))?;
        }
        Ok(())
    }
}
