//! The tables of XNNPACK payloads, one struct each. `schema/xnnpack.fbs` is their contract; names are those of the
//! reference without its prefixes.

use serde::{Deserialize, Serialize};

use super::Node;
use crate::row::{Blob, Rows, Scalars, Table, Text, Union};

/// The id of no value, and no external position.
pub const NO_ID: u32 = u32::MAX;

crate::open_enum! {
    /// The element type of a value. The numbers are those of payloads, not those of the library.
    pub struct Datatype(i16) default INVALID {
        /// None.
        INVALID = 0,
        /// Single precision.
        FP32 = 1,
        /// Half precision.
        FP16 = 2,
        /// Signed 8-bit, one scale and zero point.
        QINT8 = 3,
        /// Unsigned 8-bit, one scale and zero point.
        QUINT8 = 4,
        /// Signed 32-bit, one scale.
        QINT32 = 5,
        /// Signed 8-bit, a scale for each channel.
        QCINT8 = 6,
        /// Signed 32-bit, a scale for each channel.
        QCINT32 = 7,
        /// Two 4-bit numbers in a byte, a scale for each channel.
        QCINT4 = 8,
        /// Signed 8-bit, a scale and zero point for each row, made at run time.
        QDINT8 = 9,
        /// Two 4-bit numbers in a byte, a scale for each block.
        QBINT4 = 10,
        /// Packed at run time.
        QPINT8 = 11,
        /// Signed 32-bit.
        INT32 = 12,
        /// Packed at run time.
        PFP32 = 13,
        /// The upper half of a float.
        BF16 = 14,
    }
}

/// A constant inside the flatbuffer: payloads without a header have them.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Buffer<'a> {
    /// Content of the constant.
    #[slot(0, align = 16)]
    pub storage: Option<Blob<'a>>,
}

/// A scale for each channel; the zero point is 8 for four bits and 0 otherwise.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PerChannelQuant<'a> {
    /// One for each channel.
    #[slot(0)]
    #[serde(with = "crate::json::singles")]
    pub scale: Option<Scalars<'a, f32>>,
    /// The dimension of channels.
    #[slot(1)]
    pub channel_dim: i32,
    /// The constant with the scales; 0 for none.
    #[slot(2)]
    pub scale_buffer_idx: u32,
    /// Number of scales; no runtime reads it.
    #[slot(3)]
    pub num_scales: u32,
}

/// A scale and a zero point for each row, computed when the row is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PerTokenDynamicQuant {
    /// Trailing dimensions that make a row.
    #[slot(0)]
    pub num_nonbatch_dims: i32,
}

/// One scale and zero point: a number is `scale * (stored - zero_point)`.
#[derive(Clone, Copy, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PerTensorQuant {
    /// One for each channel.
    #[slot(0)]
    #[serde(with = "crate::json::single")]
    pub scale: f32,
    /// The number that stands for zero.
    #[slot(1)]
    pub zero_point: i32,
}

/// Equal bits: NaN is itself, and -0.0 is not 0.0.
impl PartialEq for PerTensorQuant {
    fn eq(&self, other: &Self) -> bool {
        self.scale.to_bits() == other.scale.to_bits() && self.zero_point == other.zero_point
    }
}

/// A scale for each block of a row of a weight.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PerChannelGroupQuant<'a> {
    /// Row after row; [`GroupScales`](super::GroupScales) rounds them.
    #[slot(0)]
    #[serde(with = "crate::json::singles")]
    pub scale: Option<Scalars<'a, f32>>,
    /// The dimension of channels.
    #[slot(1)]
    pub channel_dim: i32,
    /// Elements of a row that share a scale.
    #[slot(2)]
    pub group_size: i32,
    /// Declared and never written.
    #[slot(3)]
    pub scale_bf16: Option<Scalars<'a, u16>>,
    /// The constant with the scales; 0 for none.
    #[slot(4)]
    pub scale_buffer_idx: u32,
    /// Number of scales; no runtime reads it.
    #[slot(5)]
    pub num_scales: u32,
}

/// Parameters of quantised numbers.
#[derive(Clone, PartialEq, Debug, Union, Serialize, Deserialize)]
pub enum QuantParams<'a> {
    /// A scale for each channel; the zero point is 8 for four bits and 0 otherwise.
    #[tag(1)]
    PerChannelQuant(PerChannelQuant<'a>),
    /// One scale and zero point: a number is `scale * (stored - zero_point)`.
    #[tag(2)]
    PerTensorQuant(PerTensorQuant),
    /// A scale and a zero point for each row, computed when the row is known.
    #[tag(3)]
    PerTokenDynamicQuant(PerTokenDynamicQuant),
    /// A scale for each block of a row of a weight.
    #[tag(4)]
    PerChannelGroupQuant(PerChannelGroupQuant<'a>),
    /// A kind that this schema does not know.
    #[unknown]
    Unknown(u8),
}

/// A tensor that flows between nodes, or a constant.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TensorValue<'a> {
    /// Element type.
    #[slot(0)]
    pub datatype: Datatype,
    /// Number of dimensions.
    #[slot(1)]
    pub num_dims: u32,
    /// Elements along each dimension, in the order of memory; the most of a dynamic one.
    #[slot(2)]
    pub dims: Option<Scalars<'a, u32>>,
    /// The constant with its elements; 0 for none.
    #[slot(3)]
    pub constant_buffer_idx: u32,
    /// Position among the arguments of the delegate call; [`NO_ID`] for none.
    #[slot(4)]
    pub external_id: u32,
    /// 1 for an external input, 2 for an external output.
    #[slot(5)]
    pub flags: u32,
    /// The name that nodes have for it.
    #[slot(6)]
    pub id_out: u32,
    /// Element type that an input is quantised to, row by row, when it is read; only in old payloads.
    #[slot(7)]
    pub dq_datatype: Datatype,
}

/// A tensor of quantised numbers.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QuantizedTensorValue<'a> {
    /// Everything but how its numbers are meant.
    #[slot(0)]
    pub tensor_value: Option<TensorValue<'a>>,
    /// Parameters of its numbers.
    #[slot(1)]
    pub quant_params: Option<QuantParams<'a>>,
}

/// The kinds of values.
#[derive(Clone, PartialEq, Debug, Union, Serialize, Deserialize)]
pub enum ValueUnion<'a> {
    /// A tensor that flows between nodes, or a constant.
    #[tag(1)]
    TensorValue(TensorValue<'a>),
    /// A tensor of quantised numbers.
    #[tag(2)]
    QuantizedTensorValue(QuantizedTensorValue<'a>),
    /// A kind that this schema does not know.
    #[unknown]
    Unknown(u8),
}

/// One value of the graph.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Value<'a> {
    /// Quantised or not.
    #[slot(0)]
    pub xvalue_union: Option<ValueUnion<'a>>,
}

/// The place of a constant's bytes.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConstantDataOffset<'a> {
    /// Bytes from the start of the region of constants; all ones where there is a key.
    #[slot(0)]
    pub offset: u64,
    /// Bytes without padding.
    #[slot(1)]
    pub size: u64,
    /// The key of the bytes among named data; if there is one, even an empty one, it counts.
    #[slot(2)]
    pub named_key: Option<Text<'a>>,
}

/// Root table of a payload.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Graph<'a> {
    /// Always "0" so far.
    #[slot(0)]
    pub version: Option<Text<'a>>,
    /// The nodes, in any order.
    #[slot(1)]
    pub xnodes: Option<Rows<'a, Node<'a>>>,
    /// Values that nodes name by id.
    #[slot(2)]
    pub xvalues: Option<Rows<'a, Value<'a>>>,
    /// Number of external ids.
    #[slot(3)]
    pub num_externs: u32,
    /// Ids of the external inputs, as nodes name them; no runtime reads it.
    #[slot(4)]
    pub input_ids: Option<Scalars<'a, u32>>,
    /// Ids of the external outputs, as nodes name them; no runtime reads it.
    #[slot(5)]
    pub output_ids: Option<Scalars<'a, u32>>,
    /// Constants of a payload without a header; entry 0 is reserved.
    #[slot(6)]
    pub constant_buffer: Option<Rows<'a, Buffer<'a>>>,
    /// Not in use.
    #[slot(7)]
    pub mem_buffer_sizes: Option<Scalars<'a, u32>>,
    /// Constants of a payload with a header; entry 0 is reserved.
    #[slot(8)]
    pub constant_data: Option<Rows<'a, ConstantDataOffset<'a>>>,
}
