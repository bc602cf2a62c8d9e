//! Independent pieces of work on several threads: reading, rearranging and hashing of contents.
//!
//! Results are in the order of the items, so what is made of them does not depend on the number of threads. Where no
//! thread can be had the caller does all of it.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The most threads that work at the same time: beyond that the memory is the limit.
const MOST: usize = 8;

/// Bytes for which it pays to start a thread.
const SHARE: u64 = 1 << 20;

/// Returns what `work` gives for each item, where all items together are so many bytes. Items are begun in their order.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, bytes: u64, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let useful = usize::try_from(bytes / SHARE).unwrap_or(usize::MAX).min(items.len()).min(MOST);
    if useful <= 1 {
        return items.into_iter().map(work).collect();
    }
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(useful);
    let count = items.len();
    let next = Mutex::new(items.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(count));
    let some = || {
        let mut own = Vec::new();
        // The lock is held while an item is taken, and not while it is worked on.
        let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((index, item)) = take() {
            own.push((index, work(item)));
        }
        done.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without it the others do its share.
            let _ = thread::Builder::new().spawn_scoped(scope, some);
        }
        some();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        let squares: Vec<usize> = items.iter().map(|item| item * item).collect();
        for bytes in [0, SHARE, 100 * SHARE] {
            assert_eq!(map(items.clone(), bytes, |item| item * item), squares);
            assert_eq!(map(vec![0], bytes, |item| item + 1), [1]);
            assert!(map(Vec::new(), bytes, |item: usize| item + 1).is_empty());
        }
    }
}
