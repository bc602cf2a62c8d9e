//! Rows that are quantised when they are known, and their products with weights of 8 or 4 bits.
//!
//! Each row has a scale and a zero point of its own, which stand in a second tensor: `[rows, 2]`, scale first.

use std::sync::Arc;

use edgepack_compute::simd::wide;
use edgepack_compute::threads::{WriteAll, for_each};
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run, room};
use edgepack_executor::tensor::TensorMut;
use edgepack_format::finding::ErrorCode;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;
use half::f16;

use super::integer::{Convolution, Windows, dot, image_sizes, row_sums};
use super::{own, pure, retaining};

const QUANTIZE: &str = "(Tensor x, int dims, *, Tensor(a!) out, Tensor(b!) params) -> (Tensor(a!), Tensor(b!))";

/// Quantises rows of `dims` trailing dimensions.
pub(crate) fn quantize() -> Arc<dyn Operator> {
    pure("xnnpack::quantize_rows.out", QUANTIZE, |args| {
        let dims = args.int(1)?.and_then(|dims| usize::try_from(dims).ok());
        let dims = dims.ok_or_else(|| KernelError::unsupported("rows that change"))?;
        let dtype = args.tensor(0)?.meta.dtype;
        if dtype != ScalarType::FLOAT && dtype != ScalarType::HALF {
            return Err(KernelError::unsupported(dtype.to_string()));
        }
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            let (outer, row) = sizes.split_at(sizes.len().saturating_sub(dims));
            let (rows, width): (usize, usize) = (outer.iter().product(), row.iter().product());
            cx.resize(2, &sizes)?;
            cx.resize(3, &[rows, 2])?;
            let views = cx.views();
            let (x, mut out, mut params) = (views.tensor(0)?, views.out(2)?, views.out(3)?);
            let (out, params) = (out.as_slice::<i8>()?, params.as_slice::<f32>()?);
            let width = width.max(1);
            match dtype {
                ScalarType::HALF => {
                    let x = x.as_slice::<f16>()?.chunks_exact(width);
                    for ((x, out), params) in x.zip(out.chunks_exact_mut(width)).zip(params.chunks_exact_mut(2)) {
                        quantize_row(x.iter().map(|x| x.to_f32()), out, params);
                    }
                }
                _ => {
                    let x = x.as_slice::<f32>()?.chunks_exact(width);
                    for ((x, out), params) in x.zip(out.chunks_exact_mut(width)).zip(params.chunks_exact_mut(2)) {
                        quantize_row(x.iter().copied(), out, params);
                    }
                }
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}

fn quantize_row(x: impl Iterator<Item = f32> + Clone, out: &mut [i8], params: &mut [f32]) {
    let (least, most) = x.clone().fold((0f32, 0f32), |(least, most), x| (least.min(x), most.max(x)));
    let k = if least == most { 1.0 } else { 255.0 / (most - least) };
    let (a, b) = (least * k, most * k);
    let zero = if (-128.0 + a) + (127.0 + b) > 0.0 { -128.0 - a } else { 127.0 - b };
    let zero = zero.clamp(-128.0, 127.0).round_ties_even();
    params[0] = 1.0 / k;
    params[1] = zero;
    for (out, x) in out.iter_mut().zip(x) {
        let t = (x * k).clamp(-32768.0, 32767.0).round_ties_even();
        *out = (t + zero).clamp(-128.0, 127.0) as i8;
    }
}

/// Weights of products, one row for each channel.
#[derive(Clone, Debug)]
pub(crate) enum Weights {
    /// Bytes, a scale for each channel.
    Eight(Vec<f32>),
    /// Four bits, a scale for each channel.
    Four(Vec<f32>),
    /// Four bits, a scale for each block of so many.
    Blocks(Vec<f32>, usize),
}

/// Least and greatest result; NaN stays.
pub(crate) type Bounds = (f32, f32);

const PRODUCT: &str = "(Tensor x, Tensor params, Tensor w, Tensor? b, *, Tensor(a!) out) -> Tensor(a!)";
const OUT: usize = 4;

/// Sum of products of rows with four-bit weights: the low half of a byte comes first, 8 stands for 0.
#[inline(always)]
fn dot_four(x: &[i8], weights: &[u8]) -> i32 {
    let pairs = x.chunks(2).zip(weights);
    pairs.fold(0i32, |sum, (x, byte)| {
        let low = i32::from(x[0]) * (i32::from(byte & 15) - 8);
        let high = x.get(1).map_or(0, |x| i32::from(*x) * (i32::from(byte >> 4) - 8));
        sum.wrapping_add(low).wrapping_add(high)
    })
}

/// Sums of `width` weights of every row of four bits, `block` at a time.
fn sums_four(weights: &[u8], width: usize, block: usize) -> Result<Vec<i32>, KernelError> {
    let bytes = width.div_ceil(2).max(1);
    let blocks = width.div_ceil(block.max(1));
    let mut sums = room((weights.len() / bytes).saturating_mul(blocks))?;
    for row in weights.chunks_exact(bytes) {
        for start in (0..width).step_by(block.max(1)) {
            let places = start..(start + block).min(width);
            sums.push(places.map(|k| i32::from(row[k / 2] >> (k % 2 * 4) & 15) - 8).sum());
        }
    }
    Ok(sums)
}

/// Rows times weights `[N, K]`.
pub(crate) fn product(weights: Weights, bounds: Bounds) -> Arc<dyn Operator> {
    own("xnnpack::product_of_rows.out", PRODUCT, Alias::Disjoint, move |args| {
        let w = args.tensor(2)?;
        let [channels, bytes] = *w.meta.sizes else { return Err(KernelError::unsupported("weights")) };
        let constant = w.constant.ok_or_else(|| KernelError::unsupported("weights that change"))?.bytes();
        let width = *args.tensor(0)?.meta.sizes.last().unwrap_or(&1);
        let fits = match &weights {
            Weights::Eight(_) => bytes == width,
            _ => bytes == width.div_ceil(2),
        };
        if !fits {
            return Err(KernelError::unsupported("weights of another width"));
        }
        // A sum for each row, or for each of its blocks, and then what they add up to.
        let numbers = match &weights {
            Weights::Blocks(_, block) => channels.saturating_mul(width.div_ceil((*block).max(1)).saturating_add(1)),
            _ => channels,
        };
        let retained = numbers.saturating_mul(size_of::<i32>());
        args.retained().reserve(retained)?;
        let sums = match &weights {
            Weights::Eight(_) => row_sums(bytemuck::cast_slice(constant), width)?,
            Weights::Four(_) => sums_four(constant, width, width)?,
            Weights::Blocks(_, block) => sums_four(constant, width, *block)?,
        };
        // Of blocks, the sum of what their weights add up to.
        let offsets: Vec<f32> = match &weights {
            Weights::Blocks(scales, block) => {
                let blocks = width.div_ceil((*block).max(1)).max(1);
                let rows = sums.chunks_exact(blocks).zip(scales.chunks_exact(blocks));
                rows.map(|(sums, scales)| {
                    sums.iter().zip(scales).fold(0f32, |all, (sum, scale)| all + *sum as f32 * scale)
                })
                .collect()
            }
            _ => Vec::new(),
        };
        let weights = weights.clone();
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let mut sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            match sizes.last_mut() {
                Some(last) if *last == width => *last = channels,
                _ => return Err(KernelError::new(ErrorCode::InvalidArgument, "rows of another length")),
            }
            cx.resize(OUT, &sizes)?;
            let views = cx.views();
            let (x, params) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<f32>()?);
            let w = views.tensor(2)?.bytes();
            let bias = views.tensor_opt(3)?.map(|bias| bias.as_slice::<f32>()).transpose()?;
            let row = |x: &[i8], params: &[f32], out: &mut [f32]| {
                let work = channels.saturating_mul(width) > 1 << 16;
                for_each(work, WriteAll(out, CHANNELS), |part, out| {
                    wide(|| {
                        for (place, out) in out.iter_mut().enumerate() {
                            let channel = part * CHANNELS + place;
                            let w = &w[channel * bytes..][..bytes];
                            let add = bias.map_or(0.0, |bias| bias[channel]);
                            let y = one(&weights, x, params, w, channel, &sums, &offsets, add);
                            *out = y.max(bounds.0).min(bounds.1);
                        }
                    });
                });
            };
            let out: TensorMut<'_> = views.out(OUT)?;
            let rows = x.chunks_exact(width.max(1)).zip(params.chunks_exact(2));
            let out = out.into_slice::<f32>()?;
            rows.zip(out.chunks_exact_mut(channels.max(1))).for_each(|((x, params), out)| row(x, params, out));
            Ok(())
        })
    })
}

/// Channels of one row that are computed in one piece.
const CHANNELS: usize = 64;

/// One element of a product.
#[expect(clippy::too_many_arguments, reason = "a row, a channel, and what is known of both")]
#[inline(always)]
fn one(
    weights: &Weights,
    x: &[i8],
    params: &[f32],
    w: &[u8],
    channel: usize,
    sums: &[i32],
    offsets: &[f32],
    bias: f32,
) -> f32 {
    let (scale, zero) = (params[0], params[1] as i32);
    let whole = |sum: i32, of_weight: f32| {
        let sum = sum.wrapping_sub(zero.wrapping_mul(sums[channel]));
        (sum as f32 * scale).mul_add(of_weight, bias)
    };
    match weights {
        Weights::Eight(scales) => whole(dot(x, bytemuck::cast_slice(w)), scales[channel]),
        Weights::Four(scales) => whole(dot_four(x, w), scales[channel]),
        Weights::Blocks(scales, block) => {
            let blocks = x.chunks(*block).zip(w.chunks(block.div_ceil(2)));
            let count = x.len().div_ceil(*block);
            let scales = &scales[channel * count..][..count];
            let y = blocks
                .zip(scales)
                .fold(-offsets[channel] * params[1], |y, ((x, w), scale)| (dot_four(x, w) as f32).mul_add(*scale, y));
            y * scale + bias
        }
    }
}

/// A convolution of images that are quantised one by one, with weights `[groups * Co, kh, kw, Ci]`.
pub(crate) fn convolution(scales: Vec<f32>, windows: Windows, bounds: Bounds) -> Arc<dyn Operator> {
    own("xnnpack::convolution_of_rows.out", PRODUCT, Alias::Disjoint, move |args| {
        let w = args.tensor(2)?;
        let [outputs, kh, kw, inputs] = *w.meta.sizes else { return Err(KernelError::unsupported("weights")) };
        let width = kh * kw * inputs;
        let constant = w.constant.ok_or_else(|| KernelError::unsupported("weights that change"))?;
        let retained = outputs * size_of::<i32>();
        args.retained().reserve(retained)?;
        args.scratch(width);
        let sums = row_sums(constant.as_slice::<i8>()?, width)?;
        let scales = scales.clone();
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, Some(inputs * windows.groups))?;
            let [oh, ow] = windows.counts([h, w]);
            cx.resize(OUT, &[n, oh, ow, outputs])?;
            let views = cx.views();
            let (x, params) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<f32>()?);
            let weights = views.tensor(2)?.as_slice::<i8>()?;
            let bias = views.tensor_opt(3)?.map(|bias| bias.as_slice::<f32>()).transpose()?;
            let patch: &mut [i8] = bytemuck::cast_slice_mut(views.scratch()?);
            let patch = &mut patch[..width];
            let mut pixels = views.out(OUT)?.into_slice::<f32>()?.chunks_exact_mut(outputs);
            let convolution = Convolution { windows: &windows, sizes: [h, w, c], weights, sums: &sums };
            wide(|| {
                let images = x.chunks_exact((h * w * c).max(1)).take(n);
                for (image, params) in images.zip(params.chunks_exact(2)) {
                    convolution.image(image, params[1] as i32, patch, &mut pixels, |sum, channel| {
                        let add = bias.map_or(0.0, |bias| bias[channel]);
                        let y = (sum as f32 * params[0]).mul_add(scales[channel], add);
                        y.max(bounds.0).min(bounds.1)
                    });
                }
            });
            Ok(())
        })
    })
}
