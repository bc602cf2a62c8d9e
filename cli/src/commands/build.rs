//! `edgepack build`: a file from JSON.

use std::path::PathBuf;

use edgepack::edit::{build_library, build_with, is_library_dump, write_library};

use crate::package::{read_text, write};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Make a file of the JSON that `dump` wrote; nothing is checked, so that wrong files can be made, too
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The JSON
    pub file: PathBuf,

    /// The folder of the files it names; the folder it is in if not given
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Where the file goes; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let json = read_text(&args.file, session)?;
    let folder = args.data_dir.as_deref().or(args.file.parent());
    let about = |error| Failure::from(error).about(&args.file.display().to_string());
    let bytes = if is_library_dump(&json) {
        let bytes = write_library(&build_library(&json, folder).map_err(about)?).map_err(about)?;
        session.write_binary(&args.output, &bytes)?;
        bytes.len() as u64
    } else {
        write(&build_with(&json, folder).map_err(about)?, &args.output, session)?
    };
    if session.json {
        let output = args.output.display().to_string();
        session.document(&serde_json::json!({ "output": output, "bytes": bytes }))?;
    }
    Ok(Status::Fine)
}
