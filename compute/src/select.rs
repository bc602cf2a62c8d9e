//! The first `k` of a line in order, with ties where the reference leaves them.
//!
//! Nothing says which of several equal elements `topk` names, but models depend on what they were tested with. PyTorch
//! and ExecuTorch both select with the C++ library's partition by a median of three, sort runs of up to 16 elements by
//! insertion, and use a heap where few elements are wanted of many. The same operations on the same input give the same
//! places. Time is bounded as there: a partition that makes no progress ends in a heap.

/// An element as a number that orders like it, and its place.
pub type Entry = [u64; 2];

/// Runs this short are sorted by insertion.
const SHORT: usize = 16;
/// A heap pays where the line is this many times longer than what is wanted of it.
const FEW: usize = 64;

/// Returns whether one element comes before the other. Places do not count.
fn before(a: &Entry, b: &Entry) -> bool {
    a[0] < b[0]
}

/// Brings the `count` least entries to the front: in order if `sorted`, else as selecting leaves them.
pub fn select(line: &mut [Entry], count: usize, sorted: bool) {
    if count == 0 {
        return;
    }
    if count.saturating_mul(FEW) <= line.len() {
        heap_select(line, count);
        heap_sort(&mut line[..count]);
    } else {
        partition_around(line, count - 1);
        if sorted {
            sort(&mut line[..count - 1]);
        }
    }
}

/// Returns how often a line of `len` entries may be split before a heap takes over.
fn depth(len: usize) -> u32 {
    2 * len.checked_ilog2().unwrap_or(0)
}

/// Puts the entry that belongs at `nth` there, what comes before it in front.
pub fn partition_around(line: &mut [Entry], nth: usize) {
    let (mut start, mut end, mut splits) = (0, line.len(), depth(line.len()));
    while end - start > 3 {
        if splits == 0 {
            let rest = &mut line[start..end];
            heap_select(rest, nth - start + 1);
            rest.swap(0, nth - start);
            return;
        }
        splits -= 1;
        let cut = start + split(&mut line[start..end]);
        if cut <= nth {
            start = cut;
        } else {
            end = cut;
        }
    }
    insertion_sort(&mut line[start..end]);
}

fn sort(line: &mut [Entry]) {
    sort_coarsely(line, depth(line.len()));
    insertion_sort(line);
}

/// Leaves runs of up to [`SHORT`] entries to be sorted, each in its place.
fn sort_coarsely(line: &mut [Entry], mut splits: u32) {
    let mut end = line.len();
    while end > SHORT {
        let rest = &mut line[..end];
        if splits == 0 {
            heap_select(rest, end);
            heap_sort(rest);
            return;
        }
        splits -= 1;
        let cut = split(rest);
        sort_coarsely(&mut rest[cut..], splits);
        end = cut;
    }
}

/// Moves the median of the second, middle and last entry to the front and splits the others around it: what is behind
/// the answer does not come before it, what is in front not after it.
fn split(line: &mut [Entry]) -> usize {
    let (second, middle, last) = (1, line.len() / 2, line.len() - 1);
    let less = |a: usize, b: usize| before(&line[a], &line[b]);
    let median = match (less(second, middle), less(middle, last), less(second, last)) {
        (true, true, _) => middle,
        (true, false, true) => last,
        (true, false, false) => second,
        (false, _, true) => second,
        (false, true, false) => last,
        (false, false, false) => middle,
    };
    line.swap(0, median);
    let pivot = line[0];
    let (mut low, mut high) = (1, line.len());
    // The median is between two others, so neither walk leaves the line.
    loop {
        while before(&line[low], &pivot) {
            low += 1;
        }
        high -= 1;
        while before(&pivot, &line[high]) {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        line.swap(low, high);
        low += 1;
    }
}

fn insertion_sort(line: &mut [Entry]) {
    for at in 1..line.len() {
        let entry = line[at];
        let mut hole = at;
        while hole > 0 && before(&entry, &line[hole - 1]) {
            line[hole] = line[hole - 1];
            hole -= 1;
        }
        line[hole] = entry;
    }
}

/// Makes a heap of the `count` least entries at the front, the greatest on top.
fn heap_select(line: &mut [Entry], count: usize) {
    let (heap, rest) = line.split_at_mut(count);
    for parent in (0..count / 2).rev() {
        let entry = heap[parent];
        sink(heap, parent, entry);
    }
    for entry in rest {
        let greatest = heap[0];
        if before(entry, &greatest) {
            let smaller = std::mem::replace(entry, greatest);
            sink(heap, 0, smaller);
        }
    }
}

fn heap_sort(heap: &mut [Entry]) {
    for end in (1..heap.len()).rev() {
        let greatest = heap[0];
        let entry = std::mem::replace(&mut heap[end], greatest);
        sink(&mut heap[..end], 0, entry);
    }
}

/// Fills the hole: greater children rise down to a leaf, then the entry rises to where it belongs.
fn sink(heap: &mut [Entry], top: usize, entry: Entry) {
    let mut hole = top;
    loop {
        let (left, right) = (2 * hole + 1, 2 * hole + 2);
        let child = match heap.get(right) {
            Some(right_entry) if !before(right_entry, &heap[left]) => right,
            _ if left < heap.len() => left,
            _ => break,
        };
        heap[hole] = heap[child];
        hole = child;
    }
    while hole > top {
        let parent = (hole - 1) / 2;
        if !before(&heap[parent], &entry) {
            break;
        }
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = entry;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn places(keys: &[u64], count: usize) -> Vec<u64> {
        let mut line: Vec<Entry> = keys.iter().zip(0..).map(|(&key, place)| [key, place]).collect();
        select(&mut line, count, true);
        line[..count].iter().map(|&[_, place]| place).collect()
    }

    #[test]
    fn selects_what_a_sort_would() {
        let mut random = Random::new(11);
        for round in 0..400 {
            let keys: Vec<u64> = (0..random.below(if round % 10 == 0 { 900 } else { 60 }) + 1)
                .map(|_| random.below(40) as u64)
                .collect();
            let count = if round % 3 == 0 { keys.len().div_ceil(80) } else { random.below(keys.len() + 1) };
            let chosen: Vec<u64> = places(&keys, count).iter().map(|&place| keys[place as usize]).collect();
            let mut want = keys.clone();
            want.sort_unstable();
            assert_eq!(chosen, want[..count]);
        }
    }

    #[test]
    fn bad_pivots_end_in_a_heap() {
        let mut line: Vec<Entry> = (0..2000u64).map(|i| [(i * 7919) % 2003, i]).collect();
        let mut want = line.clone();
        want.sort_unstable();
        sort_coarsely(&mut line, 0);
        assert_eq!(line, want);
    }

    /// Compares with the results of `topk(largest=False)` of eager PyTorch for the same numbers.
    #[test]
    fn ties_stand_where_the_reference_leaves_them() {
        assert_eq!(places(&[1, 5, 8, 2, 2], 3), [0, 3, 4]);
        assert_eq!(places(&[4; 5], 3), [2, 4, 3]);
        assert_eq!(places(&[2, 1, 4, 4, 4], 2), [1, 0]);
        assert_eq!(places(&[5; 200], 2), [0, 1]);
        let sevens: Vec<u64> = (0..300).map(|i| i % 7).collect();
        assert_eq!(places(&sevens, 4), [14, 0, 21, 7]);
        let twenties: Vec<u64> = (0..60).map(|i| i % 20).collect();
        let want = [
            40, 0, 20, 21, 41, 1, 42, 2, 22, 3, 23, 43, 4, 24, 44, 5, 25, 45, 46, 26, 6, 27, 7, 47, 48, 8, 28, 9, 29,
            49,
        ];
        assert_eq!(places(&twenties, 30), want);
        let want = [30, 21, 22, 23, 24, 25, 26, 27, 28, 29, 35, 39, 38, 37, 36, 33, 31];
        assert_eq!(places(&[3; 40], 17), want);
    }
}
