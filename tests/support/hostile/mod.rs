//! Programs that break one rule each: the recipes behind the files in `hostile/pte`.
//!
//! A recipe is a good program and one change, so what a verifier says about the file is about that change.

mod base;
mod bytes;
mod code;
mod data;
mod plan;
mod tensors;

pub use base::{Rows, full, small};
pub use bytes::{aliased, many_plans, many_values};

use edgepack_builder::raw;
use edgepack_format::finding::Rule;

/// A bad file and what is to be said about it.
pub struct Case {
    /// Name of the file, without its extension.
    pub id: &'static str,
    /// The rule it breaks.
    pub rule: &'static Rule,
    /// Path at which the rule is reported.
    pub path: &'static str,
    /// Bytes of the file.
    pub bytes: Vec<u8>,
    /// Another ceiling for what reading may visit.
    pub visits: Option<u64>,
    /// True if it takes the schemas of operators to notice, which opening a file does not ask.
    pub schemas: bool,
}

impl Case {
    fn new(id: &'static str, rule: &'static Rule, path: &'static str, bytes: Vec<u8>) -> Self {
        Case { id, rule, path, bytes, visits: None, schemas: false }
    }

    fn visits(self, visits: u64) -> Self {
        Case { visits: Some(visits), ..self }
    }

    fn against_schemas(self) -> Self {
        Case { schemas: true, ..self }
    }
}

/// A small program with one change.
fn changed(id: &'static str, rule: &'static Rule, path: &'static str, change: impl FnOnce(&mut Rows)) -> Case {
    let mut rows = small();
    change(&mut rows);
    Case::new(id, rule, path, rows.write())
}

/// A program with something of everything and one change.
fn changed_full(id: &'static str, rule: &'static Rule, path: &'static str, change: impl FnOnce(&mut Rows)) -> Case {
    let mut rows = full();
    change(&mut rows);
    Case::new(id, rule, path, rows.write())
}

/// Layout of the files: as dense as alignment allows.
fn layout() -> raw::Options {
    raw::Options::DEFAULT.segment_alignment(16)
}

/// Every recipe for a program.
pub fn cases() -> Vec<Case> {
    [bytes::cases(), code::cases(), data::cases(), plan::cases(), tensors::cases()].into_iter().flatten().collect()
}
