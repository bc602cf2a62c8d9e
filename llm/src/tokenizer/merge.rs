//! Byte-pair merging: of all neighbours that can be merged the best, again and again, in `n log n` for `n` symbols.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Symbol to begin with: a range of the text, and whether it may be merged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Symbol {
    pub range: Range<usize>,
    pub fixed: bool,
}

/// Two neighbours that can be merged; the greatest key is merged first, of equal keys the leftmost.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate<K> {
    key: K,
    left: Reverse<usize>,
    right: usize,
    end: usize,
}

/// Merges neighbouring symbols until no pair has a key, and returns the ranges of the text that are left.
///
/// `key` is asked for the start, the border and the end of two neighbours. Symbols follow one another without gaps.
pub(crate) fn merge<K: Ord>(
    mut symbols: Vec<Symbol>,
    mut key: impl FnMut(usize, usize, usize) -> Option<K>,
) -> Vec<Range<usize>> {
    let count = symbols.len();
    let mut next: Vec<usize> = (1..=count).collect();
    let mut previous: Vec<usize> = (0..count).map(|index| index.wrapping_sub(1)).collect();
    let mut heap = BinaryHeap::new();
    let mut offer = |symbols: &[Symbol], heap: &mut BinaryHeap<Candidate<K>>, left: usize, right: usize| {
        let (Some(first), Some(second)) = (symbols.get(left), symbols.get(right)) else { return };
        if first.fixed || second.fixed {
            return;
        }
        if let Some(key) = key(first.range.start, second.range.start, second.range.end) {
            heap.push(Candidate { key, left: Reverse(left), right, end: second.range.end });
        }
    };
    for left in 0..count.saturating_sub(1) {
        offer(&symbols, &mut heap, left, left + 1);
    }
    while let Some(Candidate { left: Reverse(left), right, end, .. }) = heap.pop() {
        // A candidate is stale if either side was merged since: a symbol that is gone is empty.
        if symbols[left].range.is_empty()
            || symbols[right].range.is_empty()
            || next[left] != right
            || symbols[right].range.end != end
        {
            continue;
        }
        symbols[left].range.end = end;
        symbols[right].range = end..end;
        next[left] = next[right];
        if let Some(after) = previous.get_mut(next[right]) {
            *after = left;
        }
        offer(&symbols, &mut heap, previous[left], left);
        offer(&symbols, &mut heap, left, next[left]);
    }
    symbols.into_iter().map(|symbol| symbol.range).filter(|range| !range.is_empty()).collect()
}

/// A finite score as a key: ordered as the number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Score(pub f32);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // The two zeros are equal.
        self.0.partial_cmp(&other.0).unwrap_or(std::cmp::Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::{Symbol, merge};
    use std::cmp::Reverse;

    /// Searches all pairs for the best, again and again.
    fn slowly(text: &str, ranks: &[&str]) -> Vec<String> {
        let mut parts: Vec<String> = text.chars().map(String::from).collect();
        loop {
            let rank = |pair: &[String]| ranks.iter().position(|token| **token == pair.concat());
            let best = (0..parts.len().saturating_sub(1)).filter_map(|at| Some((rank(&parts[at..at + 2])?, at))).min();
            let Some((_, at)) = best else { return parts };
            let second = parts.remove(at + 1);
            parts[at].push_str(&second);
        }
    }

    proptest::proptest! {
        #[test]
        fn as_the_search_of_all_pairs(text in "[ab]{0,40}") {
            let ranks = ["ab", "aa", "ba", "aab", "abab", "bbb", "bb", "aaa", "ababa", "aaaa"];
            let symbols = (0..text.len()).map(|at| Symbol { range: at..at + 1, fixed: false }).collect();
            let merged = merge(symbols, |start, _, end| {
                ranks.iter().position(|token| *token == &text[start..end]).map(Reverse)
            });
            let merged: Vec<String> = merged.into_iter().map(|range| text[range].to_owned()).collect();
            proptest::prop_assert_eq!(merged, slowly(&text, &ranks));
        }
    }
}
