//! Findings of verifying a file of any format.

use edgepack::format::finding::ErrorCode;
use serde::Deserialize;

use crate::entry;
use crate::error::{EdgepackCode, EdgepackError};
use crate::failure::Failure;
use crate::file::EdgepackFile;
use crate::handles::{close, get, handle, put};
use crate::pointer::{In, Out};
use crate::report::run_on;
use crate::text::{EdgepackText, Terminated};

/// Findings about a file: faults, and what is worth knowing.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackFindings {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackFindings, Findings, FindingsObject, "findings");

/// Severities of findings.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgepackSeverity {
    /// Worth knowing; the file is fine.
    Info = 0,
    /// Legal but unusual, or not portable to every runtime.
    Warning = 1,
    /// The file breaks a rule and is refused.
    Error = 2,
}

/// One finding.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackFinding {
    /// An EdgepackSeverity.
    pub severity: u32,
    /// Id of the rule, which `edgepack explain` explains.
    pub rule: EdgepackText,
    /// Place in the structure of the file; empty for the whole file.
    pub path: EdgepackText,
    /// 1 if `offset` counts, 0 otherwise.
    pub has_offset: u32,
    /// Place in the file, in bytes.
    pub offset: u64,
    /// The fault, with both sides: what was found and what is wanted.
    pub message: EdgepackText,
    /// The code that a runtime gives for it, or EDGEPACK_CODE_OK where there is none.
    pub code: EdgepackCode,
}

/// Numbers of findings.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackFindingCounts {
    /// Findings that can be asked for.
    pub listed: usize,
    /// Findings that were counted only.
    pub more: usize,
    /// 1 if the file breaks a rule and is refused, 0 if it is valid.
    pub broken: u32,
}

pub(crate) struct FindingsObject {
    kind: Terminated,
    broken: bool,
    more: usize,
    list: Vec<Listed>,
}

struct Listed {
    severity: EdgepackSeverity,
    rule: Terminated,
    path: Terminated,
    offset: Option<u64>,
    message: Terminated,
    code: Option<ErrorCode>,
}

/// The document of `edgepack verify --json`.
#[derive(Deserialize)]
struct Document {
    files: Vec<Verified>,
}

#[derive(Deserialize)]
struct Verified {
    kind: Option<String>,
    findings: Vec<Told>,
    more: usize,
    error: Option<String>,
    status: u8,
}

#[derive(Deserialize)]
struct Told {
    rule: String,
    severity: String,
    path: String,
    offset: Option<u64>,
    message: String,
    code: Option<String>,
}

impl From<Told> for Listed {
    fn from(told: Told) -> Self {
        Listed {
            severity: match told.severity.as_str() {
                "info" => EdgepackSeverity::Info,
                "warning" => EdgepackSeverity::Warning,
                _ => EdgepackSeverity::Error,
            },
            rule: Terminated::new(told.rule),
            path: Terminated::new(told.path),
            offset: told.offset,
            message: Terminated::new(told.message),
            code: told.code.as_deref().and_then(ErrorCode::from_name),
        }
    }
}

fn verified(file: &EdgepackFile, preset: u32) -> Result<FindingsObject, Failure> {
    let output = run_on("verify", preset, file)?;
    let broken = |why: String| Failure::new(ErrorCode::Internal, format!("verifying gave no list of findings: {why}"));
    let document: Document = serde_json::from_slice(&output.out)
        .map_err(|error| broken(format!("{error}: {}", String::from_utf8_lossy(&output.err))))?;
    let Some(file) = document.files.into_iter().next() else { return Err(broken("no file".to_owned())) };
    if let Some(error) = file.error {
        let code = if file.status == 3 { ErrorCode::AccessFailed } else { ErrorCode::InvalidArgument };
        return Err(Failure::new(code, error));
    }
    Ok(FindingsObject {
        kind: Terminated::new(file.kind.unwrap_or_default()),
        broken: file.status != 0,
        more: file.more,
        list: file.findings.into_iter().map(Listed::from).collect(),
    })
}

/// Verifies a file of any format, by every rule of its format; `preset` is an EdgepackPreset, the limits. A broken file is no
/// error of this function, one that cannot be read or is of no known kind is.
///
/// Ownership: the findings are the caller's, who closes them; bytes of the file are copied. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_verify(
    file: In<EdgepackFile>,
    preset: u32,
    findings: Out<EdgepackFindings>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        findings.check(1, "findings")?;
        findings.write(put(verified(file.one("file")?, preset)?), "findings")
    })
}

/// Returns the numbers of findings by `counts`.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_findings_counts(
    findings: EdgepackFindings,
    counts: Out<EdgepackFindingCounts>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(findings)?;
        let found =
            EdgepackFindingCounts { listed: object.list.len(), more: object.more, broken: object.broken.into() };
        counts.write(found, "counts")
    })
}

/// Returns the kind of the file by `kind`: program, data, mlf and others.
///
/// Ownership: the text is that of the findings, until they are closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_findings_kind(
    findings: EdgepackFindings,
    kind: Out<EdgepackText>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || kind.write(get(findings)?.kind.text(), "kind"))
}

/// Returns one finding by `finding`, in the order of the file.
///
/// Ownership: its texts are those of the findings, until they are closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_findings_at(
    findings: EdgepackFindings,
    index: usize,
    finding: Out<EdgepackFinding>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(findings)?;
        let found = object.list.get(index).ok_or_else(|| Failure::missing("finding", index))?;
        let told = EdgepackFinding {
            severity: found.severity as u32,
            rule: found.rule.text(),
            path: found.path.text(),
            has_offset: found.offset.is_some().into(),
            offset: found.offset.unwrap_or(0),
            message: found.message.text(),
            code: found.code.map_or(EdgepackCode::Ok, EdgepackCode::from),
        };
        finding.write(told, "finding")
    })
}

/// Closes findings. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_findings_close(findings: EdgepackFindings) -> EdgepackCode {
    entry::call(Out::NULL, || close(findings))
}
