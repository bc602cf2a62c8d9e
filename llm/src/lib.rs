//! Runs language models from ExecuTorch programs: prompt in, text out.
#![forbid(unsafe_code)]

#[cfg(feature = "templates")]
pub mod chat;
pub mod error;
pub mod generate;
pub mod model;
pub mod sampling;
pub mod score;
pub mod session;
pub mod stop;
pub mod text;
pub mod tokenizer;

/// The examples of the page, as tests.
#[cfg(all(doctest, feature = "huggingface"))]
#[doc = include_str!("../../docs/language-models.md")]
struct LanguageModelsPage;
