//! The operators of ATen, a folder or file per family.

pub mod algebra;
pub mod antialias;
pub mod conv;
pub mod distance;
pub mod elementwise;
pub mod embedding_bag;
pub mod fft;
pub mod grid;
pub mod matmul;
pub mod median;
pub mod movement;
pub mod norm;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod softmax;
pub mod sort;
pub mod upsample;
