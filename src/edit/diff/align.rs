//! Alignment of two sequences of keys: which elements of the one are which of the other, both in order.
//!
//! Keys that each sequence has once are fixed points; between them a shortest edit script is looked for up to
//! [`MOST_EDITS`] edits, and from the furthest point reached again. So work is at most proportional to the elements,
//! whatever they are, and the same input has the same answer.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

/// Edits that are looked for before what was found so far is taken.
const MOST_EDITS: usize = 128;

/// Positions of the same element.
pub(super) type Pair = (usize, usize);

/// Pairs of elements with equal keys, in order on both sides.
pub(super) fn align<K: Copy + Eq + Hash>(a: &[K], b: &[K]) -> Vec<Pair> {
    let mut found = Vec::new();
    // What both begin and end with needs no search.
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (inner_a, inner_b) = (&a[start..], &b[start..]);
    let end = inner_a.iter().rev().zip(inner_b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (inner_a, inner_b) = (&inner_a[..inner_a.len() - end], &inner_b[..inner_b.len() - end]);
    found.extend((0..start).map(|at| (at, at)));
    let fixed = once_in_both(inner_a, inner_b);
    for (index, (ours, theirs)) in gaps(&fixed, inner_a.len(), inner_b.len()).into_iter().enumerate() {
        let (from_a, from_b) = (start + ours.start, start + theirs.start);
        script(&inner_a[ours], &inner_b[theirs], &mut |x, y| found.push((from_a + x, from_b + y)));
        found.extend(fixed.get(index).map(|(x, y)| (start + x, start + y)));
    }
    found.extend((0..end).map(|at| (a.len() - end + at, b.len() - end + at)));
    found
}

/// The ranges before, between and behind pairs.
pub(super) fn gaps(pairs: &[Pair], a: usize, b: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let mut gaps = Vec::with_capacity(pairs.len() + 1);
    let (mut x, mut y) = (0, 0);
    for pair in pairs.iter().chain([&(a, b)]) {
        gaps.push((x..pair.0, y..pair.1));
        (x, y) = (pair.0 + 1, pair.1 + 1);
    }
    gaps
}

/// Elements whose key either sequence has once: the longest run of them that is in order on both sides.
pub(super) fn once_in_both<K: Copy + Eq + Hash>(a: &[K], b: &[K]) -> Vec<Pair> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    let mut places: HashMap<K, Option<usize>> = HashMap::with_capacity(b.len());
    for (at, key) in b.iter().enumerate() {
        places.entry(*key).and_modify(|place| *place = None).or_insert(Some(at));
    }
    let mut seen: HashMap<K, bool> = HashMap::with_capacity(a.len());
    for key in a {
        seen.entry(*key).and_modify(|once| *once = false).or_insert(true);
    }
    let candidates: Vec<Pair> = a
        .iter()
        .enumerate()
        .filter(|(_, key)| seen.get(key) == Some(&true))
        .filter_map(|(at, key)| Some((at, (*places.get(key)?)?)))
        .collect();
    increasing(&candidates)
}

/// The longest part of the pairs, which are in the order of the first numbers, whose second numbers increase, too.
fn increasing(pairs: &[Pair]) -> Vec<Pair> {
    // The last pair of the best run of each length, and of each pair the one before it.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::with_capacity(pairs.len()));
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end: &usize| pairs[*end].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(index) = at {
        run.push(pairs[index]);
        at = before[index];
    }
    run.reverse();
    run
}

/// Finds the pairs of an edit script, which is a shortest one if it has few edits.
fn script<K: Eq>(a: &[K], b: &[K], found: &mut dyn FnMut(usize, usize)) {
    let (mut x, mut y) = (0, 0);
    while x < a.len() && y < b.len() {
        let (more_x, more_y) = search(&a[x..], &b[y..], &mut |at_x, at_y| found(x + at_x, y + at_y));
        (x, y) = (x + more_x, y + more_y);
    }
}

/// Myers' greedy search, up to [`MOST_EDITS`] edits; returns how far it came, which is at least one element.
fn search<K: Eq>(a: &[K], b: &[K], found: &mut dyn FnMut(usize, usize)) -> Pair {
    // Of each number of edits, how far into `a` each diagonal came; diagonal k is the one where x - y = k.
    let mut reached: Vec<Vec<Option<usize>>> = Vec::new();
    let y_of = |x: usize, k: isize| x.checked_add_signed(-k).filter(|y| *y <= b.len());
    let mut best = (0usize, 0isize, 0usize);
    let mut done = false;
    for edits in 0..=MOST_EDITS {
        let mut row = vec![None; 2 * edits + 1];
        for (slot, place) in row.iter_mut().enumerate().step_by(2) {
            let k = slot as isize - edits as isize;
            let Some(start) = start_of(reached.last(), edits, k, a.len(), b.len()) else { continue };
            let Some(y) = y_of(start, k) else { continue };
            let same = a[start..].iter().zip(&b[y..]).take_while(|(a, b)| a == b).count();
            *place = Some(start + same);
            if start + same + y + same > best.2 || edits == 0 {
                best = (edits, k, start + same + y + same);
            }
            done |= start + same == a.len() && y + same == b.len();
        }
        reached.push(row);
        if done {
            break;
        }
    }
    // Back along the way to the furthest point.
    let (mut edits, mut k, _) = best;
    let at = |edits: usize, k: isize| reached[edits][(k + edits as isize) as usize].unwrap_or(0);
    let end = at(edits, k);
    let mut pairs = Vec::new();
    let mut x = end;
    loop {
        let before = edits.checked_sub(1).map(|edits| &reached[edits]);
        let start = start_of(before, edits, k, a.len(), b.len()).unwrap_or(0);
        while x > start {
            x -= 1;
            pairs.push((x, y_of(x, k).unwrap_or(0)));
        }
        let Some(fewer) = edits.checked_sub(1) else { break };
        // Down from the diagonal above, or right from the one below.
        let down = x_of(&reached[fewer], fewer, k + 1).filter(|x| *x == start && y_of(start, k).is_some_and(|y| y > 0));
        k = if down.is_some() { k + 1 } else { k - 1 };
        x = x_of(&reached[fewer], fewer, k).unwrap_or(0);
        edits = fewer;
    }
    pairs.into_iter().rev().for_each(|(x, y)| found(x, y));
    (end, y_of(end, best.1).unwrap_or(0))
}

fn x_of(row: &[Option<usize>], edits: usize, k: isize) -> Option<usize> {
    let slot = usize::try_from(k + edits as isize).ok()?;
    row.get(slot).copied().flatten()
}

/// The point of diagonal `k` at which one more edit than in a row arrives: the further one of the two ways.
fn start_of(row: Option<&Vec<Option<usize>>>, edits: usize, k: isize, a: usize, b: usize) -> Option<usize> {
    let (Some(row), Some(fewer)) = (row, edits.checked_sub(1)) else { return (k == 0).then_some(0) };
    let inside = |x: &usize| *x <= a && x.checked_add_signed(-k).is_some_and(|y| y <= b);
    let down = x_of(row, fewer, k + 1).filter(inside);
    let right = x_of(row, fewer, k - 1).map(|x| x + 1).filter(inside);
    down.max(right)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use proptest::prelude::*;

    /// The length of the longest common subsequence, by the table of all pairs.
    fn longest(a: &[u64], b: &[u64]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut corner = 0;
            for (index, y) in b.iter().enumerate() {
                let up = row[index + 1];
                row[index + 1] = if x == y { corner + 1 } else { up.max(row[index]) };
                corner = up;
            }
        }
        row[b.len()]
    }

    fn check(a: &[u64], b: &[u64]) -> usize {
        let pairs = align(a, b);
        assert!(pairs.iter().all(|(x, y)| a[*x] == b[*y]), "{a:?} {b:?} {pairs:?}");
        assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1), "{pairs:?}");
        pairs.len()
    }

    proptest! {
        /// Without keys that are there once, few edits are as few as can be.
        #[test]
        fn scripts_are_shortest(a in proptest::collection::vec(0u64..4, 0..40), b in proptest::collection::vec(0u64..4, 0..40)) {
            check(&a, &b);
            let mut pairs = Vec::new();
            script(&a, &b, &mut |x, y| pairs.push((x, y)));
            prop_assert!(pairs.iter().all(|(x, y)| a[*x] == b[*y]));
            prop_assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
            prop_assert_eq!(pairs.len(), longest(&a, &b));
        }
    }

    #[test]
    fn what_is_planted_is_all_that_is_left() {
        let all: Vec<u64> = (0..1000).map(|at| at % 7 * (at / 100)).collect();
        assert_eq!(check(&all, &all), 1000);
        for at in [0, 1, 500, 999] {
            let mut more = all.clone();
            more.insert(at, 12345);
            assert_eq!((check(&all, &more), check(&more, &all)), (1000, 1000), "{at}");
        }
        let mut moved = all.clone();
        let one = moved.remove(333);
        moved.insert(700, one);
        assert!(check(&all, &moved) >= 999);
        assert_eq!((check(&[], &all), check(&all, &[])), (0, 0));
    }

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// A key that counts how often keys are compared.
    #[derive(Clone, Copy, Eq)]
    struct Counted(u64);

    impl Hash for Counted {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    /// Sequences with nothing, little and everything in common, none of it unique: comparisons are in proportion.
    #[test]
    fn hostile_sequences_are_aligned_in_proportion() {
        let count = 100_000u64;
        let noise = |seed: u64, kinds: u64| -> Vec<u64> {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) % kinds
            };
            (0..count).map(|_| next()).collect()
        };
        let all = |key: u64| vec![key; count as usize];
        let (up, down) = ((0..count).collect::<Vec<_>>(), (0..count).rev().collect::<Vec<_>>());
        for (a, b) in [(all(1), all(2)), (noise(1, 2), noise(2, 2)), (noise(1, 1000), noise(2, 1000)), (up, down)] {
            let [a, b] = [a, b].map(|keys| keys.into_iter().map(Counted).collect::<Vec<_>>());
            COMPARED.set(0);
            let pairs = align(&a, &b);
            let compared = COMPARED.get();
            // A search compares half of the square of its edits at most, and gets as far as it has edits.
            assert!(compared < MOST_EDITS * (a.len() + b.len()), "{compared}");
            assert!(pairs.iter().all(|(x, y)| a[*x] == b[*y]));
        }
    }
}
