//! Workers: threads that run a caller's work, and help each other with its loops.
//!
//! Invariant: results need no worker but the one that runs a caller's work. One that comes late to a loop, or never, costs
//! time and no result, and a loop that finds the workers taken is run by its caller alone.

use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use super::slot::{Slot, Spin, TakePart, lock};

/// A worker without work looks for some this long before it parks: several times what waking one takes, and about what
/// passes between two calls of a method.
const WORKER_SPINS: Duration = Duration::from_micros(50);
/// The same while another worker runs a caller's work, whose next loop it waits for.
const LOOP_SPINS: Duration = Duration::from_millis(1);
/// A caller looks for the end of its work this long before it parks. Shorter, because its core is one that a worker may
/// have use for.
const CALLER_SPINS: Duration = Duration::from_micros(20);

thread_local! {
    /// The workers this thread is one of.
    static WORKER_OF: OnceCell<Arc<Shared>> = const { OnceCell::new() };
    /// Index among them.
    static INDEX: Cell<usize> = const { Cell::new(0) };
    /// True while this thread runs a part of a loop; loops inside of it run on this thread alone.
    static IN_LOOP: Cell<bool> = const { Cell::new(false) };
}

/// Threads that live as long as this.
pub(super) struct Pool {
    pub(super) shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts this many workers.
    pub(super) fn start(count: usize) -> io::Result<Pool> {
        // Dropped where one does not start, it ends those that did.
        let mut pool = Pool { shared: Arc::new(Shared::new(count)), handles: Vec::new() };
        for index in 0..count {
            let shared = pool.shared.clone();
            let worker = thread::Builder::new().name("edgepack".into());
            pool.handles.push(worker.spawn(move || shared.serve(index))?);
        }
        Ok(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        self.shared.wake(usize::MAX);
        // This thread is none of them: whose work they run borrows the pool.
        for handle in self.handles.drain(..) {
            // Workers catch what panics; there is nothing to pass on.
            let _ = handle.join();
        }
    }
}

/// Returns whether this thread is a worker.
pub(super) fn is_worker() -> bool {
    WORKER_OF.with(|pool| pool.get().is_some())
}

/// Returns whether this thread runs a part of a loop, or work that found no workers.
pub(super) fn is_in_loop() -> bool {
    IN_LOOP.get()
}

/// Returns whether this thread is a worker, and another one of its pool would take part in a loop without being woken.
pub(super) fn others_are_awake() -> bool {
    with_worker(|worker| {
        worker.is_some_and(|shared| {
            let mut others = shared.sleepers.iter().enumerate().filter(|(index, _)| *index != INDEX.get());
            others.any(|(_, sleeper)| !sleeper.asleep.load(SeqCst))
        })
    })
}

/// Calls `f` with the state of the pool that this thread is a worker of; `None` if it is not a worker.
pub(super) fn with_worker<R>(f: impl FnOnce(Option<&Shared>) -> R) -> R {
    WORKER_OF.with(|pool| f(pool.get().map(|shared| &**shared)))
}

/// Runs `work` so that loops inside of it stay on this thread.
pub(super) fn alone<R>(work: impl FnOnce() -> R) -> R {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            IN_LOOP.set(self.0);
        }
    }
    let _reset = Reset(IN_LOOP.replace(true));
    work()
}

/// State that workers and callers of one pool have in common.
pub(super) struct Shared {
    /// A caller's work, for one worker.
    work: Slot,
    /// A loop of the worker that has it, for all others.
    range: Slot,
    /// One by worker.
    sleepers: Box<[Sleeper]>,
    worker_spins: Duration,
    loop_spins: Duration,
    stop: AtomicBool,
}

impl Shared {
    fn new(count: usize) -> Shared {
        // Where there are fewer cores than threads, one that spins takes the core from one that works.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Shared {
            work: Slot::default(),
            range: Slot::default(),
            sleepers: (0..count).map(|_| Sleeper::default()).collect(),
            worker_spins: if count <= cores { WORKER_SPINS } else { Duration::ZERO },
            loop_spins: if count <= cores { LOOP_SPINS } else { Duration::ZERO },
            stop: AtomicBool::new(false),
        }
    }

    /// Number of workers.
    pub(super) fn count(&self) -> usize {
        self.sleepers.len()
    }

    /// Returns whether this thread is one of the workers.
    pub(super) fn is_here(&self) -> bool {
        with_worker(|shared| shared.is_some_and(|shared| std::ptr::eq(shared, self)))
    }

    /// Runs `work` on a worker, and wakes so many for the loops inside of it. If another caller's work is there, gives
    /// it back.
    pub(super) fn hand_over<F: FnOnce() -> R + Send, R: Send>(&self, awake: usize, work: F) -> Result<R, F> {
        let Some(turn) = self.work.try_turn() else { return Err(work) };
        let once = Once { work: Mutex::new(Some(work)), result: Mutex::new(None) };
        self.work.offer(&turn, &once, CALLER_SPINS, || self.wake(awake));
        drop(turn);
        match once.result.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(Ok(result)) => Ok(result),
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("the offer ends when a worker has left it"),
        }
    }

    /// Calls `f` with ranges of up to `batch` numbers until all below `count` had their turn, on this worker and those
    /// that have nothing else to do. If one of the calls panics, some of the others are left out, and the panic goes on
    /// when the last one has ended.
    pub(super) fn for_each_batch(&self, count: usize, batch: usize, f: impl Fn(Range<usize>) + Sync) {
        let batch = batch.max(1);
        // Work may have moved to a thread of its own while others of the pool run theirs.
        let Some(turn) = self.range.try_turn() else { return alone(|| f(0..count)) };
        let batches = Batches::new(count, batch, self.count(), f);
        self.range.offer(&turn, &batches, self.worker_spins, || {
            let others = count.div_ceil(batch).saturating_sub(1).min(self.count() - 1);
            // This thread is one of those awake.
            self.wake(others.saturating_add(1));
            batches.take_part();
            self.range.close();
        });
        drop(turn);
        if let Some(panic) = batches.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
    }

    /// Wakes workers until so many are awake.
    fn wake(&self, wanted: usize) {
        let asleep = self.sleepers.iter().filter(|sleeper| sleeper.asleep.load(SeqCst)).count();
        let missing = wanted.saturating_sub(self.count() - asleep);
        let mut woken = 0;
        for sleeper in &self.sleepers {
            if woken == missing {
                break;
            }
            woken += usize::from(sleeper.wake());
        }
    }

    /// Does what there is to do until the pool ends.
    fn serve(self: &Arc<Self>, index: usize) {
        let Some(sleeper) = self.sleepers.get(index) else { return };
        // A thread serves one pool in its life.
        WORKER_OF.with(|pool| _ = pool.set(self.clone()));
        INDEX.set(index);
        _ = sleeper.thread.set(thread::current());
        let mut seen = 0;
        let mut expects = false;
        let mut spin = self.spin(expects);
        while !self.stop.load(SeqCst) {
            if self.help(&mut seen) || expects != self.work.is_taken() {
                expects = self.work.is_taken();
                spin = self.spin(expects);
            } else if !spin.goes_on(|| self.has_work(seen) || expects != self.work.is_taken()) {
                sleeper.sleep(|| self.has_work(seen) || self.stop.load(SeqCst));
                spin = self.spin(expects);
            }
        }
    }

    /// Waiting of a worker without work that expects a loop, or none.
    fn spin(&self, expects: bool) -> Spin {
        Spin::new(if expects { self.loop_spins } else { self.worker_spins })
    }

    /// Takes part in what is on offer, and returns whether there was anything. A loop is entered once.
    fn help(&self, seen: &mut u64) -> bool {
        self.range.take_part(seen) || self.work.take()
    }

    fn has_work(&self, seen: u64) -> bool {
        self.range.offers_part(seen) || self.work.offers_all()
    }
}

/// A worker that may be parked.
#[derive(Default)]
struct Sleeper {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Sleeper {
    /// Parks until woken, unless there is reason not to. Whoever gives reason looks for sleepers after it: one of the
    /// two sees the other.
    fn sleep(&self, awake: impl Fn() -> bool) {
        self.asleep.store(true, SeqCst);
        while self.asleep.load(SeqCst) {
            if awake() {
                self.asleep.store(false, SeqCst);
                return;
            }
            thread::park();
        }
    }

    /// Wakes it, and returns whether it was asleep.
    fn wake(&self) -> bool {
        let asleep = self.asleep.swap(false, SeqCst);
        if asleep && let Some(thread) = self.thread.get() {
            thread.unpark();
        }
        asleep
    }
}

/// Work that is done once.
struct Once<F, R> {
    work: Mutex<Option<F>>,
    result: Mutex<Option<thread::Result<R>>>,
}

impl<F: FnOnce() -> R + Send, R: Send> TakePart for Once<F, R> {
    fn take_part(&self) {
        let work = lock(&self.work).take();
        if let Some(work) = work {
            let result = catch_unwind(AssertUnwindSafe(work));
            *lock(&self.result) = Some(result);
        }
    }
}

/// The most shares that a loop is cut into.
const SHARES: usize = 16;

/// The numbers below `count`, in batches. Each thread has a share of neighbouring batches, the same in every loop of as many,
/// so that what one loop left in its cache the next one finds there. It takes them from the first on; when there are none
/// left, it takes the last of others.
struct Batches<F> {
    /// The next batch of each share, and the end: 32 bits each.
    shares: [AtomicU64; SHARES],
    used: usize,
    count: usize,
    batch: usize,
    f: F,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<F: Fn(Range<usize>) + Sync> Batches<F> {
    fn new(count: usize, batch: usize, threads: usize, f: F) -> Self {
        // Batches are counted in 32 bits.
        let batch = batch.max(count / (u32::MAX as usize / 2) + 1);
        let (all, used) = (count.div_ceil(batch) as u64, threads.clamp(1, SHARES));
        let shares = std::array::from_fn(|share| {
            let [start, end] = [share, share + 1].map(|share| all * share.min(used) as u64 / used as u64);
            AtomicU64::new(start << 32 | end)
        });
        Batches { shares, used, count, batch, f, panic: Mutex::new(None) }
    }

    /// Takes a batch of one's own share, or of another.
    fn claim(&self, own: usize) -> Option<Range<usize>> {
        let claimed = (0..self.used).find_map(|distance| {
            let share = &self.shares[(own + distance) % self.used];
            share
                .fetch_update(Relaxed, Relaxed, |state| {
                    let (next, end) = (state >> 32, state & u64::from(u32::MAX));
                    let rest = if distance == 0 { (next + 1) << 32 | end } else { next << 32 | end.wrapping_sub(1) };
                    (next < end).then_some(rest)
                })
                .ok()
                .map(|state| if distance == 0 { state >> 32 } else { (state & u64::from(u32::MAX)) - 1 })
        });
        let first = claimed? as usize * self.batch;
        Some(first..first + self.batch.min(self.count - first))
    }

    /// Leaves nothing to take.
    fn close(&self) {
        self.shares.iter().for_each(|share| share.store(0, Relaxed));
    }
}

impl<F: Fn(Range<usize>) + Sync> TakePart for Batches<F> {
    fn take_part(&self) {
        let all = || {
            alone(|| {
                while let Some(range) = self.claim(INDEX.get()) {
                    (self.f)(range)
                }
            })
        };
        let Err(panic) = catch_unwind(AssertUnwindSafe(all)) else { return };
        self.close();
        let mut first = lock(&self.panic);
        if first.is_none() {
            *first = Some(panic);
        } else if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            // Dropping what a panic carries may panic; that goes on for ever only if nothing is dropped.
            std::mem::forget(another);
        }
    }
}
