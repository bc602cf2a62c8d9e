//! `edgepack build`: a file from JSON.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use edgepack::edit::{Content, DocumentText, Error, Likeness, build_document, build_library_from, is_library_dump};

use edgepack_format::FileKind;
use serde::Serialize;

use crate::edit::{not_text, write_ready};
use crate::file::{File, name_of};
use crate::formats::wrong_kind;
use crate::remote::{NOT_BESIDE, remote};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Make a file of the JSON that `dump` wrote
///
/// The file has the content of the JSON. It has the same bytes as the file that was dumped, too, if `dump --layout` wrote
/// the JSON, or if our own writer made that file; otherwise it is said that only the content is the same. After an edit
/// that does not fit the recorded places the file is laid out again, which is said as well.
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

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Built {
    /// Bytes of the file.
    bytes: u64,
    /// Reason that the layout of the document was not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    laid_out_again: Option<String>,
    /// Comparison with the file that the document was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    /// The file.
    output: String,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    const WANTED: &str = "JSON that `dump` wrote";
    // Read piece by piece: mapped, its pages would count as memory.
    let file = File::of(name_of(&args.file), session.source(&args.file)?, &session.limits)?;
    if !matches!(file.head.kind, FileKind::Dump | FileKind::Unknown) {
        return Err(wrong_kind(&file, WANTED));
    }
    let json = DocumentText::read(Arc::clone(&file.source)).map_err(|error| match error {
        Error::NotText => not_text(&file, WANTED),
        error => unread(error, &args.file),
    })?;
    let folder = args.data_dir.as_deref().or(args.file.parent()).unwrap_or(Path::new(""));
    let about = |error| Failure::from(error).about(&name_of(&args.file));
    if let Some(folder) = args.data_dir.as_deref().filter(|folder| remote(folder).is_none() && !folder.is_dir()) {
        return Err(Failure::unreadable(format!("--data-dir {}: there is no such folder", folder.display())));
    }
    let elsewhere = remote(args.data_dir.as_deref().unwrap_or(&args.file)).is_some();
    let mut open = |name: &str| -> Result<Content, Error> {
        if elsewhere {
            return Err(Error::Document(format!("{name}: {NOT_BESIDE}")));
        }
        let path = folder.join(name);
        session.outputs.reads(&path);
        Content::of_file(path)
    };
    let (likeness, unplaced);
    let bytes = if is_library_dump(json.text()) {
        let (parts, origin) = build_library_from(json.text(), &mut open).map_err(about)?;
        let (bytes, reason) = parts.archive().map_err(Failure::findings)?;
        likeness = origin.map(|origin| origin.likeness(|out| out.write_all(&bytes))).transpose().map_err(about)?;
        unplaced = reason;
        session.outputs.verified(&args.output, &edgepack_loader::mlf::verify(&bytes, &session.limits).findings)?;
        session.write_binary(&args.output, &bytes)?;
        if !session.json {
            remark(unplaced.as_deref(), likeness, session)?;
        }
        bytes.len() as u64
    } else {
        let package = build_document(&json, &mut open).map_err(about)?;
        let ready = package.ready()?;
        likeness = package.origin.as_ref().map(|origin| ready.likeness(origin)).transpose().map_err(about)?;
        write_ready(&ready, &args.output, session)?;
        unplaced = ready.unplaced().map(str::to_owned);
        if !session.json {
            remark(ready.unplaced(), likeness, session)?;
        }
        ready.len()
    };
    if session.json {
        let output = args.output.display().to_string();
        let origin = match likeness {
            Some(Likeness::Bytes) => Some("same bytes"),
            Some(Likeness::Content) => Some("same content, other bytes"),
            Some(Likeness::Unknown) | None => None,
        };
        session.document(&Built { bytes, laid_out_again: unplaced, origin, output })?;
    }
    Ok(Status::Fine)
}

/// Failure for a document that cannot be read.
fn unread(error: Error, path: &Path) -> Failure {
    let about = name_of(path);
    match error {
        Error::Io { error, .. } => Failure::unreadable(error).about(&about),
        Error::Document(message) => Failure::findings(message).about(&about),
        error => Failure::from(error).about(&about),
    }
}

/// Says how the file differs from the one that the JSON was made of, as far as that is known.
fn remark(unplaced: Option<&str>, likeness: Option<Likeness>, session: &mut Session) -> Result<(), Failure> {
    if let Some(reason) = unplaced {
        writeln!(session.err, "laid out again, because the content no longer fits the recorded places: {reason}")?;
    } else if likeness == Some(Likeness::Content) {
        writeln!(session.err, "same content, other bytes; what `dump --layout` writes gives the same bytes")?;
    }
    Ok(())
}
