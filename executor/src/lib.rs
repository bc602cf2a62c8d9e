//! Runs ExecuTorch programs.
//!
//! Loading a method decides everything once: which kernel runs each instruction, where every tensor lives, which memory
//! is shared. Running only executes: no allocation, no string compare, no second check. The crate holds no operator;
//! kernels are values handed to it in a [`kernel::Registry`].

pub mod call;
pub mod context;
pub mod kernel;
pub mod prepare;
pub mod state;
pub mod storage;
pub mod tensor;
