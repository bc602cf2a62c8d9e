//! Archives of export IR.

mod graph;
mod layers;
pub(crate) mod lower;
pub(crate) mod ops;
mod program;
pub(crate) mod summary;
mod variant;

use std::io::{self, Write};

use edgepack_format::FileKind;
use edgepack_format::finding::Findings;
use edgepack_smith::Rng;

use super::inspection::{Inside, Summary, show};
use super::{Format, Head, Layered, Size};
use crate::file::{File, read_head};
use crate::profile::ExportRecord;
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::view::Graph;
use summary::ArchiveSummary;

pub use lower::{Lowering, lower};

/// Archives.
pub struct Exir;

impl Summary for ArchiveSummary {
    fn print(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        ArchiveSummary::print(self, all, out)
    }
}

impl Format for Exir {
    fn kind(&self) -> FileKind {
        FileKind::ExportedProgram
    }

    fn id(&self) -> &'static str {
        "exir"
    }

    fn verify(&self, head: &Head, _session: &Session) -> Findings {
        edgepack_exir::verify::verify_archive(&head.bytes)
    }

    fn inspect(&self, head: &Head, all: bool, session: &mut Session) -> Result<Status, Failure> {
        show(self, head, Some(&ArchiveSummary::new(&head.bytes)), Inside::default(), all, session)
    }

    /// Every record, and headers and padding.
    fn size(&self, head: &Head, _session: &Session) -> Result<Size, Failure> {
        let archive = ArchiveSummary::new(&head.bytes);
        let mut size = Size::new(head.file_len());
        let records: u64 = archive.records.iter().map(|record| record.bytes).sum();
        for record in archive.records {
            size.part(spelling::name(&record.name), record.bytes);
        }
        size.part("headers and padding of the archive", size.bytes.saturating_sub(records));
        Ok(size.sorted())
    }

    fn layers(&self, file: &File, session: &mut Session) -> Result<Layered, Failure> {
        layers::lowered(file, session)
    }

    fn graphs(&self, head: &Head, record: Option<ExportRecord>, _session: &mut Session) -> Result<Vec<Graph>, Failure> {
        match record {
            None => graph::graphs(&head.bytes),
            Some(_) => Err(Failure::usage("an exported program says itself which modules nodes are from")),
        }
    }

    fn ops(&self, file: &File, session: &mut Session) -> Result<Status, Failure> {
        ops::list(file, session)
    }

    /// Prints the first program; the text cannot be read back into a file.
    fn text(&self, file: &File) -> Result<Option<String>, Failure> {
        let content = read_head(&*file.source, file.source.len())?;
        program::with_program(&content, &file.name, |program| format!("{program}\n")).map(Some)
    }

    fn variant(&self, bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
        variant::variant(bytes, rng).unwrap_or_else(|| edgepack_smith::mutate::variant(bytes, rng))
    }
}
