//! The library in a package, its modules, and those of them that are run.

use std::sync::Arc;

use edgepack_format::limits::Limits;
use edgepack_loader::mlf::{Library, LibraryModule};
use edgepack_native::{Error, Runner};

use super::native;
use crate::file::File;
use crate::options::Native;
use crate::session::Session;
use crate::status::Failure;

/// Opens a package.
pub fn library(file: &File, limits: &Limits) -> Result<Library, Failure> {
    let library = Library::from_source(Arc::clone(&file.source), limits);
    library.map_err(|error| Failure::from(error).about(&file.name))
}

/// Opens the module of a package: the one asked for, or the only one.
pub fn module(file: &File, asked: Option<&str>, limits: &Limits) -> Result<LibraryModule, Failure> {
    let library = library(file, limits)?;
    chosen(&library, asked).map_err(|failure| failure.about(&file.name))
}

/// The module of an open package that is asked for, or the only one.
pub fn chosen(library: &Library, asked: Option<&str>) -> Result<LibraryModule, Failure> {
    let names: Vec<String> = library.modules().map(|module| module.info().name.clone()).collect();
    library.module(asked).map_err(|_| {
        let names = names.join(", ");
        Failure::usage(match asked {
            Some(asked) => format!("there is no module {asked}; the package has {names}"),
            None => format!("name one of the modules with --module: {names}"),
        })
    })
}

/// The name under which the runs of a module, or of one of its functions, are recorded.
pub fn label(module: &LibraryModule, consent: &Native) -> String {
    match &consent.function {
        Some(function) => format!("{}.{function}", module.info().name),
        None => module.info().name.clone(),
    }
}

/// A module, or one function of it, ready to run: in a process of its own, unless the consent says otherwise.
pub fn open(module: &LibraryModule, consent: &Native, session: &Session) -> Result<Runner, Failure> {
    let _compiling = session.progress.work("compiling and loading");
    let (function, options, limits) = (consent.function.as_deref(), native::options(consent), &session.limits);
    let opened = match consent.in_process || !consent.allow_native_code {
        true => Runner::open(module, function, &options, limits),
        false => apart(module, consent, session)?,
    };
    opened.map_err(|error| match error {
        Error::NotAllowed => Failure::cannot_run(format!("{error}; --allow-native-code allows it")),
        error => Failure::cannot_run(error),
    })
}

/// A module in a process of its own.
#[cfg(unix)]
fn apart(module: &LibraryModule, consent: &Native, session: &Session) -> Result<Result<Runner, Error>, Failure> {
    use edgepack_native::Child;

    let helper = session.helper.as_ref().ok_or_else(nowhere)?;
    let mut child = Child::new(helper).with_argument(crate::HELPER);
    if let Some(seconds) = consent.time_limit {
        child = child.with_deadline(std::time::Duration::from_secs(seconds.into()));
    }
    let opened = child.open(module, consent.function.as_deref(), &native::options(consent), &session.limits);
    Ok(opened.map(|child| Runner::Child(Box::new(child))))
}

/// There are no such processes.
#[cfg(not(unix))]
fn apart(_: &LibraryModule, _: &Native, session: &Session) -> Result<Result<Runner, Error>, Failure> {
    let _helper = &session.helper;
    Err(nowhere())
}

fn nowhere() -> Failure {
    Failure::cannot_run(
        "there is no program here that runs code in a process of its own; --in-process runs it in this one",
    )
}
