//! `edgepack build`: a file from JSON.

use std::path::{Path, PathBuf};

use edgepack::edit::{Content, Error, build_from, build_library_from, is_library_dump, write_library};

use crate::edit::{read_text, write};
use crate::file::name_of;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Make a file of the JSON that `dump` wrote
///
/// A file that would not be valid is not written, unless --force is given: wrong files are wanted, too, for tests.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The JSON
    pub file: PathBuf,

    /// The folder of the files it names; the folder it is in if not given
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// File to make; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let json = read_text(&args.file, session)?;
    let folder = args.data_dir.as_deref().or(args.file.parent()).unwrap_or(Path::new(""));
    let about = |error| Failure::from(error).about(&name_of(&args.file));
    let mut open = |name: &str| -> Result<Content, Error> {
        let path = folder.join(name);
        session.outputs.reads(&path);
        Content::of_file(path)
    };
    let bytes = if is_library_dump(&json) {
        let bytes = write_library(&build_library_from(&json, &mut open).map_err(about)?).map_err(about)?;
        session.outputs.verified(&args.output, &edgepack_loader::mlf::verify(&bytes, &session.limits).findings)?;
        session.write_binary(&args.output, &bytes)?;
        bytes.len() as u64
    } else {
        let package = build_from(&json, &mut open).map_err(about)?;
        write(&package, &args.output, session)?
    };
    if session.json {
        let output = args.output.display().to_string();
        session.document(&serde_json::json!({ "output": output, "bytes": bytes }))?;
    }
    Ok(Status::Fine)
}
