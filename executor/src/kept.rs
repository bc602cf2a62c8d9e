//! What kernels keep from run to run beside the memory the executor gives them: packed weights, mostly.
//!
//! A kernel says so where it makes it. Every thread counts what was said on it, in one number that only grows; a method
//! takes the difference over its own preparing and running, so that nobody needs to know whose kernel it was.

use std::cell::Cell;

thread_local! {
    static KEPT: Cell<usize> = const { Cell::new(0) };
}

/// Tells the method that is being loaded or run on this thread that a kernel of it keeps this many bytes from now on, for
/// [`MemoryBytes::packed`](crate::MemoryBytes::packed).
pub fn keeps(bytes: usize) {
    KEPT.with(|kept| kept.set(kept.get().wrapping_add(bytes)));
}

/// Runs `work` on this thread and adds what kernels said meanwhile.
pub(crate) fn counted<R>(sum: &mut usize, work: impl FnOnce() -> R) -> R {
    let before = KEPT.get();
    let result = work();
    *sum += KEPT.get().wrapping_sub(before);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_counts_for_whoever_runs_on_this_thread() {
        let (mut outer, mut inner) = (1, 0);
        keeps(1000);
        counted(&mut outer, || {
            keeps(10);
            counted(&mut inner, || keeps(5));
            std::thread::spawn(|| keeps(100)).join().unwrap();
        });
        assert_eq!((outer, inner), (16, 5));
    }
}
