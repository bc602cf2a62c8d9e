//! Products whose weights have one scale a channel, with static or dynamic inputs.

use std::sync::Arc;

use super::pack::Bits;
use super::tile::{EightBits, FourBits, Sums, whole_rows};
use super::{
    Inputs, Limits, Place, Product, RowScale, Weights, bias_by_tile, by_tile, check_channels, check_scales, multiply,
    store,
};
use crate::error::{Error, ErrorKind};
use crate::simd::dot::{CHANNELS, Dot};
use crate::simd::path::Path;
use crate::threads::Columns;

/// Scales and zero points of a product of statically quantised numbers.
#[derive(Clone, Copy, Debug)]
pub struct StaticScales<'a> {
    /// Scale of the inputs.
    pub input: f32,
    /// The input that represents 0.
    pub input_zero: i8,
    /// Scales of the weights, by channel.
    pub weights: &'a [f32],
    /// Scale of the results.
    pub output: f32,
    /// The result that represents 0.
    pub output_zero: i8,
    /// The smallest and largest results.
    pub output_limits: [i8; 2],
}

/// A product of statically quantised numbers, with results quantised again:
///
/// ```text
/// acc = bias[c] + Σ (x − input_zero) · w[c]            in i32, wrapped
/// y   = f32(acc) · ((input · weights[c]) / output)     in f32, each operation rounded
/// out = rne(limit(y, lo − output_zero, hi − output_zero)) + output_zero
/// ```
pub struct Static {
    weights: Arc<Weights>,
    /// `bias − input_zero · Σ w`.
    starts: Vec<[i32; CHANNELS]>,
    scales: Vec<[f32; CHANNELS]>,
    limits: [f32; 2],
    output_zero: i32,
    pub(super) path: Path,
}

impl Static {
    /// A product with these weights, of eight bits, and a bias by channel, if any.
    pub fn new(
        weights: impl Into<Arc<Weights>>,
        bias: Option<&[i32]>,
        scales: StaticScales<'_>,
    ) -> Result<Static, Error> {
        let weights = weights.into();
        let [channels, _] = weights.sizes();
        check_bits(&weights, Bits::Eight)?;
        check_channels("scales", scales.weights.len(), channels)?;
        check_channels("biases", bias.map_or(channels, <[i32]>::len), channels)?;
        let mut factors = crate::error::room(channels)?;
        factors.extend(scales.weights.iter().map(|weight| scales.input * weight / scales.output));
        check_scales(factors.iter().copied())?;
        let zero = i32::from(scales.input_zero);
        let mut starts = by_tile(bias.unwrap_or_default())?;
        starts.resize(channels.div_ceil(CHANNELS), [0; CHANNELS]);
        for (tile, starts) in starts.iter_mut().enumerate() {
            let sums: [i32; CHANNELS] = weights.sums(tile);
            starts.iter_mut().zip(sums).for_each(|(start, sum)| *start = start.wrapping_sub(zero.wrapping_mul(sum)));
        }
        let [low, high] = scales.output_limits;
        if low > high {
            return Err(Error::new(ErrorKind::Geometry, format!("results from {low} to {high}")));
        }
        let limit = |limit: i8| f32::from(i16::from(limit) - i16::from(scales.output_zero));
        Ok(Static {
            starts,
            scales: by_tile(&factors)?,
            limits: [limit(low), limit(high)],
            output_zero: i32::from(scales.output_zero),
            weights,
            path: Path::best(),
        })
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.weights.bytes() + size_of_val(&*self.starts) + size_of_val(&*self.scales)
    }

    /// Computes a row of results, a number per channel, for each row of inputs.
    pub fn multiply(&self, inputs: &Inputs<'_>, out: &mut [i8]) -> Result<(), Error> {
        inputs.check(&self.weights, 1)?;
        multiply(&StaticRows(self, inputs), self.path, inputs.rows(), out)
    }
}

struct StaticRows<'a>(&'a Static, &'a Inputs<'a>);

impl Product for StaticRows<'_> {
    type Out = i8;
    const MANY_TILES: bool = true;

    fn weights(&self) -> &Weights {
        &self.0.weights
    }

    #[inline(always)]
    fn block<D: Dot, const R: usize, const C: usize>(&self, dot: D, at: Place, to: &mut Columns<'_, i8>) {
        let StaticRows(product, inputs) = self;
        let sums: Sums<R, C> = sums(dot, &product.weights, inputs, at);
        for (row, sums) in sums.iter().enumerate() {
            let to = &mut to.row(at.to_row + row)[at.to_column..];
            for ((tile, sums), to) in sums.iter().enumerate().zip(to.chunks_mut(CHANNELS)) {
                store(product.requantise(at.tile + tile, sums), to);
            }
        }
    }
}

impl Static {
    #[inline(always)]
    fn requantise(&self, tile: usize, sums: &[i32; CHANNELS]) -> [i8; CHANNELS] {
        /// 1.5 · 2²³: a float near it has no fraction, so adding it to a small one rounds that, ties to even, into its bits.
        const ROUND: f32 = 12_582_912.0;
        let (starts, scales) = (&self.starts[tile], &self.scales[tile]);
        let [low, high] = self.limits;
        let mut results = [0; CHANNELS];
        for (((result, sum), start), scale) in results.iter_mut().zip(sums).zip(starts).zip(scales) {
            let scaled = sum.wrapping_add(*start) as f32 * scale;
            let rounded = (limited(scaled, low, high) + ROUND).to_bits().wrapping_sub(ROUND.to_bits());
            *result = (rounded as i32).wrapping_add(self.output_zero) as i8;
        }
        results
    }
}

/// A product of dynamically quantised rows:
///
/// ```text
/// acc = Σ (x − zero_point[r]) · w[c]        in i32, wrapped
/// y   = f32(acc) · scale[r]                 rounded
/// y   = y · weights[c] + bias[c]            rounded once
/// out = limit(y, lo, hi)
/// ```
pub struct Dynamic {
    weights: Arc<Weights>,
    scales: Vec<[f32; CHANNELS]>,
    bias: Vec<[f32; CHANNELS]>,
    limits: Limits,
    pub(super) path: Path,
}

impl Dynamic {
    /// A product with these weights, of eight or four bits, their scales by channel, and a bias by channel, if any.
    pub fn new(
        weights: impl Into<Arc<Weights>>,
        scales: &[f32],
        bias: Option<&[f32]>,
        limits: Limits,
    ) -> Result<Dynamic, Error> {
        let weights = weights.into();
        let [channels, _] = weights.sizes();
        check_channels("scales", scales.len(), channels)?;
        check_scales(scales.iter().copied())?;
        Ok(Dynamic {
            scales: by_tile(scales)?,
            bias: bias_by_tile(bias, channels)?,
            limits,
            weights,
            path: Path::best(),
        })
    }

    /// Bytes that a product of so many channels takes besides its weights.
    pub fn bytes(channels: usize) -> usize {
        channels.div_ceil(CHANNELS).saturating_mul(2 * size_of::<[f32; CHANNELS]>())
    }

    /// Computes a row of results, a number per channel, for each row of inputs, of which each has a scale.
    pub fn multiply(&self, inputs: &Inputs<'_>, rows: &[RowScale], out: &mut [f32]) -> Result<(), Error> {
        inputs.check(&self.weights, 1)?;
        check_rows(rows, inputs)?;
        multiply(&DynamicRows { product: self, inputs, rows }, self.path, inputs.rows(), out)
    }

    #[inline(always)]
    fn finish(&self, tile: usize, sums: &[i32; CHANNELS], row: RowScale) -> [f32; CHANNELS] {
        let weights: [i32; CHANNELS] = self.weights.sums(tile);
        let (scales, bias) = (&self.scales[tile], &self.bias[tile]);
        let [low, high] = self.limits;
        let mut results = [0.0; CHANNELS];
        for ((((result, sum), weight), scale), bias) in results.iter_mut().zip(sums).zip(weights).zip(scales).zip(bias)
        {
            let sum = sum.wrapping_sub(row.zero_point.wrapping_mul(weight));
            *result = limited((sum as f32 * row.scale).mul_add(*scale, *bias), low, high);
        }
        results
    }
}

struct DynamicRows<'a> {
    product: &'a Dynamic,
    inputs: &'a Inputs<'a>,
    rows: &'a [RowScale],
}

impl Product for DynamicRows<'_> {
    type Out = f32;
    const MANY_TILES: bool = true;

    fn weights(&self) -> &Weights {
        &self.product.weights
    }

    #[inline(always)]
    fn block<D: Dot, const R: usize, const C: usize>(&self, dot: D, at: Place, to: &mut Columns<'_, f32>) {
        let sums: Sums<R, C> = sums(dot, &self.product.weights, self.inputs, at);
        for (row, sums) in sums.iter().enumerate() {
            let to = &mut to.row(at.to_row + row)[at.to_column..];
            for ((tile, sums), to) in sums.iter().enumerate().zip(to.chunks_mut(CHANNELS)) {
                store(self.product.finish(at.tile + tile, sums, self.rows[at.row + row]), to);
            }
        }
    }
}

/// Sums of products of inputs with stored weights.
#[inline(always)]
fn sums<D: Dot, const R: usize, const C: usize>(
    dot: D,
    weights: &Weights,
    inputs: &Inputs<'_>,
    at: Place,
) -> Sums<R, C> {
    let rows = inputs.some_rows::<R>(at.row);
    let bits = weights.bits();
    let tiles = weights.tiles::<C>(at.tile);
    let offset = match bits {
        Bits::Eight => D::OFFSET,
        Bits::Four => bits.offset(),
    };
    let mut starts = [0; R];
    for (row, start) in starts.iter_mut().enumerate() {
        *start = inputs.row_sums(at.row + row)[0].wrapping_mul(-offset);
    }
    match bits {
        Bits::Eight => whole_rows::<EightBits, _, _, _>(dot, rows, starts, tiles),
        Bits::Four => whole_rows::<FourBits, _, _, _>(dot, rows, starts, tiles),
    }
}

#[inline(always)]
pub(super) fn limited(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

pub(super) fn check_bits(weights: &Weights, bits: Bits) -> Result<(), Error> {
    match weights.bits() == bits {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Unsupported, format!("weights of {:?} bits", weights.bits()))),
    }
}

/// Refuses scales that are not one a row.
pub(super) fn check_rows(rows: &[RowScale], inputs: &Inputs<'_>) -> Result<(), Error> {
    match rows.len() == inputs.rows() {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Geometry, format!("{} scales of {} rows", rows.len(), inputs.rows()))),
    }
}
