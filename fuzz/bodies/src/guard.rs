//! Runs one case under guard: a panic, too much memory or too much time is a failure with a name.
//!
//! Memory is counted by the global allocator of the runner, time by a watchdog thread. A panic and a moderate excess
//! of memory are answered in process; a case that does not return, or asks for gigabytes, ends the process after its
//! input was saved.
#![allow(unsafe_code, reason = "a global allocator is an unsafe trait; this one counts and delegates")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use edgepack_fuzz::Body;

/// Bytes that a case may hold beyond what was held before it, and beyond 64 times its input: the limits for hostile
/// files promise less.
const ALLOWANCE: usize = 64 << 20;

/// An allocation that would take the process to this much is not made.
const CEILING: usize = 2 << 30;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static SECONDS: AtomicU64 = AtomicU64::new(crate::CASE_SECONDS);
static STARTED: AtomicU64 = AtomicU64::new(0);
static SAVING: AtomicBool = AtomicBool::new(false);
static CASE: Mutex<(&str, Vec<u8>)> = Mutex::new(("", Vec::new()));
static PANIC: Mutex<Option<(String, String)>> = Mutex::new(None);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    if live > PEAK.fetch_max(live, Relaxed) && live > CEILING && !SAVING.load(Relaxed) {
        give_up("memory beyond the ceiling");
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches atomics only, and what ends the
// process does not return.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        grow(new_size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: by the caller.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Reason that a case failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Place of the failure, as `file:line`, or the name of a guard; failures at one place are taken for one.
    pub place: String,
    /// Message of the panic or of the guard.
    pub message: String,
}

/// Sets how long a case may take.
pub fn allow(seconds: u64) {
    SECONDS.store(seconds, Relaxed);
}

/// Makes panics quiet and their place known, and starts the watchdog.
pub fn install() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, |at| format!("{}:{}", at.file(), at.line()));
        let message = info.payload_as_str().unwrap_or("a panic without text").to_owned();
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value == "full") {
            eprintln!("{place}: {message}\n{}", std::backtrace::Backtrace::force_capture());
        }
        let mut last = PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // The first panic is the cause; others follow from it.
        last.get_or_insert((place, message));
    }));
    let epoch = Instant::now();
    EPOCH.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).replace(epoch);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let (started, now) = (STARTED.load(Relaxed), epoch.elapsed().as_millis() as u64);
            if started > 0 && now.saturating_sub(started) > SECONDS.load(Relaxed).saturating_mul(1000) {
                give_up("time");
            }
        }
    });
}

static EPOCH: Mutex<Option<Instant>> = Mutex::new(None);

fn now() -> u64 {
    let epoch = *EPOCH.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    epoch.map_or(0, |epoch| epoch.elapsed().as_millis() as u64 + 1)
}

/// Runs a body on one input.
pub fn run(body: &'static Body, input: &[u8]) -> Result<(), Failure> {
    if let Ok(mut case) = CASE.lock() {
        case.0 = body.name;
        case.1.clear();
        case.1.extend_from_slice(input);
    }
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    STARTED.store(now(), Relaxed);
    let result = panic::catch_unwind(AssertUnwindSafe(|| (body.run)(input)));
    STARTED.store(0, Relaxed);
    let peak = PEAK.load(Relaxed).saturating_sub(before);
    if result.is_err() {
        let said = PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let (place, message) = said.unwrap_or_else(|| ("unknown".into(), "a panic that nobody saw".into()));
        return Err(Failure { place, message });
    }
    let allowed = ALLOWANCE + 64 * input.len();
    if peak > allowed {
        return Err(Failure { place: "memory".into(), message: format!("{peak} bytes, {allowed} are allowed") });
    }
    Ok(())
}

/// Path at which an input that fails is saved.
pub fn artifact(body: &str, input: &[u8]) -> PathBuf {
    let hash = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../artifacts").join(body);
    folder.join(format!("{hash:016x}"))
}

/// Saves an input and returns its path.
pub fn save(body: &str, input: &[u8]) -> PathBuf {
    let path = artifact(body, input);
    let saved = path.parent().map(std::fs::create_dir_all).transpose().and_then(|_| std::fs::write(&path, input));
    if let Err(error) = saved {
        eprintln!("cannot save {}: {error}", path.display());
    }
    path
}

fn give_up(why: &str) -> ! {
    SAVING.store(true, Relaxed);
    match CASE.try_lock() {
        Ok(case) => eprintln!("{}: {why}: input saved as {}", case.0, save(case.0, &case.1).display()),
        Err(_) => eprintln!("{why}: between two inputs"),
    }
    std::process::exit(1);
}
