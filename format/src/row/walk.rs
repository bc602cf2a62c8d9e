//! The verifying walk over rows: from a table to what is below it.
//!
//! Invariant: every table is paid for before it is looked at.

use super::{Table, Union};
use crate::check::{Checker, Path};
use crate::wire;

impl Checker {
    /// Verifies a table and what is below it.
    #[inline]
    pub fn table<'a, T: Table<'a>>(&mut self, table: wire::Table<'a>, path: &Path<'_>) {
        if self.enter(&table, path) {
            T::check(table, self, path);
        }
    }

    /// Verifies the union whose tag is in this slot. What a tag without a value means is for the schema's own rules.
    #[inline]
    pub fn union<'a, U: Union<'a>>(&mut self, table: &wire::Table<'a>, slot: u16, path: &Path<'_>) {
        self.offset_field(table, slot.saturating_add(1), path);
        match table.union(slot) {
            Ok(Some((tag, Some(value)))) => U::check(tag, value, self, path),
            Ok(_) => {}
            Err(error) => self.unreadable(path, error),
        }
    }

    /// Verifies the sub-table of a slot.
    #[inline]
    pub fn sub_table<'a, T: Table<'a>>(&mut self, table: &wire::Table<'a>, slot: u16, path: &Path<'_>) {
        self.offset_field(table, slot, path);
        match table.table(slot) {
            Ok(Some(sub)) => self.table::<T>(sub, path),
            Ok(None) => {}
            Err(error) => self.unreadable(path, error),
        }
    }
}
