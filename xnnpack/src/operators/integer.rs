//! Operators on 8-bit numbers with one scale and zero point each.
//!
//! Sums are exact in 32 bits and wrap, as they do in every library; what follows them is one rounding per operation in the
//! order that is written here, so results are those of the library to the bit.

use std::sync::Arc;

use edgepack_compute::simd::wide;
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run};
use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::Dims;

use super::{own, retaining};

/// From sums to 8-bit numbers.
#[derive(Clone, Debug)]
pub(crate) struct Requantize {
    /// `scale_x * scale_w / scale_y` of each channel.
    pub scales: Vec<f32>,
    pub zero_x: i32,
    pub zero_y: i32,
    /// Least and greatest result.
    pub bounds: [i32; 2],
}

impl Requantize {
    #[inline(always)]
    pub(super) fn result(&self, sum: i32, channel: usize) -> i8 {
        let y = sum as f32 * self.scales[channel % self.scales.len()];
        let [least, most] = self.bounds.map(|bound| (bound - self.zero_y) as f32);
        (y.max(least).min(most).round_ties_even() as i32 + self.zero_y) as i8
    }
}

/// The sum of products, wrapping.
#[inline(always)]
pub(super) fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).fold(0i32, |sum, (a, b)| sum.wrapping_add(i32::from(*a) * i32::from(*b)))
}

/// The sums of the rows of weights.
pub(super) fn row_sums(weights: &[i8], width: usize) -> Result<Vec<i32>, KernelError> {
    let mut sums = edgepack_executor::kernel::room(weights.len() / width.max(1))?;
    sums.extend(
        weights.chunks_exact(width.max(1)).map(|row| row.iter().fold(0i32, |sum, w| sum.wrapping_add(i32::from(*w)))),
    );
    Ok(sums)
}

const PRODUCT: &str = "(Tensor x, Tensor w, Tensor? b, *, Tensor(a!) out) -> Tensor(a!)";
const OUT: usize = 3;

fn bias_of(bias: Option<&[i32]>, channel: usize) -> i32 {
    bias.map_or(0, |bias| bias[channel])
}

/// Rows `[..., K]` times weights `[N, K]`.
pub(crate) fn product(how: Requantize) -> Arc<dyn Operator> {
    own("xnnpack::product.int8", PRODUCT, Alias::Disjoint, move |args| {
        let weights = args.tensor(1)?;
        let [channels, width] = *weights.meta.sizes else { return Err(KernelError::unsupported("weights")) };
        let constant = weights.constant.ok_or_else(|| KernelError::unsupported("weights that change"))?;
        let retained = channels * size_of::<i32>();
        args.retained().reserve(retained)?;
        let sums = row_sums(constant.as_slice::<i8>()?, width)?;
        let how = how.clone();
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let mut sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            match sizes.last_mut() {
                Some(last) if *last == width => *last = channels,
                _ => return Err(KernelError::new(ErrorCode::InvalidArgument, "rows of another length")),
            }
            cx.resize(OUT, &sizes)?;
            let views = cx.views();
            let (x, w) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<i8>()?);
            let bias = views.tensor_opt(2)?.map(|bias| bias.as_slice::<i32>()).transpose()?;
            let mut out = views.out(OUT)?;
            let out = out.as_slice::<i8>()?;
            wide(|| {
                for (out, x) in out.chunks_exact_mut(channels).zip(x.chunks_exact(width)) {
                    for (channel, (out, w)) in out.iter_mut().zip(w.chunks_exact(width)).enumerate() {
                        let sum = dot(x, w).wrapping_sub(how.zero_x.wrapping_mul(sums[channel]));
                        *out = how.result(sum.wrapping_add(bias_of(bias, channel)), channel);
                    }
                }
            });
            Ok(())
        })
    })
}

/// Windows over images `[N, H, W, C]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Height and width, as in all that follows.
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
    /// In front and behind.
    pub padding: [[usize; 2]; 2],
    pub groups: usize,
}

impl Windows {
    /// Sizes of what is made of an image; `None` if there is no window.
    pub fn counts(&self, sizes: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|side| {
            let padded = sizes[side] + self.padding[side][0] + self.padding[side][1];
            let reach = (self.kernel[side] - 1) * self.dilation[side] + 1;
            padded.saturating_sub(reach) / self.stride[side] + 1
        })
    }

    /// Sizes of what a transposed convolution makes of an image, with so many rows and columns more.
    pub fn spread(&self, sizes: [usize; 2], more: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|side| {
            let reach = (self.kernel[side] - 1) * self.dilation[side] + 1;
            let whole = sizes[side].saturating_sub(1) * self.stride[side] + more[side] + reach;
            whole.saturating_sub(self.padding[side][0] + self.padding[side][1])
        })
    }

    /// The place in the image that a tap of a window looks at.
    #[inline(always)]
    pub(super) fn place(&self, side: usize, window: usize, tap: usize, size: usize) -> Option<usize> {
        let place = (window * self.stride[side] + tap * self.dilation[side]).checked_sub(self.padding[side][0])?;
        (place < size).then_some(place)
    }
}

/// Gathers what a window sees of one group of channels, tap after tap; padding is `zero`.
fn gather(
    windows: &Windows,
    image: &[i8],
    [h, w, c]: [usize; 3],
    [oy, ox]: [usize; 2],
    channels: std::ops::Range<usize>,
    zero: i8,
    patch: &mut [i8],
) {
    let width = channels.len();
    let mut parts = patch.chunks_exact_mut(width.max(1));
    for ky in 0..windows.kernel[0] {
        let y = windows.place(0, oy, ky, h);
        for kx in 0..windows.kernel[1] {
            let Some(part) = parts.next() else { return };
            match y.zip(windows.place(1, ox, kx, w)) {
                Some((y, x)) => part.copy_from_slice(&image[(y * w + x) * c..][channels.clone()]),
                None => part.fill(zero),
            }
        }
    }
}

/// The sizes of the image that is argument 0. Its channels are as many as the weights take: sizes that change from run to
/// run are looked at in every run.
pub(super) fn image_sizes(cx: &KernelContext<'_>, channels: Option<usize>) -> Result<[usize; 4], KernelError> {
    let sizes = cx.meta(0)?.sizes;
    match <[usize; 4]>::try_from(sizes) {
        Ok(image) if channels.is_none_or(|channels| channels == image[3]) => Ok(image),
        _ => Err(KernelError::new(ErrorCode::InvalidArgument, format!("an image of sizes {sizes:?}"))),
    }
}

/// Images `[n, h, w, c]` under weights `[groups * Co, kh * kw * c / groups]`.
pub(super) struct Convolution<'c> {
    pub windows: &'c Windows,
    pub sizes: [usize; 3],
    pub weights: &'c [i8],
    /// Of each row of weights.
    pub sums: &'c [i32],
}

impl Convolution<'_> {
    /// Computes one image pixel after pixel: `result` makes an element of a sum and a channel. `patch` has room for what
    /// one window sees, `zero` is the zero point of the image.
    #[inline(always)]
    pub fn image<'o, T: 'o>(
        &self,
        image: &[i8],
        zero: i32,
        patch: &mut [i8],
        pixels: &mut std::slice::ChunksExactMut<'o, T>,
        result: impl Fn(i32, usize) -> T,
    ) {
        let ([h, w, c], groups) = (self.sizes, self.windows.groups);
        let ([oh, ow], (inputs, each)) = (self.windows.counts([h, w]), (c / groups, self.sums.len() / groups));
        let width = patch.len();
        for (oy, ox) in (0..oh).flat_map(|oy| (0..ow).map(move |ox| (oy, ox))) {
            let Some(pixel) = pixels.next() else { return };
            for group in 0..groups {
                let channels = group * inputs..(group + 1) * inputs;
                gather(self.windows, image, self.sizes, [oy, ox], channels, zero as i8, patch);
                let first = group * each;
                for (at, element) in pixel[first..first + each].iter_mut().enumerate() {
                    let channel = first + at;
                    let sum = dot(patch, &self.weights[channel * width..][..width]);
                    *element = result(sum.wrapping_sub(zero.wrapping_mul(self.sums[channel])), channel);
                }
            }
        }
    }
}

/// A convolution with weights `[groups * Co, kh, kw, Ci]`.
pub(crate) fn convolution(how: Requantize, windows: Windows) -> Arc<dyn Operator> {
    own("xnnpack::convolution.int8", PRODUCT, Alias::Disjoint, move |args| {
        let weights = args.tensor(1)?;
        let [outputs, kh, kw, inputs] = *weights.meta.sizes else { return Err(KernelError::unsupported("weights")) };
        let width = kh * kw * inputs;
        let constant = weights.constant.ok_or_else(|| KernelError::unsupported("weights that change"))?;
        let retained = outputs * size_of::<i32>();
        args.retained().reserve(retained)?;
        args.scratch(width);
        let sums = row_sums(constant.as_slice::<i8>()?, width)?;
        let how = how.clone();
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, Some(inputs * windows.groups))?;
            let [oh, ow] = windows.counts([h, w]);
            cx.resize(OUT, &[n, oh, ow, outputs])?;
            let views = cx.views();
            let (x, weights) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<i8>()?);
            let bias = views.tensor_opt(2)?.map(|bias| bias.as_slice::<i32>()).transpose()?;
            let patch: &mut [i8] = bytemuck::cast_slice_mut(views.scratch()?);
            let patch = &mut patch[..width];
            let mut pixels = views.out(OUT)?.into_slice::<i8>()?.chunks_exact_mut(outputs);
            let convolution = Convolution { windows: &windows, sizes: [h, w, c], weights, sums: &sums };
            let result = |sum: i32, channel| how.result(sum.wrapping_add(bias_of(bias, channel)), channel);
            wide(|| {
                for image in x.chunks_exact((h * w * c).max(1)).take(n) {
                    convolution.image(image, how.zero_x, patch, &mut pixels, result);
                }
            });
            Ok(())
        })
    })
}

/// Channels whose sums are on the stack at a time.
const CHANNELS: usize = 64;

/// A convolution of one channel each, with weights `[1, kh, kw, C * multiplier]`.
pub(crate) fn depthwise(how: Requantize, windows: Windows) -> Arc<dyn Operator> {
    own("xnnpack::depthwise.int8", PRODUCT, Alias::Disjoint, move |args| {
        let [_, kh, kw, outputs] = *args.tensor(1)?.meta.sizes else { return Err(KernelError::unsupported("weights")) };
        let inputs = args.tensor(0)?.meta.sizes.last().copied();
        let how = how.clone();
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, inputs)?;
            let [oh, ow] = windows.counts([h, w]);
            cx.resize(OUT, &[n, oh, ow, outputs])?;
            let views = cx.views();
            let (x, weights) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<i8>()?);
            let bias = views.tensor_opt(2)?.map(|bias| bias.as_slice::<i32>()).transpose()?;
            let mut out = views.out(OUT)?;
            let mut pixels = out.as_slice::<i8>()?.chunks_exact_mut(outputs);
            let multiplier = outputs / c.max(1);
            wide(|| {
                for image in x.chunks_exact((h * w * c).max(1)).take(n) {
                    for (oy, ox) in (0..oh).flat_map(|oy| (0..ow).map(move |ox| (oy, ox))) {
                        let Some(pixel) = pixels.next() else { return };
                        for (part, pixel) in pixel.chunks_mut(CHANNELS).enumerate() {
                            let first = part * CHANNELS;
                            let mut sums = [0i32; CHANNELS];
                            let sums = &mut sums[..pixel.len()];
                            for (place, sum) in sums.iter_mut().enumerate() {
                                *sum = bias_of(bias, first + place);
                            }
                            for ky in 0..kh {
                                let Some(y) = windows.place(0, oy, ky, h) else { continue };
                                for kx in 0..kw {
                                    let Some(column) = windows.place(1, ox, kx, w) else { continue };
                                    let seen = &image[(y * w + column) * c..][..c];
                                    let row = &weights[(ky * kw + kx) * outputs + first..][..sums.len()];
                                    match multiplier {
                                        1 => accumulate(sums, &seen[first..], row, how.zero_x),
                                        _ => {
                                            for (place, (sum, weight)) in sums.iter_mut().zip(row).enumerate() {
                                                let x = i32::from(seen[(first + place) / multiplier]) - how.zero_x;
                                                *sum = sum.wrapping_add(x * i32::from(*weight));
                                            }
                                        }
                                    }
                                }
                            }
                            for (place, (out, sum)) in pixel.iter_mut().zip(sums).enumerate() {
                                *out = how.result(*sum, first + place);
                            }
                        }
                    }
                }
            });
            Ok(())
        }) as Box<dyn Run>)
    })
}

#[inline(always)]
fn accumulate(sums: &mut [i32], x: &[i8], weights: &[i8], zero: i32) {
    for ((sum, x), weight) in sums.iter_mut().zip(x).zip(weights) {
        *sum = sum.wrapping_add((i32::from(*x) - zero) * i32::from(*weight));
    }
}

/// A transposed convolution with weights `[Co, kh, kw, Ci]`; `adjust` are the sizes it adds.
pub(crate) fn transposed(how: Requantize, windows: Windows, adjust: [usize; 2]) -> Arc<dyn Operator> {
    own("xnnpack::transposed_convolution.int8", PRODUCT, Alias::Disjoint, move |args| {
        let [outputs, kh, kw, inputs] = *args.tensor(1)?.meta.sizes else {
            return Err(KernelError::unsupported("weights"));
        };
        let weights = args.tensor(1)?.constant.ok_or_else(|| KernelError::unsupported("weights that change"))?;
        let retained = outputs * kh * kw * size_of::<i32>();
        args.retained().reserve(retained)?;
        let sums = row_sums(weights.as_slice::<i8>()?, inputs)?;
        let how = how.clone();
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, Some(inputs))?;
            let [oh, ow] = windows.spread([h, w], adjust);
            cx.resize(OUT, &[n, oh, ow, outputs])?;
            let views = cx.views();
            let (x, weights) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<i8>()?);
            let bias = views.tensor_opt(2)?.map(|bias| bias.as_slice::<i32>()).transpose()?;
            let mut out = views.out(OUT)?;
            let mut pixels = out.as_slice::<i8>()?.chunks_exact_mut(outputs);
            // The input place that reaches an output place by a tap.
            let source = |side: usize, place: usize, tap: usize, size: usize| {
                let place = (place + windows.padding[side][0]).checked_sub(tap * windows.dilation[side])?;
                (place % windows.stride[side] == 0).then_some(place / windows.stride[side]).filter(|p| *p < size)
            };
            wide(|| {
                for image in x.chunks_exact((h * w * c).max(1)).take(n) {
                    for (oy, ox) in (0..oh).flat_map(|oy| (0..ow).map(move |ox| (oy, ox))) {
                        let Some(pixel) = pixels.next() else { return };
                        for (channel, out) in pixel.iter_mut().enumerate() {
                            let mut sum = bias_of(bias, channel);
                            for ky in 0..kh {
                                let Some(y) = source(0, oy, ky, h) else { continue };
                                for kx in 0..kw {
                                    let Some(column) = source(1, ox, kx, w) else { continue };
                                    let tap = (channel * kh + ky) * kw + kx;
                                    let row = &weights[tap * inputs..][..inputs];
                                    let seen = &image[(y * w + column) * c..][..inputs];
                                    sum = sum.wrapping_add(dot(seen, row));
                                    sum = sum.wrapping_sub(how.zero_x.wrapping_mul(sums[tap]));
                                }
                            }
                            *out = how.result(sum, channel);
                        }
                    }
                }
            });
            Ok(())
        })
    })
}

/// `a + b` or `a - b`, in integers alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    pub multipliers: [i32; 2],
    pub shift: u32,
    pub zeros: [i32; 2],
    pub zero_y: i32,
    pub bounds: [i32; 2],
}

impl Sum {
    /// Of scales and zero points; `None` if the scales are too far apart.
    pub fn new([sa, sb, sy]: [f32; 3], zeros: [i32; 2], zero_y: i32, subtract: bool, bounds: [i32; 2]) -> Option<Self> {
        let (ra, rb) = (sa / sy, sb / sy);
        let greater = ra.max(rb);
        let fits = |ratio: f32| (0.000_976_562_5..256.0).contains(&ratio);
        if !fits(ra) || !fits(rb) {
            return None;
        }
        let exponent = (greater.to_bits() >> 23) as i32 - 127;
        let shift = u32::try_from(20 - exponent).ok().filter(|shift| (12..=30).contains(shift))?;
        let whole = |ratio: f32| (f64::from(ratio) * f64::from(1u32 << shift)).round_ties_even() as i32;
        let b = whole(rb);
        Some(Sum { multipliers: [whole(ra), if subtract { -b } else { b }], shift, zeros, zero_y, bounds })
    }

    #[inline(always)]
    fn result(&self, a: i8, b: i8) -> i8 {
        let [ma, mb] = self.multipliers;
        let bias = (1i32 << (self.shift - 1)).wrapping_sub(ma.wrapping_mul(self.zeros[0]));
        let sum = bias.wrapping_sub(mb.wrapping_mul(self.zeros[1]));
        let sum = sum.wrapping_add(ma.wrapping_mul(a.into())).wrapping_add(mb.wrapping_mul(b.into()));
        ((sum >> self.shift) + self.zero_y).clamp(self.bounds[0], self.bounds[1]) as i8
    }
}

/// `a * b`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiple {
    pub scale: f32,
    pub zeros: [i32; 2],
    pub zero_y: i32,
    pub bounds: [i32; 2],
}

impl Multiple {
    #[inline(always)]
    fn result(&self, a: i8, b: i8) -> i8 {
        let product = (i32::from(a) - self.zeros[0]) * (i32::from(b) - self.zeros[1]);
        let [least, most] = self.bounds.map(|bound| (bound - self.zero_y) as f32);
        let y = (product as f32 * self.scale).max(least).min(most);
        (y.round_ties_even() as i32 + self.zero_y) as i8
    }
}

const BINARY: &str = "(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)";

pub(crate) fn sum(how: Sum) -> Arc<dyn Operator> {
    binary("xnnpack::sum.int8", move |a, b| how.result(a, b))
}

pub(crate) fn multiple(how: Multiple) -> Arc<dyn Operator> {
    binary("xnnpack::multiple.int8", move |a, b| how.result(a, b))
}

/// Two inputs, right-aligned, of which sizes of 1 are repeated.
pub(super) fn binary(
    name: &'static str,
    result: impl Fn(i8, i8) -> i8 + Copy + Send + Sync + 'static,
) -> Arc<dyn Operator> {
    own(name, BINARY, Alias::Disjoint, move |_| {
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let (a, b) = (cx.meta(0)?.sizes, cx.meta(1)?.sizes);
            let rank = a.len().max(b.len());
            let at = |sizes: &[usize], dim: usize| (dim + sizes.len()).checked_sub(rank).map_or(1, |dim| sizes[dim]);
            let mut sizes: Dims = Dims::filled(1, rank).unwrap_or_default();
            // Strides of both; 0 where a size is repeated.
            let (mut sa, mut sb) = (sizes, sizes);
            let (mut whole_a, mut whole_b) = (1, 1);
            for dim in (0..rank).rev() {
                let (da, db) = (at(a, dim), at(b, dim));
                if da != db && da != 1 && db != 1 {
                    return Err(KernelError::new(ErrorCode::InvalidArgument, format!("{a:?} and {b:?}")));
                }
                sizes[dim] = if da == 1 { db } else { da };
                sa[dim] = if da == 1 { 0 } else { whole_a };
                sb[dim] = if db == 1 { 0 } else { whole_b };
                (whole_a, whole_b) = (whole_a * da, whole_b * db);
            }
            cx.resize(2, &sizes)?;
            let views = cx.views();
            let (a, b) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<i8>()?);
            let mut out = views.out(2)?;
            let out = out.as_slice::<i8>()?;
            if whole_a == out.len() && whole_b == out.len() {
                for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                    *out = result(*a, *b);
                }
                return Ok(());
            }
            let mut place: Dims = Dims::filled(0, rank).unwrap_or_default();
            let inner = sizes.last().copied().unwrap_or(1).max(1);
            let steps = [sa.last(), sb.last()].map(|stride| stride.copied().unwrap_or(0));
            for row in out.chunks_exact_mut(inner) {
                let start = |strides: &Dims| -> usize { place.iter().zip(strides.iter()).map(|(p, s)| p * s).sum() };
                let (mut at_a, mut at_b) = (start(&sa), start(&sb));
                for out in row {
                    *out = result(a[at_a], b[at_b]);
                    (at_a, at_b) = (at_a + steps[0], at_b + steps[1]);
                }
                for dim in (0..rank.saturating_sub(1)).rev() {
                    place[dim] += 1;
                    if place[dim] < sizes[dim] {
                        break;
                    }
                    place[dim] = 0;
                }
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}

const UNARY: &str = "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)";

/// Each number as a table of 256 says; the first entry is that of -128.
pub(crate) fn table(table: [i8; 256]) -> Arc<dyn Operator> {
    own("xnnpack::table.int8", UNARY, Alias::Disjoint, move |_| {
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            cx.resize(1, &sizes)?;
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            let mut out = views.out(1)?;
            for (out, x) in out.as_slice::<i8>()?.iter_mut().zip(x) {
                *out = table[usize::from(x.wrapping_sub(-128) as u8)];
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}

/// The mean of each channel of an image: scales are those of input and result.
pub(crate) fn mean([sx, sy]: [f32; 2], [zx, zy]: [i32; 2], keep: bool) -> Arc<dyn Operator> {
    own("xnnpack::mean.int8", UNARY, Alias::Disjoint, move |_| {
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, None)?;
            match keep {
                true => cx.resize(1, &[n, 1, 1, c])?,
                false => cx.resize(1, &[n, c])?,
            }
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            let mut out = views.out(1)?;
            let count = (h * w) as f32;
            let inverse = (sx / sy) / count;
            let offset = zy as f32 - count * zx as f32 * inverse;
            let images = x.chunks_exact((h * w * c).max(1));
            for (out, image) in out.as_slice::<i8>()?.chunks_exact_mut(c.max(1)).zip(images) {
                for (part, out) in out.chunks_mut(CHANNELS).enumerate() {
                    let mut sums = [0i32; CHANNELS];
                    for pixel in image.chunks_exact(c) {
                        for (sum, x) in sums.iter_mut().zip(&pixel[part * CHANNELS..]) {
                            *sum = sum.wrapping_add(i32::from(*x));
                        }
                    }
                    for (out, sum) in out.iter_mut().zip(sums) {
                        *out = (sum as f32 * inverse + offset).round_ties_even().clamp(-128.0, 127.0) as i8;
                    }
                }
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}
