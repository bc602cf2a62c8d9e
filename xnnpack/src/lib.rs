//! Runs the parts of programs that were lowered to XNNPACK, without XNNPACK.
//!
//! [`Xnnpack`] is a backend. It answers every call of a delegate with instructions: nodes of the payload become calls of
//! operators, those of `edgepack-kernels` where they compute the same, operators of its own for 8-bit and 4-bit numbers.
//! It refuses at load every node that it cannot be sure to compute, and names the node.
//!
//! ```no_run
//! use edgepack_executor::delegate::Backends;
//! use edgepack_executor::{Method, Options};
//! use edgepack_loader::Program;
//! use edgepack_xnnpack::Xnnpack;
//!
//! # fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! let program = Program::open("mobilenet_v2_xnnpack.pte")?;
//! let options = Options { backends: Backends::new().with(Xnnpack), ..Options::default() };
//! let method = Method::load(&program, "forward", &edgepack_kernels::registry(), &options)?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod backend;
mod constants;
mod lower;
mod operators;
mod probe;

pub use backend::Xnnpack;
pub use probe::{Answer, Probe, ProbedNode};
