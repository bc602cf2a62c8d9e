//! `edgepack verify`: everything the rules have to say.

use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack_format::finding::{CutShort, Finding, Findings};
use serde::Serialize;

use crate::edit::read_text;
use crate::file::{name_of, refused};
use crate::findings::{is_broken, print_findings, tally};
use crate::formats::{self, Format, Head};
use crate::manifest::{Manifest, Verdict};
use crate::many::{Files, Found, LeftOut, named_folder};
use crate::progress::Unit;
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, TITLE, WARN};

/// Check files against every rule of their format
#[derive(clap::Args, Debug)]
#[command(mut_arg("files", |files| files.required_unless_present_any(["folders", "against"])))]
pub struct Args {
    /// Files to check.
    #[command(flatten)]
    pub files: Files,

    /// Also compare the bytes with a manifest that `digest` wrote; without files, those that it names. Of files that are
    /// of no known kind only the bytes are checked
    #[arg(long, value_name = "MANIFEST")]
    pub against: Option<PathBuf>,

    /// Data files that programs among them need; each is checked, too
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,

    /// Let warnings count as errors: what specifications ask for and tools do not enforce
    #[arg(long)]
    pub strict: bool,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Results<'a> {
    /// Results, file by file.
    files: &'a [Verified],
}

/// Result of verifying one file.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Verified {
    /// The file.
    file: String,
    /// Kind of the file; absent if it is not known.
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Reason the verifier did not look at everything.
    cut_short: Option<CutShort>,
    /// Findings, in the order of the file.
    findings: Vec<Finding>,
    /// Number of findings that were counted but not stored.
    more: usize,
    /// Reason the file could not be checked.
    error: Option<String>,
    /// Exit status for this file alone.
    status: u8,
    /// Comparison with a manifest, if one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Verdict>,
    #[serde(skip)]
    all: Findings,
    /// True if the findings are enough to fail.
    #[serde(skip)]
    broken: bool,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let (mut results, mut files, mut left_out) = (Vec::new(), Vec::new(), LeftOut::default());
    let manifest = args.against.as_deref().map(|path| manifest(path, session)).transpose()?;
    let found = match &manifest {
        Some(manifest) if args.files.named() == Some(0) => {
            manifest.files.iter().map(|file| Found { path: file.into(), below: None }).collect()
        }
        _ => args.files.found()?,
    };
    let (mut paths, all) = (Vec::new(), found.len() + args.data.len());
    for file in found {
        // One that cannot be opened is read, too: there the reason is reported. A manifest is for files of all kinds.
        if manifest.is_some() || left_out.takes(&file, session).unwrap_or(true) {
            paths.push(file.path);
        }
    }
    let verifying = session.progress.counted("verifying", paths.len() as u64, Unit::Pieces);
    let programs = paths.len();
    paths.extend_from_slice(&args.data);
    for (index, path) in paths.iter().enumerate() {
        verifying.advance(1);
        if let Some(failure) = named_folder(path).err().filter(|_| index < programs) {
            results.push(Verified::failed(name_of(path), &failure));
            files.push(None);
            continue;
        }
        let (verified, read) = one(path, manifest.as_ref(), args.strict, session);
        results.push(verified);
        files.push(read);
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
                let verified = Verified::new(std::mem::take(&mut result.file), format.id(), findings, args.strict);
                *result = verified.compared(result.digest.take());
            }
        }
    }
    let status = match results.iter().map(|result| result.status).max().unwrap_or(0) {
        0 => Status::Fine,
        1 => Status::Findings,
        _ => Status::Unreadable,
    };
    session.reach(status);
    drop(verifying);
    match session.json {
        true if session.lists_documents() => results.iter().try_for_each(|result| session.document(result))?,
        true => session.document(&Results { files: &results })?,
        false => results.iter().try_for_each(|result| result.print(&mut session.out))?,
    }
    left_out.report(all, session)?;
    Ok(status)
}

/// Reads a manifest.
fn manifest(path: &Path, session: &mut Session) -> Result<Manifest, Failure> {
    let about = |message: String| Failure::findings(message).about(&name_of(path));
    Manifest::parse(&read_text(path, "a manifest", session)?).map_err(about)
}

/// A file of a known kind that could be read.
type Read = (Head, &'static dyn Format);

/// Verifies a file, and compares it with the manifest. It is opened once: standard input is read once.
fn one(path: &Path, manifest: Option<&Manifest>, strict: bool, session: &mut Session) -> (Verified, Option<Read>) {
    let failed = |failure: &Failure| Verified::failed(name_of(path), failure);
    let file = match session.open(path) {
        Ok(file) => file,
        Err(failure) => return (failed(&failure), None),
    };
    let digest = match manifest.map(|manifest| manifest.compare(path, &file, session)).transpose() {
        Ok(digest) => digest,
        Err(failure) => return (failed(&failure), None),
    };
    let read = match (formats::of(file.head.kind), digest.clone()) {
        (Some(format), _) => Head::read(file, &session.limits).map(|head| (head, format)),
        (None, Some(verdict)) => return (Verified::bytes(name_of(path), verdict), None),
        (None, None) => Err(refused(&file)),
    };
    match read {
        Ok((head, format)) => {
            let findings = format.verify(&head, session);
            let verified = Verified::new(head.file.name.clone(), format.id(), findings, strict);
            (verified.compared(digest), Some((head, format)))
        }
        Err(failure) => (failed(&failure).compared(digest), None),
    }
}

impl Verified {
    /// A file of which the bytes alone are checked.
    fn bytes(file: String, verdict: Verdict) -> Self {
        let none = Findings::default();
        Verified { kind: None, ..Verified::new(file, "", none, false) }.compared(Some(verdict))
    }

    /// Adds the comparison with a manifest; a file that is not as it was is not fine.
    fn compared(mut self, digest: Option<Verdict>) -> Self {
        if digest.as_ref().is_some_and(|verdict| *verdict != Verdict::Intact) {
            self.status = self.status.max(Status::Findings.code());
        }
        self.digest = digest;
        self
    }

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
            digest: None,
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
            digest: None,
            all: Findings::default(),
            broken: true,
        }
    }

    fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        if let Some(error) = &self.error {
            return writeln!(out, "{BAD}unreadable{BAD:#}  {error}");
        }
        let changed = self.digest.as_ref().is_some_and(|verdict| *verdict != Verdict::Intact);
        let (style, word) = match (self.broken, self.all.is_empty()) {
            (true, _) => (BAD, "broken"),
            (false, _) if changed => (BAD, "other "),
            (false, true) if self.kind.is_none() => (GOOD, "intact"),
            (false, false) => (WARN, "valid "),
            (false, true) => (GOOD, "valid "),
        };
        let note = if self.all.is_empty() { String::new() } else { format!("  {}", tally(&self.all)) };
        writeln!(out, "{style}{word}{style:#}  {TITLE}{}{TITLE:#}{DIM}{note}{DIM:#}", self.file)?;
        match &self.digest {
            Some(Verdict::Altered { have, want, parts }) => {
                writeln!(out, "  the bytes are not those of the manifest: sha256 {have}, want {want}")?;
                for part in parts {
                    writeln!(out, "    changed, gone or new: {}", spelling::name(part))?;
                }
            }
            Some(Verdict::Unlisted) => writeln!(out, "  the manifest does not name it")?,
            Some(Verdict::Intact) | None => {}
        }
        print_findings(&self.all, out)
    }
}
