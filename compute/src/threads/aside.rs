//! Work that changes nothing but time, as hints to the system: a worker does it while it waits for a loop.
//!
//! Invariant: when the caller that left it ends, none of it runs any more, and what it held is dropped.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Condvar, Mutex, PoisonError};

use super::slot::lock;

/// Does a piece of something, and returns whether there is more to do.
pub(super) type Job = Box<dyn FnMut() -> bool + Send>;

/// The most jobs that wait. What comes then is left out.
const MOST: usize = 16;

/// Jobs of a caller.
#[derive(Default)]
pub(super) struct Aside {
    jobs: Mutex<Jobs>,
    /// True if some wait.
    waits: AtomicBool,
    /// No worker does one any more.
    idle: Condvar,
}

#[derive(Default)]
struct Jobs {
    /// The last of them is the next.
    waiting: Vec<Job>,
    /// Workers that do one.
    busy: usize,
    /// True while the caller waits for them.
    ends: bool,
}

impl Aside {
    /// Leaves a job to the workers.
    pub(super) fn leave(&self, job: Job) {
        let mut jobs = lock(&self.jobs);
        if jobs.waiting.len() < MOST {
            jobs.waiting.push(job);
            self.waits.store(true, SeqCst);
        } else {
            drop(jobs);
            discard(job);
        }
    }

    /// Returns whether [`Aside::take_part`] would find something.
    pub(super) fn waits(&self) -> bool {
        self.waits.load(SeqCst)
    }

    /// Does a piece of a job, and returns whether there was one.
    pub(super) fn take_part(&self) -> bool {
        if !self.waits() {
            return false;
        }
        let mut jobs = lock(&self.jobs);
        let Some(mut job) = jobs.waiting.pop() else { return false };
        jobs.busy += 1;
        self.waits.store(!jobs.waiting.is_empty(), SeqCst);
        drop(jobs);
        let has_more = catch_unwind(AssertUnwindSafe(&mut job)).unwrap_or_else(|panic| {
            // Dropping what a panic carries may panic.
            mem::forget(panic);
            false
        });
        let rest = if has_more {
            Some(job)
        } else {
            discard(job);
            None
        };
        let mut jobs = lock(&self.jobs);
        // Others have their turn before its next piece.
        jobs.waiting.splice(0..0, rest);
        self.waits.store(!jobs.waiting.is_empty(), SeqCst);
        jobs.busy -= 1;
        if jobs.busy == 0 && jobs.ends {
            self.idle.notify_all();
        }
        true
    }

    /// Drops what waits, after what has begun.
    pub(super) fn end(&self) {
        let mut jobs = lock(&self.jobs);
        jobs.ends = true;
        loop {
            let left = mem::take(&mut jobs.waiting);
            self.waits.store(false, SeqCst);
            if !left.is_empty() {
                drop(jobs);
                left.into_iter().for_each(discard);
                jobs = lock(&self.jobs);
            } else if jobs.busy > 0 {
                jobs = self.idle.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            } else {
                jobs.ends = false;
                return;
            }
        }
    }
}

/// Drops a job. What it holds may panic then, which concerns nobody.
fn discard(job: Job) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(job))) {
        mem::forget(panic);
    }
}
