//! `edgepack verify`: everything the rules have to say.

use std::io::Write;
use std::path::PathBuf;

use edgepack_format::finding::{CutShort, Finding, Findings};
use serde::Serialize;

use crate::file::name_of;
use crate::findings::{is_broken, print_findings, tally};
use crate::formats;
use crate::many::{Files, LeftOut, named_folder};
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, TITLE, WARN};

/// Check files against every rule of their format
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Files to check.
    #[command(flatten)]
    pub files: Files,

    /// Data files that programs among them need; each is checked, too
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,

    /// Let warnings count as errors: what specifications ask for and tools do not enforce
    #[arg(long)]
    pub strict: bool,
}

/// Result of verifying one file.
#[derive(Serialize)]
struct Verified {
    file: String,
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_short: Option<CutShort>,
    findings: Vec<Finding>,
    /// Number of findings that were counted but not stored.
    more: usize,
    /// Reason the file could not be checked.
    error: Option<String>,
    status: u8,
    #[serde(skip)]
    all: Findings,
    /// True if the findings are enough to fail.
    #[serde(skip)]
    broken: bool,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let (mut results, mut files, mut left_out) = (Vec::new(), Vec::new(), LeftOut::default());
    let mut paths = Vec::new();
    let found = args.files.found()?;
    let all = found.len() + args.data.len();
    for file in found {
        // One that cannot be opened is read, too: there the reason is reported.
        if left_out.takes(&file, session).unwrap_or(true) {
            paths.push(file.path);
        }
    }
    let programs = paths.len();
    paths.extend_from_slice(&args.data);
    for (index, path) in paths.iter().enumerate() {
        let not_a_folder = if index < programs { named_folder(path) } else { Ok(()) };
        match not_a_folder.and_then(|()| formats::read(path, session)) {
            Ok((head, format)) => {
                let findings = format.verify(&head, session);
                results.push(Verified::new(head.file.name.clone(), format.id(), findings, args.strict));
                files.push(Some((head, format)));
            }
            Err(failure) => {
                results.push(Verified::failed(name_of(path), &failure));
                files.push(None);
            }
        }
    }
    if !args.data.is_empty() {
        let (programs, data) = files.split_at(programs);
        let data: Vec<_> = data.iter().flatten().map(|(head, _)| head).collect();
        for (file, result) in programs.iter().zip(&mut results) {
            if let Some((head, format)) = file
                && let Some(pairing) = format.pair(head, &data, session)
            {
                let mut findings = std::mem::take(&mut result.all);
                findings.extend(pairing);
                *result = Verified::new(std::mem::take(&mut result.file), format.id(), findings, args.strict);
            }
        }
    }
    let status = results.iter().map(|result| result.status).max().unwrap_or(0);
    match session.json {
        true if session.lists_documents() => results.iter().try_for_each(|result| session.document(result))?,
        true => session.document(&serde_json::json!({ "files": results }))?,
        false => results.iter().try_for_each(|result| result.print(&mut session.out))?,
    }
    left_out.report(all, session)?;
    Ok(match status {
        0 => Status::Fine,
        1 => Status::Findings,
        _ => Status::Unreadable,
    })
}

impl Verified {
    fn new(file: String, kind: &'static str, findings: Findings, strict: bool) -> Self {
        let broken = is_broken(&findings, strict);
        let status = if broken { Status::Findings } else { Status::Fine };
        Verified {
            file,
            kind: Some(kind),
            cut_short: findings.cut_short(),
            findings: findings.as_slice().to_vec(),
            more: findings.dropped(),
            error: None,
            status: status.code(),
            all: findings,
            broken,
        }
    }

    fn failed(file: String, failure: &Failure) -> Self {
        Verified {
            file,
            kind: None,
            cut_short: None,
            findings: Vec::new(),
            more: 0,
            error: Some(failure.message.clone()),
            status: failure.status.code(),
            all: Findings::default(),
            broken: true,
        }
    }

    fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        if let Some(error) = &self.error {
            return writeln!(out, "{BAD}unreadable{BAD:#}  {error}");
        }
        let (style, word) = match (self.broken, self.all.is_empty()) {
            (true, _) => (BAD, "broken"),
            (false, false) => (WARN, "valid "),
            (false, true) => (GOOD, "valid "),
        };
        let note = if self.all.is_empty() { String::new() } else { format!("  {}", tally(&self.all)) };
        writeln!(out, "{style}{word}{style:#}  {TITLE}{}{TITLE:#}{DIM}{note}{DIM:#}", self.file)?;
        print_findings(&self.all, out)
    }
}
