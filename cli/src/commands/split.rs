//! `edgepack split`: constants out of a program into a data file.

use std::io::Write;
use std::path::PathBuf;

use edgepack::edit::{Glob, SplitOptions, split};
use serde::Serialize;

use crate::edit::{Takes, open, package, stage};
use crate::file::name_of;
use crate::outputs::is_stdout;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::units::{bytes, count};

/// Move constants of a program into a data file, which `--data` then gives back to it
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// File for the program without them
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Data file for them, or a folder for a data file named after the program
    #[arg(long, value_name = "FILE|DIR")]
    pub data_out: PathBuf,

    /// Only those with such a name; * matches any text, ? one character
    #[arg(long = "match", value_name = "GLOB")]
    pub matching: Option<String>,

    /// Also the data that delegates find by key
    #[arg(long)]
    pub named: bool,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Parts<'a> {
    /// The data file.
    data: String,
    /// Bytes of the data file.
    data_bytes: u64,
    /// Keys in the data file.
    keys: &'a [String],
    /// The program.
    program: String,
    /// Bytes of the program.
    program_bytes: u64,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let data_out = match args.data_out.is_dir() {
        true => args.data_out.join(args.output.with_extension("ptd").file_name().unwrap_or_default()),
        false => args.data_out.clone(),
    };
    if is_stdout(&data_out) || is_stdout(&args.output) {
        return Err(Failure::usage("two files are written: name both"));
    }
    let file = open(&args.file, Takes::Programs, session)?;
    let package = package(&file, &args.file)?;
    let options = SplitOptions { matching: args.matching.as_deref().map(Glob::new), named: args.named };
    let parts = split(package, &options).map_err(|error| Failure::from(error).about(&name_of(&args.file)))?;
    if parts.keys.is_empty() {
        let asked =
            args.matching.as_deref().map(|pattern| format!(" with a name like {pattern:?}")).unwrap_or_default();
        return Err(Failure::usage(format!("{}: there is nothing to move{asked}", name_of(&args.file))));
    }
    // The data first: a program is never there without what it needs.
    let data_len = stage(&parts.data, &data_out, session)?;
    let program_len = stage(&parts.program, &args.output, session)?;
    session.outputs.commit()?;
    let (program, data) = (args.output.display().to_string(), data_out.display().to_string());
    if session.json {
        session.document(&Parts {
            data,
            data_bytes: data_len,
            keys: &parts.keys,
            program,
            program_bytes: program_len,
        })?;
    } else {
        writeln!(session.out, "{program}  {}", bytes(program_len))?;
        writeln!(session.out, "{data}  {}, {}", bytes(data_len), count(parts.keys.len(), "key"))?;
    }
    Ok(Status::Fine)
}
