//! State of the format's verifiers: findings, the budget, and the position in the archive of the text being looked at.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use super::json::{Json, JsonError, JsonErrorKind};
use crate::finding::{Finding, Findings, Rule};
use crate::limits::{Budget, Limits};
use crate::room::{self, NoRoom};
use crate::rules::mlf as rules;

/// Findings about one member of an archive at a time.
pub struct Report {
    /// Findings so far.
    pub findings: Findings,
    /// Rest of the budget.
    pub budget: Budget,
    /// Prefix of every path.
    root: String,
    /// Added to every offset.
    base: u64,
}

impl Report {
    /// Nothing found yet.
    pub fn new(limits: &Limits) -> Self {
        Report { findings: Findings::new(limits), budget: Budget::new(limits), root: String::new(), base: 0 }
    }

    /// Sets the member that the next findings are about: it starts at `base`, and paths start with `root`.
    pub fn about(&mut self, root: impl Into<String>, base: u64) {
        self.root = root.into();
        self.base = base;
    }

    /// Reports a broken rule at a place below the root; `at` counts from the start of the member.
    pub fn add(&mut self, rule: &'static Rule, path: impl Display, at: impl Into<Option<usize>>, message: String) {
        let offset = at.into().map(|at| self.base.saturating_add(at as u64));
        // What is only counted needs no text.
        let path = if self.findings.is_full() { String::new() } else { path.to_string() };
        let path = match (self.root.as_str(), path.as_str()) {
            ("", _) => path,
            (root, "") => root.into(),
            (root, inner) if inner.starts_with('[') => format!("{root}{inner}"),
            (root, inner) => format!("{root}.{inner}"),
        };
        self.findings.push(Finding { rule, path, offset, message });
    }

    /// Reports that there is no memory for tables of this size; nothing more can be paid.
    #[cold]
    pub fn no_room(&mut self, error: NoRoom) {
        self.budget.exhaust();
        self.findings.no_room(&rules::LIMITS, self.root.clone(), error);
    }

    /// Returns the value there was memory for; a lack of memory is reported.
    pub fn roomy<T>(&mut self, made: room::Result<T>) -> Option<T> {
        made.map_err(|error| self.no_room(error)).ok()
    }

    /// Adds to a list; false, and reported, if there is no memory for it.
    pub fn push<T>(&mut self, list: &mut Vec<T>, item: T) -> bool {
        self.roomy(room::push(list, item)).is_some()
    }

    /// Reads a member that is JSON, and says which keys stand twice.
    pub fn json(&mut self, text: &[u8]) -> Option<Json> {
        match Json::parse(text, &mut self.budget) {
            Ok(json) => {
                self.repeated(&json);
                Some(json)
            }
            Err(error) => {
                self.unreadable(error);
                None
            }
        }
    }

    fn unreadable(&mut self, error: JsonError) {
        if error.kind == JsonErrorKind::Memory {
            return self.no_room(NoRoom { bytes: 0 });
        }
        let rule = match error.kind {
            JsonErrorKind::Budget => &rules::LIMITS,
            _ => &rules::JSON,
        };
        self.add(rule, "", error.at, error.to_string());
    }

    fn repeated(&mut self, json: &Json) {
        if let Some(list) = json.list() {
            list.iter().for_each(|item| self.repeated(item));
        }
        let Some(members) = json.object() else { return };
        let mut seen = alloc::collections::BTreeSet::new();
        for (key, value) in members {
            if !seen.insert(key.as_str()) {
                self.add(&rules::REPEATED, "", value.at, format!("the key {key:?} occurs twice"));
            }
            self.repeated(value);
        }
    }
}

/// A shape for messages: its first sizes.
pub fn shown(shape: &[u64]) -> String {
    const MOST: usize = 16;
    match shape.get(..MOST).filter(|_| shape.len() > MOST) {
        Some(start) => format!("{start:?} and {} more", shape.len().saturating_sub(MOST)),
        None => format!("{shape:?}"),
    }
}

/// The start of a name that came from a file: it goes into paths and messages, of which there may be many.
pub fn clip(name: &str) -> &str {
    const MOST: usize = 120;
    let end = (0..=MOST.min(name.len())).rev().find(|&end| name.is_char_boundary(end));
    name.get(..end.unwrap_or_default()).unwrap_or_default()
}
