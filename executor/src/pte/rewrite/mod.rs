//! Building blocks of rewrites, and the rewrites that need no knowledge of operators.
//!
//! A rewrite concludes over storage, not over value ids: [`Uses`] says who reads and writes which tensor and which
//! memory outlives a run, and answers only for methods without jumps, where "before" and "after" mean something.

mod content;
mod copy_outputs;
mod detach;
mod fold;
mod share;
mod uses;

pub use detach::DetachPlanned;
pub use fold::FoldConstants;
pub use share::ShareEqual;
pub use uses::{Use, Uses};
