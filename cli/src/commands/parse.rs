//! `edgepack parse`: a program from text.

use std::path::{Path, PathBuf};

use edgepack::edit::Content;
use edgepack::text::parse_with;
use serde::Serialize;

use crate::edit::{read_text, write};
use crate::file::name_of;
use crate::remote::{NOT_BESIDE, remote};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Make a program of the text that `print` wrote
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The text
    pub file: PathBuf,

    /// File for the program; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Parsed {
    /// Bytes of the program.
    bytes: u64,
    /// The program.
    output: String,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let text = read_text(&args.file, "the text of a program", session)?;
    let (folder, elsewhere) = (args.file.parent().unwrap_or(Path::new("")), remote(&args.file).is_some());
    let parsed = parse_with(&text, &mut |name| {
        if elsewhere {
            return Err(format!("{name}: {NOT_BESIDE}"));
        }
        let path = folder.join(name);
        session.outputs.reads(&path);
        Content::of_file(path).map_err(|error| error.to_string())
    });
    let package = parsed.map_err(|error| Failure::findings(format!("{}:{error}", name_of(&args.file))))?;
    let bytes = write(&package, &args.output, session)?;
    if session.json {
        let output = args.output.display().to_string();
        session.document(&Parsed { bytes, output })?;
    }
    Ok(Status::Fine)
}
