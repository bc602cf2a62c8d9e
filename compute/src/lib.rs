//! The loops: geometry and slices in, slices out.
//!
//! Nothing here knows operators, programs or tensors; any caller that has bytes and their shape may use it. Loops that
//! may be split among threads run on those of [`threads::Threads`], with results that do not depend on their number.
#![deny(unsafe_code)]

pub mod algebra;
pub mod attention;
pub mod cache;
pub mod complex;
pub mod conv;
pub mod convert;
pub mod delta;
pub mod distance;
pub mod element;
pub mod embedding_bag;
pub mod epilogue;
mod error;
pub mod experts;
pub mod fill;
pub mod float;
pub mod fold;
pub mod fourier;
pub mod functions;
pub mod gather;
pub mod gemm;
pub mod generator;
pub mod glu;
pub mod group_norm;
pub mod hadamard;
pub mod half;
pub mod half_gemm;
pub mod indexing;
pub mod indices;
mod interleave;
pub mod join;
mod lanes;
pub mod layout;
pub mod mask;
pub mod norm;
pub mod number;
pub mod packed;
mod padded;
pub mod panels;
pub mod parts;
pub mod peak;
mod places;
pub mod pointwise;
pub mod pool;
pub mod prelu;
pub mod qconv;
pub mod qgemm;
pub mod quantise;
#[doc(hidden)]
pub mod random;
pub mod reduce;
pub mod repeat;
pub mod resize;
pub mod sample;
pub mod scan;
pub mod search;
pub mod select;
pub mod shift;
pub mod shuffle;
pub mod simd;
pub mod softmax;
pub mod sort;
pub mod spatial;
pub mod threads;
pub mod transfer;
mod transpose;
pub mod view;
pub mod walk;
pub mod zeroed;

pub use error::{Error, ErrorKind};
