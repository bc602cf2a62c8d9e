//! Memory planning: which tensors may share bytes, and where each of them goes.
//!
//! [`lifetimes`] finds from which instruction to which a tensor's bytes matter; [`place`] packs the tensors into as few
//! bytes as it can; [`replan`] does both for a program that has a plan already.

mod access;
mod lifetimes;
mod regions;
mod replan;

pub use edgepack_memory_plan::{Block, Lifetime, NoPlan, Placement, Strategy, place};
pub use lifetimes::lifetimes;
pub(crate) use lifetimes::lifetimes_with;
pub(crate) use replan::details;
pub use replan::{ArenaChange, ReplanOptions, replan};

/// Alignment of the offsets and sizes of planned memory, as exporters plan it.
pub const ALIGNMENT: u64 = 16;

/// Bytes added to every memory of a method that calls this backend: its kernels read past the end of a tensor.
pub(crate) const OVER_READ: (&str, u64) = ("XnnpackBackend", 64);
