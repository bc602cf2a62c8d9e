//! Runs graphs of Model Library Format packages: nodes in order, each a call of a function that the caller provides.
//!
//! A [`GraphExecutor`] plans the memory from the graph's storage ids, with sizes computed from the shapes. Functions come
//! from a [`FunctionTable`]: [`RustFunctions`] here, compiled C elsewhere. Nothing runs before every function is found,
//! every argument is set, and the graph obeys every rule.

mod call;
mod error;
mod function;
mod graph_executor;
mod operand;

pub use call::{Argument, Call, Result as CallResult};
pub use error::{Error, FunctionError};
pub use function::{Function, FunctionTable, RustFunctions, Signature};
pub use graph_executor::{GraphExecutor, Ran};
pub use operand::Operand;
