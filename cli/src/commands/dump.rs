//! `edgepack dump`: a file as JSON.

use std::path::{Path, PathBuf};

use edgepack::edit::{Blobs, Document, Error, dump_library_of, library_parts};

use crate::edit::{apart, package};
use crate::formats::{self, Head};
use crate::outputs::unwritten;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Write the whole structure of a file as JSON, from which `build` makes a file of equal content
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// Put bytes into files of this folder, which is made if it is not there, instead of into the JSON
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Record where everything is, too: then `build` makes the same file byte for byte (programs, data
    /// files, bundled programs, compiled models, packages of files; of a package in gzip the archive in it;
    /// traces are not dumped at all)
    #[arg(long)]
    pub layout: bool,

    /// File for the JSON; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let (file, format) = formats::open(&args.file, session)?;
    match format.library(&file, &session.limits)? {
        Some(library) => {
            let mut parts = library_parts(&library);
            if args.layout {
                let unkept = |reason| Failure::findings(format!("{}: the layout cannot be kept: {reason}", file.name));
                library.layout().map_err(unkept)?;
            } else {
                parts.layout = None;
            }
            let json = dump_library_of(&library, &parts, blobs(args, session)?).map_err(failure)?;
            session.write_text(args.output.as_deref(), &json)?;
        }
        None => {
            let opened = apart(file.clone(), session)?;
            let mut package = package(&opened, &args.file)?;
            let name = file.name.clone();
            let about = |error| Failure::from(error).about(&name);
            package.origin = Some(opened.origin(&package).map_err(about)?);
            if args.layout {
                package.places = Some(Box::new(opened.places(&package).map_err(about)?));
            }
            let payloads = format.payloads(&Head::read(file, &session.limits)?, session)?;
            let document = Document::of(&package, &payloads, blobs(args, session)?).map_err(failure)?;
            session.write_text_stream(args.output.as_deref(), |out| document.write_to(out).map_err(failure))?;
        }
    }
    Ok(Status::Fine)
}

/// Failure for a file of the folder that could not be written.
fn failure(error: Error) -> Failure {
    match &error {
        Error::Io { what, error } => unwritten(error, Path::new(what)),
        _ => error.into(),
    }
}

/// Destination of the bytes; creates the folder if it does not exist.
fn blobs<'s>(args: &'s Args, session: &'s mut Session) -> Result<Blobs<'s>, Failure> {
    let Some(folder) = &args.data_dir else { return Ok(Blobs::Inline) };
    let failed = |error| Failure::unreadable(format!("{}: {error}", folder.display()));
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::unreadable(format!("{} is not a folder", folder.display())));
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    Ok(Blobs::Batch(folder, session.outputs.batch()))
}
