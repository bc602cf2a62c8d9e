//! Runs language models from ExecuTorch programs: prompt in, text out.
#![forbid(unsafe_code)]

pub mod error;
pub mod generate;
pub mod model;
pub mod sampling;
pub mod session;
