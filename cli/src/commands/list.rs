//! `edgepack list`: names of what is in a file, a line each.

use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack::edit::{Glob, named};
use serde::Serialize;

use crate::edit::{Takes, open, package};
use crate::file::name_of;
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::style::{DIM, SHAPE};
use crate::table::{Align, Cell, Columns};
use crate::units::bytes;

/// List what has a name in data files and programs: names, types, bytes
///
/// Names are those that `patch`, `split --match` and `extract --named` take. Tensors that a program finds in data files are
/// listed there.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Data files and programs
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Only those with such a name; * matches any text, ? one character
    #[arg(long = "match", value_name = "GLOB")]
    pub matching: Option<String>,

    /// Print names alone
    #[arg(long, conflicts_with = "json")]
    pub names: bool,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct List {
    /// Everything with a name, file by file.
    entries: Vec<Listed>,
}

/// Something with a name.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Listed {
    /// The file it is in.
    file: String,
    /// Name of the tensor, or key of the bytes.
    name: String,
    /// Element type and sizes; absent for bytes that are not a tensor.
    #[serde(rename = "type")]
    signature: Option<String>,
    /// Size in bytes.
    bytes: u64,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let glob = args.matching.as_deref().map(Glob::new);
    let (mut listed, mut status) = (Vec::new(), Status::Fine);
    for path in &args.files {
        match list(path, glob.as_ref(), session) {
            Ok(found) => listed.extend(found),
            Err(failure) => status = session.passed_over(path, failure, args.files.len())?.max(status),
        }
    }
    if session.json {
        session.document(&List { entries: listed })?;
        return Ok(status);
    }
    let mut columns = Columns::new(0, &[Align::Left, Align::Left, Align::Right, Align::Left]);
    for Listed { file, name, signature, bytes: len } in listed {
        if args.names {
            writeln!(session.out, "{}", spelling::name(&name))?;
            continue;
        }
        let signature = signature.unwrap_or_else(|| "bytes".to_owned());
        let mut row = vec![Cell::from(spelling::name(&name)), Cell::new(signature, SHAPE), Cell::from(bytes(len))];
        if args.files.len() > 1 {
            row.push(Cell::new(file, DIM));
        }
        columns.row(row);
    }
    columns.print(&mut session.out)?;
    Ok(status)
}

/// Names in a file, of those that are asked for.
fn list(path: &Path, glob: Option<&Glob>, session: &mut Session) -> Result<Vec<Listed>, Failure> {
    let (opened, file) = (open(path, Takes::Both, session)?, name_of(path));
    let found = named(&package(&opened, path)?).map_err(|error| Failure::from(error).about(&file))?;
    let found = found.into_iter().filter(|entry| glob.is_none_or(|glob| glob.matches(&entry.name)));
    let listed = found.map(|entry| Listed {
        file: file.clone(),
        signature: entry.layout.as_ref().map(spelling::layout),
        bytes: entry.content.len(),
        name: entry.name,
    });
    Ok(listed.collect())
}
