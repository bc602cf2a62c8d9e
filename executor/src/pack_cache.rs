//! What backends make of weights once and share: between the delegates of a method, between methods, between threads.
//!
//! Entries live as long as somebody uses them. Whoever asks for an entry first makes it while others wait for that entry
//! alone.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A cache of packed weights. Clones share the entries.
#[derive(Clone, Default)]
pub struct PackCache {
    entries: Arc<Mutex<HashMap<String, Slot>>>,
}

/// The place of one entry; locked while it is made.
type Slot = Arc<Mutex<Option<Weak<dyn Any + Send + Sync>>>>;

impl PackCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The entry of this key, made by `make` if nobody holds one. A key belongs to one type: under another type it is
    /// another entry.
    pub fn entry<T: Any + Send + Sync, E>(&self, key: &str, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let key = format!("{}\0{key}", std::any::type_name::<T>());
        let slot = {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(entries.entry(key).or_default())
        };
        // A maker that panicked left nothing behind.
        let mut entry = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entry.as_ref().and_then(Weak::upgrade).and_then(|known| known.downcast::<T>().ok());
        if let Some(known) = known {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        let shared: Arc<dyn Any + Send + Sync> = made.clone();
        *entry = Some(Arc::downgrade(&shared));
        Ok(made)
    }

    /// Number of entries that somebody holds.
    pub fn len(&self) -> usize {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let held = |slot: &&Slot| {
            let entry = slot.lock().unwrap_or_else(PoisonError::into_inner);
            entry.as_ref().is_some_and(|entry| entry.strong_count() > 0)
        };
        entries.values().filter(held).count()
    }

    /// Whether nobody holds an entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for PackCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackCache of {} entries", self.len())
    }
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
}
