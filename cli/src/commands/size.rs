//! `edgepack size`: where the bytes go.

use std::io::{self, Write};

use edgepack_format::finding::CutShort;
use serde::Serialize;

use crate::formats::{self, Size};
use crate::many::Files;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{DIM, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, share};

/// Show where the bytes of files go: segments, tensors, delegates, padding, duplicates
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Files.
    #[command(flatten)]
    pub files: Files,

    /// Show every tensor
    #[arg(short, long)]
    pub all: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    file: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_short: Option<CutShort>,
    #[serde(flatten)]
    size: &'a Size,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    args.files.each(session, |file, session| {
        let (head, format) = formats::read(&file.path, session)?;
        let name = &head.file.name;
        let findings = format.verify(&head, session);
        let (broken, cut_short) = (findings.has_errors(), findings.cut_short());
        let adding = session.progress.work(&format!("adding up {name}"));
        let size = format.size(&head, session).map_err(|failure| failure.about(name))?;
        drop(adding);
        if session.json {
            session.document(&Document { file: name, kind: format.id(), cut_short, size: &size })?;
        } else {
            session.separate()?;
            print(name, &size, cut_short, args.all, &mut session.out)?;
            if broken {
                writeln!(session.out, "\n{WARN}the file breaks rules: see `edgepack verify`{WARN:#}")?;
            }
        }
        Ok(if broken { Status::Findings } else { Status::Fine })
    })
}

/// Tensors that are shown if not all are.
const SHOWN: usize = 10;

fn print(name: &str, size: &Size, cut: Option<CutShort>, all: bool, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{TITLE}{name}{TITLE:#}  {}", bytes(size.bytes))?;
    // Of a file that is cut short the parts are those of the whole one.
    let total = cut.map_or(size.bytes, |cut| cut.want.max(size.bytes));
    if let Some(cut) = cut {
        writeln!(out, "{WARN}{cut}{WARN:#}; shares are of all")?;
    }
    let sum = size.parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.bytes));
    if sum > total {
        writeln!(out, "{WARN}parts overlap or end behind the file: together they have {}{WARN:#}", bytes(sum))?;
    }
    let mut columns = Columns::new(2, &[Align::Right, Align::Right, Align::Left]);
    for part in &size.parts {
        columns.row([bytes(part.bytes).into(), Cell::new(share(part.bytes, total), DIM), (&part.what).into()]);
    }
    columns.print(out)?;
    if !size.tensors.is_empty() {
        let shown = if all { size.tensors.len() } else { SHOWN.min(size.tensors.len()) };
        let which = if shown < size.tensors.len() { "largest tensors" } else { "tensors" };
        writeln!(out, "\n{TITLE}{which}{TITLE:#}  {shown} of {}", size.tensors.len())?;
        let mut columns = Columns::new(2, &[Align::Right, Align::Right, Align::Left, Align::Left]);
        for tensor in size.tensors.iter().take(shown) {
            columns.row([
                bytes(tensor.bytes).into(),
                Cell::new(share(tensor.bytes, total), DIM),
                Cell::new(&tensor.layout, SHAPE),
                Cell::new(&tensor.name, NAME),
            ]);
        }
        columns.print(out)?;
    }
    if !size.duplicates.is_empty() {
        let wasted = size.duplicates.iter().fold(0u64, |wasted, duplicate| wasted.saturating_add(duplicate.wasted));
        writeln!(out, "\n{TITLE}the same bytes more than once{TITLE:#}  {WARN}{} wasted{WARN:#}", bytes(wasted))?;
        for duplicate in &size.duplicates {
            writeln!(out, "  {}  {}", bytes(duplicate.wasted), duplicate.places.join(", "))?;
        }
    }
    Ok(())
}
