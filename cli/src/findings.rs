//! Findings for people.

use std::io::{self, Write};

use edgepack_format::finding::{Finding, Findings, Severity};

use crate::spelling;
use crate::style::{BAD, DIM, GOOD, TITLE, severity};
use crate::units::count;

/// Prints findings, one line each, under the headline of a file that is cut short.
pub fn print_findings(findings: &Findings, out: &mut dyn Write) -> io::Result<()> {
    if let Some(cut) = findings.cut_short() {
        writeln!(out, "  {BAD}{cut}{BAD:#}")?;
    }
    print_list(findings, out)
}

fn print_list(findings: &Findings, out: &mut dyn Write) -> io::Result<()> {
    for finding in findings {
        let style = severity(finding.rule.severity);
        let place = if finding.path.is_empty() { "file" } else { &finding.path };
        write!(out, "  {style}{}{style:#} {TITLE}{}{TITLE:#} {place}", finding.rule.severity, finding.rule.id)?;
        if let Some(offset) = finding.offset {
            write!(out, " {DIM}at {offset:#x}{DIM:#}")?;
        }
        writeln!(out, ": {}", spelling::name(&finding.message))?;
    }
    if findings.dropped() > 0 {
        writeln!(out, "  {DIM}and {} more{DIM:#}", findings.dropped())?;
    }
    Ok(())
}

/// Counts findings in a few words: `2 errors, 1 warning`, or `no findings`.
pub fn tally(findings: &Findings) -> String {
    let of = |severity| findings.iter().filter(|finding| finding.rule.severity == severity).count();
    let parts = [(findings.errors(), "error"), (of(Severity::Warning), "warning"), (of(Severity::Info), "note")];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(*n, noun)).collect();
    if parts.is_empty() { "no findings".to_owned() } else { parts.join(", ") }
}

/// Returns whether findings are enough to refuse a file: errors always, warnings only if `strict`.
pub fn is_broken(findings: &Findings, strict: bool) -> bool {
    let warning = |finding: &Finding| finding.rule.severity == Severity::Warning;
    findings.has_errors() || strict && findings.iter().any(warning)
}

/// Prints the findings section that closes an inspection, whose head says that the file is cut short.
pub fn print_section(findings: &Findings, out: &mut dyn Write) -> io::Result<()> {
    if findings.is_empty() {
        return writeln!(out, "\n{GOOD}no findings{GOOD:#}");
    }
    writeln!(out, "\n{TITLE}findings{TITLE:#}  {}", tally(findings))?;
    print_list(findings, out)
}
