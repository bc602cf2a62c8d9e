//! `include_program!("model.pte")`.

mod module;
mod options;
mod signature;

use std::path::{Path, PathBuf};

use edgepack_format::finding::{Findings, Severity};
use edgepack_format::limits::Limits;
use edgepack_format::pte::{FileExtent, ProgramRef, verify};
use edgepack_format::{FileKind, detect};
use proc_macro2::TokenStream;
use syn::LitStr;

use crate::krate;
use options::Options;

/// Findings shown of a broken file; a compile error is not a report.
const SHOWN: usize = 10;

pub fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let options: Options = syn::parse2(input)?;
    let executor = krate::executor(options.krate.as_ref())?;
    let path = absolute(&options.path);
    let fail = |message: String| syn::Error::new_spanned(&options.path, message);
    let bytes = std::fs::read(&path).map_err(|error| fail(format!("cannot read {}: {error}", path.display())))?;
    let program = verified(&bytes).map_err(|message| fail(format!("{} {message}", options.path.value())))?;
    let methods =
        signature::methods(&program).map_err(|message| fail(format!("{}: {message}", options.path.value())))?;
    if let Some(operators) = &options.operators {
        let allowed: Vec<String> = operators.list.iter().map(LitStr::value).collect();
        let outside = signature::outside(&program, &allowed).map_err(|error| fail(error.to_string()))?;
        if !outside.is_empty() {
            let message =
                format!("{} calls operators that are not listed:\n{}", options.path.value(), outside.join("\n"));
            return Err(syn::Error::new(operators.span, message));
        }
    }
    let Some(file) = path.to_str() else { return Err(fail("the path is not UTF-8".to_owned())) };
    module::expand(&options, file, bytes.len(), &methods, &executor)
}

/// A path of the crate that is compiled.
fn absolute(path: &LitStr) -> PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    Path::new(&root).join(path.value())
}

/// The program, or what is wrong with the file.
fn verified(bytes: &[u8]) -> Result<ProgramRef<'_>, String> {
    let kind = detect(bytes);
    if !matches!(kind, FileKind::Program | FileKind::Unknown) {
        return Err(format!("is not a program: {kind}"));
    }
    let verdict = verify::verify_all(bytes, FileExtent::of(bytes), &Limits::default());
    match verdict.program {
        Some(program) if !verdict.findings.has_errors() => Ok(program),
        _ => Err(format!("is not a valid program:\n{}", errors(&verdict.findings))),
    }
}

fn errors(findings: &Findings) -> String {
    let errors = findings.iter().filter(|finding| finding.rule.severity == Severity::Error);
    let mut lines: Vec<String> = errors.take(SHOWN).map(|finding| finding.to_string()).collect();
    let more = findings.errors().saturating_sub(lines.len());
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}
