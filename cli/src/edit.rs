//! Files as packages of rows and segments: opened for an edit, written when it is done.

use std::path::{Path, PathBuf};

use edgepack::edit::{Error, Opened, Package, Ready};
use edgepack_format::FileKind;

use crate::file::File;
use crate::file::name_of;
use crate::formats;
use crate::session::Session;
use crate::status::Failure;

/// Opens a file of the family to be taken apart.
pub fn open(path: &Path, session: &mut Session) -> Result<Opened, Failure> {
    let (file, _) = formats::open(path, session)?;
    apart(file, session)
}

/// Takes a file that was opened, and recognised, apart.
pub fn apart(file: File, session: &Session) -> Result<Opened, Failure> {
    Opened::from_source(file.source, session.limits).map_err(|error| Failure::from(error).about(&file.name))
}

/// Opens several.
pub fn open_all(paths: &[PathBuf], session: &mut Session) -> Result<Vec<Opened>, Failure> {
    paths.iter().map(|path| open(path, session)).collect()
}

/// Returns the package in an opened file.
pub fn package<'a>(opened: &'a Opened, path: &Path) -> Result<Package<'a>, Failure> {
    opened.package().map_err(|error| Failure::from(error).about(&name_of(path)))
}

/// Returns the package in an opened data file.
pub fn data_package<'a>(opened: &'a Opened, path: &Path) -> Result<Package<'a>, Failure> {
    let package = package(opened, path)?;
    match package.root.kind() {
        FileKind::Data | FileKind::FlatData => Ok(package),
        found => Err(Failure::from(Error::Kind { found, wanted: "a data file" }).about(&name_of(path))),
    }
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

/// Reads a file of text.
pub fn read_text(path: &Path, session: &mut Session) -> Result<String, Failure> {
    let bytes = session.read_filled(path)?;
    String::from_utf8(bytes).map_err(|_| Failure::findings(format!("{}: this is not text", name_of(path))))
}
