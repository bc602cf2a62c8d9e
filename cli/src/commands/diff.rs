//! `edgepack diff`: what differs between two files.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use edgepack::edit::{Comparison, DiffOptions, Difference, DifferenceKind, compare, diff_libraries, library_parts};
use serde::Serialize;

use crate::edit::{apart, package};
use crate::file::name_of;
use crate::formats;
use crate::options::tolerance;
use crate::session::Session;
use crate::spelling::name;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::count;

/// Show what differs between two files: structure, tensors, payloads, named data
///
/// Methods are matched by name, instructions by what they call, values by their part in them, named data by key and
/// content; indices and places of bytes count only with --exact.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The first file
    pub left: PathBuf,

    /// The second file
    pub right: PathBuf,

    /// Relative tolerance of floating point elements, compared with the first file's
    #[arg(long, value_name = "R", default_value_t = 0.0, value_parser = tolerance, allow_negative_numbers = true)]
    pub rtol: f64,

    /// Absolute tolerance of floating point elements
    #[arg(long, value_name = "A", default_value_t = 0.0, value_parser = tolerance, allow_negative_numbers = true)]
    pub atol: f64,

    /// Compare every field as it is, every byte of every segment, and the form of the header
    #[arg(long)]
    pub exact: bool,

    /// Show every difference, not only the first 20
    #[arg(short, long)]
    pub all: bool,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Compared<'a> {
    /// Differences, in the order of the first file.
    differences: &'a [Difference],
    /// The first file.
    left: String,
    /// Values that have another index in the second file, which are no differences.
    renumbered: usize,
    /// The second file.
    right: String,
    /// Number of differences, part by part.
    summary: Vec<Area<'a>>,
}

/// Part of the files that differs.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Area<'a> {
    /// Number of differences.
    differences: usize,
    /// The part of the file.
    #[serde(rename = "in")]
    within: &'a str,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let options = DiffOptions { rtol: args.rtol, atol: args.atol, exact: args.exact };
    let (left, left_format) = formats::open(&args.left, session)?;
    let (right, right_format) = formats::open(&args.right, session)?;
    let comparing = session.progress.work("comparing");
    let limits = &session.limits;
    let libraries = left_format.library(&left, limits)?.zip(right_format.library(&right, limits)?);
    let found = if let Some((left, right)) = libraries {
        let differences = diff_libraries(&library_parts(&left), &library_parts(&right), &options)?;
        Comparison { differences, renumbered: 0 }
    } else {
        let (left, right) = (apart(left, session)?, apart(right, session)?);
        compare(&package(&left, &args.left)?, &package(&right, &args.right)?, &options)?
    };
    drop(comparing);
    let Comparison { differences: found, renumbered } = found;
    if session.json {
        let (left, right) = (name_of(&args.left), name_of(&args.right));
        let summary: Vec<_> =
            areas(&found).into_iter().map(|(within, differences)| Area { differences, within }).collect();
        session.document(&Compared { differences: &found, left, renumbered, right, summary })?;
    } else {
        print(&found, renumbered, args.all, &mut session.out)?;
    }
    Ok(if found.is_empty() { Status::Fine } else { Status::Findings })
}

/// Differences that are shown if not all are.
const SHOWN: usize = 20;

fn print(found: &[Difference], renumbered: usize, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let numbers = match renumbered {
        0 => String::new(),
        values => format!("; {} numbered differently", are(values, "value")),
    };
    if found.is_empty() {
        return writeln!(out, "{GOOD}same{GOOD:#}{numbers}");
    }
    let structure = match found.iter().all(|one| one.kind == DifferenceKind::Content) {
        true => ": the structure is the same, bytes differ",
        false => "",
    };
    writeln!(out, "{BAD}{}{BAD:#}{structure}{numbers}", count(found.len(), "difference"))?;
    let areas = areas(found);
    if areas.len() < found.len() {
        let mut columns = Columns::new(2, &[Align::Right, Align::Left]);
        for (area, number) in &areas {
            columns.row([number.to_string().into(), Cell::new(name(area), DIM)]);
        }
        columns.print(out)?;
    }
    let shown = if all { found.len() } else { SHOWN.min(found.len()) };
    for one in &found[..shown] {
        let path = if one.path.is_empty() { "file" } else { &one.path };
        writeln!(out, "{TITLE}{}{TITLE:#}", name(path))?;
        writeln!(out, "  {DIM}<{DIM:#} {}\n  {DIM}>{DIM:#} {}", name(&one.left), name(&one.right))?;
    }
    match found.len() - shown {
        0 => Ok(()),
        more => writeln!(out, "{DIM}and {more} more, which --all shows{DIM:#}"),
    }
}

/// `1 value is`, `2 values are`.
fn are(number: usize, what: &str) -> String {
    format!("{} {}", count(number, what), if number == 1 { "is" } else { "are" })
}

/// Parts of the files that differ, in order, with the number of differences in each.
fn areas(found: &[Difference]) -> Vec<(&str, usize)> {
    let (mut areas, mut known): (Vec<(&str, usize)>, HashMap<&str, usize>) = Default::default();
    for one in found {
        let area = area(&one.path);
        let index = *known.entry(area).or_insert(areas.len());
        match areas.get_mut(index) {
            Some((_, number)) => *number += 1,
            None => areas.push((area, 1)),
        }
    }
    areas
}

/// The list that a path leads into: `execution_plan[0].values` of `execution_plan[0].values[3].sizes`.
fn area(path: &str) -> &str {
    let end = |rest: &str| rest.find(['.', '[', ',', ' ']).unwrap_or(rest.len());
    if path.is_empty() {
        return "file";
    }
    let first = end(path);
    match path[first..].strip_prefix('[').and_then(|rest| rest.find("].")) {
        // A row of a list: the list in it.
        Some(close) => {
            let inner = first + 1 + close + 2;
            &path[..inner + end(&path[inner..])]
        }
        None => &path[..first],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_into_lists() {
        for (path, want) in [
            ("execution_plan[0].values[3].sizes", "execution_plan[0].values"),
            ("execution_plan[1].name", "execution_plan[1].name"),
            ("constants[3], element 5 and 2 more of f32[4]", "constants"),
            ("named_data w", "named_data"),
            ("version", "version"),
            ("segments[0]", "segments"),
            ("", "file"),
            ("a[", "a"),
        ] {
            assert_eq!(area(path), want);
        }
        let kind = DifferenceKind::Structure;
        let one = |path: &str| Difference { path: path.to_owned(), left: String::new(), right: String::new(), kind };
        let found = [one("a[0].b[1]"), one("c"), one("a[0].b[2].d")];
        assert_eq!(areas(&found), [("a[0].b", 2), ("c", 1)]);
    }
}
