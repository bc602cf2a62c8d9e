//! Packed weights that backends make once and share: between delegates of a method, between methods, between threads.
//!
//! Entries live as long as they are in use. The first thread to ask for an entry makes it; others wait for that entry
//! alone. Invariant: a thread that is making an entry waits for no other one, so no order of nested entries, on one thread
//! or on several, is a deadlock.

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use super::Scope;
use super::key::Key;

/// A cache of packed weights. Clones share the entries.
#[derive(Clone, Default)]
pub struct PackCache {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: Mutex<HashMap<(TypeId, Key), Slot>>,
    /// Numbers of programs, and the next one.
    scopes: Mutex<(Vec<(Scope, u64)>, u64)>,
    packings: AtomicU64,
}

/// The place of one entry; locked while it is made.
type Slot = Arc<Mutex<Option<Weak<dyn Any + Send + Sync>>>>;

thread_local! {
    /// Entries that this thread is making.
    static MAKING: Cell<usize> = const { Cell::new(0) };
}

/// This thread makes an entry, until dropped.
struct Making;

impl Making {
    fn begin() -> Self {
        MAKING.set(MAKING.get() + 1);
        Making
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        MAKING.set(MAKING.get() - 1);
    }
}

/// The lock of a slot, or none if it is taken. A maker that panicked left nothing behind.
fn try_lock<T>(slot: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match slot.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl PackCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the entry of this key, made by `make` if none is held. A key belongs to one type: of another type it is
    /// another entry.
    ///
    /// `make` may ask for entries itself. One that is being made at that moment, by this thread or another, is then made a
    /// second time for this caller alone.
    pub fn entry<T: Any + Send + Sync, E>(&self, key: &str, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        self.shared(Key::of(&[b"entry", key.as_bytes()]), || make().map(Arc::new))
    }

    /// Returns the entry of this key like [`PackCache::entry`], where `make` gives an [`Arc`] that it may share itself.
    pub(super) fn shared<T: Any + Send + Sync, E>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Arc<T>, E>,
    ) -> Result<Arc<T>, E> {
        let slot = {
            let mut entries = self.inner.entries.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(entries.entry((TypeId::of::<T>(), key)).or_default())
        };
        let entry = match MAKING.get() {
            0 => Some(slot.lock().unwrap_or_else(PoisonError::into_inner)),
            _ => try_lock(&slot),
        };
        let known = entry.as_ref().and_then(|entry| entry.as_ref()?.upgrade()?.downcast::<T>().ok());
        if let Some(known) = known {
            return Ok(known);
        }
        let making = Making::begin();
        let made = make()?;
        drop(making);
        if let Some(mut entry) = entry {
            let shared: Arc<dyn Any + Send + Sync> = made.clone();
            *entry = Some(Arc::downgrade(&shared));
        }
        Ok(made)
    }

    /// Number of entries that are held. One that is being made is not held yet.
    pub fn len(&self) -> usize {
        let entries = self.inner.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let held = |slot: &&Slot| try_lock(slot).is_some_and(|entry| entry.as_ref().is_some_and(is_held));
        entries.values().filter(held).count()
    }

    /// Number of weights that were packed so far, rather than shared or read.
    pub fn packings(&self) -> u64 {
        self.inner.packings.load(Ordering::Relaxed)
    }

    pub(super) fn count_packing(&self) {
        self.inner.packings.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of a program and its data; a program that is gone gives its number to no other.
    pub(super) fn scope(&self, scope: Scope) -> u64 {
        let mut scopes = self.inner.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, next) = &mut *scopes;
        known.retain(|(scope, _)| scope.is_alive());
        if let Some((_, number)) = known.iter().find(|(other, _)| *other == scope) {
            return *number;
        }
        let number = *next;
        *next = number.wrapping_add(1);
        known.push((scope, number));
        drop(scopes);
        // An entry that is no longer held is forgotten from time to time: with every new program.
        let mut entries = self.inner.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || try_lock(slot).is_none_or(|entry| entry.as_ref().is_some_and(is_held))
        });
        number
    }

    /// Returns whether there are no entries in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for PackCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackCache of {} entries", self.len())
    }
}

fn is_held(entry: &Weak<dyn Any + Send + Sync>) -> bool {
    entry.strong_count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_entry_is_made_once_and_released_with_its_last_holder() {
        let (cache, made) = (PackCache::new(), AtomicUsize::new(0));
        let make = || {
            made.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ()>(vec![1u8])
        };
        let holders: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| cache.entry("w", make).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!((made.load(Ordering::Relaxed), cache.len()), (1, 1));
        assert!(holders.iter().all(|held| Arc::ptr_eq(held, &holders[0])));
        drop(holders);
        assert!(cache.is_empty());
        cache.entry("w", make).unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_fails_is_tried_again_and_types_do_not_mix() {
        let cache = PackCache::new();
        assert_eq!(cache.entry::<u8, _>("w", || Err("no")).unwrap_err(), "no");
        let byte = cache.entry("w", || Ok::<_, ()>(1u8)).unwrap();
        let word = cache.entry("w", || Ok::<_, ()>(2u16)).unwrap();
        assert_eq!((*byte, *word, cache.len()), (1, 2, 2));
    }

    #[test]
    fn a_maker_may_look_at_the_cache_and_ask_for_entries_its_own_included() {
        let cache = PackCache::new();
        let outer = cache.entry("a", || {
            assert_eq!((cache.len(), format!("{cache:?}").as_str()), (0, "PackCache of 0 entries"));
            let again = cache.entry("a", || Ok::<_, ()>(1u32))?;
            let inner = cache.entry("b", || Ok::<_, ()>(10u32))?;
            Ok::<_, ()>(*again + *inner)
        });
        assert_eq!(*outer.unwrap(), 11);
    }

    #[test]
    fn makers_that_need_each_other_end() {
        let (cache, both) = (PackCache::new(), std::sync::Barrier::new(2));
        let make = |own: &str, other: &str| {
            cache.entry(own, || {
                both.wait();
                let other = cache.entry(other, || Ok::<_, ()>(1u32));
                both.wait();
                other.map(|other| *other + 1)
            })
        };
        let sums = std::thread::scope(|scope| {
            let threads = [scope.spawn(|| make("a", "b")), scope.spawn(|| make("b", "a"))];
            threads.map(|thread| *thread.join().unwrap().unwrap())
        });
        assert_eq!(sums, [2, 2]);
    }

    #[test]
    fn a_maker_that_panics_leaves_the_entry_to_the_next() {
        let cache = PackCache::new();
        let make = std::panic::AssertUnwindSafe(|| cache.entry::<u8, ()>("w", || panic!("no")));
        assert!(std::panic::catch_unwind(make).is_err());
        assert_eq!(*cache.entry("w", || Ok::<_, ()>(3u8)).unwrap(), 3);
    }
}
