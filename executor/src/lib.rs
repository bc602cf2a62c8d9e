//! Runs ExecuTorch programs.
//!
//! Loading a method decides everything once: which kernel runs each instruction, where every tensor lives, which memory
//! is shared. Running only executes: no allocation inside a pool, no string compare, no second check. The crate holds no operator;
//! kernels are values handed to it in a [`Registry`].
//!
//! [`kernel`], [`delegate`], [`tensor`] and [`typed`] are the contract of operators and backends; they know nothing of
//! programs. Formats are side by side: programs here, Edge TPU packages in [`darwinn`], library packages in [`mlf`].

mod api;
pub mod darwinn;
pub mod mlf;
pub mod private_folder;
mod pte;

pub use api::operator::OperatorInfo;
pub use api::packing::{PackCache, PackFolder};
pub use api::{call, delegate, kernel, packing, state, tensor, typed};
pub use pte::arena::Arena;
pub use pte::error::{LoadError, Missing, Place, RunError};
pub use pte::input::{Input, Output, ToInput};
pub use pte::lifetimes::{Lifetime, MemoryPart};
pub use pte::method::{LoadMethod, MemoryBytes, Method};
pub use pte::options::Options;
pub use pte::outputs::Outputs;
pub use pte::registry::Registry;
pub use pte::saved_state::StateScope;
#[cfg(feature = "tracing")]
pub use pte::spans;
pub use pte::{embed, observer, plan_graph as plan, rewrite};
