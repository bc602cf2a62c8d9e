//! Values of payloads under construction.

use edgepack_format::xnnpack::{
    Datatype, NO_ID, PerChannelGroupQuant, PerChannelQuant, PerTensorQuant, PerTokenDynamicQuant, QuantParams,
    QuantizedTensorValue, TensorValue, Value, ValueUnion,
};

use super::constants::ConstantId;

/// A value of a payload under construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueId(pub(super) u32);

impl ValueId {
    /// The id that nodes have for it.
    pub fn id(self) -> u32 {
        self.0
    }
}

/// Scales of channels or blocks.
#[derive(Clone, PartialEq, Debug)]
pub enum Scales {
    /// In the flatbuffer, in single precision: up to release 0.6.
    Inline(Vec<f32>),
    /// So many in a constant: in single precision for channels, in bf16 for blocks.
    Constant(ConstantId, u32),
}

/// Parameters of the numbers of a value.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Quant {
    /// As they are.
    #[default]
    None,
    /// By one scale and zero point.
    PerTensor {
        /// Factor of a stored number less the zero point.
        scale: f32,
        /// The number that stands for zero.
        zero_point: i32,
    },
    /// By a scale for each index along a dimension.
    PerChannel {
        /// Dimension of which each index has a scale.
        channel_dim: i32,
        /// As many as the dimension has.
        scales: Scales,
    },
    /// By a scale for each block of a row.
    PerGroup {
        /// Elements of a block.
        group_size: i32,
        /// Row after row.
        scales: Scales,
    },
    /// By a scale and zero point for each row, made at run time.
    PerToken {
        /// Trailing dimensions that make a row.
        num_nonbatch_dims: i32,
    },
}

/// Element type, dimensions and parameters of a value.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueSpec {
    datatype: Datatype,
    dims: Vec<u32>,
    quant: Quant,
    dynamic: bool,
}

impl ValueSpec {
    /// A value of this element type and these dimensions, in the order of memory.
    pub fn new(datatype: Datatype, dims: impl Into<Vec<u32>>) -> Self {
        ValueSpec { datatype, dims: dims.into(), quant: Quant::None, dynamic: false }
    }

    /// The same with parameters.
    pub fn quantized(self, quant: Quant) -> Self {
        ValueSpec { quant, ..self }
    }

    /// The same, quantised row by row when it is read: an input in single precision of a payload without a header.
    pub fn read_dynamically(self) -> Self {
        ValueSpec { dynamic: true, ..self }
    }

    /// The row, with flags and ids to be filled in.
    pub(super) fn row(self, id: u32, constant: Option<ConstantId>) -> Value<'static> {
        let tensor = TensorValue {
            datatype: self.datatype,
            // More dimensions than a number can say are refused with the file.
            num_dims: self.dims.len() as u32,
            dims: Some(self.dims.into()),
            constant_buffer_idx: constant.map_or(0, ConstantId::index),
            external_id: NO_ID,
            flags: 0,
            id_out: id,
            dq_datatype: if self.dynamic { Datatype::QINT8 } else { Datatype::INVALID },
        };
        let params = match self.quant {
            Quant::None => return Value { xvalue_union: Some(ValueUnion::TensorValue(tensor)) },
            Quant::PerTensor { scale, zero_point } => QuantParams::PerTensorQuant(PerTensorQuant { scale, zero_point }),
            Quant::PerChannel { channel_dim, scales } => {
                let (scale, scale_buffer_idx, num_scales) = scales.parts();
                let scale = scale.map(Into::into);
                QuantParams::PerChannelQuant(PerChannelQuant { scale, channel_dim, scale_buffer_idx, num_scales })
            }
            Quant::PerGroup { group_size, scales } => {
                let (scale, scale_buffer_idx, num_scales) = scales.parts();
                QuantParams::PerChannelGroupQuant(PerChannelGroupQuant {
                    scale: scale.map(Into::into),
                    channel_dim: 0,
                    group_size,
                    scale_bf16: None,
                    scale_buffer_idx,
                    num_scales,
                })
            }
            Quant::PerToken { num_nonbatch_dims } => {
                QuantParams::PerTokenDynamicQuant(PerTokenDynamicQuant { num_nonbatch_dims })
            }
        };
        let value = QuantizedTensorValue { tensor_value: Some(tensor), quant_params: Some(params) };
        Value { xvalue_union: Some(ValueUnion::QuantizedTensorValue(value)) }
    }
}

impl Scales {
    fn parts(self) -> (Option<Vec<f32>>, u32, u32) {
        match self {
            Scales::Inline(scales) => (Some(scales), 0, 0),
            // An empty list next to the constant, as exporters write it.
            Scales::Constant(constant, count) => (Some(Vec::new()), constant.index(), count),
        }
    }
}
