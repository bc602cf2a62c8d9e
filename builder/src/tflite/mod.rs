//! Compiled parts inside TensorFlow Lite models: custom options to the byte, and models around packages.

mod embed;
mod options;
mod wrap;

pub use embed::embed;
pub use options::{OptionValue, custom_options, rewrite_options};
pub use wrap::{model, wrap};
