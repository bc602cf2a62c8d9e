//! A program to run, from a `.pte` or from the inside of a `.bpte`.

use std::sync::Arc;

use edgepack_format::bundle::BundleRef;
use edgepack_format::limits::Limits;
use edgepack_loader::{AlignedBytes, MemorySource, OpenOptions, Program, Source};

use crate::cases::{self, Recorded};
use crate::file::{File, read_head};
use crate::kind::Kind;
use crate::status::Failure;

/// A program with the runs that came with it.
pub struct Opened {
    /// The program, verified.
    pub program: Program,
    /// Runs recorded in the same file.
    pub recorded: Option<Vec<Recorded>>,
}

/// Opens the program of a file. What is wrong with it fails with all findings.
pub fn open(file: &File, limits: &Limits) -> Result<Opened, Failure> {
    let about = |failure: Failure| failure.about(&file.name);
    match file.kind {
        Kind::Program => {
            let program = from_source(file.source.clone(), limits).map_err(about)?;
            Ok(Opened { program, recorded: None })
        }
        Kind::Bundle => {
            let bytes: AlignedBytes = read_head(&*file.source, u64::MAX).map_err(about)?;
            let bundle = BundleRef::parse(&bytes, limits)
                .map_err(|findings| about(Failure::findings(format!("the file is not valid:\n{findings}"))))?;
            let recorded = cases::from_bundle(&bundle).map_err(|error| about(Failure::findings(error)))?;
            let source = MemorySource::new(bundle.program_bytes());
            let program = from_source(Arc::new(source), limits).map_err(about)?;
            Ok(Opened { program, recorded: Some(recorded) })
        }
        Kind::Model | Kind::Package => {
            let message = "this is compiled for an Edge TPU, and this build drives none; \
                           `edgepack darwinn` does what the host does";
            Err(about(Failure::cannot_run(message)))
        }
        kind => Err(Failure::usage(format!("{}: there is no program in this {}", file.name, kind.title()))),
    }
}

fn from_source(source: Arc<dyn Source>, limits: &Limits) -> Result<Program, Failure> {
    Ok(OpenOptions { limits: *limits }.open_source(source)?)
}

/// The method to run: the one asked for, the only one, or `forward`.
pub fn method(program: &Program, asked: Option<&str>) -> Result<String, Failure> {
    let names = program.method_names()?;
    if let Some(asked) = asked {
        return match names.iter().any(|name| name == asked) {
            true => Ok(asked.to_owned()),
            false => Err(Failure::usage(format!("there is no method {asked}; there are {}", names.join(", ")))),
        };
    }
    match names.as_slice() {
        [only] => Ok(only.clone()),
        _ if names.iter().any(|name| name == "forward") => Ok("forward".to_owned()),
        _ => Err(Failure::usage(format!("name one of the methods with --method: {}", names.join(", ")))),
    }
}
