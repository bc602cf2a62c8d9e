//! Payloads of the XNNPACK backend: a graph of values and nodes that a program hands over to be run as one piece.
//!
//! [`Payload::parse`] gives a verified graph with typed nodes. Constants may be named data of the program, which a caller
//! looks up by key ([`Payload::constants`]); what they are in numbers, [`Value::quantization`] says. [`verify::with_context`]
//! asks the rules about named data and about the call of the delegate. [`XnnpackFormat`] does both for payloads in their programs.

mod constants;
mod datatype;
mod decoder;
mod describe;
mod header;
mod node;
mod nodes;
mod payload;
mod print;
mod quant;
mod shapes;
mod tables;
mod value;
pub mod verify;

pub use constants::{Constant, ConstantBytes, Constants, ConstantsError, NO_OFFSET};
pub use datatype::Meaning;
pub use decoder::XnnpackFormat;
pub use header::{Header, HeaderError};
pub use node::{Fields, Node, NodeUnion, Operand, OutputMinMax};
pub use nodes::*;
pub use payload::Payload;
pub use print::{NodeLine, ValueLine};
pub use quant::{ChannelScales, GroupScales, QuantError, Quantization};
pub use shapes::{KEEP_DIMS, SAME_PADDING, ShapeError, ShapeProblem, TRANSPOSE_WEIGHTS};
pub use tables::*;
pub use value::{INPUT, MAX_RANK, OUTPUT, Shape};

/// The identifier that exporters write.
pub const IDENTIFIER: [u8; 4] = *b"XN01";

/// The identifier of older payloads.
pub const OLD_IDENTIFIER: [u8; 4] = *b"XN00";
