//! TensorFlow Lite models as containers of compiled parts: files `*_edgetpu.tflite`, identifier `TFL3`.
//!
//! Compiled parts are custom operators whose options, a FlexBuffer, hold a package of the [`darwinn`](crate::darwinn)
//! format. The rest of the model is looked at as far as it takes to find them and to compare both sides.

mod flex;
mod model;
mod names;
mod options;
mod tables;
pub mod verify;
mod zip;

pub use flex::{FlexError, FlexType, FlexValue};
pub use model::{CompiledOp, IDENTIFIER, ModelRef, NumberedTensors, OPERATOR, VARIABLE_SUFFIX};
pub use names::operator_name;
pub use options::{CustomOptions, KEYS, OptionsError};
pub use tables::*;
pub use zip::{AppendedZip, ZipError, ZipMember};
