//! Objects that one thread at a time uses and that can be closed.
//!
//! Invariant: who waits for the lock has given up the interpreter's lock, so whoever holds it can go on; a thread that
//! asks for what it already holds gets an error.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::problem::Problem;

/// Something behind a lock, until it is closed.
pub struct Guarded<T> {
    what: &'static str,
    content: Mutex<Option<T>>,
    /// Identity of the thread that is inside, 0 for none.
    owner: AtomicUsize,
}

/// The use of it by one thread.
pub struct Entered<'g, T> {
    guard: MutexGuard<'g, Option<T>>,
    owner: &'g AtomicUsize,
    what: &'static str,
}

/// A number that no other thread has while this one lives, and that is not 0.
fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

impl<T> Guarded<T> {
    /// Puts something behind a lock; messages call it `what`.
    pub fn new(what: &'static str, content: T) -> Self {
        Guarded { what, content: Mutex::new(Some(content)), owner: AtomicUsize::new(0) }
    }

    /// Waits until no other thread uses it.
    ///
    /// # Errors
    /// A use of it panicked, or this thread is inside.
    pub fn enter(&self, py: Python<'_>) -> Result<Entered<'_, T>, Problem> {
        let what = self.what;
        if self.owner.load(Ordering::Relaxed) == this_thread() {
            return Err(Problem::new("Error", format!("this thread is inside the {what} already")));
        }
        let Ok(guard) = self.content.lock_py_attached(py) else {
            return Err(Problem::new("InternalError", format!("the {what} failed before: load it again")));
        };
        self.owner.store(this_thread(), Ordering::Relaxed);
        Ok(Entered { guard, owner: &self.owner, what })
    }

    /// Takes out what is inside: it is closed from then on.
    pub fn take(&self, py: Python<'_>) -> Result<T, Problem> {
        self.enter(py)?.guard.take().ok_or_else(|| Problem::closed(self.what))
    }

    /// Gives up what is inside, once no other thread uses it. Closing twice is fine.
    pub fn close(&self, py: Python<'_>) -> Result<(), Problem> {
        let content = self.enter(py)?.guard.take();
        drop(content);
        Ok(())
    }
}

impl<T> Entered<'_, T> {
    /// Returns what is inside.
    ///
    /// # Errors
    /// It is closed.
    pub fn get(&mut self) -> Result<&mut T, Problem> {
        self.guard.as_mut().ok_or_else(|| Problem::closed(self.what))
    }
}

impl<T> Drop for Entered<'_, T> {
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}
