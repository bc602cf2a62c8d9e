//! How a method is loaded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use edgepack_format::limits::Limits;
use edgepack_loader::NamedDataMap;

use crate::delegate::Backends;
use crate::pack_cache::PackCache;
use crate::storage::{Block, Region};

/// How a method is loaded. The default is what most want: our own memory, all rewrites.
#[derive(Clone, Default)]
pub struct Options {
    /// Who runs delegates.
    pub backends: Backends,
    /// Where backends share what they make of weights. Clones of these options share it too.
    pub cache: PackCache,
    /// Where external constants and named data are found, beside the program itself.
    pub data: Vec<Arc<dyn NamedDataMap>>,
    /// Planned memories to use instead of fresh ones, by memory id (1 is the first). Methods that name the same one
    /// share its content, as programs with shared mutable buffers expect.
    pub arenas: Vec<(u32, Arena)>,
    /// Keeps the program instruction by instruction: no rewrites, no packed weights. Loading is faster, running slower.
    ///
    /// Results are the same bit for bit unless an instruction sums floats in another order: products of matrices,
    /// convolutions, a batch norm that became part of one, means. Each of these is off the exact sum of its
    /// terms by at most γ = n·2⁻²⁴/(1 − n·2⁻²⁴) times the sum of their absolute values in `f32`, where n counts the
    /// roundings a term goes through: at most the number of terms and four more, eight more for a folded batch norm. So two
    /// orders are at most twice that apart. What is computed from such sums follows from them.
    pub no_optimize: bool,
    /// Threads for kernels: `None` uses the pool the caller runs in, or outside of any, rayon's global one.
    ///
    /// Handing work to a pool from outside of it takes a block of its queue every 63 times: once a run with threads of its
    /// own, once for every part of an instruction that is shared out where the caller is in no pool. Runs inside a pool
    /// allocate nothing.
    pub threads: Option<usize>,
    /// Ceilings; those the program was opened with if `None`.
    pub limits: Option<Limits>,
}

/// A planned memory that methods can share: zeroed at first, 64-byte aligned. One method at a time may run on it.
#[derive(Clone)]
pub struct Arena {
    inner: Arc<Shared>,
}

struct Shared {
    block: Block,
    busy: AtomicBool,
}

impl Arena {
    /// Zeroed memory; `None` if that many bytes cannot be laid out.
    pub fn new(bytes: usize) -> Option<Self> {
        Some(Arena { inner: Arc::new(Shared { block: Block::zeroed(bytes)?, busy: AtomicBool::new(false) }) })
    }

    /// Its size.
    pub fn len(&self) -> usize {
        self.inner.block.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.inner.block.is_empty()
    }

    pub(crate) fn region(&self, offset: usize, len: usize) -> Option<Region> {
        self.inner.block.region(offset, len)
    }

    /// Claims it for one run; `false` if another method runs on it.
    pub(crate) fn acquire(&self) -> bool {
        !self.inner.busy.swap(true, Ordering::Acquire)
    }

    pub(crate) fn release(&self) {
        self.inner.busy.store(false, Ordering::Release);
    }
}
