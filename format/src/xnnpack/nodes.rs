//! The tables of nodes in XNNPACK payloads, one struct each. Several kinds of nodes share a table; the tag of the union says
//! which kind it is.

use serde::{Deserialize, Serialize};

use crate::row::{Scalars, Table};

/// The fields of a node with one input and no options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node1x1 {
    /// Id of the input.
    #[slot(0)]
    pub input_id: u32,
    /// Id of the result.
    #[slot(1)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(2)]
    pub flags: u32,
}

/// The fields of a node with two inputs and no options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node2x1 {
    /// Id of the first input.
    #[slot(0)]
    pub input1_id: u32,
    /// Id of the second input.
    #[slot(1)]
    pub input2_id: u32,
    /// Id of the result.
    #[slot(2)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(3)]
    pub flags: u32,
}

/// A product with a matrix of weights: `[..., K]` times `[N, K]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FullyConnected {
    /// Id of the first input.
    #[slot(0)]
    pub input1_id: u32,
    /// Id of the weights.
    #[slot(1)]
    pub filter_id: u32,
    /// The bias, a number for each channel, or [`NO_ID`](super::NO_ID).
    #[slot(2)]
    pub bias_id: u32,
    /// Id of the result.
    #[slot(3)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(4)]
    pub flags: u32,
}

/// Another order of dimensions: dimension `i` of the result is dimension `perm[i]` of the input.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StaticTranspose<'a> {
    /// Number of dimensions.
    #[slot(0)]
    pub num_dims: u32,
    /// The input dimension of each dimension of the result.
    #[slot(1)]
    pub perm: Option<Scalars<'a, u32>>,
    /// Id of the input.
    #[slot(2)]
    pub input_id: u32,
    /// Id of the result.
    #[slot(3)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(4)]
    pub flags: u32,
}

/// The fields of convolutions: depthwise, transposed and the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConv {
    /// Rows of padding above.
    #[slot(0)]
    pub padding_top: u32,
    /// Columns of padding to the right.
    #[slot(1)]
    pub padding_right: u32,
    /// Rows of padding below.
    #[slot(2)]
    pub padding_bottom: u32,
    /// Columns of padding to the left.
    #[slot(3)]
    pub padding_left: u32,
    /// Rows of the filter.
    #[slot(4)]
    pub kernel_height: u32,
    /// Columns of the filter.
    #[slot(5)]
    pub kernel_width: u32,
    /// Rows from one window to the next.
    #[slot(6)]
    pub subsampling_height: u32,
    /// Columns from one window to the next.
    #[slot(7)]
    pub subsampling_width: u32,
    /// Rows from one element of a window to the next.
    #[slot(8)]
    pub dilation_height: u32,
    /// Columns from one element of a window to the next.
    #[slot(9)]
    pub dilation_width: u32,
    /// Channels that a group reads.
    #[slot(10)]
    pub group_input_channels: u32,
    /// Channels that a group makes.
    #[slot(11)]
    pub group_output_channels: u32,
    /// Groups of channels that do not mix.
    #[slot(12)]
    pub groups: u32,
    /// Rows more than the smallest result of a transposed convolution.
    #[slot(13)]
    pub adjustment_height: u32,
    /// Columns more than the smallest result of a transposed convolution.
    #[slot(14)]
    pub adjustment_width: u32,
    /// Id of the first input.
    #[slot(15)]
    pub input1_id: u32,
    /// Id of the weights.
    #[slot(16)]
    pub filter_id: u32,
    /// The bias, a number for each channel, or [`NO_ID`](super::NO_ID).
    #[slot(17)]
    pub bias_id: u32,
    /// Id of the result.
    #[slot(18)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(19)]
    pub flags: u32,
}

/// An image of another size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StaticResizeBilinear2D {
    /// Rows of the result.
    #[slot(0)]
    pub new_height: u32,
    /// Columns of the result.
    #[slot(1)]
    pub new_width: u32,
    /// Id of the input.
    #[slot(2)]
    pub input_id: u32,
    /// Id of the result.
    #[slot(3)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(4)]
    pub flags: u32,
}

/// A number around a tensor.
#[derive(Clone, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StaticConstantPad<'a> {
    /// Elements in front, along each dimension.
    #[slot(0)]
    pub pre_paddings: Option<Scalars<'a, u32>>,
    /// Elements behind, along each dimension.
    #[slot(1)]
    pub post_paddings: Option<Scalars<'a, u32>>,
    /// Value of the elements that are added; for quantised tensors as a real number.
    #[slot(2)]
    #[serde(with = "crate::json::single")]
    pub padding_value: f32,
    /// Id of the input.
    #[slot(3)]
    pub input_id: u32,
    /// Id of the result.
    #[slot(4)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(5)]
    pub flags: u32,
}

/// Equal bits: NaN is itself, and -0.0 is not 0.0.
impl PartialEq for StaticConstantPad<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.pre_paddings == other.pre_paddings
            && self.post_paddings == other.post_paddings
            && self.padding_value.to_bits() == other.padding_value.to_bits()
            && self.input_id == other.input_id
            && self.output_id == other.output_id
            && self.flags == other.flags
    }
}

/// The fields of pooling: the greatest or the mean of windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pooling2D {
    /// Rows of padding above.
    #[slot(0)]
    pub padding_top: u32,
    /// Columns of padding to the right.
    #[slot(1)]
    pub padding_right: u32,
    /// Rows of padding below.
    #[slot(2)]
    pub padding_bottom: u32,
    /// Columns of padding to the left.
    #[slot(3)]
    pub padding_left: u32,
    /// Rows of a window.
    #[slot(4)]
    pub pooling_height: u32,
    /// Columns of a window.
    #[slot(5)]
    pub pooling_width: u32,
    /// Rows from one window to the next.
    #[slot(6)]
    pub stride_height: u32,
    /// Columns from one window to the next.
    #[slot(7)]
    pub stride_width: u32,
    /// Rows from one element of a window to the next.
    #[slot(8)]
    pub dilation_height: u32,
    /// Columns from one element of a window to the next.
    #[slot(9)]
    pub dilation_width: u32,
    /// Id of the input.
    #[slot(10)]
    pub input_id: u32,
    /// Id of the result.
    #[slot(11)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(12)]
    pub flags: u32,
}

/// Other dimensions of the same elements.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StaticReshape<'a> {
    /// Number of dimensions.
    #[slot(0)]
    pub num_dims: u32,
    /// Elements along each dimension; one may be 0 for what is left.
    #[slot(1)]
    pub new_shape: Option<Scalars<'a, u32>>,
    /// Id of the input.
    #[slot(2)]
    pub input_id: u32,
    /// Id of the result.
    #[slot(3)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(4)]
    pub flags: u32,
}

/// The greatest of each window, and where in the window it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArgMaxPooling2d {
    /// Rows of padding above.
    #[slot(0)]
    pub padding_top: u32,
    /// Columns of padding to the right.
    #[slot(1)]
    pub padding_right: u32,
    /// Rows of padding below.
    #[slot(2)]
    pub padding_bottom: u32,
    /// Columns of padding to the left.
    #[slot(3)]
    pub padding_left: u32,
    /// Rows of a window.
    #[slot(4)]
    pub pooling_height: u32,
    /// Columns of a window.
    #[slot(5)]
    pub pooling_width: u32,
    /// Id of the input.
    #[slot(6)]
    pub input_id: u32,
    /// Id of the greatest elements.
    #[slot(7)]
    pub output_value_id: u32,
    /// Id of their places, counted in rows of the window.
    #[slot(8)]
    pub output_index_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(9)]
    pub flags: u32,
}

/// Numbers below zero, times a slope.
#[derive(Clone, Copy, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeakyReLU {
    /// Factor of numbers below 0.
    #[slot(0)]
    #[serde(with = "crate::json::single")]
    pub negative_slope: f32,
    /// Id of the input.
    #[slot(1)]
    pub input_id: u32,
    /// Id of the result.
    #[slot(2)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(3)]
    pub flags: u32,
}

/// Equal bits: NaN is itself, and -0.0 is not 0.0.
impl PartialEq for LeakyReLU {
    fn eq(&self, other: &Self) -> bool {
        self.negative_slope.to_bits() == other.negative_slope.to_bits()
            && self.input_id == other.input_id
            && self.output_id == other.output_id
            && self.flags == other.flags
    }
}

/// Numbers below zero, bent towards `-alpha`.
#[derive(Clone, Copy, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ELU {
    /// Factor of `exp(x) - 1`, the result for numbers below 0.
    #[slot(0)]
    #[serde(with = "crate::json::single")]
    pub alpha: f32,
    /// Id of the input.
    #[slot(1)]
    pub input_id: u32,
    /// Id of the result.
    #[slot(2)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(3)]
    pub flags: u32,
}

/// Equal bits: NaN is itself, and -0.0 is not 0.0.
impl PartialEq for ELU {
    fn eq(&self, other: &Self) -> bool {
        self.alpha.to_bits() == other.alpha.to_bits()
            && self.input_id == other.input_id
            && self.output_id == other.output_id
            && self.flags == other.flags
    }
}

/// Tensors one after another along a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cat {
    /// Dimension along which the inputs follow each other, from 0.
    #[slot(0)]
    pub axis: u32,
    /// Id of the first input.
    #[slot(1)]
    pub input1_id: u32,
    /// Id of the second input.
    #[slot(2)]
    pub input2_id: u32,
    /// Id of the third input, or [`NO_ID`](super::NO_ID).
    #[slot(3)]
    pub input3_id: u32,
    /// Id of the fourth input, or [`NO_ID`](super::NO_ID).
    #[slot(4)]
    pub input4_id: u32,
    /// Id of the result.
    #[slot(5)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(6)]
    pub flags: u32,
    /// Id of the fifth input; read by `Concatenate5` alone.
    #[slot(7)]
    pub input5_id: u32,
}

/// Range of each dimension of a tensor.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StaticSlice<'a> {
    /// Number of dimensions.
    #[slot(0)]
    pub num_dims: u32,
    /// First element of the part, along each dimension.
    #[slot(1)]
    pub offsets: Option<Scalars<'a, u32>>,
    /// Its elements along each dimension; 0 for all that are left.
    #[slot(2)]
    pub sizes: Option<Scalars<'a, u32>>,
    /// Id of the input.
    #[slot(3)]
    pub input_id: u32,
    /// Id of the result.
    #[slot(4)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(5)]
    pub flags: u32,
}

/// Attention; runtimes since 0.7 refuse it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScaledDotProductAttention {
    /// The queries, `[B, H, T, D]`.
    #[slot(0)]
    pub query_id: u32,
    /// The keys, `[B, H, U, D]`.
    #[slot(1)]
    pub key_id: u32,
    /// The values, `[B, H, U, D]`.
    #[slot(2)]
    pub value_id: u32,
    /// Factors of the query, `[D]`.
    #[slot(3)]
    pub scale_id: u32,
    /// Addends of the weights, `[T, U]`.
    #[slot(4)]
    pub mask_id: u32,
    /// Id of the result.
    #[slot(5)]
    pub output_id: u32,
    /// Bits that depend on the kind of node.
    #[slot(6)]
    pub flags: u32,
}
