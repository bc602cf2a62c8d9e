//! What kernels keep from run to run beside the memory the executor gives them: packed weights, mostly.
//!
//! A kernel asks for room before it makes something of a size that the file decides, and says what it keeps where it
//! makes it. Every thread counts what was said on it; a method takes the difference over its own preparing and running,
//! so that nobody needs to know whose kernel it was.

use std::cell::Cell;

use crate::api::error::KernelError;
use crate::api::room::no_room;

thread_local! {
    static KEPT: Cell<usize> = const { Cell::new(0) };
    /// What the method at work on this thread may still keep.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Tells the method that is being loaded or run on this thread that a kernel of it keeps this many bytes from now on, for
/// [`MemoryBytes::packed`](crate::MemoryBytes::packed).
pub fn keeps(bytes: usize) {
    KEPT.set(KEPT.get().wrapping_add(bytes));
    LEFT.set(LEFT.get().saturating_sub(bytes as u64));
}

/// Asks whether so many bytes may be allocated and are there, before something allocates them that cannot say no: an
/// error if the limits of the method that is being loaded or run on this thread, or its machine, have not as many.
pub fn reserve(bytes: usize) -> Result<(), KernelError> {
    let left = LEFT.get();
    if bytes as u64 > left {
        let message = format!("{bytes} bytes of packed weights and tables, the limits leave {left}");
        return Err(KernelError::new(edgepack_format::finding::ErrorCode::MemoryAllocationFailed, message));
    }
    room::<u8>(bytes).map(drop)
}

/// An empty list with room for so many elements: an error if the memory is not there.
pub fn room<T>(count: usize) -> Result<Vec<T>, KernelError> {
    let mut list = Vec::new();
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    list.try_reserve_exact(count).map_err(|_| no_room("packed weights and tables", bytes))?;
    Ok(list)
}

/// Runs `work` on this thread for a method that may keep `left` bytes more, and adds what kernels said meanwhile.
pub(crate) fn counted<R>(sum: &mut usize, left: u64, work: impl FnOnce() -> R) -> R {
    /// What was there before comes back, whatever becomes of the work.
    struct Before<'s>(&'s mut usize, usize, u64);
    impl Drop for Before<'_> {
        fn drop(&mut self) {
            let kept = KEPT.get().wrapping_sub(self.1);
            *self.0 += kept;
            LEFT.set(self.2.saturating_sub(kept as u64));
        }
    }
    let _before = Before(sum, KEPT.get(), LEFT.replace(left));
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_counts_for_whoever_runs_on_this_thread() {
        let (mut outer, mut inner) = (1, 0);
        keeps(1000);
        counted(&mut outer, u64::MAX, || {
            keeps(10);
            counted(&mut inner, u64::MAX, || keeps(5));
            std::thread::spawn(|| keeps(100)).join().unwrap();
        });
        assert_eq!((outer, inner), (16, 5));
    }

    #[test]
    fn nothing_is_had_beyond_the_limits() {
        let mut sum = 0;
        counted(&mut sum, 100, || {
            reserve(100).unwrap();
            keeps(60);
            assert!(reserve(41).is_err());
            counted(&mut 0, 1000, || reserve(1000)).unwrap();
            reserve(40).unwrap();
        });
        assert_eq!(sum, 60);
        reserve(1000).unwrap();
        assert!(reserve(usize::MAX).is_err() && room::<u64>(usize::MAX / 4).is_err());
    }
}
