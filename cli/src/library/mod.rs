//! Model Library Format packages at the command line: what is in them, and running them.
//!
//! The code of a package runs only with `--allow-native-code`.

pub mod bench;
pub mod cases;
pub mod check;
pub mod ops;
pub mod run;
pub mod runner;

use std::path::Path;
use std::sync::Arc;

use edgepack_format::limits::Limits;
use edgepack_loader::mlf::{Library, LibraryModule};

use crate::file::File;
use crate::kind::Kind;
use crate::session::Session;
use crate::status::Failure;

/// Options of running a package.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Native {
    /// Compile and call the code of a Model Library Format package, which then has all your rights
    #[arg(long)]
    pub allow_native_code: bool,
}

impl Native {
    /// How its code is compiled, and whether.
    #[expect(unsafe_code, reason = "the user's consent is given here and nowhere else")]
    pub fn options(self) -> edgepack_native::Options {
        let options = edgepack_native::Options::default();
        // SAFETY: the user has vouched for the package's code, and for the tensors given to it, by the option's name.
        if self.allow_native_code { unsafe { options.allow_native_code() } } else { options }
    }
}

/// Opens the module of a package: the one asked for, or the only one.
pub fn module(file: &File, asked: Option<&str>, limits: &Limits) -> Result<LibraryModule, Failure> {
    let about = |failure: Failure| failure.about(&file.name);
    let library = Library::from_source(Arc::clone(&file.source), limits).map_err(|error| about(error.into()))?;
    let names: Vec<String> = library.modules().map(|module| module.info().name.clone()).collect();
    library
        .module(asked)
        .map_err(|_| about(Failure::usage(format!("name one of the modules with --method: {}", names.join(", ")))))
}

/// The package in a file; nothing if the file is of another kind. Standard input is left to who can read it once.
pub fn parts(path: &Path, session: &mut Session) -> Result<Option<Library>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(None);
    }
    let file = session.open(path)?;
    if file.kind != Kind::Library {
        return Ok(None);
    }
    let library = Library::from_source(Arc::clone(&file.source), &session.limits);
    library.map(Some).map_err(|error| Failure::from(error).about(&file.name))
}

/// The module of a package, ready to run.
fn open(
    file: &File,
    asked: Option<&str>,
    native: Native,
    session: &Session,
) -> Result<(LibraryModule, runner::Runner), Failure> {
    let module = module(file, asked, &session.limits)?;
    let runner = runner::Runner::open(&module, &native.options(), &session.limits);
    Ok((module, runner.map_err(|error| Failure::cannot_run(error).about(&file.name))?))
}
