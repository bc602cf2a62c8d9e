//! Files as packages of rows and segments: opened for an edit, written when it is done.

use std::path::{Path, PathBuf};

use edgepack::edit::{Opened, Package, Ready};
use edgepack_format::FileKind;

use crate::file::{File, empty, name_of, read_all, refused};
use crate::formats::{self, wrong_kind};
use crate::session::Session;
use crate::status::Failure;

/// Files that an edit takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// Programs.
    Programs,
    /// Data files of any generation.
    DataFiles,
    /// Files with tensors by name.
    Both,
}

impl Takes {
    fn takes(self, kind: FileKind) -> bool {
        match kind {
            FileKind::Program => self != Takes::DataFiles,
            FileKind::Data | FileKind::FlatData => self != Takes::Programs,
            _ => false,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Takes::Programs => "a program",
            Takes::DataFiles => "a data file",
            Takes::Both => "a program or data file",
        }
    }
}

/// Opens a file to be taken apart, if it is what the edit takes.
pub fn open(path: &Path, takes: Takes, session: &mut Session) -> Result<Opened, Failure> {
    let (file, format) = formats::open(path, session)?;
    match takes.takes(format.kind()) {
        true => apart(file, session),
        false => Err(wrong_kind(&file, takes.words())),
    }
}

/// Takes a file that was opened, and recognised, apart.
pub fn apart(file: File, session: &Session) -> Result<Opened, Failure> {
    Opened::from_source(file.source, session.limits).map_err(|error| Failure::from(error).about(&file.name))
}

/// Opens several.
pub fn open_all(paths: &[PathBuf], takes: Takes, session: &mut Session) -> Result<Vec<Opened>, Failure> {
    paths.iter().map(|path| open(path, takes, session)).collect()
}

/// Returns the package in an opened file.
pub fn package<'a>(opened: &'a Opened, path: &Path) -> Result<Package<'a>, Failure> {
    opened.package().map_err(|error| Failure::from(error).about(&name_of(path)))
}

/// Writes a package that is valid to a file, or to standard output for `-`; its length.
pub fn write(package: &Package<'_>, path: &Path, session: &mut Session) -> Result<u64, Failure> {
    let len = stage(package, path, session)?;
    session.outputs.commit()?;
    Ok(len)
}

/// Stages the package for `path`; the file is replaced when all outputs are committed.
pub fn stage(package: &Package<'_>, path: &Path, session: &mut Session) -> Result<u64, Failure> {
    let ready = package.ready()?;
    stage_ready(&ready, path, session)?;
    Ok(ready.len())
}

/// Writes a file that is laid out, and valid, or to standard output for `-`.
pub fn write_ready(ready: &Ready<'_>, path: &Path, session: &mut Session) -> Result<(), Failure> {
    stage_ready(ready, path, session)?;
    session.outputs.commit()
}

fn stage_ready(ready: &Ready<'_>, path: &Path, session: &mut Session) -> Result<(), Failure> {
    session.outputs.verified(path, &ready.verify())?;
    session.stage(path, |out| Ok(ready.write_to(out)?))
}

/// Reads a file of text, which is `wanted`.
pub fn read_text(path: &Path, wanted: &str, session: &mut Session) -> Result<String, Failure> {
    let file = session.open(path)?;
    let bytes = read_all(&*file.source, &session.limits).map_err(|failure| failure.about(&file.name))?;
    match String::from_utf8(bytes) {
        Ok(text) if text.is_empty() => Err(empty(&file.name)),
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(not_text(&file, wanted)),
    }
}

/// The failure of a file in the place of text, by its kind.
pub fn not_text(file: &File, wanted: &str) -> Failure {
    match file.head.kind {
        FileKind::Unknown => refused(file),
        _ => wrong_kind(file, wanted),
    }
}
