//! Every ceiling with its reason, and the budget that walking a file spends.

use crate::wire::{ReadError, ReadErrorKind};

/// Ceilings for one file. The default is meant for every file: it lets a method have 1 GiB, and whoever opens files on a
/// machine puts half of what that machine has in its place ([`Limits::for_memory`]). [`Limits::hostile`] is far lower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Tables and vector bytes visited while verifying, in units of one table or 64 vector bytes. Flatbuffers may
    /// share sub-tables, so a few kilobytes can expand without bound; every visit is paid from this.
    pub visits: u64,
    /// Findings retained; the rest are counted.
    pub findings: usize,
    /// Bytes of all planned memory of one method: more is an error of the file, on every machine.
    pub arena_bytes: u64,
    /// Bytes of one segment that may be read into memory, and of a stream that is read whole. A segment is never longer
    /// than its file.
    pub segment_bytes: u64,
    /// Bytes of one file of a server that may be fetched.
    pub fetch_bytes: u64,
    /// Bytes of what the executor allocates for a method beyond planned memory and segments: values without planned
    /// memory, scratch, packed weights.
    pub method_bytes: u64,
    /// Bytes of all of that together, planned memory included: one account, so that a file cannot have the most of each.
    pub memory_bytes: u64,
    /// Instructions one execution may run, as a guard against endless jumps.
    pub instructions: u64,
}

impl Limits {
    /// Limits where nothing is known of the machine: 64 million visits, 1 GiB for a method.
    pub const DEFAULT: Limits = Limits {
        visits: 64_000_000,
        findings: 1_000,
        arena_bytes: 64 << 30,
        segment_bytes: 1 << 40,
        fetch_bytes: 16 << 30,
        method_bytes: 64 << 30,
        memory_bytes: 1 << 30,
        // The reference runtime's own budget.
        instructions: 10_000_000,
    };

    /// Limits for a machine (or a part of one) with this much memory: a method may have half of it. What a file may say
    /// and be valid is the same everywhere.
    pub const fn for_memory(physical: u64) -> Limits {
        Limits { memory_bytes: physical / 2, ..Limits::DEFAULT }
    }

    /// Limits for fuzzing and for the smallest memory: one million visits, 64 MiB arenas.
    pub const fn hostile() -> Limits {
        Limits {
            visits: 1_000_000,
            findings: 100,
            arena_bytes: 64 << 20,
            segment_bytes: 256 << 20,
            fetch_bytes: 64 << 20,
            method_bytes: 64 << 20,
            memory_bytes: 128 << 20,
            instructions: 100_000,
        }
    }
}

impl Limits {
    /// Limits for tools that make a row of every table of a file of `len` bytes. Tables may be shared, so that a few
    /// kilobytes unfold into millions of rows: the visits are at most a small multiple of the length, and some ten times
    /// what the largest real programs need.
    pub const fn unfolding(self, len: u64) -> Limits {
        const MOST: u64 = 8_000_000;
        const FEW: u64 = 100_000;
        /// Visits allowed per byte of the file. If nothing is shared, a visit takes four bytes of the file at least.
        const PER_BYTE: u64 = 4;
        let of_length = len.saturating_mul(PER_BYTE).saturating_add(FEW);
        let most = if of_length < MOST { of_length } else { MOST };
        Limits { visits: if self.visits < most { self.visits } else { most }, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Rest of [`Limits::visits`].
#[derive(Clone, Debug)]
pub struct Budget {
    left: u64,
    spent: bool,
}

impl Budget {
    /// A full budget.
    pub const fn new(limits: &Limits) -> Self {
        Budget { left: limits.visits, spent: false }
    }

    /// Pays for visits; an error once the budget is spent.
    #[inline]
    pub fn charge(&mut self, visits: u64, offset: u32) -> Result<(), ReadError> {
        match self.left.checked_sub(visits) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                self.spent = true;
                Err(ReadError { kind: ReadErrorKind::Budget, offset })
            }
        }
    }

    /// Pays for reading `bytes` bytes of a vector.
    #[inline]
    pub fn charge_bytes(&mut self, bytes: usize, offset: u32) -> Result<(), ReadError> {
        self.charge((bytes as u64 / 64).saturating_add(1), offset)
    }

    /// Returns whether something could not be paid: the rest is not looked at. A budget that was just enough is not
    /// spent.
    pub fn is_spent(&self) -> bool {
        self.spent
    }

    /// Ends the walk: nothing more can be paid.
    #[cold]
    pub fn exhaust(&mut self) {
        self.left = 0;
        self.spent = true;
    }

    /// Visits that can still be paid.
    pub fn left(&self) -> u64 {
        self.left
    }
}
