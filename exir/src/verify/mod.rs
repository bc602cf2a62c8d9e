//! Holds programs against the dialects: every rule of the catalogue that starts with `EXIR-`.
//!
//! Errors are what exporters refuse; warnings are what the specification states and they do not enforce.

mod arguments;
mod dialect;
mod graph;
mod nesting;
mod signature;

use edgepack_format::finding::{Finding, Findings, Rule};
use edgepack_format::limits::Limits;

use crate::archive::Archive;
use crate::dtype::Table;
use crate::error::Error;
use crate::graph::{Dialect, ExportedProgram, Graph};
use crate::operators::Operators;

/// Rules that programs are checked against.
#[derive(Clone)]
pub struct Options<'o> {
    /// The operators there are.
    pub operators: &'o Operators,
    /// Combinations of element types.
    pub table: &'o Table,
    /// The dialect; the program's own if it is not said.
    pub dialect: Option<Dialect>,
    /// Operators outside the core set that are wanted, by full name.
    pub preserved: Vec<String>,
    /// True if copies name memory formats instead of dim orders.
    pub memory_formats: bool,
    /// True if calls are those of backends: libraries must be registered, results described by shape functions.
    pub backend: bool,
    /// Libraries that backends registered, besides the usual ones.
    pub namespaces: Vec<String>,
}

impl<'o> Options<'o> {
    /// The dialect of the program itself, and the library's operators.
    pub fn new(operators: &'o Operators) -> Self {
        Options {
            operators,
            table: Table::built_in(),
            dialect: None,
            preserved: Vec::new(),
            memory_formats: false,
            backend: false,
            namespaces: Vec::new(),
        }
    }

    /// Returns the options with a dialect to check against.
    pub fn dialect(self, dialect: Dialect) -> Self {
        Options { dialect: Some(dialect), ..self }
    }
}

/// Verifies a program.
pub fn verify(program: &ExportedProgram<'_>, options: &Options<'_>) -> Findings {
    if program.graph.has_nameless_arguments() {
        // Of operators that were not known when the program was read.
        let mut named = program.graph.clone();
        named.name_arguments(options.operators);
        return check(program, &named, options);
    }
    check(program, &program.graph, options)
}

fn check(program: &ExportedProgram<'_>, graph: &Graph, options: &Options<'_>) -> Findings {
    let mut checker = Checker {
        options,
        dialect: options.dialect.unwrap_or(program.dialect),
        ranges: &program.ranges,
        depth: 0,
        autocast: false,
        findings: Findings::new(&Limits::DEFAULT),
    };
    signature::check(&mut checker, program);
    nesting::check(&mut checker, program);
    graph::check(&mut checker, graph, "graph");
    checker.findings
}

/// Verifies an archive: its container and documents, and every program in it.
pub fn verify_archive(bytes: &[u8]) -> Findings {
    let mut findings = Findings::new(&Limits::DEFAULT);
    let mut broken = |path: &str, error: Error| {
        if let Error::Memory(no_room) = error {
            return findings.no_room(error.rule(), path.to_owned(), no_room);
        }
        let message = error.to_string();
        findings.push(Finding { rule: error.rule(), path: path.to_owned(), offset: None, message });
    };
    let archive = match Archive::parse(bytes) {
        Ok(archive) => archive,
        Err(error) => {
            broken("", error);
            return findings;
        }
    };
    let mut programs = Vec::new();
    let mut any = false;
    for model in archive.models() {
        any = true;
        match archive.model(model) {
            Ok(program) => programs.push((model, program)),
            Err(error) => broken(model, error),
        }
    }
    if !any {
        broken("models", Error::NoRecord("models/NAME.json".to_owned()));
    }
    let operators = Operators::new();
    for (model, program) in programs {
        findings.extend(verify(&program, &Options::new(&operators)).moved(model, 0));
    }
    findings
}

struct Checker<'c> {
    options: &'c Options<'c>,
    dialect: Dialect,
    ranges: &'c crate::graph::Ranges,
    /// Number of graphs around the current one.
    depth: usize,
    /// True if the current graph computes in other element types than its operators by themselves.
    autocast: bool,
    findings: Findings,
}

impl Checker<'_> {
    fn say(&mut self, rule: &'static Rule, path: impl Into<String>, message: impl Into<String>) {
        self.findings.push(Finding { rule, path: path.into(), offset: None, message: message.into() });
    }
}
