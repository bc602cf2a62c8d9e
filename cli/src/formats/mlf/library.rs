//! The library in a package, and its modules.

use std::sync::Arc;

use edgepack_format::limits::Limits;
use edgepack_loader::mlf::{Library, LibraryModule};

use super::native;
use super::runner::Runner;
use crate::file::File;
use crate::options::Native;
use crate::status::Failure;

/// Opens a package.
pub fn library(file: &File, limits: &Limits) -> Result<Library, Failure> {
    let library = Library::from_source(Arc::clone(&file.source), limits);
    library.map_err(|error| Failure::from(error).about(&file.name))
}

/// Opens the module of a package: the one asked for, or the only one.
pub fn module(file: &File, asked: Option<&str>, limits: &Limits) -> Result<LibraryModule, Failure> {
    let library = library(file, limits)?;
    let names: Vec<String> = library.modules().map(|module| module.info().name.clone()).collect();
    let unclear = || Failure::usage(format!("name one of the modules with --method: {}", names.join(", ")));
    library.module(asked).map_err(|_| unclear().about(&file.name))
}

/// The module of a package, ready to run.
pub fn open(
    file: &File,
    asked: Option<&str>,
    consent: Native,
    limits: &Limits,
) -> Result<(LibraryModule, Runner), Failure> {
    let module = module(file, asked, limits)?;
    let runner = Runner::open(&module, &native::options(consent), limits);
    Ok((module, runner.map_err(|error| Failure::cannot_run(error).about(&file.name))?))
}
