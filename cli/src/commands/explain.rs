//! `edgepack explain`: what a rule or an error code means.

use std::io::{self, Write};

use edgepack_format::finding::{ErrorCode, Rule, Severity};
use edgepack_format::rules::{RULES, find};
use serde::Serialize;

use crate::error_codes::{Explanation, explanation};
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{DIM, NAME, TITLE, severity};
use crate::table::{Align, Cell, Columns};

/// Explain a rule or an ExecuTorch error code; without one, list all
#[derive(clap::Args, Debug)]
pub struct Args {
    /// `PTE-D01`, `InvalidProgram`, `Error::NotFound`, `35`, `0x23`
    #[arg(value_name = "RULE|CODE")]
    pub what: Option<String>,
}

/// A rule explained.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct RuleText {
    /// Error of ExecuTorch for it.
    code: Option<&'static str>,
    /// Meaning of the rule.
    explanation: &'static str,
    /// Id of the rule.
    rule: &'static str,
    /// Severity of its findings.
    severity: Severity,
    /// Title of the rule.
    title: &'static str,
}

/// An error of ExecuTorch explained.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct CodeText {
    /// Usual causes.
    causes: &'static [&'static str],
    /// Name of the error.
    code: &'static str,
    /// Number in hexadecimal digits.
    hex: String,
    /// Meaning of the error.
    meaning: &'static str,
    /// Number of the error.
    number: u32,
    /// Ids of the rules that it is the error of.
    rules: Vec<&'static str>,
}

/// A rule.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct RuleLine {
    /// Id of the rule.
    rule: &'static str,
    /// Severity of its findings.
    severity: Severity,
    /// Title of the rule.
    title: &'static str,
}

/// An error of ExecuTorch.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct CodeLine {
    /// Name of the error.
    code: &'static str,
    /// Number of the error.
    number: u32,
}

/// All rules and errors.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Everything {
    /// Errors of ExecuTorch.
    codes: Vec<CodeLine>,
    /// Rules.
    rules: Vec<RuleLine>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let Some(what) = args.what.as_deref().map(str::trim) else { return list(session) };
    if let Some(rule) = find(what) {
        return explain_rule(rule, session);
    }
    let Some(code) = code(what) else {
        let near = nearest(what).map_or_else(String::new, |name| format!("; {name} is one"));
        let message = format!("{what} is neither a rule nor an error code{near}; `edgepack explain` lists them all");
        return Err(Failure::usage(message));
    };
    explain_code(code, session)
}

/// The rule or code whose name is nearly this one.
fn nearest(text: &str) -> Option<&'static str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('_', "-");
    let rules = RULES.iter().map(|rule| rule.id);
    let codes = ErrorCode::ALL.iter().map(|code| code.name());
    let rated = rules.chain(codes).map(|name| (strsim::damerau_levenshtein(&plain(name), &plain(text)), name));
    rated.filter(|(distance, _)| *distance <= 1).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The code of a name or number.
fn code(text: &str) -> Option<ErrorCode> {
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    match number {
        Some(number) => ErrorCode::from_number(number),
        None => ErrorCode::from_name(text.strip_prefix("executorch::runtime::").unwrap_or(text)),
    }
}

fn explain_rule(rule: &Rule, session: &mut Session) -> Result<Status, Failure> {
    if session.json {
        session.document(&RuleText {
            code: rule.code.map(ErrorCode::name),
            explanation: rule.explanation,
            rule: rule.id,
            severity: rule.severity,
            title: rule.title,
        })?;
        return Ok(Status::Fine);
    }
    let (style, out) = (severity(rule.severity), &mut session.out);
    writeln!(out, "{TITLE}{}{TITLE:#}  {style}{}{style:#}  {}\n", rule.id, rule.severity, rule.title)?;
    paragraph(rule.explanation, out)?;
    if let Some(code) = rule.code {
        writeln!(out, "\n{DIM}ExecuTorch:{DIM:#} Error::{code} ({:#04x})", code.number())?;
    }
    Ok(Status::Fine)
}

fn explain_code(code: ErrorCode, session: &mut Session) -> Result<Status, Failure> {
    let Explanation { meaning, causes } = explanation(code);
    let rules: Vec<&str> = RULES.iter().filter(|rule| rule.code == Some(code)).map(|rule| rule.id).collect();
    let number = code.number();
    if session.json {
        session.document(&CodeText {
            causes,
            code: code.name(),
            hex: format!("{number:#04x}"),
            meaning,
            number,
            rules,
        })?;
        return Ok(Status::Fine);
    }
    let out = &mut session.out;
    writeln!(out, "{TITLE}Error::{code}{TITLE:#}  {number:#04x} ({number})\n")?;
    paragraph(meaning, out)?;
    writeln!(out, "\n{DIM}usually caused by{DIM:#}")?;
    for cause in causes {
        writeln!(out, "  - {cause}")?;
    }
    if !rules.is_empty() {
        writeln!(out, "\n{DIM}rules{DIM:#}")?;
        paragraph(&rules.join(", "), out)?;
    }
    Ok(Status::Fine)
}

fn list(session: &mut Session) -> Result<Status, Failure> {
    if session.json {
        let rules: Vec<_> =
            RULES.iter().map(|rule| RuleLine { rule: rule.id, severity: rule.severity, title: rule.title }).collect();
        let codes: Vec<_> =
            ErrorCode::ALL.iter().map(|code| CodeLine { code: code.name(), number: code.number() }).collect();
        session.document(&Everything { codes, rules })?;
        return Ok(Status::Fine);
    }
    let mut columns = Columns::new(0, &[Align::Left, Align::Left, Align::Left]);
    for rule in RULES {
        let level = Cell::new(rule.severity.to_string(), severity(rule.severity));
        columns.row([Cell::new(rule.id, NAME), level, rule.title.into()]);
    }
    columns.print(&mut session.out)?;
    writeln!(session.out)?;
    let mut columns = Columns::new(0, &[Align::Left, Align::Left]);
    for code in ErrorCode::ALL {
        columns.row([Cell::new(format!("{:#04x}", code.number()), NAME), format!("Error::{code}").into()]);
    }
    columns.print(&mut session.out)?;
    Ok(Status::Fine)
}

/// Text broken into lines of at most 100 characters.
fn paragraph(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 100 {
            writeln!(out, "{line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_name_and_number() {
        for text in ["InvalidProgram", "Error::InvalidProgram", "invalidprogram", "35", "0x23", "0X23"] {
            assert_eq!(code(text), Some(ErrorCode::InvalidProgram), "{text}");
        }
        for text in ["999", "0xfff", "NoSuchThing", ""] {
            assert_eq!(code(text), None, "{text}");
        }
    }
}
