//! Text: UTF-8, checked where it is read.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::{FieldKind, FieldValue, Optional, Sink};
use crate::check::{Checker, Path};
use crate::wire::{self, ReadError, ReadErrorKind};

/// Text of a file: borrowed from it, or owned after an edit.
pub type Text<'a> = Cow<'a, str>;

impl<'a> Optional<'a> for Text<'a> {
    const KIND: FieldKind = FieldKind::Text;

    fn read(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<Self>> {
        let Some(vector) = table.string(slot)? else { return Ok(None) };
        match core::str::from_utf8(vector.bytes()) {
            Ok(text) => Ok(Some(Cow::Borrowed(text))),
            Err(_) => Err(ReadError { kind: ReadErrorKind::NotUtf8, offset: vector.offset() }),
        }
    }

    fn check(table: &wire::Table<'a>, slot: u16, _: usize, checker: &mut Checker, path: &Path<'_>) {
        match table.string(slot) {
            Ok(Some(vector)) => {
                checker.vector(table, slot, &vector, 4, path);
                if core::str::from_utf8(vector.bytes()).is_err() {
                    checker.unreadable(path, ReadError { kind: ReadErrorKind::NotUtf8, offset: vector.offset() });
                }
            }
            Ok(None) => {}
            Err(error) => checker.unreadable(path, error),
        }
    }

    fn write<S: Sink>(
        &self,
        slot: u16,
        _: usize,
        sink: &mut S,
        fields: &mut Vec<(u16, FieldValue<S::Ref>)>,
    ) -> Result<(), S::Error> {
        fields.push((slot, FieldValue::Ref(sink.string(self)?)));
        Ok(())
    }
}
