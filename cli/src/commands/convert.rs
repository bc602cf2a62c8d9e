//! `edgepack convert`: writes a data file from a safetensors file, and the reverse.

use std::path::PathBuf;
use std::sync::Arc;

use edgepack::edit::{from_safetensors, write_safetensors};
use edgepack_format::FileKind;
use edgepack_loader::{FileHead, FileSource, MemorySource, Source};

use crate::edit::{open, package, write};
use crate::file::unreadable;
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

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let name = args.from.display().to_string();
    let about = |error: edgepack::edit::Error| Failure::from(error).about(&name);
    let source: Arc<dyn Source> = match args.from.as_os_str() == "-" {
        true => Arc::new(MemorySource::new(session.read(&args.from)?)),
        false => {
            session.outputs.reads(&args.from);
            let failed = |error| Failure::unreadable(format!("{name}: {error}"));
            Arc::new(FileSource::open(&args.from).map_err(failed)?)
        }
    };
    let head = FileHead::detect(&*source, &session.limits).map_err(unreadable)?;
    if head.kind == FileKind::Safetensors {
        let package = from_safetensors(source).map_err(about)?;
        write(&package, &args.to, session)?;
    } else {
        let file = open(&args.from, session)?;
        let package = package(&file, &args.from)?;
        session.write_stream(&args.to, |out| write_safetensors(&package, out).map_err(about))?;
    }
    if session.json {
        session.document(&serde_json::json!({ "from": name, "to": args.to.display().to_string() }))?;
    }
    Ok(Status::Fine)
}
