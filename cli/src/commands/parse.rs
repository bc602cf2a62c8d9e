//! `edgepack parse`: a program from text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use edgepack::edit::Content;
use edgepack::text::parse_with;
use edgepack_loader::{FileSource, Source as _};

use crate::package::{read_text, write};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Make a program of the text that `print` wrote
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The text
    pub file: PathBuf,

    /// Where the program goes; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let text = read_text(&args.file, session)?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let parsed = parse_with(&text, &mut |name| beside(folder, name));
    let package = parsed.map_err(|error| Failure::findings(format!("{}:{error}", args.file.display())))?;
    let bytes = write(&package, &args.output, session)?;
    if session.json {
        let output = args.output.display().to_string();
        session.document(&serde_json::json!({ "output": output, "bytes": bytes }))?;
    }
    Ok(Status::Fine)
}

fn beside(folder: &Path, name: &str) -> Result<Content, String> {
    let path = folder.join(name);
    let source = FileSource::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let len = source.len();
    Content::of(Arc::new(source), 0..len).ok_or_else(|| format!("{}: its length changes", path.display()))
}
