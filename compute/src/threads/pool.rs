//! A caller, and workers: threads that help it with its loops.
//!
//! Invariant: results need no worker. One that comes late to a loop, or never, costs time and no result, and a caller that
//! finds the workers taken runs its loops alone.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use super::aside::Aside;
use super::slot::{Slot, Spin, TakePart, lock};

/// A worker without work looks for some this long before it parks: several times what waking one takes, and about what
/// passes between two calls of a method.
const WORKER_SPINS: Duration = Duration::from_micros(50);
/// The same while a caller is inside, whose next loop it waits for.
const LOOP_SPINS: Duration = Duration::from_millis(1);

thread_local! {
    /// The threads that this one is the caller of.
    static CALLER_OF: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
    /// Index among them; that of a caller is 0.
    static INDEX: Cell<usize> = const { Cell::new(0) };
    /// True while this thread runs a part of a loop; loops inside of it run on this thread alone.
    static IN_LOOP: Cell<bool> = const { Cell::new(false) };
    /// Nanoseconds of loops that this thread, a caller since then, has not shared because its workers were asleep.
    static MISSED: Cell<f64> = const { Cell::new(0.0) };
}

/// Returns how many threads the machine runs at once. Asking it takes longer than starting a thread, so that is done once.
pub(super) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Threads that live as long as this.
pub(super) struct Pool {
    pub(super) shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts so many threads less one, which is the caller's.
    pub(super) fn start(count: usize) -> io::Result<Pool> {
        // Dropped where one does not start, it ends those that did.
        let mut pool = Pool { shared: Arc::new(Shared::new(count)), handles: Vec::new() };
        for index in 1..count {
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
        // This thread is none of them: whose loops they run borrows the pool.
        for handle in self.handles.drain(..) {
            // Workers catch what panics; there is nothing to pass on.
            let _ = handle.join();
        }
    }
}

/// Returns whether this thread runs a part of a loop, or work that found no workers.
pub(super) fn is_in_loop() -> bool {
    IN_LOOP.get()
}

/// Returns the threads that this one is the caller of.
pub(super) fn workers() -> Option<Arc<Shared>> {
    CALLER_OF.with_borrow(Clone::clone)
}

/// Returns how many threads this one is the caller of, itself counted.
pub(super) fn count() -> Option<usize> {
    CALLER_OF.with_borrow(|shared| Some(shared.as_ref()?.count()))
}

/// Returns whether this thread has workers, and one of them would take part in a loop without being woken.
pub(super) fn others_are_awake() -> bool {
    let is_awake = |sleeper: &Sleeper| !sleeper.asleep.load(SeqCst);
    CALLER_OF.with_borrow(|shared| shared.as_ref().is_some_and(|shared| shared.sleepers.iter().any(is_awake)))
}

/// Leaves a job to the workers of this thread, if it has any.
pub(super) fn aside(mut job: impl FnMut() -> bool + Send + 'static) {
    if !is_in_loop()
        && let Some(shared) = workers()
    {
        shared.aside.leave(Box::new(move || alone(&mut job)));
    }
}

/// Returns how many nanoseconds of loops this thread has not shared since it became the caller of workers, with one of so
/// many more; 0 if it is no caller, or in a loop.
pub(super) fn missed(more: f64) -> f64 {
    if is_in_loop() || CALLER_OF.with_borrow(Option::is_none) {
        return 0.0;
    }
    MISSED.set(MISSED.get() + more);
    MISSED.get()
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

/// State that the caller and workers of one pool have in common.
pub(super) struct Shared {
    /// Held by the caller while it is one.
    caller: Mutex<()>,
    /// True while there is a caller, whose next loop the workers wait for.
    has_caller: AtomicBool,
    /// A loop of the caller, for all workers.
    range: Slot,
    /// Work for them while there is no loop.
    aside: Aside,
    /// One by worker.
    sleepers: Box<[Sleeper]>,
    worker_spins: Duration,
    loop_spins: Duration,
    stop: AtomicBool,
}

/// A thread that is the caller of a pool. When it ends, the thread is again what it was.
pub(super) struct Caller<'a> {
    shared: &'a Shared,
    _turn: MutexGuard<'a, ()>,
    before: (Option<Arc<Shared>>, usize, bool),
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.shared.aside.end();
        self.shared.has_caller.store(false, SeqCst);
        let (pool, index, in_loop) = std::mem::take(&mut self.before);
        CALLER_OF.replace(pool);
        INDEX.set(index);
        IN_LOOP.set(in_loop);
    }
}

impl Shared {
    fn new(count: usize) -> Shared {
        // Where there are fewer cores than threads, one that spins takes the core from one that works.
        let cores = cores();
        Shared {
            caller: Mutex::new(()),
            has_caller: AtomicBool::new(false),
            range: Slot::default(),
            aside: Aside::default(),
            sleepers: (1..count).map(|_| Sleeper::default()).collect(),
            worker_spins: if count <= cores { WORKER_SPINS } else { Duration::ZERO },
            loop_spins: if count <= cores { LOOP_SPINS } else { Duration::ZERO },
            stop: AtomicBool::new(false),
        }
    }

    /// Number of threads, with the caller.
    pub(super) fn count(&self) -> usize {
        self.sleepers.len() + 1
    }

    /// Returns whether this thread is the caller.
    pub(super) fn is_here(&self) -> bool {
        CALLER_OF.with_borrow(|pool| pool.as_ref().is_some_and(|pool| std::ptr::eq(&**pool, self)))
    }

    /// Makes this thread the caller, unless another one is, or this one further out.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Caller<'_>> {
        let turn = match self.caller.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let before = (CALLER_OF.replace(Some(self.clone())), INDEX.replace(0), IN_LOOP.replace(false));
        MISSED.set(0.0);
        self.has_caller.store(true, SeqCst);
        Some(Caller { shared: self, _turn: turn, before })
    }

    /// Calls `f` with ranges of up to `batch` numbers until all below `count` had their turn, on this thread, the caller's, and
    /// on the workers. If one of the calls panics, some of the others are left out, and the panic goes on when the last one
    /// has ended.
    pub(super) fn for_each_batch(&self, count: usize, batch: usize, f: impl Fn(Range<usize>) + Sync) {
        let batch = batch.max(1);
        // There is one caller, and no loop inside of a loop.
        let Some(turn) = self.range.try_turn() else { return alone(|| f(0..count)) };
        let batches = Batches::new(count, batch, self.count(), f);
        self.range.offer(&turn, &batches, self.worker_spins, || {
            self.wake(count.div_ceil(batch).saturating_sub(1));
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
        let missing = wanted.saturating_sub(self.sleepers.len() - asleep);
        let mut woken = 0;
        for sleeper in &self.sleepers {
            if woken == missing {
                break;
            }
            woken += usize::from(sleeper.wake());
        }
    }

    /// Helps with loops until the pool ends.
    fn serve(&self, index: usize) {
        let Some(sleeper) = self.sleepers.get(index - 1) else { return };
        INDEX.set(index);
        _ = sleeper.thread.set(thread::current());
        let mut seen = 0;
        let mut expects = false;
        let mut spin = self.spin(expects);
        let has_caller = || self.has_caller.load(SeqCst);
        while !self.stop.load(SeqCst) {
            // A loop is entered once.
            if self.range.take_part(&mut seen) || expects != has_caller() {
                expects = has_caller();
                spin = self.spin(expects);
            } else if self.aside.take_part() {
                spin = self.spin(expects);
            } else if !spin.goes_on(|| self.finds_work(seen) || expects != has_caller()) {
                sleeper.sleep(|| self.finds_work(seen) || self.stop.load(SeqCst));
                spin = self.spin(expects);
            }
        }
    }

    /// Returns whether there is a loop or a job, `seen` being the last loop.
    fn finds_work(&self, seen: u64) -> bool {
        self.range.offers_part(seen) || self.aside.waits()
    }

    /// Waiting of a worker without work that expects a loop, or none.
    fn spin(&self, expects: bool) -> Spin {
        Spin::new(if expects { self.loop_spins } else { self.worker_spins })
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

/// The most shares that a loop is cut into.
const SHARES: usize = 16;

/// The next batch of a share, and the end: 32 bits each, in a cache line of its own, which stays with its thread until others
/// take from it.
#[repr(align(64))]
struct Share(AtomicU64);

/// The numbers below `count`, in batches. Each thread has a share of neighbouring batches, the same in every loop of as many,
/// so that what one loop left in its cache the next one finds there. It takes them from the first on; when there are none
/// left, it takes the last of others.
struct Batches<F> {
    shares: [Share; SHARES],
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
            Share(AtomicU64::new(start << 32 | end))
        });
        Batches { shares, used, count, batch, f, panic: Mutex::new(None) }
    }

    /// Takes a batch of one's own share, or of another.
    fn claim(&self, own: usize) -> Option<Range<usize>> {
        let claimed = (0..self.used).find_map(|distance| {
            let share = &self.shares[(own + distance) % self.used];
            share
                .0
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
        self.shares.iter().for_each(|share| share.0.store(0, Relaxed));
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
