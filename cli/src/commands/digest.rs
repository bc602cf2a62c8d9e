//! `edgepack digest`: a manifest of files.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::file::listed;
use crate::manifest::{Hex, escape, of_parts, of_source};
use crate::progress::Unit;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Print the SHA-256 of files, a manifest that `verify --against` and `sha256sum -c` check
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Files of any kind
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Also a line for every tensor and other data with a name in programs and data files, so that `verify --against` can
    /// say which of them changed; `sha256sum` does not know these lines
    #[arg(long)]
    pub parts: bool,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Digests {
    /// Digests, file by file.
    files: Vec<Digested>,
}

/// Digest of a file.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Digested {
    /// The file.
    file: String,
    /// SHA-256 in hexadecimal digits.
    sha256: Hex,
    /// Bytes of the file.
    bytes: u64,
    /// Digests of its tensors, if they are asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
}

/// Digest of a tensor or named data.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Part {
    /// Name of the tensor, or key of the bytes.
    name: String,
    /// SHA-256 in hexadecimal digits.
    sha256: Hex,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let (mut digested, mut status) = (Vec::new(), Status::Fine);
    for path in &args.files {
        match digest(path, args.parts, session) {
            Ok(one) => digested.push(one),
            Err(failure) => status = session.passed_over(path, failure, args.files.len())?.max(status),
        }
    }
    if session.json {
        session.document(&Digests { files: digested })?;
        return Ok(status);
    }
    for Digested { file, sha256, parts, .. } in digested {
        let file = escape(&file);
        writeln!(session.out, "{sha256}  {file}")?;
        for Part { name, sha256 } in parts {
            writeln!(session.out, "{sha256}  {file}#{}", escape(&name))?;
        }
    }
    Ok(status)
}

/// The digest of a file, and of what is in it.
fn digest(path: &Path, parts: bool, session: &mut Session) -> Result<Digested, Failure> {
    let file = session.open(path)?;
    let hashing = session.progress.counted(&format!("hashing {}", file.name), file.source.len(), Unit::Bytes);
    let sha256 = of_source(&*file.source, &hashing).map_err(|error| Failure::unreadable(error).about(&file.name))?;
    drop(hashing);
    let parts = if parts { of_parts(&file, session)? } else { Vec::new() };
    let parts = parts.into_iter().map(|(name, sha256)| Part { name, sha256 }).collect();
    Ok(Digested { file: listed(path), sha256, bytes: file.source.len(), parts })
}
