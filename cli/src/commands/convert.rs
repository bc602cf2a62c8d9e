//! `edgepack convert`: writes a data file from a safetensors file, and the reverse.

use std::path::PathBuf;

use edgepack::edit::{from_safetensors, write_safetensors};
use edgepack_format::FileKind;
use serde::Serialize;

use crate::edit::{apart, package, write};
use crate::file::refused;
use crate::formats;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Turn a data file into a safetensors file, or a safetensors file into a data file
#[derive(clap::Args, Debug)]
pub struct Args {
    /// File to convert; a safetensors file becomes a data file, any data file a safetensors file
    pub from: PathBuf,

    /// File for the result; - is standard output
    pub to: PathBuf,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Converted {
    /// The file that was read.
    from: String,
    /// The file that was written.
    to: String,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let file = session.open(&args.from)?;
    let name = file.name.clone();
    let about = |error: edgepack::edit::Error| Failure::from(error).about(&name);
    if file.head.kind == FileKind::Safetensors {
        let package = from_safetensors(file.source).map_err(about)?;
        write(&package, &args.to, session)?;
    } else if formats::of(file.head.kind).is_none() {
        return Err(refused(&file));
    } else {
        let opened = apart(file, session)?;
        let package = package(&opened, &args.from)?;
        session.write_stream(&args.to, |out| write_safetensors(&package, out).map_err(about))?;
    }
    if session.json {
        session.document(&Converted { from: name, to: args.to.display().to_string() })?;
    }
    Ok(Status::Fine)
}
