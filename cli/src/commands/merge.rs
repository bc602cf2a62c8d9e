//! `edgepack merge`: several data files as one.

use std::io::Write;
use std::path::PathBuf;

use edgepack::edit::{merge, named};
use serde::Serialize;

use crate::edit::{Takes, open_all, package, write};
use crate::outputs::is_stdout;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::units::{bytes, count};

/// Put several data files into one
///
/// Data files of older layouts become today's. A key that is in two files with equal content is in the result once; with
/// other content it is refused.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Data files
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// File for the result; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Merged {
    /// Bytes of the data file.
    bytes: u64,
    /// Number of keys in it.
    keys: usize,
    /// The data file.
    output: String,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let opened = open_all(&args.files, Takes::DataFiles, session)?;
    let packages = opened.iter().zip(&args.files).map(|(opened, path)| package(opened, path));
    let packages = packages.collect::<Result<Vec<_>, _>>()?;
    let merged = merge(&packages)?;
    let keys = named(&merged)?.len();
    let len = write(&merged, &args.output, session)?;
    let output = args.output.display().to_string();
    if session.json {
        session.document(&Merged { bytes: len, keys, output })?;
    } else if !is_stdout(&args.output) {
        writeln!(session.out, "{output}  {}, {}", bytes(len), count(keys, "key"))?;
    }
    Ok(Status::Fine)
}
