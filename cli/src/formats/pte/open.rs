//! A program to run, from a file or from the inside of one.

use std::sync::Arc;

use edgepack_executor::Options;
use edgepack_format::limits::Limits;
use edgepack_loader::{OpenOptions, Program, Source};

use crate::cases::Recorded;
use crate::formats::{Execution, open_data};
use crate::session::Session;
use crate::status::Failure;

/// A program with the runs that came with it.
pub struct Opened {
    /// The program, verified.
    pub program: Program,
    /// Runs recorded in the same file.
    pub recorded: Option<Vec<Recorded>>,
}

/// Opens a program. What is wrong with it fails with all findings.
pub fn open(source: Arc<dyn Source>, limits: &Limits) -> Result<Program, Failure> {
    Ok(OpenOptions { limits: *limits }.open_source(source)?)
}

/// The method to run: the one asked for, the only one, or `forward`.
pub fn method(program: &Program, asked: Option<&str>) -> Result<String, Failure> {
    let names = program.method_names()?;
    if let Some(asked) = asked {
        return match names.iter().any(|name| name == asked) {
            true => Ok(asked.to_owned()),
            false => Err(Failure::usage(format!("there is no method {asked}; the program has {}", names.join(", ")))),
        };
    }
    match names.as_slice() {
        [only] => Ok(only.clone()),
        _ if names.iter().any(|name| name == "forward") => Ok("forward".to_owned()),
        _ => Err(Failure::usage(format!("name one of the methods with --method: {}", names.join(", ")))),
    }
}

/// Options for loading a method, with its data files open.
pub fn options(how: Execution<'_>, session: &mut Session) -> Result<Options, Failure> {
    if how.native.module.is_some() || how.native.function.is_some() {
        let message = "--module and --function choose from a Model Library Format package; a program has --method";
        return Err(Failure::usage(message));
    }
    let data = open_data(how.data, session)?;
    let threads = how.threads.map(usize::from);
    // What an instruction wrote is found where the file has the instruction.
    let no_optimize = how.recorder.is_some_and(|recorder| recorder.borrow().records_values());
    let options = Options { data, threads, backends: edgepack::backends(), no_optimize, ..Options::default() };
    match how.pack_cache {
        Some(folder) => options.pack_cache(folder).map_err(|error| Failure::usage(format!("the pack cache {error}"))),
        None => Ok(options),
    }
}
