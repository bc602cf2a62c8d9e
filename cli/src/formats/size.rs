//! Sizes of the parts of a file. The parts of a [`Size`] never overlap, and sum up to the file if it is sound.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use edgepack_loader::Source;
use serde::Serialize;

use crate::file::digest;
use crate::status::Failure;

/// Sizes of the parts of a file.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Size {
    /// All of them.
    pub bytes: u64,
    /// Parts of the file, largest first.
    pub parts: Vec<Part>,
    /// Stored tensors, largest first.
    pub tensors: Vec<StoredTensor>,
    /// Ranges with the same content.
    pub duplicates: Vec<Duplicate>,
}

/// A part of the file.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Part {
    /// Description of the part.
    pub what: String,
    /// Length of the part in bytes.
    pub bytes: u64,
}

/// A stored tensor.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct StoredTensor {
    /// Name of the tensor, or `constant.N`, as `patch` takes it.
    pub name: String,
    /// `f32[2, 2]`.
    #[serde(rename = "type")]
    pub layout: String,
    /// Length of the tensor in bytes.
    pub bytes: u64,
    /// Offset of the tensor in the file.
    #[serde(skip)]
    pub offset: Option<u64>,
}

/// Content that is there more than once.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Duplicate {
    /// Bytes beyond the first copy.
    pub wasted: u64,
    /// Places of the copies.
    pub places: Vec<String>,
}

/// A named range of the file.
pub struct Range {
    /// For people.
    pub name: String,
    /// Offset of the range in the file.
    pub offset: u64,
    /// Length of the range in bytes.
    pub bytes: u64,
}

impl Size {
    /// Makes the size of a file of `bytes` bytes; no parts yet.
    pub fn new(bytes: u64) -> Size {
        Size { bytes, ..Size::default() }
    }

    /// Makes the size of a file whose tables cannot be read.
    pub fn unreadable(bytes: u64) -> Size {
        let mut size = Size::new(bytes);
        size.part("nothing that can be read within reason", bytes);
        size
    }

    /// Adds a part, unless it is empty.
    pub fn part(&mut self, what: impl Into<String>, bytes: u64) {
        if bytes > 0 {
            self.parts.push(Part { what: what.into(), bytes });
        }
    }

    /// Parts and tensors, largest first.
    pub fn sorted(mut self) -> Self {
        self.parts.sort_by_key(|part| Reverse(part.bytes));
        self.tensors.sort_by_key(|part| Reverse(part.bytes));
        self
    }

    /// Adds the bytes between used ranges as padding, and the bytes behind them as undeclared.
    pub fn gaps(&mut self, mut used: Vec<(u64, u64)>) {
        used.sort_unstable();
        let (mut end, mut padding) = (0u64, 0u64);
        for (offset, bytes) in used {
            padding += offset.saturating_sub(end);
            end = end.max(offset.saturating_add(bytes));
        }
        self.part("padding between segments", padding);
        self.part("behind the last segment", self.bytes.saturating_sub(end));
    }

    /// Finds ranges of equal content.
    pub fn duplicates_among(&mut self, source: &dyn Source, ranges: Vec<Range>) -> Result<(), Failure> {
        self.duplicates = duplicates(source, ranges)?;
        Ok(())
    }
}

/// Content below this size is not worth sharing.
const WORTH: u64 = 64;

/// Ceiling of the bytes read to compare parts, as a multiple of the file's length: ranges may overlap in any number.
const READS: u64 = 4;

/// Ranges of equal content. Only ranges of equal length are read at all, and no more than a few times the file.
fn duplicates(source: &dyn Source, ranges: Vec<Range>) -> Result<Vec<Duplicate>, Failure> {
    let mut by_length: BTreeMap<u64, Vec<Range>> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for range in ranges {
        let inside = range.offset.checked_add(range.bytes).is_some_and(|end| end <= source.len());
        // A range that has two names is stored once.
        if range.bytes >= WORTH && inside && known.insert((range.offset, range.bytes)) {
            by_length.entry(range.bytes).or_default().push(range);
        }
    }
    let mut duplicates = Vec::new();
    let mut left = source.len().saturating_mul(READS).saturating_add(1);
    for (bytes, same) in by_length.into_iter().filter(|(_, same)| same.len() > 1) {
        let mut by_content: BTreeMap<[u8; 32], Vec<String>> = BTreeMap::new();
        for range in same {
            left = left.saturating_sub(bytes);
            if left == 0 {
                break;
            }
            let end = range.offset.saturating_add(bytes);
            let content = digest(source, range.offset..end, &mut |_| ()).map_err(Failure::unreadable)?;
            by_content.entry(content).or_default().push(range.name);
        }
        for places in by_content.into_values().filter(|places| places.len() > 1) {
            duplicates.push(Duplicate { wasted: bytes.saturating_mul(places.len() as u64 - 1), places });
        }
    }
    duplicates.sort_by_key(|duplicate| Reverse(duplicate.wasted));
    Ok(duplicates)
}
