//! Every ceiling with its reason, and the budget that walking a file spends.

use crate::wire::{ReadError, ReadErrorKind};

/// Ceilings for one file. The defaults are far above anything an exporter writes; lower them where hostile files are
/// expected ([`Limits::hostile`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Tables and vector bytes visited while verifying, in units of one table or 64 vector bytes. Flatbuffers may
    /// share sub-tables, so a few kilobytes can expand without bound; every visit is paid from this.
    pub visits: u64,
    /// Findings kept; the rest are counted.
    pub findings: usize,
    /// Bytes of all planned memory of one method.
    pub arena_bytes: u64,
    /// Bytes of one segment that may be read into memory.
    pub segment_bytes: u64,
    /// Bytes the executor may spend on a method beyond arenas and segments: lists, plans, scratch.
    pub method_bytes: u64,
    /// Instructions one execution may run, as a guard against endless jumps.
    pub instructions: u64,
}

impl Limits {
    /// Limits for files from a trusted toolchain: 64 million visits, 64 GiB arenas.
    pub const DEFAULT: Limits = Limits {
        visits: 64_000_000,
        findings: 1_000,
        arena_bytes: 64 << 30,
        segment_bytes: 1 << 40,
        method_bytes: 16 << 30,
        // The reference runtime's own budget.
        instructions: 10_000_000,
    };

    /// Limits for fuzzing and for files from strangers: one million visits, 64 MiB arenas.
    pub const fn hostile() -> Limits {
        Limits {
            visits: 1_000_000,
            findings: 100,
            arena_bytes: 64 << 20,
            segment_bytes: 256 << 20,
            method_bytes: 64 << 20,
            instructions: 100_000,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What is left of [`Limits::visits`].
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

    /// Whether something could not be paid: what follows is not looked at. A budget that was just enough is not spent.
    pub fn is_spent(&self) -> bool {
        self.spent
    }

    /// Visits that can still be paid.
    pub fn left(&self) -> u64 {
        self.left
    }
}
