//! The structural verifier: what every flatbuffer must satisfy, whatever its schema.
//!
//! `#[derive(Table)]` unrolls the walk per type; this module holds what the walk carries along: the budget, the
//! findings and the path. It reports everything it meets and never stops at the first.

use alloc::format;
use alloc::string::{String, ToString};

use crate::finding::{Finding, Findings, Rule};
use crate::limits::{Budget, Limits};
use crate::room::NoRoom;
use crate::wire::{self, ReadError, ReadErrorKind};

/// A place in the structure, as a chain of fields and indices on the stack; it becomes text only when something is wrong.
#[derive(Clone, Copy)]
pub struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    Root,
    Field(&'static str),
    Index(usize),
}

impl Path<'static> {
    /// The whole file.
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };
}

impl<'p> Path<'p> {
    /// A field of this place.
    pub const fn field<'q>(&'q self, name: &'static str) -> Path<'q>
    where
        'p: 'q,
    {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    /// An element of this place.
    pub const fn index<'q>(&'q self, index: usize) -> Path<'q>
    where
        'p: 'q,
    {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
}

impl core::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}

/// The rules a [`Checker`] reports under; each format names its own.
#[derive(Clone, Copy, Debug)]
pub struct StructureRules {
    /// Bytes that are no table, vector or string where the schema wants one.
    pub malformed: &'static Rule,
    /// Values not aligned as their type asks.
    pub misaligned: &'static Rule,
    /// Text that is not UTF-8.
    pub text: &'static Rule,
    /// The file expands beyond the limits.
    pub limits: &'static Rule,
}

/// State of the verifying walk.
pub struct Checker {
    /// Findings so far.
    pub findings: Findings,
    limits: Limits,
    budget: Budget,
    rules: StructureRules,
    /// Added to every offset reported: where the buffer is in its file.
    base: u64,
    /// Names of the tables whose rows this walk leaves out.
    left_out: &'static [&'static str],
    tables: u64,
}

impl Checker {
    /// A walk with a full budget.
    pub fn new(limits: &Limits, rules: StructureRules) -> Self {
        Checker {
            findings: Findings::new(limits),
            limits: *limits,
            budget: Budget::new(limits),
            rules,
            base: 0,
            left_out: &[],
            tables: 0,
        }
    }

    /// The same, but vectors of these tables are only located: their rows are left to a walk of the format's own, which
    /// looks at structure and meaning at once.
    pub fn leaving_out(mut self, tables: &'static [&'static str]) -> Self {
        self.left_out = tables;
        self
    }

    /// Returns whether rows of the table of this name are left out.
    pub fn leaves_out(&self, table: &str) -> bool {
        self.left_out.contains(&table)
    }

    /// Returns the number of tables visited.
    pub fn tables(&self) -> u64 {
        self.tables
    }

    /// Pays for tables and vectors that were looked at by other means: `visits`, of which `tables` are tables. False if
    /// the budget does not suffice; then nothing is paid and they are to be visited one by one, which reports it.
    #[inline]
    pub fn pay(&mut self, visits: u64, tables: u64) -> bool {
        if self.budget.left() < visits {
            return false;
        }
        self.tables = self.tables.saturating_add(tables);
        self.budget.charge(visits, 0).is_ok()
    }

    /// The same for a buffer that starts at `base` of its file.
    pub fn at(mut self, base: u64) -> Self {
        self.base = base;
        self
    }

    /// Looks at a buffer that starts at `base` of the file, inside the one looked at so far.
    pub fn within<R>(&mut self, base: u64, walk: impl FnOnce(&mut Self) -> R) -> R {
        let outer = core::mem::replace(&mut self.base, base);
        let result = walk(self);
        self.base = outer;
        result
    }

    /// Looks at something of another format, under its rules.
    pub fn under<R>(&mut self, rules: StructureRules, walk: impl FnOnce(&mut Self) -> R) -> R {
        let outer = core::mem::replace(&mut self.rules, rules);
        let result = walk(self);
        self.rules = outer;
        result
    }

    /// Returns the offset in the file of the buffer being looked at.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns whether the budget is spent and the walk should end.
    pub fn is_spent(&self) -> bool {
        self.budget.is_spent()
    }

    /// The limits of the walk.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the rest of the budget.
    pub fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Reports a broken rule.
    pub fn report(&mut self, rule: &'static Rule, path: &Path<'_>, offset: Option<u32>, message: String) {
        let offset = offset.map(|offset| self.base.saturating_add(u64::from(offset)));
        // What is only counted needs no text.
        let path = if self.findings.is_full() { String::new() } else { path.to_string() };
        self.findings.push(Finding { rule, path, offset, message });
    }

    /// Reports what could not be read.
    #[cold]
    pub fn unreadable(&mut self, path: &Path<'_>, error: ReadError) {
        let rule = match error.kind {
            ReadErrorKind::NotUtf8 => self.rules.text,
            ReadErrorKind::Misaligned => self.rules.misaligned,
            ReadErrorKind::Budget | ReadErrorKind::Memory => self.rules.limits,
            _ => self.rules.malformed,
        };
        let message = match error.kind {
            ReadErrorKind::OutOfBounds => "points outside the file's flatbuffer".to_string(),
            ReadErrorKind::Vtable => "its vtable is malformed".to_string(),
            ReadErrorKind::FieldOutsideTable => "is outside its table".to_string(),
            ReadErrorKind::Misaligned => "is not aligned to its size".to_string(),
            ReadErrorKind::Unterminated => "the string has no terminating zero byte".to_string(),
            ReadErrorKind::NotUtf8 => "the text is not UTF-8".to_string(),
            ReadErrorKind::Budget => "more tables and vectors than the limits allow for one file".to_string(),
            ReadErrorKind::Memory => return self.no_room(path, NoRoom { bytes: 0 }),
        };
        self.report(rule, path, Some(error.offset), message);
    }

    /// Reports that there is no memory for tables of this size, and ends the walk: nothing more is looked at.
    #[cold]
    pub fn no_room(&mut self, path: &Path<'_>, error: NoRoom) {
        self.budget.exhaust();
        self.findings.no_room(self.rules.limits, path.to_string(), error);
    }

    /// Returns the value there was memory for; a lack of memory is reported and ends the walk.
    #[inline]
    pub fn roomy<T>(&mut self, path: &Path<'_>, made: crate::room::Result<T>) -> Option<T> {
        match made {
            Ok(made) => Some(made),
            Err(error) => {
                self.no_room(path, error);
                None
            }
        }
    }

    /// Reports a value at a position its type does not allow.
    #[cold]
    pub fn misaligned(&mut self, path: &Path<'_>, pos: usize, align: usize) {
        let message = format!("starts at {pos:#x}, which is not a multiple of {align}");
        self.report(self.rules.misaligned, path, Some(pos as u32), message);
    }

    /// Checks a vector's place and pays for it.
    #[inline]
    pub fn vector(
        &mut self,
        table: &wire::Table<'_>,
        slot: u16,
        vector: &wire::Vector<'_>,
        align: usize,
        path: &Path<'_>,
    ) {
        self.vector_at(table, slot, vector.offset(), vector.bytes().len(), align, path);
    }

    /// Checks a vector whose first element is at `start` and that costs `bytes` to visit. The length in front of it
    /// and the offset that led to it must be aligned to 4, its elements to `align`.
    #[inline]
    pub fn vector_at(
        &mut self,
        table: &wire::Table<'_>,
        slot: u16,
        start: u32,
        bytes: usize,
        align: usize,
        path: &Path<'_>,
    ) {
        let start = start as usize;
        // A string's characters need no alignment, its length does: for it the caller passes 4 and `start` is the
        // position after the length, so one test serves both.
        let align = align.max(4);
        if !start.is_multiple_of(align) {
            self.misaligned(path, start, align);
        }
        self.offset_field(table, slot, path);
        if let Err(error) = self.budget.charge_bytes(bytes, start as u32) {
            self.unreadable(path, error);
        }
    }

    /// The offset stored in this slot must be aligned.
    #[inline]
    pub(crate) fn offset_field(&mut self, table: &wire::Table<'_>, slot: u16, path: &Path<'_>) {
        if let Ok(Some(pos)) = table.field(slot, 4)
            && !pos.is_multiple_of(4)
        {
            self.misaligned(path, pos, 4);
        }
    }

    /// Pays for a table and checks its place. False if the budget is spent: what is below it is not looked at.
    #[inline]
    pub(crate) fn visit(&mut self, table: &wire::Table<'_>, path: &Path<'_>) -> bool {
        if let Err(error) = self.budget.charge(1, table.offset()) {
            self.unreadable(path, error);
            return false;
        }
        self.tables = self.tables.saturating_add(1);
        if !table.offset().is_multiple_of(4) {
            self.misaligned(path, table.offset() as usize, 4);
        }
        true
    }
}
