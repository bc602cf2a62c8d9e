//! One inspection: the summary of a family, every field if that is asked for, and the findings.

use std::io::{self, Write};

use edgepack_format::finding::{CutShort, Finding};
use serde::Serialize;

use super::fields::{self, Fields};
use super::{Format, Head, Root};
use crate::findings::print_section;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, TITLE};
use crate::units;

/// Summary of a file of one family: part of a JSON document, and lines for people.
pub trait Summary: Serialize {
    /// Prints it; with `all` every value and instruction.
    fn print(&self, all: bool, out: &mut dyn Write) -> io::Result<()>;
}

/// Tables that are stored inside a file as bytes.
#[derive(Default)]
pub struct Inside<'a> {
    /// The program inside a bundle.
    pub program: Option<Root<'a>>,
    /// Tables of a compiled model, level by level: packages, multi-executables, executables.
    pub levels: Vec<Root<'a>>,
}

/// The JSON document; the fields of the summary are next to `kind`.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Inspection<'a, S> {
    file: &'a str,
    kind: &'static str,
    /// Absent if not even the root table can be located, or it unfolds into more than anybody could read.
    #[serde(flatten)]
    summary: Option<&'a S>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_short: Option<CutShort>,
    findings: &'a [Finding],
    /// Number of findings that were counted but not stored.
    more_findings: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<Fields<'a, 'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program_tables: Option<Fields<'a, 'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inner_tables: Vec<Fields<'a, 'a>>,
}

/// Shows a file. `summary` is `None` where nothing can be read within reason; `inside` is shown with `all`.
pub fn show<S: Summary>(
    format: &dyn Format,
    head: &Head,
    summary: Option<&S>,
    inside: Inside<'_>,
    all: bool,
    session: &mut Session,
) -> Result<Status, Failure> {
    let findings = format.verify(head, session);
    let budget = fields::budget(&session.limits, head.bytes.len() as u64);
    let every_field = |(table, desc)| Fields::new(table, desc, &budget);
    let tables = format.root(head).filter(|_| all).map(every_field);
    let program = inside.program.filter(|_| all).map(every_field);
    let levels: Vec<_> = inside.levels.into_iter().filter(|_| all).map(every_field).collect();
    if session.json {
        session.document(&Inspection {
            file: &head.file.name,
            kind: format.id(),
            summary,
            cut_short: findings.cut_short(),
            findings: findings.as_slice(),
            more_findings: findings.dropped(),
            tables,
            program_tables: program,
            inner_tables: levels,
        })?;
    } else {
        session.separate()?;
        let out = &mut session.out;
        let (name, title, size) = (&head.file.name, format.kind().name(), units::bytes(head.file_len()));
        writeln!(out, "{TITLE}{name}{TITLE:#}  {title}, {size}")?;
        if let Some(cut) = findings.cut_short() {
            writeln!(out, "{BAD}{cut}{BAD:#}")?;
        }
        match summary {
            Some(summary) => summary.print(all, out)?,
            None => writeln!(out, "{DIM}nothing in it can be read within reason{DIM:#}")?,
        }
        if let Some(tables) = tables {
            writeln!(out, "\n{TITLE}every field{TITLE:#}")?;
            tables.print(2, out)?;
        }
        if let Some(program) = program {
            writeln!(out, "\n{TITLE}every field of the program inside{TITLE:#}")?;
            program.print(2, out)?;
        }
        for level in levels {
            writeln!(out, "\n{TITLE}every field of {} inside{TITLE:#}", level.name())?;
            level.print(2, out)?;
        }
        print_section(&findings, out)?;
    }
    Ok(if findings.has_errors() { Status::Findings } else { Status::Fine })
}
