//! Linear algebra of dense matrices: factors, solutions, spectra.
//!
//! Every matrix of a stack is copied into working memory as doubles, computed there and put into the outputs, so element
//! type and dim order of tensors matter nowhere else. The algorithms are the plain ones; they are meant for small matrices.
//!
//! Invariant: working memory is reserved at load for the sizes there, and never grows.

mod operators;
mod orthogonal;
mod room;
mod stack;

pub use operators::KERNELS;
