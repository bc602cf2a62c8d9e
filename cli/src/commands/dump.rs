//! `edgepack dump`: a file as JSON.

use std::path::PathBuf;

use edgepack::edit::{Blobs, dump_with};

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
    let file = open(&args.file, session)?;
    let package = package(&file, &args.file)?;
    let blobs = match &args.data_dir {
        Some(folder) => {
            let failed = |error| Failure::unreadable(format!("{}: {error}", folder.display()));
            std::fs::create_dir_all(folder).map_err(failed)?;
            Blobs::Folder(folder)
        }
        None => Blobs::Inline,
    };
    let json = dump_with(&package, blobs)?;
    session.write_text(args.output.as_deref(), &json)?;
    Ok(Status::Fine)
}
