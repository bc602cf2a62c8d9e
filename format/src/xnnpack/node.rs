//! Nodes: the kinds there are, and what all of them have in common.

use serde::{Deserialize, Serialize};

use super::nodes::{
    ArgMaxPooling2d, Cat, ELU, FullyConnected, LeakyReLU, Node1x1, Node2x1, NodeConv, Pooling2D,
    ScaledDotProductAttention, StaticConstantPad, StaticReshape, StaticResizeBilinear2D, StaticSlice, StaticTranspose,
};
use crate::row::{Table, Union};

/// The kinds of nodes. The runtime tells them apart by number; new ones are appended.
#[derive(Clone, PartialEq, Debug, Union, Serialize, Deserialize)]
pub enum NodeUnion<'a> {
    /// `a + b`.
    #[tag(1)]
    Add(Node2x1),
    /// A product with a matrix of weights: `[..., K]` times `[N, K]`.
    #[tag(2)]
    FullyConnected(FullyConnected),
    /// Exponents of a row as parts of their sum.
    #[tag(3)]
    Softmax(Node1x1),
    /// `1 / (1 + exp(-x))`.
    #[tag(4)]
    Sigmoid(Node1x1),
    /// Another order of dimensions: dimension `i` of the result is dimension `perm[i]` of the input.
    #[tag(5)]
    StaticTranspose(StaticTranspose<'a>),
    /// Numbers within the bounds.
    #[tag(6)]
    Clamp(Node1x1),
    /// A convolution: filter `[groups * Co, kh, kw, Ci]`.
    #[tag(7)]
    Conv2d(NodeConv),
    /// `a / b`.
    #[tag(8)]
    Div(Node2x1),
    /// An image of another size.
    #[tag(9)]
    StaticResizeBilinear2D(StaticResizeBilinear2D),
    /// A number around a tensor.
    #[tag(10)]
    StaticConstantPad(StaticConstantPad<'a>),
    /// The mean of each window; padding is not counted.
    #[tag(11)]
    AvgPooling2d(Pooling2D),
    /// The smaller of two.
    #[tag(12)]
    Minimum(Node2x1),
    /// A convolution of one channel each: filter `[1, kh, kw, C * multiplier]`.
    #[tag(13)]
    DepthwiseConv2d(NodeConv),
    /// The greatest of each window; padding never is.
    #[tag(14)]
    MaxPooling2d(Pooling2D),
    /// `a * b`.
    #[tag(15)]
    Multiply(Node2x1),
    /// `a - b`.
    #[tag(16)]
    Subtract(Node2x1),
    /// The next integer below.
    #[tag(17)]
    Floor(Node1x1),
    /// Another element type or other parameters.
    #[tag(18)]
    Convert(Node1x1),
    /// The mean over both dimensions of an image.
    #[tag(19)]
    GlobalAvgPooling2d(Node1x1),
    /// Other dimensions of the same elements.
    #[tag(20)]
    StaticReshape(StaticReshape<'a>),
    /// The greatest of each window, and where in the window it is.
    #[tag(21)]
    ArgMaxPooling2d(ArgMaxPooling2d),
    /// `sqrt(x)`.
    #[tag(22)]
    SquareRoot(Node1x1),
    /// The next integer above.
    #[tag(23)]
    Ceiling(Node1x1),
    /// `x * min(max(x + 3, 0), 6) / 6`.
    #[tag(24)]
    Hardswish(Node1x1),
    /// Numbers below zero, times a slope.
    #[tag(25)]
    LeakyReLU(LeakyReLU),
    /// The greater of two.
    #[tag(26)]
    Maximum(Node2x1),
    /// `-x`.
    #[tag(27)]
    Negate(Node1x1),
    /// `x * x`.
    #[tag(28)]
    Square(Node1x1),
    /// Numbers below zero, bent towards `-alpha`.
    #[tag(29)]
    ELU(ELU),
    /// `|x|`.
    #[tag(30)]
    Abs(Node1x1),
    /// Numbers below zero, times a slope for each channel.
    #[tag(31)]
    PReLU(Node2x1),
    /// Two, one after the other.
    #[tag(32)]
    Concatenate2(Cat),
    /// Three, one after another.
    #[tag(33)]
    Concatenate3(Cat),
    /// Four, one after another.
    #[tag(34)]
    Concatenate4(Cat),
    /// Range of each dimension of a tensor.
    #[tag(35)]
    StaticSlice(StaticSlice<'a>),
    /// Attention; runtimes since 0.7 refuse it.
    #[tag(36)]
    ScaledDotProductAttention(ScaledDotProductAttention),
    /// Products of matrices: `[..., M, K]` times `[..., K, N]`.
    #[tag(37)]
    BatchMatrixMultiply(Node2x1),
    /// Five, one after another.
    #[tag(38)]
    Concatenate5(Cat),
    /// A transposed convolution: filter `[groups * Co, kh, kw, Ci]`.
    #[tag(39)]
    ConvTranspose2d(NodeConv),
    /// `1 / sqrt(x)`.
    #[tag(40)]
    ReciprocalSquareRoot(Node1x1),
    /// Logarithm to base e.
    #[tag(41)]
    Log(Node1x1),
    /// `x / 2 * (1 + erf(x / sqrt(2)))`.
    #[tag(42)]
    Gelu(Node1x1),
    /// `tanh(x)`.
    #[tag(43)]
    Tanh(Node1x1),
    /// `exp(x)`.
    #[tag(44)]
    Exp(Node1x1),
    /// `sin(x)` of radians.
    #[tag(45)]
    Sin(Node1x1),
    /// Elements of the input, unchanged.
    #[tag(46)]
    Copy(Node1x1),
    /// `cos(x)` of radians.
    #[tag(47)]
    Cos(Node1x1),
    /// A kind that this schema does not know.
    #[unknown]
    Unknown(u8),
}

/// Bounds of a result. An absent number is 0, not infinity.
#[derive(Clone, Copy, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputMinMax {
    /// Lower bound; absent in a table that is there, it is 0.
    #[slot(0)]
    #[serde(with = "crate::json::single")]
    pub output_min: f32,
    /// Upper bound; absent in a table that is there, it is 0.
    #[slot(1)]
    #[serde(with = "crate::json::single")]
    pub output_max: f32,
}

/// Equal bits: NaN is itself, and -0.0 is not 0.0.
impl PartialEq for OutputMinMax {
    fn eq(&self, other: &Self) -> bool {
        self.output_min.to_bits() == other.output_min.to_bits()
            && self.output_max.to_bits() == other.output_max.to_bits()
    }
}

/// One node of the graph.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node<'a> {
    /// Kind of the node, with its operands and options; a node without it is refused.
    #[slot(0)]
    pub xnode_union: Option<NodeUnion<'a>>,
    /// A number that links it to the instruction it was exported from.
    #[slot(2)]
    pub debug_handle: u32,
    /// Bounds of its result.
    #[slot(3)]
    pub output_min_max: Option<OutputMinMax>,
}

/// A value that a node reads or writes, and as what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// Its role, as text shows it; empty for what needs none.
    pub role: &'static str,
    /// Id of the value.
    pub id: u32,
    /// True if [`NO_ID`](super::NO_ID) may be in its place.
    pub is_optional: bool,
}

impl Operand {
    const fn plain(id: u32) -> Option<Self> {
        Self::named("", id)
    }

    const fn named(role: &'static str, id: u32) -> Option<Self> {
        Some(Operand { role, id, is_optional: false })
    }

    const fn optional(role: &'static str, id: u32) -> Option<Self> {
        Some(Operand { role, id, is_optional: true })
    }

    /// Returns whether there is a value.
    pub fn is_present(&self) -> bool {
        !(self.is_optional && self.id == super::tables::NO_ID)
    }
}

/// The fields of a node by their table: kinds with one table are one here.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Fields<'n, 'a> {
    /// One input and no options.
    Unary(&'n Node1x1),
    /// Two inputs and no options.
    Binary(&'n Node2x1),
    /// A product with weights.
    FullyConnected(&'n FullyConnected),
    /// A convolution of any kind.
    Convolution(&'n NodeConv),
    /// Pooling of windows.
    Pooling(&'n Pooling2D),
    /// Pooling with indices.
    ArgMaxPooling(&'n ArgMaxPooling2d),
    /// So many tensors one after another.
    Concatenate(&'n Cat, usize),
    /// Another order of dimensions.
    Transpose(&'n StaticTranspose<'a>),
    /// Other dimensions of the same elements.
    Reshape(&'n StaticReshape<'a>),
    /// Range of each dimension of a tensor.
    Slice(&'n StaticSlice<'a>),
    /// Constant number around a tensor.
    Pad(&'n StaticConstantPad<'a>),
    /// An image of another size.
    Resize(&'n StaticResizeBilinear2D),
    /// A slope below zero.
    LeakyReLU(&'n LeakyReLU),
    /// Bent below zero.
    ELU(&'n ELU),
    /// Attention.
    Attention(&'n ScaledDotProductAttention),
    /// A kind that this schema does not know, by tag.
    Unknown(u8),
}

impl<'a> NodeUnion<'a> {
    /// The name of the kind, as the schema has it; `None` for an unknown one.
    pub fn name(&self) -> Option<&'static str> {
        let tag = self.tag();
        let variants = <Self as Union<'_>>::DESC.variants;
        variants.iter().find(|variant| variant.0 == tag).map(|variant| variant.1)
    }

    /// Returns the fields of the node, by the table they are in.
    pub fn fields(&self) -> Fields<'_, 'a> {
        match self {
            Self::Softmax(node)
            | Self::Sigmoid(node)
            | Self::Clamp(node)
            | Self::Floor(node)
            | Self::Convert(node)
            | Self::GlobalAvgPooling2d(node)
            | Self::SquareRoot(node)
            | Self::Ceiling(node)
            | Self::Hardswish(node)
            | Self::Negate(node)
            | Self::Square(node)
            | Self::Abs(node)
            | Self::ReciprocalSquareRoot(node)
            | Self::Log(node)
            | Self::Gelu(node)
            | Self::Tanh(node)
            | Self::Exp(node)
            | Self::Sin(node)
            | Self::Copy(node)
            | Self::Cos(node) => Fields::Unary(node),
            Self::Add(node)
            | Self::Div(node)
            | Self::Minimum(node)
            | Self::Multiply(node)
            | Self::Subtract(node)
            | Self::Maximum(node)
            | Self::PReLU(node)
            | Self::BatchMatrixMultiply(node) => Fields::Binary(node),
            Self::FullyConnected(node) => Fields::FullyConnected(node),
            Self::Conv2d(node) | Self::DepthwiseConv2d(node) | Self::ConvTranspose2d(node) => Fields::Convolution(node),
            Self::AvgPooling2d(node) | Self::MaxPooling2d(node) => Fields::Pooling(node),
            Self::ArgMaxPooling2d(node) => Fields::ArgMaxPooling(node),
            Self::Concatenate2(node) => Fields::Concatenate(node, 2),
            Self::Concatenate3(node) => Fields::Concatenate(node, 3),
            Self::Concatenate4(node) => Fields::Concatenate(node, 4),
            Self::Concatenate5(node) => Fields::Concatenate(node, 5),
            Self::StaticTranspose(node) => Fields::Transpose(node),
            Self::StaticReshape(node) => Fields::Reshape(node),
            Self::StaticSlice(node) => Fields::Slice(node),
            Self::StaticConstantPad(node) => Fields::Pad(node),
            Self::StaticResizeBilinear2D(node) => Fields::Resize(node),
            Self::LeakyReLU(node) => Fields::LeakyReLU(node),
            Self::ELU(node) => Fields::ELU(node),
            Self::ScaledDotProductAttention(node) => Fields::Attention(node),
            Self::Unknown(tag) => Fields::Unknown(*tag),
        }
    }

    /// Its inputs, in order. Those that a concatenation of fewer does not have are left out.
    pub fn inputs(&self) -> impl Iterator<Item = Operand> + Clone + use<> {
        let (plain, named) = (Operand::plain, Operand::named);
        let list = match self.fields() {
            Fields::Unary(node) => [plain(node.input_id), None, None, None, None],
            Fields::Binary(node) => [plain(node.input1_id), plain(node.input2_id), None, None, None],
            Fields::FullyConnected(node) => {
                let bias = Operand::optional("b", node.bias_id);
                [plain(node.input1_id), named("w", node.filter_id), bias, None, None]
            }
            Fields::Convolution(node) => {
                let bias = Operand::optional("b", node.bias_id);
                [plain(node.input1_id), named("w", node.filter_id), bias, None, None]
            }
            Fields::Pooling(node) => [plain(node.input_id), None, None, None, None],
            Fields::ArgMaxPooling(node) => [plain(node.input_id), None, None, None, None],
            Fields::Concatenate(node, count) => {
                let ids = [node.input1_id, node.input2_id, node.input3_id, node.input4_id, node.input5_id];
                let mut list = ids.map(plain);
                list.iter_mut().skip(count).for_each(|absent| *absent = None);
                list
            }
            Fields::Transpose(node) => [plain(node.input_id), None, None, None, None],
            Fields::Reshape(node) => [plain(node.input_id), None, None, None, None],
            Fields::Slice(node) => [plain(node.input_id), None, None, None, None],
            Fields::Pad(node) => [plain(node.input_id), None, None, None, None],
            Fields::Resize(node) => [plain(node.input_id), None, None, None, None],
            Fields::LeakyReLU(node) => [plain(node.input_id), None, None, None, None],
            Fields::ELU(node) => [plain(node.input_id), None, None, None, None],
            Fields::Attention(node) => [
                named("q", node.query_id),
                named("k", node.key_id),
                named("v", node.value_id),
                named("scale", node.scale_id),
                named("mask", node.mask_id),
            ],
            Fields::Unknown(_) => [None; 5],
        };
        list.into_iter().flatten()
    }

    /// Returns the results of the node: two of an arg-max pooling, one of any other kind, none of an unknown one.
    pub fn outputs(&self) -> impl Iterator<Item = Operand> + Clone + use<> {
        let (first, second) = match self.fields() {
            Fields::Unary(node) => (Some(node.output_id), None),
            Fields::Binary(node) => (Some(node.output_id), None),
            Fields::FullyConnected(node) => (Some(node.output_id), None),
            Fields::Convolution(node) => (Some(node.output_id), None),
            Fields::Pooling(node) => (Some(node.output_id), None),
            Fields::ArgMaxPooling(node) => (Some(node.output_value_id), Some(node.output_index_id)),
            Fields::Concatenate(node, _) => (Some(node.output_id), None),
            Fields::Transpose(node) => (Some(node.output_id), None),
            Fields::Reshape(node) => (Some(node.output_id), None),
            Fields::Slice(node) => (Some(node.output_id), None),
            Fields::Pad(node) => (Some(node.output_id), None),
            Fields::Resize(node) => (Some(node.output_id), None),
            Fields::LeakyReLU(node) => (Some(node.output_id), None),
            Fields::ELU(node) => (Some(node.output_id), None),
            Fields::Attention(node) => (Some(node.output_id), None),
            Fields::Unknown(_) => (None, None),
        };
        first.and_then(Operand::plain).into_iter().chain(second.and_then(Operand::plain))
    }

    /// Returns the flags of the node.
    pub fn flags(&self) -> u32 {
        match self.fields() {
            Fields::Unary(node) => node.flags,
            Fields::Binary(node) => node.flags,
            Fields::FullyConnected(node) => node.flags,
            Fields::Convolution(node) => node.flags,
            Fields::Pooling(node) => node.flags,
            Fields::ArgMaxPooling(node) => node.flags,
            Fields::Concatenate(node, _) => node.flags,
            Fields::Transpose(node) => node.flags,
            Fields::Reshape(node) => node.flags,
            Fields::Slice(node) => node.flags,
            Fields::Pad(node) => node.flags,
            Fields::Resize(node) => node.flags,
            Fields::LeakyReLU(node) => node.flags,
            Fields::ELU(node) => node.flags,
            Fields::Attention(node) => node.flags,
            Fields::Unknown(_) => 0,
        }
    }
}

impl Node<'_> {
    /// Returns the inputs of the node in the order of the schema; none of an unknown kind.
    pub fn inputs(&self) -> impl Iterator<Item = Operand> + Clone + use<> {
        self.xnode_union.as_ref().map(NodeUnion::inputs).into_iter().flatten()
    }

    /// Returns the results of the node.
    pub fn outputs(&self) -> impl Iterator<Item = Operand> + Clone + use<> {
        self.xnode_union.as_ref().map(NodeUnion::outputs).into_iter().flatten()
    }

    /// The bounds of its result: none are infinities.
    pub fn bounds(&self) -> (f32, f32) {
        match &self.output_min_max {
            Some(bounds) => (bounds.output_min, bounds.output_max),
            None => (f32::NEG_INFINITY, f32::INFINITY),
        }
    }
}
