//! Payload that the backend writes at export and reads at load: a flatbuffer of its own, declared once.

use edgepack::format::row::{Rows, Table, Text};

/// The identifier of the payload.
pub const IDENTIFIER: [u8; 4] = *b"MLP0";

/// One fused block: layers that run one after another.
#[derive(Table, Clone, PartialEq, Debug, Default)]
#[table(crate = "edgepack::format")]
pub struct Block<'a> {
    /// The layers in order.
    #[slot(0)]
    pub layers: Option<Rows<'a, Layer<'a>>>,
}

/// `y = act(x w + b)`.
#[derive(Table, Clone, PartialEq, Debug, Default)]
#[table(crate = "edgepack::format")]
pub struct Layer<'a> {
    /// Key of the weight: `inputs` rows of `outputs` numbers, as the product wants them.
    #[slot(0)]
    pub weight: Option<Text<'a>>,
    /// Key of the bias.
    #[slot(1)]
    pub bias: Option<Text<'a>>,
    /// Numbers that go in.
    #[slot(2)]
    pub inputs: u32,
    /// Numbers that come out.
    #[slot(3)]
    pub outputs: u32,
    /// True if negative results become zero.
    #[slot(4)]
    pub relu: bool,
}
