//! Releases of ExecuTorch that load a program.

use std::io::Write;

use edgepack_format::payload::PayloadFile;
use edgepack_format::pte::releases::{Compatibility, Need, Release, Since};
use serde::Serialize;

use super::open::Opened;
use super::payloads::{self, SourceRanges};
use crate::file::File;
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, NAME, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::count;

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Releases<'a> {
    /// Name of the file.
    file: &'a str,
    /// Lowest release that loads it; absent if none does.
    lowest: Option<Release>,
    /// The release that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<Release>,
    /// True if that release loads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    loads: Option<bool>,
    /// Number of operators, types, backends and features that were looked at.
    needs: usize,
    /// Needs that the first release does not meet, the latest first.
    reasons: Vec<&'a Need>,
}

/// Reports the lowest release that loads a program and why, or whether one does.
pub fn list_releases(
    opened: &Opened,
    file: &File,
    asked: Option<Release>,
    session: &mut Session,
) -> Result<Status, Failure> {
    let mut report = Compatibility::of(opened.program.view()?.program())?;
    let source = SourceRanges(&**opened.program.source());
    for payload in payloads::describe(PayloadFile::new(opened.program.flatbuffer(), &source), false, session) {
        payload.description.nodes.iter().for_each(|node| report.node(&node.operator, &payload.path));
    }
    let lowest = report.lowest();
    let loads = asked.map(|asked| report.loads_in(asked));
    let reasons = report.reasons();
    if session.json {
        let needs = report.needs().count();
        session.document(&Releases { file: &file.name, lowest, release: asked, loads, needs, reasons })?;
    } else {
        session.title(&file.name)?;
        let brought: Vec<&Need> = reasons.iter().filter(|need| need.since == Since::BroughtAlong).copied().collect();
        let decisive = |need: &&&Need| match (asked, need.since) {
            (_, Since::BroughtAlong) => false,
            (Some(asked), Since::Release(since)) => since > asked,
            _ => true,
        };
        print("since", &reasons.iter().filter(decisive).copied().collect::<Vec<_>>(), session)?;
        print("to be brought along", &brought, session)?;
        let out = &mut session.out;
        match (lowest, asked) {
            (None, _) => writeln!(out, "{BAD}no release of ExecuTorch loads it{BAD:#}")?,
            (Some(_), Some(asked)) if loads == Some(true) => {
                writeln!(out, "{GOOD}ExecuTorch {asked} loads it{GOOD:#}")?
            }
            (Some(lowest), Some(asked)) => {
                writeln!(out, "{BAD}ExecuTorch {asked} does not load it, {lowest} does{BAD:#}")?;
            }
            (Some(lowest), None) => writeln!(out, "{GOOD}ExecuTorch {lowest} and later load it{GOOD:#}")?,
        }
    }
    Ok(if lowest.is_none() || loads == Some(false) { Status::CannotRun } else { Status::Fine })
}

fn print(title: &str, needs: &[&Need], session: &mut Session) -> Result<(), Failure> {
    if needs.is_empty() {
        return Ok(());
    }
    writeln!(session.out, "{TITLE}{title}{TITLE:#}")?;
    let mut columns = Columns::new(2, &[Align::Left, Align::Left, Align::Right, Align::Left]);
    for need in needs {
        columns.row([
            need.since.to_string().into(),
            Cell::new(spelling::name(&need.name), NAME),
            count(need.uses, "use").into(),
            Cell::new(&need.place, DIM),
        ]);
    }
    columns.print(&mut session.out)?;
    Ok(writeln!(session.out)?)
}
