//! Planned memories that methods share, and the lock that keeps their runs apart.
//!
//! Invariant: the bytes of an arena are read and written only by the method that holds its lock, and no reference to them
//! outlives the lock: results that are in a shared arena are copied out before it is released.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::api::room::{OutOfMemory, grow};
use crate::api::storage::{Block, Region};

/// A planned memory that methods can share: zeroed at first, 64-byte aligned. One method at a time runs on it; another
/// one gets [`RunError::Busy`](crate::RunError::Busy) meanwhile.
///
/// ```
/// use edgepack_executor::{Arena, Options};
///
/// let state = Arena::new(1 << 20).expect("a mebibyte");
/// // Both methods find in memory 2 what the other one left there.
/// let prefill = Options { arenas: vec![(2, state.clone())], ..Options::default() };
/// let decode = prefill.clone();
/// assert_eq!(decode.arenas[0].1.len(), 1 << 20);
/// ```
#[derive(Clone)]
pub struct Arena {
    inner: Arc<Shared>,
}

struct Shared {
    block: Block,
    busy: AtomicBool,
    /// The method that held the lock last; 0 for none.
    last: AtomicU64,
}

/// Names one loaded method among all of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder(u64);

impl Holder {
    /// A name that no other method has.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Holder(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Arena {
    /// Zeroed memory; `None` if there is not that much.
    pub fn new(bytes: usize) -> Option<Self> {
        let block = Block::zeroed(bytes)?;
        Some(Arena { inner: Arc::new(Shared { block, busy: AtomicBool::new(false), last: AtomicU64::new(0) }) })
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.inner.block.len()
    }

    /// Returns whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.inner.block.is_empty()
    }

    /// Returns whether both are handles of one memory.
    pub fn is_same(&self, other: &Arena) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(crate) fn region(&self, offset: usize, len: usize) -> Option<Region> {
        self.inner.block.region(offset, len)
    }

    /// Takes the lock; `false` if it is held.
    fn acquire(&self) -> bool {
        !self.inner.busy.swap(true, Ordering::Acquire)
    }

    /// Notes who holds the lock. `false` if another held it before. Only the holder calls this.
    fn note(&self, holder: Holder) -> bool {
        self.inner.last.swap(holder.0, Ordering::Relaxed) == holder.0
    }

    /// Gives the lock back. The caller holds it and keeps no reference to the bytes.
    fn release(&self) {
        self.inner.busy.store(false, Ordering::Release);
    }
}

/// The planned memories of one method.
#[derive(Default)]
pub(crate) struct Arenas {
    list: Vec<Planned>,
}

struct Planned {
    arena: Arena,
    /// The caller supplied it, so other methods may have it too.
    shared: bool,
}

impl Arenas {
    /// Adds the memory of the next id.
    pub fn push(&mut self, arena: Arena, shared: bool) -> Result<(), OutOfMemory> {
        grow(&mut self.list, 1)?;
        self.list.push(Planned { arena, shared });
        Ok(())
    }

    /// Number of memories.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The memory at `index`, which is its id less one.
    pub fn get(&self, index: usize) -> Option<&Arena> {
        self.list.get(index).map(|planned| &planned.arena)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arena> {
        self.list.iter().map(|planned| &planned.arena)
    }

    /// Returns whether this is a handle of one of them.
    pub fn contains(&self, arena: &Arena) -> bool {
        self.iter().any(|known| known.is_same(arena))
    }

    /// Returns the arenas that other methods may have too, with their index.
    pub fn shared(&self) -> impl DoubleEndedIterator<Item = (usize, &Arena)> {
        let list = self.list.iter().enumerate();
        list.filter(|(_, planned)| planned.shared).map(|(index, planned)| (index, &planned.arena))
    }

    /// Memories that no other method has.
    pub fn own(&self) -> impl Iterator<Item = &Arena> {
        self.list.iter().filter(|planned| !planned.shared).map(|planned| &planned.arena)
    }

    /// The index of the shared memory that a region is in.
    pub fn shared_at(&self, region: &Region) -> Option<usize> {
        let lies_in = |arena: &Arena| arena.region(0, arena.len()).is_some_and(|whole| whole.contains(region));
        self.shared().find(|(_, arena)| lies_in(arena)).map(|(index, _)| index)
    }

    /// Takes the locks of all shared memories, and tells the indices of those that another method has held since. The
    /// error is the id of one that is in use; then none is taken.
    pub fn acquire(&self, holder: Holder, changed: impl FnMut(usize)) -> Result<(), u32> {
        for (index, arena) in self.shared() {
            if !arena.acquire() {
                self.shared().take_while(|(taken, _)| *taken < index).for_each(|(_, arena)| arena.release());
                return Err(index as u32 + 1);
            }
        }
        self.shared().filter(|(_, arena)| !arena.note(holder)).map(|(index, _)| index).for_each(changed);
        Ok(())
    }

    /// Gives all locks back.
    pub fn release(&self) {
        self.shared().for_each(|(_, arena)| arena.release());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Model of the locks, by the index of an arena: who holds it, and who held it last.
    #[derive(Default)]
    struct Model {
        held: HashMap<usize, u64>,
        last: HashMap<usize, u64>,
    }

    /// Three methods over three arenas, each with two of them: every sequence of six takings and givings (three under Miri).
    #[test]
    fn locks_follow_their_model_in_every_order() {
        let shares = [[0, 1], [1, 2], [0, 2]];
        let turns = if cfg!(miri) { 3 } else { 6 };
        for mut sequence in 0..6u32.pow(turns) {
            let arenas: Vec<Arena> = (0..3).map(|_| Arena::new(64).unwrap()).collect();
            let methods: Vec<(Arenas, Holder)> = shares
                .iter()
                .map(|share| {
                    let mut own = Arenas::default();
                    share.iter().for_each(|&index| own.push(arenas[index].clone(), true).unwrap());
                    (own, Holder::new())
                })
                .collect();
            let (mut model, mut holds) = (Model::default(), [false; 3]);
            for _ in 0..turns {
                let (method, take) = ((sequence % 6 / 2) as usize, sequence % 2 == 0);
                sequence /= 6;
                let (own, holder) = &methods[method];
                let holder = *holder;
                let share = shares[method];
                if take && !holds[method] {
                    let busy = share.iter().position(|index| model.held.contains_key(index));
                    let mut changed = Vec::new();
                    let answer = own.acquire(holder, |index| changed.push(share[index]));
                    assert_eq!(answer.err(), busy.map(|place| place as u32 + 1));
                    holds[method] = busy.is_none();
                    // An attempt that fails leaves no trace.
                    let taken = if holds[method] { &share[..] } else { &[] };
                    let news = taken.iter().copied().filter(|index| model.last.get(index) != Some(&holder.0));
                    assert_eq!(changed, news.collect::<Vec<_>>());
                    for &index in taken {
                        model.last.insert(index, holder.0);
                        model.held.insert(index, holder.0);
                    }
                } else if !take && holds[method] {
                    own.release();
                    model.held.retain(|index, _| !share.contains(index));
                    holds[method] = false;
                }
                for (index, arena) in arenas.iter().enumerate() {
                    assert_eq!(arena.inner.busy.load(Ordering::Relaxed), model.held.contains_key(&index));
                }
            }
        }
    }

    #[test]
    fn threads_never_hold_one_arena_together() {
        let arena = Arena::new(8).unwrap();
        let inside = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut held = 0;
                    while held < if cfg!(miri) { 10 } else { 200 } {
                        if arena.acquire() {
                            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                            held += 1;
                            assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
                            arena.release();
                        } else {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
    }
}
