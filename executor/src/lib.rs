//! Runs ExecuTorch programs.
//!
//! Loading a method decides everything once: which kernel runs each instruction, where every tensor lives, which memory
//! is shared. Running only executes: no allocation inside a pool, no string compare, no second check. The crate holds no operator;
//! kernels are values handed to it in a [`kernel::Registry`].

mod account;
mod arena;
mod attribute;
mod bind;
pub mod call;
mod context;
pub mod darwinn;
pub mod delegate;
pub mod embed;
mod error;
mod freeze;
pub mod graph;
mod input;
mod interpret;
mod kept;
pub mod kernel;
mod load;
mod method;
pub mod mlf;
pub mod observer;
mod operator;
mod options;
mod outputs;
mod owners;
mod pack_cache;
mod place;
mod prepare;
mod release;
pub mod rewrite;
mod run;
pub mod state;
mod storage;
pub mod tensor;
pub mod typed;

pub use arena::Arena;
pub use attribute::Attribute;
pub use error::{LoadError, Missing, Place, RunError};
pub use input::{Input, Output, ToInput};
pub use method::{LoadMethod, MemoryBytes, Method};
pub use operator::OperatorInfo;
pub use options::Options;
pub use outputs::Outputs;
pub use pack_cache::PackCache;
