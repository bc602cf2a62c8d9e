//! A place where a caller offers something on its stack, and other threads take part in it.
//!
//! Invariant: what is offered is reachable by others only until [`Slot::offer`] returns, and that returns (or unwinds) only
//! after the last of them has left. So no thread sees a borrow that has ended.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// Pauses between two looks at the clock, together about a microsecond.
const PAUSES: u32 = 32;

/// Work that several threads do together.
pub(super) trait TakePart: Sync {
    /// Does a part of it, or finds that there is none left. Never unwinds.
    fn take_part(&self);
}

/// Threads inside an offer.
const INSIDE: u64 = (1 << 31) - 1;
/// Bit that is set while more threads may enter.
const OPEN: u64 = 1 << 31;
/// The number of offers so far, modulo 2³².
const OFFERS: u64 = !(INSIDE | OPEN);
const ONE_OFFER: u64 = 1 << 32;

/// Something on the stack of a caller, and the function of its type that takes part in it.
#[derive(Clone, Copy)]
struct Job {
    data: *const (),
    take_part: unsafe fn(*const ()),
}

/// A place for one offer at a time. What others look at while they look for work is in a cache line of its own, so that
/// nothing but an offer takes it from them.
#[derive(Default)]
pub(super) struct Slot {
    offer: Offer,
    /// Held by the thread whose offer it is.
    turn: Mutex<()>,
    gate: Gate,
}

/// Work on offer.
#[derive(Default)]
#[repr(align(64))]
struct Offer {
    /// [`INSIDE`], [`OPEN`] and [`OFFERS`].
    state: AtomicU64,
    /// Written by the thread that has the turn, while the slot is closed and no thread is inside; read by those inside.
    job: UnsafeCell<Option<Job>>,
}

/// A wait for the last to leave, of the thread whose offer it is, if that takes long.
#[derive(Default)]
#[repr(align(64))]
struct Gate {
    /// True while it waits.
    waits: AtomicBool,
    lock: Mutex<()>,
    left: Condvar,
}

// SAFETY: `job` is the one field that is not `Sync`. It is written in `offer` alone, which has the turn of this slot, while
// the state is closed with no thread inside; the store that opens it releases the write. It is read in `enter` by a
// thread that has counted itself inside of an open slot by an acquiring exchange, so after that store, and that leaves
// by a releasing subtraction, which `offer` acquires before it returns and gives up the turn. So no write runs at the
// same time as a read or another write. What `job` points to is `Sync` by the bound of `offer`.
unsafe impl Sync for Slot {}
// SAFETY: the pointer in `job` is used as the `Sync` impl says, whatever thread owns the slot.
unsafe impl Send for Slot {}

/// Being inside of an offer, for a thread that has entered and not left.
struct Entered<'a>(&'a Slot);

impl Entered<'_> {
    fn take_part(self) {
        // SAFETY: this thread is inside of an open offer: the job was written before it was opened and is not written
        // again before this thread has left.
        let job = unsafe { *self.0.offer.job.get() };
        if let Some(job) = job {
            // SAFETY: `data` is the `&T` that `take_part` was made for. `offer` does not return before this thread has
            // left, so it lives for the call.
            unsafe { (job.take_part)(job.data) };
        }
    }
}

impl Slot {
    /// Returns the right to make an offer, if no other thread has it.
    pub(super) fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Offers something, calls `meanwhile`, and returns when the offer is closed and everyone has left it. `meanwhile`
    /// closes it, or someone inside does; if `meanwhile` unwinds, it is closed.
    pub(super) fn offer<T: TakePart>(
        &self,
        _turn: &MutexGuard<'_, ()>,
        what: &T,
        spins: Duration,
        meanwhile: impl FnOnce(),
    ) {
        /// # Safety
        ///
        /// `data` is a `&T` that lives for the call.
        unsafe fn take_part<T: TakePart>(data: *const ()) {
            // SAFETY: by the caller.
            unsafe { &*data.cast::<T>() }.take_part();
        }
        struct End<'a> {
            slot: &'a Slot,
            spins: Duration,
            unwinds: bool,
        }
        impl Drop for End<'_> {
            fn drop(&mut self) {
                if self.unwinds {
                    self.slot.close();
                }
                self.slot.wait(self.spins);
            }
        }
        let job = Job { data: std::ptr::from_ref(what).cast(), take_part: take_part::<T> };
        // SAFETY: this call has the turn, and the previous offer ended with no thread inside and the slot closed, so no
        // other thread reads or writes.
        unsafe { *self.offer.job.get() = Some(job) };
        let offers = self.offer.state.load(Relaxed) & OFFERS;
        self.offer.state.store(offers.wrapping_add(ONE_OFFER) | OPEN, SeqCst);
        // From here on others may be inside, and `what` must outlive them: also if `meanwhile` unwinds.
        let mut end = End { slot: self, spins, unwinds: true };
        meanwhile();
        end.unwinds = false;
    }

    /// Nobody enters any more.
    pub(super) fn close(&self) {
        self.offer.state.fetch_and(!OPEN, SeqCst);
    }

    /// Takes part in what is on offer if that is another offer than the one `seen`, which it becomes. Returns whether it
    /// was.
    pub(super) fn take_part(&self, seen: &mut u64) -> bool {
        let Some((offer, job)) = self.enter(*seen) else { return false };
        *seen = offer;
        job.take_part();
        self.leave();
        true
    }

    /// Returns whether [`Slot::take_part`] would find something.
    pub(super) fn offers_part(&self, seen: u64) -> bool {
        let state = self.offer.state.load(SeqCst);
        state & OPEN != 0 && state & OFFERS != seen
    }

    /// Counts this thread as inside of what is on offer, if that is another offer than the one `seen`.
    fn enter(&self, seen: u64) -> Option<(u64, Entered<'_>)> {
        let mut state = self.offer.state.load(Acquire);
        loop {
            if state & OPEN == 0 || state & OFFERS == seen {
                return None;
            }
            match self.offer.state.compare_exchange_weak(state, state + 1, Acquire, Acquire) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        Some((state & OFFERS, Entered(self)))
    }

    /// Leaves, once for each time of entering, and wakes the one who waits for the last to leave.
    fn leave(&self) {
        let before = self.offer.state.fetch_sub(1, SeqCst);
        if before & (OPEN | INSIDE) == 1 && self.gate.waits.load(SeqCst) {
            drop(lock(&self.gate.lock));
            self.gate.left.notify_one();
        }
    }

    fn has_ended(&self) -> bool {
        self.offer.state.load(SeqCst) & (OPEN | INSIDE) == 0
    }

    /// Waits until the offer is closed and no thread is inside.
    fn wait(&self, spins: Duration) {
        let mut spin = Spin::new(spins);
        while !self.has_ended() {
            if spin.goes_on(|| self.has_ended()) {
                // A worker may wait for this very core.
                thread::yield_now();
                continue;
            }
            // Whoever leaves last sees `waits`, or has left before it was set and is seen to have.
            let mut gate = lock(&self.gate.lock);
            self.gate.waits.store(true, SeqCst);
            while !self.has_ended() {
                gate = self.gate.left.wait(gate).unwrap_or_else(PoisonError::into_inner);
            }
            self.gate.waits.store(false, SeqCst);
            drop(gate);
        }
    }
}

/// Locks; nothing that these locks guard is left broken by a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time that passes while a thread does nothing but look.
pub(super) struct Spin {
    most: Duration,
    since: Option<Instant>,
}

impl Spin {
    pub(super) fn new(most: Duration) -> Spin {
        Spin { most, since: None }
    }

    /// Pauses for about a microsecond, unless `ends` before, and returns whether there is time left.
    pub(super) fn goes_on(&mut self, ends: impl Fn() -> bool) -> bool {
        if self.most.is_zero() {
            return false;
        }
        for _ in 0..PAUSES {
            if ends() {
                return true;
            }
            std::hint::spin_loop();
        }
        self.since.get_or_insert_with(Instant::now).elapsed() < self.most
    }
}
