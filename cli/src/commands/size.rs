//! `edgepack size`: where the bytes go.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use crate::anatomy::{self, Anatomy};
use crate::flatbuffer::Flatbuffer;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{DIM, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, share};

/// Show where the bytes of a file go: segments, tensors, delegates, padding, duplicates
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// Show every tensor
    #[arg(short, long)]
    pub all: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    file: &'a str,
    kind: &'static str,
    #[serde(flatten)]
    anatomy: &'a Anatomy,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let file = session.open(&args.file)?;
    let flatbuffer = Flatbuffer::read(&file, &session.limits)?;
    let broken = flatbuffer.verify(&session.limits).has_errors();
    let anatomy = anatomy::of(&file, &flatbuffer, &session.limits).map_err(|failure| failure.about(&file.name))?;
    if session.json {
        session.document(&Document { file: &file.name, kind: file.kind.id(), anatomy: &anatomy })?;
    } else {
        print(&file.name, &anatomy, args.all, &mut session.out)?;
        if broken {
            writeln!(session.out, "\n{WARN}the file breaks rules: see `edgepack verify`{WARN:#}")?;
        }
    }
    Ok(if broken { Status::Findings } else { Status::Fine })
}

/// Tensors that are shown if not all are.
const SHOWN: usize = 10;

fn print(name: &str, anatomy: &Anatomy, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let total = anatomy.bytes;
    writeln!(out, "{TITLE}{name}{TITLE:#}  {}", bytes(total))?;
    let mut columns = Columns::new(2, &[Align::Right, Align::Right, Align::Left]);
    for part in &anatomy.parts {
        columns.row([bytes(part.bytes).into(), Cell::new(share(part.bytes, total), DIM), (&part.what).into()]);
    }
    columns.print(out)?;
    if !anatomy.tensors.is_empty() {
        let shown = if all { anatomy.tensors.len() } else { SHOWN.min(anatomy.tensors.len()) };
        let which = if shown < anatomy.tensors.len() { "largest tensors" } else { "tensors" };
        writeln!(out, "\n{TITLE}{which}{TITLE:#}  {shown} of {}", anatomy.tensors.len())?;
        let mut columns = Columns::new(2, &[Align::Right, Align::Right, Align::Left, Align::Left]);
        for tensor in anatomy.tensors.iter().take(shown) {
            columns.row([
                bytes(tensor.bytes).into(),
                Cell::new(share(tensor.bytes, total), DIM),
                Cell::new(&tensor.layout, SHAPE),
                Cell::new(&tensor.name, NAME),
            ]);
        }
        columns.print(out)?;
    }
    if !anatomy.duplicates.is_empty() {
        let wasted = anatomy.duplicates.iter().fold(0u64, |wasted, duplicate| wasted.saturating_add(duplicate.wasted));
        writeln!(out, "\n{TITLE}the same bytes more than once{TITLE:#}  {WARN}{} wasted{WARN:#}", bytes(wasted))?;
        for duplicate in &anatomy.duplicates {
            writeln!(out, "  {}  {}", bytes(duplicate.wasted), duplicate.places.join(", "))?;
        }
    }
    Ok(())
}
