//! Threads, and loops that are split among them.
//!
//! A loop is split where its work repays handing parts of it over, which its [`Cost`] says. Parts follow from the work,
//! not from the number of threads, unless a caller whose elements are computed alike in every part cuts them so that threads
//! end together; and each part is computed as it would be by itself. So results do not depend on the number of threads.
//! Splitting a loop allocates nothing.
//!
//! Loops run on the threads of the [`Threads`] whose [`Threads::run`] they are called in, or, outside of any, on threads of
//! the process, as many as the machine has, which start when a loop first repays it. Loops inside of a part of a loop stay
//! on its thread.
#![allow(unsafe_code)]

mod aside;
mod even;
mod pieces;
mod pool;
mod slot;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub(crate) use even::even;
use pieces::sealed::{Cut, Pieces as _};
pub use pieces::{Columns, Pieces, Read, Write, WriteAll, WriteColumns};
use pool::{Pool, Shared};

/// Threads that work is split among. They end when the last clone is dropped, which waits for them.
///
/// ```
/// use edgepack_compute::threads::{self, Threads};
///
/// let two = Threads::new(2).unwrap();
/// assert_eq!(two.run(threads::current), 2);
/// ```
#[derive(Clone)]
pub struct Threads(Option<Arc<Pool>>);

impl Threads {
    /// Starts threads, so that there are this many with the caller's; 0 is as many as the machine has. Where the platform
    /// has no threads, as `wasm32-unknown-unknown`, there is the caller's alone.
    pub fn new(count: usize) -> Result<Threads, StartError> {
        let count = if count == 0 { pool::cores() } else { count };
        if count == 1 {
            return Ok(Threads(None));
        }
        match Pool::start(count) {
            Ok(pool) => Ok(Threads(Some(Arc::new(pool)))),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Threads(None)),
            Err(error) => Err(StartError(error.to_string())),
        }
    }

    /// Returns the number of threads.
    pub fn count(&self) -> usize {
        self.shared().map_or(1, |shared| shared.count())
    }

    /// Runs `work` on this thread; loops inside it are split among all of them. While the others help another caller, or
    /// where there is one thread, they are not split.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        let Some(shared) = self.shared() else { return pool::alone(work) };
        if shared.is_here() {
            return work();
        }
        match shared.enter() {
            Some(_caller) => work(),
            None => pool::alone(work),
        }
    }

    fn shared(&self) -> Option<&Arc<Shared>> {
        self.0.as_ref().map(|pool| &pool.shared)
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} threads", self.count())
    }
}

/// Threads could not be started.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

/// The threads of loops outside of any other threads, once there was one that repaid starting them.
static PROCESS: OnceLock<Threads> = OnceLock::new();

fn process() -> Option<&'static Arc<Shared>> {
    PROCESS.get_or_init(|| Threads::new(0).unwrap_or(Threads(None))).shared()
}

/// Runs `work` on this thread. Outside of any other threads, those of the process are with it until it ends, if they were
/// started before: a loop then finds them awake from the last one.
pub fn together<R>(work: impl FnOnce() -> R) -> R {
    match PROCESS.get() {
        Some(threads) if pool::count().is_none() && !pool::is_in_loop() => threads.run(work),
        _ => work(),
    }
}

/// Runs `work` on this thread: loops inside it are not split.
pub fn alone<R>(work: impl FnOnce() -> R) -> R {
    pool::alone(work)
}

/// Leaves work that changes nothing but time to a thread that has nothing else to do: `job` does a piece of it, of a few
/// microseconds, and returns whether there is more. Inside [`Threads::run`] others may do it, until that ends; without others,
/// or where much is left already, it is dropped.
pub fn aside(job: impl FnMut() -> bool + Send + 'static) {
    pool::aside(job);
}

/// Returns how many threads a loop that runs here may be split among.
pub fn current() -> usize {
    if pool::is_in_loop() {
        return 1;
    }
    pool::count().or_else(|| Some(process()?.count())).unwrap_or(1)
}

/// Time that one unit of a loop takes on one thread, about: it decides whether, and into which parts, the loop is
/// split.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost(f64);

/// Nanoseconds that a part of a loop takes at least: several times what handing it to a thread takes that looks for work,
/// which is 0.4 µs on a virtual machine with two cores of a Xeon of 2023.
const PART: f64 = 3_000.0;

/// Nanoseconds that waking a thread takes, about: 11 µs on that machine.
const WAKE: f64 = 10_000.0;

impl Cost {
    /// Returns a cost of so many nanoseconds a unit.
    pub const fn nanoseconds(nanoseconds: f64) -> Cost {
        Cost(nanoseconds)
    }

    /// Returns the time of one unit on one thread, in nanoseconds.
    pub const fn as_nanoseconds(self) -> f64 {
        self.0
    }

    /// Returns whether sharing so many units pays here: they are worth parting, and there are other threads that are looking
    /// for work, or work enough to wake them.
    pub fn pays(self, units: usize) -> bool {
        self.is_worth(units) && self.is_shared(units) && current() > 1
    }

    /// Returns whether so many units make two parts. That alone says which parts there are.
    fn is_worth(self, units: usize) -> bool {
        units > 1 && self.0 * units as f64 >= 2.0 * PART
    }

    /// Returns whether parts are handed to the other threads as they are now: they are awake, or waking them pays for this
    /// loop, or would have paid for those before it. A caller of many small loops has them woken early that way, and one of a
    /// few does not wait for them.
    fn is_shared(self, units: usize) -> bool {
        let work = self.0 * units as f64;
        work >= 2.0 * WAKE || pool::others_are_awake() || pool::missed(work) >= 2.0 * WAKE
    }

    /// Units of a part.
    pub(crate) fn units(self) -> usize {
        // A cost of nothing is a part without end.
        ((PART / self.0).ceil() as usize).max(1)
    }
}

/// Writing a byte of results, with what is computed and read for it, where nothing better is known.
const BYTE: Cost = Cost::nanoseconds(0.1);

/// Returns whether results of so many bytes are worth sharing.
pub fn pays(bytes: usize) -> bool {
    BYTE.pays(bytes)
}

/// Calls `f` with ranges that cover the numbers below `units`, of each of which the loop costs so much: one range, or
/// several on several threads.
///
/// ```
/// use edgepack_compute::threads::{Cost, for_each_range};
///
/// let sum = std::sync::atomic::AtomicUsize::new(0);
/// for_each_range(Cost::nanoseconds(20.0), 100_000, |range| {
///     sum.fetch_add(range.sum::<usize>(), std::sync::atomic::Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 99_999 * 50_000);
/// ```
pub fn for_each_range(cost: Cost, units: usize, f: impl Fn(Range<usize>) + Sync) {
    if !cost.is_worth(units) {
        return f(0..units);
    }
    let part = cost.units();
    let parts = |numbers: Range<usize>| {
        numbers.for_each(|number| f(number * part..(number + 1).saturating_mul(part).min(units)))
    };
    share(cost.is_shared(units), units.div_ceil(part), 1, parts);
}

/// Calls `f` with pieces of the output and the index at which they start: one piece, or several on several threads.
/// Pieces are as long as a multiple of `unit`, but for the last.
pub fn for_each_piece<T: Send>(out: &mut [T], unit: usize, f: impl Fn(usize, &mut [T]) + Send + Sync) {
    for_each_piece_at(Cost(BYTE.0 * size_of::<T>() as f64), out, unit, f);
}

/// Calls `f` as [`for_each_piece`] does, where each element of the output costs so much.
pub fn for_each_piece_at<T: Send>(cost: Cost, out: &mut [T], unit: usize, f: impl Fn(usize, &mut [T]) + Send + Sync) {
    if !cost.is_worth(out.len()) {
        return f(0, out);
    }
    let piece = cost.units().checked_next_multiple_of(unit.max(1)).unwrap_or(out.len());
    let share = cost.is_shared(out.len());
    each(share, 1, WriteAll(out, piece).cut(), |index, out| f(index * piece, out));
}

/// Calls `f` with each piece and its number, on all threads if that is worth it.
///
/// ```
/// use edgepack_compute::threads::{Read, Write, for_each};
///
/// let (rows, mut sums) = ([1, 2, 3, 4], [0, 0]);
/// for_each(false, (Read(&rows, 2), Write(&mut sums, 1)), |_, (row, sum)| sum[0] = row.iter().sum());
/// assert_eq!(sums, [3, 7]);
/// ```
pub fn for_each<P: Pieces>(share: bool, pieces: P, f: impl Fn(usize, P::Item) + Send + Sync) {
    let cut = pieces.cut();
    let batch = batch(cut.count());
    each(share, batch, cut, f);
}

/// Calls `f` with each piece and its number, on all threads if what the pieces cost each makes that worth it.
pub fn for_each_at<P: Pieces>(cost: Cost, pieces: P, f: impl Fn(usize, P::Item) + Send + Sync) {
    let cut = pieces.cut();
    each(cost.pays(cut.count()), cost.units(), cut, f);
}

/// Calls `f` as [`for_each`] does until it fails, and returns the error of the first piece that failed. Pieces after it may
/// have been left out.
pub fn try_for_each<P: Pieces, E: Send>(
    share: bool,
    pieces: P,
    f: impl Fn(usize, P::Item) -> Result<(), E> + Send + Sync,
) -> Result<(), E> {
    let cut = pieces.cut();
    let batch = batch(cut.count());
    try_each(share, batch, cut, f)
}

/// Calls `f` as [`for_each_at`] does until it fails, and returns the error of the first piece that failed. Pieces after it
/// may have been left out.
pub fn try_for_each_at<P: Pieces, E: Send>(
    cost: Cost,
    pieces: P,
    f: impl Fn(usize, P::Item) -> Result<(), E> + Send + Sync,
) -> Result<(), E> {
    let cut = pieces.cut();
    try_each(cost.pays(cut.count()), cost.units(), cut, f)
}

/// Returns how many pieces a thread takes at once if the cost of one is not known.
fn batch(count: usize) -> usize {
    let threads = current();
    let most = threads * 8;
    if count <= most { 1 } else { even(count, most, threads, |pieces| pieces) }
}

fn each<C: Cut>(share: bool, batch: usize, cut: C, f: impl Fn(usize, C::Item) + Sync) {
    let count = cut.count();
    self::share(share, count, batch, |range| {
        for index in range {
            // SAFETY: `share` calls with ranges that do not overlap, below `count`.
            f(index, unsafe { cut.piece(index) });
        }
    });
}

fn try_each<C: Cut, E: Send>(
    share: bool,
    batch: usize,
    cut: C,
    f: impl Fn(usize, C::Item) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let count = cut.count();
    // Whatever comes before a piece that failed is computed, so the first error is always found.
    let first_failed = AtomicUsize::new(usize::MAX);
    let error = Mutex::new(None);
    self::share(share, count, batch, |range| {
        for index in range {
            if index > first_failed.load(Ordering::Relaxed) {
                return;
            }
            // SAFETY: `share` calls with ranges that do not overlap, below `count`.
            let Err(new) = f(index, unsafe { cut.piece(index) }) else { continue };
            let mut error = error.lock().unwrap_or_else(PoisonError::into_inner);
            if index < first_failed.fetch_min(index, Ordering::Relaxed) {
                *error = Some(new);
            }
            return;
        }
    });
    error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Calls `f` with ranges that do not overlap and cover the numbers below `count`: all at once, or in batches on all
/// threads.
fn share(share: bool, count: usize, batch: usize, f: impl Fn(Range<usize>) + Sync) {
    if !share || count <= batch || current() == 1 {
        return f(0..count);
    }
    if let Some(shared) = pool::workers() {
        return shared.for_each_batch(count, batch, f);
    }
    match process().and_then(|shared| Some((shared, shared.enter()?))) {
        Some((shared, _caller)) => shared.for_each_batch(count, batch, f),
        None => f(0..count),
    }
}
