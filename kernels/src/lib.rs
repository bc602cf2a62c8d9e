//! The operator library: portable, prim and quantised operators of ExecuTorch.
//!
//! Operators come in families with one engine each; an operator is a row of its family's table, never a copy of its
//! neighbour. [`registry`] is the list of all.

use edgepack_executor::kernel::Registry;

/// Every operator of this crate.
pub fn registry() -> Registry {
    Registry::new()
}
