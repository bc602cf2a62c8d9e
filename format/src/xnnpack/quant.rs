//! Parameters of quantised numbers, wherever the file has the scales: in the flatbuffer, in the region of constants, or in
//! named data.

use half::bf16;

use super::constants::ConstantBytes;
use super::tables::{PerChannelGroupQuant, PerChannelQuant, QuantParams, Value};
use crate::row::Scalars;

/// The parameters of a value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Quantization<'c> {
    /// The numbers are what they are.
    None,
    /// `scale * (stored - zero_point)`.
    PerTensor {
        /// Factor of a stored number less the zero point.
        scale: f32,
        /// The number that stands for zero.
        zero_point: i32,
    },
    /// A scale for each index along a dimension.
    PerChannel {
        /// Dimension of which each index has a scale.
        channel_dim: u32,
        /// As many as the dimension has.
        scales: ChannelScales<'c>,
        /// The number that stands for zero.
        zero_point: i32,
    },
    /// A scale for each block of a row: `[rows][blocks]`.
    PerGroup {
        /// The dimension of rows.
        channel_dim: u32,
        /// Elements of a block.
        group_size: u32,
        /// Row after row.
        scales: GroupScales<'c>,
        /// The number that stands for zero.
        zero_point: i32,
    },
    /// A scale and zero point for each row, made at run time.
    PerToken {
        /// Trailing dimensions that make a row.
        num_nonbatch_dims: u32,
    },
}

/// Scales in single precision.
#[derive(Clone, Debug)]
pub struct ChannelScales<'c>(Scalars<'c, f32>);

impl<'c> ChannelScales<'c> {
    /// Scales of the file itself.
    pub fn inline(scales: &Scalars<'c, f32>) -> Self {
        ChannelScales(scales.clone())
    }

    /// Scales as bytes, four each.
    pub fn from_bytes(bytes: &'c [u8]) -> Self {
        ChannelScales(Scalars::from_bytes(bytes))
    }

    /// Number of scales.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Scale `index`.
    pub fn get(&self, index: usize) -> Option<f32> {
        self.0.get(index)
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f32> + Clone + '_ {
        self.0.iter()
    }
}

/// Scales of blocks. The arithmetic uses bf16, whatever the file has.
#[derive(Clone, Debug)]
pub struct GroupScales<'c> {
    stored: Stored<'c>,
}

#[derive(Clone, Debug)]
enum Stored<'c> {
    Halves(Scalars<'c, u16>),
    Singles(Scalars<'c, f32>),
}

impl<'c> GroupScales<'c> {
    /// Scales as bytes, two each.
    pub fn from_bytes(bytes: &'c [u8]) -> Self {
        GroupScales { stored: Stored::Halves(Scalars::from_bytes(bytes)) }
    }

    /// Scales of the file itself, in either form.
    pub fn inline(params: &PerChannelGroupQuant<'c>) -> Option<Self> {
        let stored = match (&params.scale, &params.scale_bf16) {
            (Some(scales), _) if !scales.is_empty() => Stored::Singles(scales.clone()),
            (_, Some(scales)) => Stored::Halves(scales.clone()),
            _ => return None,
        };
        Some(GroupScales { stored })
    }

    /// Rounds a scale of an older file as the reference does: a factor, and the upper half of the product.
    pub fn round(scale: f32) -> bf16 {
        const FACTOR: f32 = 1.003_891;
        bf16::from_bits(((scale * FACTOR).to_bits() >> 16) as u16)
    }

    /// Number of scales.
    pub fn len(&self) -> usize {
        match &self.stored {
            Stored::Halves(scales) => scales.len(),
            Stored::Singles(scales) => scales.len(),
        }
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Scale `index`.
    pub fn get(&self, index: usize) -> Option<bf16> {
        match &self.stored {
            Stored::Halves(scales) => scales.get(index).map(bf16::from_bits),
            Stored::Singles(scales) => scales.get(index).map(Self::round),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = bf16> + Clone + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }
}

/// The failure to get the parameters of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuantError {
    /// The file does not say how the numbers are meant.
    #[error("there are no parameters")]
    NoParameters,
    /// The bytes of a constant are not there.
    #[error("there are no bytes for constant {0}")]
    NoBytes(u32),
    /// There are other scales than channels or blocks.
    #[error("{have} scales, {want} are needed")]
    Count {
        /// Scales.
        have: u64,
        /// Channels or blocks.
        want: u64,
    },
    /// Dimensions and parameters contradict each other.
    #[error("the parameters do not fit the dimensions")]
    Shape,
}

impl<'p> Value<'p> {
    /// The parameters of this value, with the scales wherever they are. As many as its dimensions ask for, or an error.
    pub fn quantization<'c>(&'c self, constants: &'c dyn ConstantBytes) -> Result<Quantization<'c>, QuantError> {
        if !self.is_quantized() {
            return Ok(Quantization::None);
        }
        let tensor = self.tensor().ok_or(QuantError::NoParameters)?;
        let zero_point = tensor.datatype.implied_zero_point();
        Ok(match self.quant_params().ok_or(QuantError::NoParameters)? {
            QuantParams::PerTensorQuant(params) => {
                Quantization::PerTensor { scale: params.scale, zero_point: params.zero_point }
            }
            QuantParams::PerChannelQuant(params) => {
                let want = params.scale_count(tensor.shape().as_ref().map(|shape| shape.dims()));
                let want = want.ok_or(QuantError::Shape)?;
                let scales = match params.scale_buffer_idx {
                    0 => ChannelScales::inline(params.scale.as_ref().ok_or(QuantError::NoParameters)?),
                    index => ChannelScales::from_bytes(front(constants, index, want, size_of::<f32>())?),
                };
                exactly(scales.len(), want)?;
                let channel_dim = u32::try_from(params.channel_dim).map_err(|_| QuantError::Shape)?;
                Quantization::PerChannel { channel_dim, scales, zero_point }
            }
            QuantParams::PerChannelGroupQuant(params) => {
                let want = params.scale_count(tensor.shape().as_ref().map(|shape| shape.dims()));
                let want = want.ok_or(QuantError::Shape)?;
                let scales = match params.scale_buffer_idx {
                    0 => GroupScales::inline(params).ok_or(QuantError::NoParameters)?,
                    index => GroupScales::from_bytes(front(constants, index, want, size_of::<u16>())?),
                };
                exactly(scales.len(), want)?;
                let number = |number: i32| u32::try_from(number).map_err(|_| QuantError::Shape);
                let (channel_dim, group_size) = (number(params.channel_dim)?, number(params.group_size)?);
                Quantization::PerGroup { channel_dim, group_size, scales, zero_point }
            }
            QuantParams::PerTokenDynamicQuant(params) => {
                let dims = u32::try_from(params.num_nonbatch_dims).map_err(|_| QuantError::Shape)?;
                Quantization::PerToken { num_nonbatch_dims: dims }
            }
            QuantParams::Unknown(_) => return Err(QuantError::NoParameters),
        })
    }
}

impl PerChannelQuant<'_> {
    /// Counts the scales of a tensor of these dimensions.
    pub fn scale_count(&self, dims: Option<&[u32]>) -> Option<u64> {
        dims?.get(usize::try_from(self.channel_dim).ok()?).map(|dim| u64::from(*dim))
    }
}

impl PerChannelGroupQuant<'_> {
    /// Counts the scales of a weight of these dimensions; `None` if blocks do not make whole rows.
    pub fn scale_count(&self, dims: Option<&[u32]>) -> Option<u64> {
        let [rows, columns] = dims? else { return None };
        let size = u32::try_from(self.group_size).ok()?;
        let blocks = columns.checked_div(size).filter(|_| columns.checked_rem(size) == Some(0))?;
        u64::from(*rows).checked_mul(blocks.into())
    }
}

/// The first bytes of a constant: so many numbers.
fn front(constants: &dyn ConstantBytes, index: u32, count: u64, size: usize) -> Result<&[u8], QuantError> {
    let bytes = constants.bytes(index).ok_or(QuantError::NoBytes(index))?;
    let len = count.checked_mul(size as u64).and_then(|len| usize::try_from(len).ok());
    let have = (bytes.len() as u64).checked_div(size as u64).unwrap_or(0);
    len.and_then(|len| bytes.get(..len)).ok_or(QuantError::Count { have, want: count })
}

fn exactly(have: usize, want: u64) -> Result<(), QuantError> {
    let have = have as u64;
    if have == want { Ok(()) } else { Err(QuantError::Count { have, want }) }
}
