//! User-defined symbols: pieces that are never divided, and never normalised.

use std::ops::Range;

use super::model::{Kind, Model};
use super::prefixes::Prefixes;

/// Whether a range meets one of these, which are sorted.
pub(super) fn meets(ranges: &[Range<usize>], range: &Range<usize>) -> bool {
    let first = ranges.partition_point(|other| other.end <= range.start);
    ranges.get(first).is_some_and(|other| other.start < range.end)
}

/// User-defined symbols of a model.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    prefixes: Prefixes,
    /// Ids of symbols that read like markers, sorted.
    markers: Vec<u32>,
}

/// Whether a symbol reads like a marker: `<…>` or `[…]` without a space.
pub(super) fn reads_like_marker(text: &str) -> bool {
    let inner = |open: char, close: char| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    inner('<', '>').or_else(|| inner('[', ']')).is_some_and(|name| {
        !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "<>[]\u{2581}".contains(c))
    })
}

impl Symbols {
    pub fn new(model: &Model) -> Self {
        let defined = || (0u32..).zip(&model.pieces).filter(|(_, piece)| piece.kind == Kind::UserDefined);
        Self {
            prefixes: Prefixes::new(defined().map(|(id, piece)| (piece.text.as_bytes().into(), id))),
            markers: defined().filter(|(_, piece)| reads_like_marker(&piece.text)).map(|(id, _)| id).collect(),
        }
    }

    /// Ids of the symbols that read like markers, sorted.
    pub fn markers(&self) -> &[u32] {
        &self.markers
    }

    /// Whether a piece may stand for a range of text: markers not where they are not recognised.
    pub fn allows(&self, id: u32, range: &Range<usize>, guarded: &[Range<usize>]) -> bool {
        guarded.is_empty() || self.markers.binary_search(&id).is_err() || !meets(guarded, range)
    }

    /// Length of the longest symbol that `rest`, which begins at `at`, begins with.
    pub fn longest(&self, rest: &str, at: usize, guarded: &[Range<usize>]) -> Option<usize> {
        if self.prefixes.is_empty() {
            return None;
        }
        let fits = |(length, id): &(usize, u32)| self.allows(*id, &(at..at + length), guarded);
        self.prefixes.of(rest.as_bytes()).filter(fits).last().map(|(length, _)| length)
    }
}
