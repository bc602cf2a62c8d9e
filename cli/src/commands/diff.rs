//! `edgepack diff`: what differs between two files.

use std::io::{self, Write};
use std::path::PathBuf;

use edgepack::edit::{DiffOptions, Difference, diff, diff_libraries, library_parts};

use crate::edit::{apart, package};
use crate::file::name_of;
use crate::formats;
use crate::session::Session;
use crate::spelling::name;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, TITLE};
use crate::units::count;

/// Show what differs between two files: structure, tensors, payloads, named data
///
/// Places of bytes in the file count only with --exact.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The first file
    pub left: PathBuf,

    /// The second file
    pub right: PathBuf,

    /// Relative tolerance of floating point elements, compared with the first file's
    #[arg(long, value_name = "R", default_value_t = 0.0)]
    pub rtol: f64,

    /// Absolute tolerance of floating point elements
    #[arg(long, value_name = "A", default_value_t = 0.0)]
    pub atol: f64,

    /// Compare every field as it is, every byte of every segment, and the form of the header
    #[arg(long)]
    pub exact: bool,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let options = DiffOptions { rtol: args.rtol, atol: args.atol, exact: args.exact };
    let (left, left_format) = formats::open(&args.left, session)?;
    let (right, right_format) = formats::open(&args.right, session)?;
    let limits = &session.limits;
    let libraries = left_format.library(&left, limits)?.zip(right_format.library(&right, limits)?);
    let found = if let Some((left, right)) = libraries {
        diff_libraries(&library_parts(&left), &library_parts(&right), &options)?
    } else {
        let (left, right) = (apart(left, session)?, apart(right, session)?);
        diff(&package(&left, &args.left)?, &package(&right, &args.right)?, &options)?
    };
    if session.json {
        let (left, right) = (name_of(&args.left), name_of(&args.right));
        session.document(&serde_json::json!({ "left": left, "right": right, "differences": found }))?;
    } else {
        print(&found, &mut session.out)?;
    }
    Ok(if found.is_empty() { Status::Fine } else { Status::Findings })
}

fn print(found: &[Difference], out: &mut dyn Write) -> io::Result<()> {
    for one in found {
        let path = if one.path.is_empty() { "file" } else { &one.path };
        writeln!(out, "{TITLE}{}{TITLE:#}", name(path))?;
        writeln!(out, "  {DIM}<{DIM:#} {}\n  {DIM}>{DIM:#} {}", name(&one.left), name(&one.right))?;
    }
    match found.len() {
        0 => writeln!(out, "{GOOD}same{GOOD:#}"),
        many => writeln!(out, "{BAD}{}{BAD:#}", count(many, "difference")),
    }
}
