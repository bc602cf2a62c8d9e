//! Programs, `.pte`.

mod bench;
mod check;
mod code;
mod constants;
mod extract;
mod graph;
mod handles;
mod inputs;
pub mod layers;
mod open;
pub(crate) mod ops;
mod pairing;
pub mod payloads;
mod print;
mod probe;
mod profile;
pub(crate) mod releases;
mod replay;
mod run;
mod selection;
mod size;
pub mod summary;
pub mod tables;
pub mod values;

use std::io::{self, Write};

use edgepack_format::FileKind;
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::payload::PayloadFile;
use edgepack_format::pte::{Program, verify};
use edgepack_format::row::Table as _;
use edgepack_format::wire;
use serde::Serialize;

use super::inspection::{Inside, Summary, show};
use super::{Format, Head, Piece, Root, Size};
use crate::file::File;
use crate::profile::ExportRecord;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::view::Graph;
use payloads::{Described, SourceRanges};
use summary::ProgramSummary;

pub use bench::bench;
pub use check::{check, check_layers};
pub use graph::{graphs, inside, recorded};
pub use inputs::{inputs, wanted};
pub use open::{Opened, method, open, options};
pub use ops::list_needs;
pub use print::{print, print_code};
pub use profile::profile;
pub use releases::list_releases;
pub use replay::replay;
pub use run::run;
pub use selection::{Offered, Selection};

/// Programs.
pub struct Pte;

/// Content of a program.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Inspected<'a> {
    #[serde(flatten)]
    summary: ProgramSummary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    payloads: Vec<Described>,
    #[serde(skip)]
    program: Program<'a>,
}

impl Summary for Inspected<'_> {
    fn print(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        print(&self.summary, out)?;
        payloads::print(&self.payloads, all, out)?;
        if all { print_code(&self.program, out) } else { Ok(()) }
    }
}

impl Format for Pte {
    fn kind(&self) -> FileKind {
        FileKind::Program
    }

    fn id(&self) -> &'static str {
        "program"
    }

    fn verify(&self, head: &Head, session: &Session) -> Findings {
        let mut findings = verify::verify_all(&head.bytes, head.file.head.extent, &session.limits).findings;
        findings.extend(payloads::verify(PayloadFile::new(&head.bytes, &SourceRanges(&*head.file.source)), session));
        findings
    }

    fn pair(&self, head: &Head, data: &[&Head], session: &Session) -> Option<Findings> {
        let root = self.modest_root(head, &session.limits);
        let mut findings = pairing::pairing(root.map(|(root, _)| root), data, &session.limits);
        findings.extend(payloads::pairing(head, data, session));
        Some(findings)
    }

    fn root<'a>(&self, head: &'a Head) -> Option<Root<'a>> {
        Some((wire::Table::root(&head.bytes).ok()?, Program::DESC))
    }

    fn is_modest(&self, head: &Head, limits: &Limits) -> bool {
        self.root(head).is_none_or(|(root, _)| head.unfolds::<Program<'_>>(root, limits))
    }

    fn inspect(&self, head: &Head, all: bool, session: &mut Session) -> Result<Status, Failure> {
        let summary = self.modest_root(head, &session.limits).map(|(root, _)| {
            let program = tables::program(&root);
            let mut summary = ProgramSummary::new(&program, &head.bytes, head.file_len());
            summary.read_metadata(&*head.file.source);
            constants::read(&mut summary, &program, &*head.file.source);
            let payloads =
                payloads::describe(PayloadFile::new(&head.bytes, &SourceRanges(&*head.file.source)), all, session);
            Inspected { summary, payloads, program }
        });
        show(self, head, summary.as_ref(), Inside::default(), all, session)
    }

    fn size(&self, head: &Head, session: &Session) -> Result<Size, Failure> {
        match self.modest_root(head, &session.limits) {
            Some((root, _)) => size::size(head, &root, session),
            None => Ok(Size::unreadable(head.file_len())),
        }
    }

    fn extract(&self, head: &Head, piece: Piece<'_>, session: &Session) -> Result<Vec<u8>, Failure> {
        let (root, _) = self.modest_root(head, &session.limits).ok_or_else(super::unreadable)?;
        extract::extract(head, &tables::program(&root), piece, session)?
            .ok_or_else(|| self.lacks("such pieces; take --segment, --delegate or --named"))
    }

    fn graphs(&self, head: &Head, record: Option<ExportRecord>, session: &mut Session) -> Result<Vec<Graph>, Failure> {
        let (root, _) = self.modest_root(head, &session.limits).ok_or_else(super::unreadable)?;
        let record = recorded(self, &head.file, record, &session.limits)?;
        let payloads =
            payloads::describe(PayloadFile::new(&head.bytes, &SourceRanges(&*head.file.source)), false, session);
        graphs(&tables::program(&root), &payloads, record.as_ref(), "")
    }

    fn payloads(&self, head: &Head, session: &Session) -> Result<Vec<serde_json::Value>, Failure> {
        let payloads =
            payloads::describe(PayloadFile::new(&head.bytes, &SourceRanges(&*head.file.source)), true, session);
        Ok(payloads.iter().map(serde_json::to_value).collect::<Result<_, _>>()?)
    }

    fn payload_comments(&self, head: &Head, session: &Session) -> String {
        let source = SourceRanges(&*head.file.source);
        payloads::comments(&payloads::describe(PayloadFile::new(&head.bytes, &source), false, session))
    }

    fn program(&self, file: &File, limits: &Limits) -> Result<Opened, Failure> {
        let program = open(file.source.clone(), limits).map_err(|failure| failure.about(&file.name))?;
        Ok(Opened { program, recorded: None })
    }
}
