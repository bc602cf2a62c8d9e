//! `edgepack dump`: a file as JSON.

use std::path::PathBuf;

use edgepack::edit::{Blobs, dump_library, dump_with, library_parts};

use crate::library;
use crate::package::{open, package};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Write the whole structure of a file as JSON, which `build` turns back into the same file
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// Put bytes into files of this folder, which is made if it is not there, instead of into the JSON
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Where the JSON goes; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let json = match library::parts(&args.file, session)? {
        Some(library) => dump_library(&library_parts(&library), blobs(args)?)?,
        None => {
            let file = open(&args.file, session)?;
            let package = package(&file, &args.file)?;
            dump_with(&package, blobs(args)?)?
        }
    };
    session.write_text(args.output.as_deref(), &json)?;
    Ok(Status::Fine)
}

/// Where bytes go; a folder is made if it is not there.
fn blobs(args: &Args) -> Result<Blobs<'_>, Failure> {
    let Some(folder) = &args.data_dir else { return Ok(Blobs::Inline) };
    let failed = |error| Failure::unreadable(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    Ok(Blobs::Folder(folder))
}
