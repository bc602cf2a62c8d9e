//! The contract of operators and backends: kernels, delegates, tensors, values. It knows nothing of programs.

pub mod call;
pub(crate) mod context;
pub mod delegate;
pub(crate) mod error;
pub(crate) mod instructions;
pub mod kernel;
pub(crate) mod operator;
pub mod packing;
pub(crate) mod prepare;
pub(crate) mod room;
pub mod state;
pub(crate) mod storage;
pub mod tensor;
pub mod typed;
