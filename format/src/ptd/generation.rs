//! Generation of a data file: the layout of its tables. Identifier, header and version do not tell; the root table
//! does.

use crate::row::Table as _;
use crate::wire::Table;

use super::{DataSegment, LegacyFlatTensor};

/// A layout of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum Generation {
    /// `FT01`, January to March 2025: tensors.
    A,
    /// `FT01`, March to June 2025: tensors and named data.
    B,
    /// `FT01` since June 2025: named data with layouts.
    C,
    /// `FD01`.
    FlatData,
}

impl Generation {
    /// Of the root table of an `FT01` file: A, B or C.
    ///
    /// In A and B slot 1 is a number, a power of two, and the segments are in slot 3. In C slot 1 is the offset of the
    /// segments; slots beyond 2 would be of a future version.
    pub fn of(root: &Table<'_>) -> Self {
        let alignment = root.get(LegacyFlatTensor::TENSOR_ALIGNMENT);
        let looks_old = matches!(alignment, Ok(number) if number.is_power_of_two());
        let old_segments = LegacyFlatTensor::SEGMENTS.index;
        match (looks_old, root.has(old_segments), root.has(LegacyFlatTensor::NAMED_DATA.index)) {
            (true, true, true) if holds_segments(root, old_segments) => Generation::B,
            (true, true, false) if holds_segments(root, old_segments) => Generation::A,
            // Without segments of its own an old file still cannot pass for a current one.
            (true, false, false) if !holds_segments(root, LegacyFlatTensor::TENSOR_ALIGNMENT.index) => Generation::A,
            _ => Generation::C,
        }
    }

    /// Returns whether today's runtimes cannot read it although its identifier is theirs.
    pub fn is_legacy(self) -> bool {
        matches!(self, Generation::A | Generation::B)
    }
}

/// Returns whether the slot points at a vector of tables whose first could be a segment.
fn holds_segments(root: &Table<'_>, slot: u16) -> bool {
    match root.tables(slot) {
        Ok(Some(tables)) => tables.is_empty() || tables.get(0).and_then(DataSegment::decode).is_ok(),
        _ => false,
    }
}
