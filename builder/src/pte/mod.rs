//! Builds programs.
//!
//! A [`ProgramBuilder`] holds what methods share: constants, named data, options. [`ProgramBuilder::method`] opens a
//! method; its calls make values and answer with their ids. [`ProgramBuilder::finish`] plans memory and verifies. What is
//! wrong with a call is said at the call.
//!
//! ```
//! use edgepack_builder::args;
//! use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
//! use edgepack_format::{scalar::ScalarType, tensor::TensorView};
//!
//! # fn main() -> Result<(), edgepack_builder::BuildError> {
//! let mut program = ProgramBuilder::new();
//! let w = program.constant("w", &TensorView::of::<f32>(&[2, 2], &[0; 16]).unwrap())?;
//! let mut forward = program.method("forward");
//! let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [2, 2]))?;
//! let y = forward.call("aten::add.out", args![x, w, 1i64], TensorSpec::like(x))?;
//! forward.output(y)?;
//! let file = program.finish()?.to_bytes()?;
//! # assert_eq!(&file[4..8], b"ET12");
//! # Ok(())
//! # }
//! ```
//!
//! State, a delegate and a loop: `count` is added up `n` times.
//!
//! ```
//! use edgepack_builder::args;
//! use edgepack_builder::pte::{Out, ProgramBuilder, TensorSpec, compile_spec};
//! use edgepack_format::{scalar::ScalarType, tensor::TensorView};
//!
//! # fn main() -> Result<(), edgepack_builder::BuildError> {
//! let mut program = ProgramBuilder::new();
//! let mut forward = program.method("forward");
//! let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [4]))?;
//! let total = forward.state_with("total", &TensorView::of::<f32>(&[4], &[0; 16]).unwrap())?;
//! let backend = forward.delegate("Doubler", b"payload", &[compile_spec("threads", [2])])?;
//! let twice = forward.call_delegate(backend, args![x], TensorSpec::like(x))?;
//!
//! let count = forward.value(0i64)?;
//! let again = forward.label();
//! forward.bind(again)?;
//! let sum = forward.call("aten::add.out", args![total, twice], TensorSpec::like(total))?;
//! forward.call("aten::copy_", args![total, sum], ())?;
//! forward.call("executorch_prim::add.Scalar", args![count, 1i64], Out::Value(count))?;
//! let done = forward.call("executorch_prim::eq.Scalar", args![count, 3i64], Out::Bool)?;
//! forward.jump_if_false(done, again)?;
//! forward.call("executorch_prim::sub.Scalar", args![count, 3i64], Out::Value(count))?;
//! forward.output(sum)?;
//! program.finish()?;
//! # Ok(())
//! # }
//! ```

mod args;
mod call;
mod chain;
mod containers;
mod delegate;
mod finish;
mod memory;
mod method;
mod parts;
mod program;
mod resolve;
mod rows;
mod spec;
mod specs;
#[cfg(test)]
mod tests;
mod values;

pub use args::{Arg, ConstantId, DelegateId, IntArg, LabelId, TensorArg, ValueId};
pub use delegate::compile_spec;
pub use finish::BuiltProgram;
pub use method::MethodBuilder;
pub use program::ProgramBuilder;
pub use spec::{Out, Outs, TensorSpec};
pub use specs::Specs;
