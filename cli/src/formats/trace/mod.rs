//! Traces of runs, `.etdp`.

mod print;
mod profile;
pub(crate) mod summary;

use std::io::{self, Write};

use edgepack_format::FileKind;
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::row::Table as _;
use edgepack_format::trace::{ETDump, PREFIX_LEN, verify};
use edgepack_format::wire;

use super::inspection::{Inside, Summary, show};
use super::{Execution, Format, Head, Layered, Root, Size, Watching};
use crate::file::{File, read_head};
use crate::options::Inputs;
use crate::profile::Profile;
use crate::session::Session;
use crate::status::{Failure, Status};
use summary::TraceSummary;

/// Traces.
pub struct Trace;

impl Summary for TraceSummary {
    fn print(&self, _all: bool, out: &mut dyn Write) -> io::Result<()> {
        print::print(self, out)
    }
}

impl Format for Trace {
    fn kind(&self) -> FileKind {
        FileKind::Trace
    }

    fn id(&self) -> &'static str {
        "trace"
    }

    fn verify(&self, head: &Head, session: &Session) -> Findings {
        verify::verify(&head.bytes, &session.limits).findings
    }

    fn root<'a>(&self, head: &'a Head) -> Option<Root<'a>> {
        Some((wire::Table::root_at(&head.bytes, PREFIX_LEN).ok()?, ETDump::DESC))
    }

    fn is_modest(&self, head: &Head, limits: &Limits) -> bool {
        self.root(head).is_none_or(|(root, _)| head.unfolds::<ETDump<'_>>(root, limits))
    }

    fn inspect(&self, head: &Head, all: bool, session: &mut Session) -> Result<Status, Failure> {
        let root = self.modest_root(head, &session.limits);
        let summary = root.map(|(root, _)| TraceSummary::new(&root, head.file_len()));
        show(self, head, summary.as_ref(), Inside::default(), all, session)
    }

    fn layers(&self, file: &File, _: &mut Session) -> Result<Layered, Failure> {
        Ok(Layered::Trace(read_head(&*file.source, file.source.len())?.to_vec()))
    }

    fn size(&self, head: &Head, session: &Session) -> Result<Size, Failure> {
        if self.modest_root(head, &session.limits).is_none() {
            return Ok(Size::unreadable(head.file_len()));
        }
        let mut size = Size::new(head.file_len());
        size.part("events and tables", size.bytes);
        Ok(size.sorted())
    }

    fn profile(
        &self,
        file: &File,
        method: Option<&str>,
        inputs: &Inputs,
        watching: Watching<'_>,
        how: Execution<'_>,
        session: &mut Session,
    ) -> Result<Profile, Failure> {
        let runs = how.recorder.is_some() || !how.data.is_empty() || !inputs.inputs.is_empty();
        match runs || inputs.fill().is_some() {
            true => Err(Failure::usage(format!("{}: a trace does not run, it is what a run left", file.name))),
            false => profile::profile(file, method, watching, session),
        }
    }
}
