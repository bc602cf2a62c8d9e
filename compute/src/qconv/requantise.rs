//! Conversion of sums to results.

use super::order::Order;
use super::pack::Packed;
use super::{Error, ErrorKind, expect};
use crate::error::room;
use crate::simd::apart::each_row;
use crate::simd::bytes::{Bytes, FloatScales, ResultRange, RowScales, TileScales, store_tiles};
use crate::simd::dot::CHANNELS;
use crate::threads::Columns;

/// Scales and zero points of statically quantised images:
///
/// ```text
/// acc = bias[c] + Σ (x − input_zero) · w[c]                            in i32, wrapped
/// y   = f32(acc) · factors[c]                                          rounded
/// out = rne(limit(y, low − output_zero, high − output_zero)) + output_zero
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Requantise<'a> {
    /// `input scale · weight scale / output scale`, by channel, or one for all.
    pub factors: &'a [f32],
    /// The input that represents 0.
    pub input_zero: i8,
    /// The result that represents 0.
    pub output_zero: i8,
    /// The smallest and largest results.
    pub output_limits: [i8; 2],
}

impl Requantise<'_> {
    /// The factor of a channel.
    pub(super) fn factor(&self, channel: usize) -> f32 {
        self.factors[if self.factors.len() == 1 { 0 } else { channel }]
    }

    /// The factors of so many times the channels, one after the other.
    pub(super) fn repeated(&self, count: usize) -> Vec<f32> {
        if self.factors.len() == 1 { self.factors.to_vec() } else { self.factors.repeat(count) }
    }

    /// The results there are.
    pub(super) fn range(&self) -> ResultRange {
        ResultRange::new(self.limits(), self.output_zero.into())
    }

    /// Limits before the zero point is added.
    pub(super) fn limits(&self) -> [f32; 2] {
        self.output_limits.map(|limit| f32::from(i16::from(limit) - i16::from(self.output_zero)))
    }

    /// Refuses factors that are not one a channel, and limits that are out of order.
    pub(super) fn check(&self, channels: usize) -> Result<(), Error> {
        if self.factors.len() != 1 {
            expect("factors", self.factors.len(), channels)?;
        }
        let [low, high] = self.output_limits;
        if low > high {
            return Err(Error::new(ErrorKind::Geometry, format!("results from {low} to {high}")));
        }
        Ok(())
    }
}

/// Scales of images that are quantised when they are known:
///
/// ```text
/// acc = Σ (x − zero_point[n]) · w[c]         in i32, wrapped
/// y   = f32(acc) · scale[n]                  rounded
/// y   = y · weights[c] + bias[c]             rounded once
/// out = limit(y, lo, hi)
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DynamicScales<'a> {
    /// Factors by channel.
    pub weights: &'a [f32],
    /// Summands by channel; 0 if there is no bias.
    pub bias: Option<&'a [f32]>,
    /// Least and greatest result.
    pub limits: [f32; 2],
}

/// The images of pixels that follow each other: the number of the first pixel, and how many an image has.
#[derive(Clone, Copy)]
pub(super) struct Images {
    pub first: usize,
    pub per_image: usize,
}

impl Images {
    /// The image of a pixel.
    #[inline(always)]
    fn of(&self, pixel: usize) -> usize {
        (self.first + pixel) / self.per_image
    }

    /// The images of pixels from one on.
    #[inline(always)]
    pub fn after(self, pixel: usize) -> Images {
        Images { first: self.first.wrapping_add(pixel), ..self }
    }
}

/// A conversion of the sums of a tile of channels to results.
pub(super) trait Epilogue: Sync {
    type Out: Copy + Send;
    /// Numbers that the conversion of tiles of channels needs.
    type Tiles<'a, const C: usize>: Copy
    where
        Self: 'a;

    /// The input that represents 0.
    fn zero(&self, image: usize) -> i8;

    /// Returns the numbers that neighbouring tiles from number `first` on need.
    fn tiles<const C: usize>(&self, first: usize) -> Self::Tiles<'_, C>;

    /// Numbers that the sums of neighbouring tiles begin with.
    fn start<B: Bytes, const C: usize>(bytes: B, tiles: &Self::Tiles<'_, C>) -> [B::Sums; C];

    /// Writes results of the sums of neighbouring tiles for `N` pixels, as many as a row of each has room for.
    fn finish<B: Bytes, const C: usize, const N: usize>(
        &self,
        bytes: B,
        tiles: &Self::Tiles<'_, C>,
        images: Images,
        sums: [&[B::Sums; C]; N],
        to: &mut Columns<'_, Self::Out>,
    );
}

/// [`Requantise`] by tile.
pub(super) struct Static {
    pub starts: Vec<[i32; CHANNELS]>,
    pub factors: Vec<[f32; CHANNELS]>,
    pub range: ResultRange,
    pub input_zero: i8,
}

impl Epilogue for Static {
    type Out = i8;
    type Tiles<'a, const C: usize> = TileScales<'a, C>;

    #[inline(always)]
    fn zero(&self, _: usize) -> i8 {
        self.input_zero
    }

    #[inline(always)]
    fn tiles<const C: usize>(&self, first: usize) -> TileScales<'_, C> {
        let (starts, factors) = (some_tiles(&self.starts, first), some_tiles(&self.factors, first));
        TileScales { starts, factors, range: self.range }
    }

    #[inline(always)]
    fn start<B: Bytes, const C: usize>(bytes: B, tiles: &TileScales<'_, C>) -> [B::Sums; C] {
        let mut sums = [bytes.zero(); C];
        for (sums, starts) in sums.iter_mut().zip(tiles.starts) {
            *sums = bytes.start(starts);
        }
        sums
    }

    #[inline(always)]
    fn finish<B: Bytes, const C: usize, const N: usize>(
        &self,
        bytes: B,
        tiles: &TileScales<'_, C>,
        _: Images,
        sums: [&[B::Sums; C]; N],
        to: &mut Columns<'_, i8>,
    ) {
        bytes.requantise_rows(sums, tiles, to);
    }
}

/// [`DynamicScales`] by tile.
pub(super) struct Dynamic {
    pub scales: Vec<[f32; CHANNELS]>,
    pub bias: Vec<[f32; CHANNELS]>,
    pub limits: [f32; 2],
    /// Number that is added to inputs.
    pub offset: i32,
}

/// Images that were quantised, each with a scale and a zero point.
pub(super) struct DynamicImages<'a> {
    /// The weights, whose sums are needed.
    pub packed: &'a Packed,
    pub scales: &'a Dynamic,
    /// Of each image: scale, zero point.
    pub images: &'a [[f32; 2]],
}

/// Sums of weights, scales, and biases of tiles.
type DynamicTiles<'a, const C: usize> = (&'a [[i32; CHANNELS]; C], [&'a [[f32; CHANNELS]; C]; 2]);

impl Epilogue for DynamicImages<'_> {
    type Out = f32;
    type Tiles<'a, const C: usize>
        = DynamicTiles<'a, C>
    where
        Self: 'a;

    #[inline(always)]
    fn zero(&self, image: usize) -> i8 {
        self.images[image][1] as i8
    }

    #[inline(always)]
    fn tiles<const C: usize>(&self, first: usize) -> DynamicTiles<'_, C> {
        let Dynamic { scales, bias, .. } = self.scales;
        (some_tiles(self.packed.sums(), first), [some_tiles(scales, first), some_tiles(bias, first)])
    }

    #[inline(always)]
    fn start<B: Bytes, const C: usize>(bytes: B, _: &DynamicTiles<'_, C>) -> [B::Sums; C] {
        [bytes.zero(); C]
    }

    #[inline(always)]
    fn finish<B: Bytes, const C: usize, const N: usize>(
        &self,
        bytes: B,
        (weights, [factors, bias]): &DynamicTiles<'_, C>,
        images: Images,
        sums: [&[B::Sums; C]; N],
        to: &mut Columns<'_, f32>,
    ) {
        let Dynamic { limits, offset, .. } = self.scales;
        each_row!(row < N => {
            let [scale, zero] = self.images[images.of(row)];
            let scales = RowScales { scale, zero: (zero as i32).wrapping_add(*offset) };
            let results = bytes.scale(sums[row], &FloatScales { weights, factors, bias, limits: *limits }, &scales);
            store_tiles(&results, to.row(row));
        });
    }
}

/// The numbers of `C` neighbouring tiles.
#[inline(always)]
fn some_tiles<T, const C: usize>(all: &[T], first: usize) -> &[T; C] {
    all[first..].first_chunk().expect("numbers for every tile")
}

/// Numbers by channel as numbers by tile; every group of channels begins a new tile, and what is missing is 0.
pub(super) fn by_tile<T: Copy + Default>(
    order: &Order,
    number: impl Fn(usize) -> T,
) -> Result<Vec<[T; CHANNELS]>, Error> {
    let mut tiles = room(order.groups.saturating_mul(order.tiles()))?;
    for group in 0..order.groups {
        let end = (group + 1) * order.each;
        for first in (group * order.each..end).step_by(CHANNELS) {
            let mut tile = [T::default(); CHANNELS];
            for (channel, to) in (first..end.min(order.outputs)).zip(&mut tile) {
                *to = number(channel);
            }
            tiles.push(tile);
        }
    }
    Ok(tiles)
}
