//! Independent pieces of work on several threads: reading, rearranging and hashing of contents.
//!
//! Results are in the order of the items, so what is made of them does not depend on the number of threads. Where no
//! thread can be had the caller does all of it.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The most threads that work at the same time: beyond that the memory is the limit.
const MOST: usize = 8;

/// Returns what `work` gives for each item.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST).min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let some = || {
        let mut own = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            own.push((index, work(item)));
        }
        done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(own);
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without it the others do its share.
            let _ = thread::Builder::new().spawn_scoped(scope, some);
        }
        some();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
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
        assert_eq!(map(&items, |item| item * item), squares);
        assert_eq!(map(&items[..1], |item| item + 1), [1]);
        assert!(map(&items[..0], |item| item + 1).is_empty());
    }
}
