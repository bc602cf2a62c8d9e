//! Programs with recorded runs, `.bpte`.

mod print;
mod recorded;
mod summary;

use std::io::{self, Write};
use std::sync::Arc;

use edgepack_format::FileKind;
use edgepack_format::bundle::{BundleRef, BundledProgram, verify};
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::payload::PayloadFile;
use edgepack_format::pte::Program;
use edgepack_format::row::Table as _;
use edgepack_format::wire;
use edgepack_loader::{AlignedBytes, MemorySource};
use serde::Serialize;

use super::inspection::{Inside, Summary, show};
use super::pte::{payloads, tables};
use super::{Format, Head, Piece, Root, Size, pte};
use crate::file::{File, read_head};
use crate::profile::ExportRecord;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::view::Graph;
use payloads::Described;
use summary::BundleSummary;

pub use recorded::recorded_runs;

/// Bundles.
pub struct Bundle;

/// Content of a bundle.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Inspected<'a> {
    #[serde(flatten)]
    summary: BundleSummary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    payloads: Vec<Described>,
    #[serde(skip)]
    program: Option<Program<'a>>,
}

impl Summary for Inspected<'_> {
    fn print(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        print::print(&self.summary, out)?;
        payloads::print(&self.payloads, all, out)?;
        match &self.program {
            Some(program) if all => pte::print_code(program, out),
            _ => Ok(()),
        }
    }
}

/// The root table of the program inside, if it can be located.
fn inside<'a>(root: &wire::Table<'a>) -> Option<wire::Table<'a>> {
    wire::Table::root(summary::program(root)?.bytes()).ok()
}

/// The payloads of the program inside, with their places in the bundle.
fn described(root: &wire::Table<'_>, all: bool, session: &Session) -> Vec<Described> {
    let Some(program) = summary::program(root) else { return Vec::new() };
    let mut list = payloads::describe(PayloadFile::whole(program.bytes()), all, session);
    for payload in &mut list {
        payload.path.insert_str(0, "program.");
        payload.offset += u64::from(program.offset());
    }
    list
}

impl Format for Bundle {
    fn kind(&self) -> FileKind {
        FileKind::Bundle
    }

    fn id(&self) -> &'static str {
        "bundle"
    }

    fn verify(&self, head: &Head, session: &Session) -> Findings {
        let mut findings = verify::verify(&head.bytes, &session.limits).findings;
        if let Some(program) = self.root(head).and_then(|(root, _)| summary::program(&root)) {
            let inside = payloads::verify(PayloadFile::whole(program.bytes()), session);
            findings.extend(inside.moved("program", u64::from(program.offset())));
        }
        findings
    }

    fn root<'a>(&self, head: &'a Head) -> Option<Root<'a>> {
        Some((wire::Table::root(&head.bytes).ok()?, BundledProgram::DESC))
    }

    fn is_modest(&self, head: &Head, limits: &Limits) -> bool {
        let Some((root, _)) = self.root(head) else { return true };
        head.unfolds::<BundledProgram<'_>>(root, limits)
            && inside(&root).is_none_or(|program| head.unfolds::<Program<'_>>(program, limits))
    }

    fn inspect(&self, head: &Head, all: bool, session: &mut Session) -> Result<Status, Failure> {
        let program = self.root(head).and_then(|(root, _)| inside(&root));
        let summary = self.modest_root(head, &session.limits).map(|(root, _)| Inspected {
            summary: BundleSummary::new(&root, head.file_len()),
            payloads: described(&root, all, session),
            program: program.as_ref().map(tables::program),
        });
        let inside = Inside { program: program.map(|root| (root, Program::DESC)), ..Inside::default() };
        show(self, head, summary.as_ref(), inside, all, session)
    }

    fn size(&self, head: &Head, session: &Session) -> Result<Size, Failure> {
        let Some((root, _)) = self.modest_root(head, &session.limits) else {
            return Ok(Size::unreadable(head.file_len()));
        };
        let mut size = Size::new(head.file_len());
        let inside = summary::program(&root).map_or(0, |program| program.len() as u64);
        size.part("the program inside", inside);
        size.part("recorded runs and tables", size.bytes.saturating_sub(inside));
        Ok(size.sorted())
    }

    fn extract(&self, head: &Head, piece: Piece<'_>, session: &Session) -> Result<Vec<u8>, Failure> {
        let limits = &session.limits;
        let (root, _) = self.modest_root(head, limits).ok_or_else(super::unreadable)?;
        match (piece, summary::program(&root)) {
            (Piece::Program, Some(program)) => Ok(program.bytes().to_vec()),
            (Piece::Program, None) => Err(Failure::findings("there is no program in it")),
            _ => Err(Failure::usage("take the program out first, with --program")),
        }
    }

    fn graphs(&self, head: &Head, record: Option<ExportRecord>, session: &mut Session) -> Result<Vec<Graph>, Failure> {
        let (root, _) = self.modest_root(head, &session.limits).ok_or_else(super::unreadable)?;
        let recorded = pte::recorded(self, &head.file, record, &session.limits)?;
        let program = inside(&root).ok_or_else(super::unreadable)?;
        pte::graphs(&tables::program(&program), &described(&root, false, session), recorded.as_ref(), "program.")
    }

    fn payloads(&self, head: &Head, session: &Session) -> Result<Vec<serde_json::Value>, Failure> {
        let root = self.root(head).map(|(root, _)| root);
        let payloads = root.map(|root| described(&root, true, session)).unwrap_or_default();
        Ok(payloads.iter().map(serde_json::to_value).collect::<Result<_, _>>()?)
    }

    fn program(&self, file: &File, limits: &Limits) -> Result<pte::Opened, Failure> {
        let about = |failure: Failure| failure.about(&file.name);
        let bytes: AlignedBytes = read_head(&*file.source, u64::MAX).map_err(about)?;
        let bundle = BundleRef::parse(&bytes, limits)
            .map_err(|findings| about(Failure::findings(format!("the file is not valid:\n{findings}"))))?;
        let recorded = recorded_runs(&bundle).map_err(|error| about(Failure::findings(error)))?;
        let source = Arc::new(MemorySource::new(bundle.program_bytes()));
        let program = pte::open(source, limits).map_err(about)?;
        Ok(pte::Opened { program, recorded: Some(recorded) })
    }
}
