//! Counts the heap in use: the allocator of this binary counts once it is told to, which only processes do that measure
//! nothing else.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// The system's allocator, counting.
pub struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

/// Counts from now on.
pub fn count() {
    COUNTS.store(true, Ordering::Relaxed);
}

/// Bytes in use.
pub fn live() -> isize {
    LIVE.load(Ordering::Relaxed)
}

/// The most bytes that were in use at once since [`forget_peak`].
pub fn peak() -> isize {
    PEAK.load(Ordering::Relaxed)
}

/// The peak is what is in use now.
pub fn forget_peak() {
    PEAK.store(live(), Ordering::Relaxed);
}

fn change(bytes: isize) {
    if COUNTS.load(Ordering::Relaxed) {
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system allocator unchanged; besides that, only counters are updated.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        change(-(layout.size() as isize));
        // SAFETY: by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        change(size as isize - layout.size() as isize);
        // SAFETY: by the caller.
        unsafe { System.realloc(ptr, layout, size) }
    }
}
