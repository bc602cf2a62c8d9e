//! `edgepack join`: data files into the program that needs them.

use std::io::Write;
use std::path::PathBuf;

use edgepack::edit::join;
use serde::Serialize;

use crate::edit::{Takes, open, open_all, package, write};
use crate::file::name_of;
use crate::outputs::is_stdout;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::units::bytes;

/// Move what is in data files into the program that needs it
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// Its data files
    #[arg(long, value_name = "FILE", required = true)]
    pub data: Vec<PathBuf>,

    /// File for the program with the data in it; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Joined {
    /// Bytes of the program.
    bytes: u64,
    /// The program.
    output: String,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let file = open(&args.file, Takes::Programs, session)?;
    let data = open_all(&args.data, Takes::DataFiles, session)?;
    let packages = data.iter().zip(&args.data).map(|(opened, path)| package(opened, path));
    let packages = packages.collect::<Result<Vec<_>, _>>()?;
    let joined = join(package(&file, &args.file)?, &packages);
    let joined = joined.map_err(|error| Failure::from(error).about(&name_of(&args.file)))?;
    let len = write(&joined, &args.output, session)?;
    let output = args.output.display().to_string();
    if session.json {
        session.document(&Joined { bytes: len, output })?;
    } else if !is_stdout(&args.output) {
        writeln!(session.out, "{output}  {}", bytes(len))?;
    }
    Ok(Status::Fine)
}
