//! Factors and spectra of small dense matrices, in double precision, in working memory of the caller's.

pub mod factor;
pub mod matrix;
pub mod spectrum;
pub mod stack;
