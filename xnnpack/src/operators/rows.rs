//! Rows that are quantised when they are known, and their products with weights of 8 or 4 bits.
//!
//! Each row has a scale and a zero point of its own, which stand in a second tensor: `[rows, 2]`, scale first.

use std::sync::Arc;

use edgepack_compute::qgemm::{self, Bits, Dynamic, DynamicBlocks, Inputs, RowScale};
use edgepack_compute::simd::wide;
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run};
use edgepack_format::finding::ErrorCode;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;
use half::f16;

use super::integer::{Convolution, Windows, image_sizes, row_sums};
use super::{own, retaining};

const QUANTIZE: &str = "(Tensor x, *, Tensor(a!) out, Tensor(b!) params) -> (Tensor(a!), Tensor(b!))";

/// Quantises rows of so many trailing dimensions.
pub(crate) fn quantize(dims: usize) -> Arc<dyn Operator> {
    own("xnnpack::quantize_rows.out", QUANTIZE, Alias::Disjoint, move |args| {
        let dtype = args.tensor(0)?.meta.dtype;
        if dtype != ScalarType::FLOAT && dtype != ScalarType::HALF {
            return Err(KernelError::unsupported(dtype.to_string()));
        }
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            let (outer, row) = sizes.split_at(sizes.len().saturating_sub(dims));
            let (rows, width): (usize, usize) = (outer.iter().product(), row.iter().product());
            cx.resize(1, &sizes)?;
            cx.resize(2, &[rows, 2])?;
            let views = cx.views();
            let (x, mut out, mut params) = (views.tensor(0)?, views.out(1)?, views.out(2)?);
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
    /// Four bits, a scale for each block of so many: the upper half of an `f32`.
    Blocks(Vec<u16>, usize),
}

impl Weights {
    /// Size of a weight.
    pub fn bits(&self) -> Bits {
        match self {
            Weights::Eight(_) => Bits::Eight,
            Weights::Four(_) | Weights::Blocks(..) => Bits::Four,
        }
    }
}

/// Least and greatest result; NaN stays.
pub(crate) type Bounds = (f32, f32);

const PRODUCT: &str = "(Tensor x, Tensor params, Tensor? b, *, Tensor(a!) out) -> Tensor(a!)";

/// Rows times packed weights `[N, K]`, which are made real numbers with these scales.
pub(crate) fn product(packed: Arc<qgemm::Weights>, weights: Weights, bounds: Bounds) -> Arc<dyn Operator> {
    const OUT: usize = 3;
    own("xnnpack::product_of_rows.out", PRODUCT, Alias::Disjoint, move |args| {
        let [channels, width] = packed.sizes();
        let x = args.tensor(0)?.meta.sizes;
        if x.last().is_none_or(|have| *have != width) {
            return Err(KernelError::unsupported("weights of another width"));
        }
        let rows: usize = x[..x.len() - 1].iter().product();
        let bias = match args.tensor_opt(2)? {
            Some(bias) => Some(bias.constant.ok_or_else(|| KernelError::unsupported("a bias that changes"))?),
            None => None,
        };
        let bias = bias.as_ref().map(|bias| bias.as_slice::<f32>()).transpose()?;
        // By channel: a sum of weights, a scale and a bias; or by block a scale, and a sum and a bias.
        let numbers = match &weights {
            Weights::Eight(_) | Weights::Four(_) => 3,
            Weights::Blocks(_, block) => 2 + width / (*block).max(1),
        };
        let retained = channels.next_multiple_of(16).saturating_mul(numbers).saturating_mul(size_of::<f32>());
        args.retained().reserve(retained)?;
        let limits = [bounds.0, bounds.1];
        let (product, block) = match &weights {
            Weights::Eight(scales) | Weights::Four(scales) => {
                (Product::Channels(Dynamic::new((*packed).clone(), scales, bias, limits)?), None)
            }
            Weights::Blocks(scales, block) => {
                let product = DynamicBlocks::new((*packed).clone(), *block, scales, bias, limits)?;
                (Product::Blocks(product), Some(*block))
            }
        };
        let sums = Inputs::sums_of([rows, width], block);
        args.scratch(sums.saturating_mul(size_of::<i32>()).saturating_add(rows.saturating_mul(size_of::<RowScale>())));
        // Other loads find the packed weights for as long as this one holds them.
        let held = Arc::clone(&packed);
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let mut sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            match sizes.last_mut() {
                Some(last) if *last == width => *last = channels,
                _ => return Err(KernelError::new(ErrorCode::InvalidArgument, "rows of another length")),
            }
            cx.resize(OUT, &sizes)?;
            let rows: usize = sizes.iter().rev().skip(1).product();
            debug_assert_eq!(held.sizes(), [channels, width]);
            let views = cx.views();
            let (x, params) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<f32>()?);
            if params.len() != 2 * rows {
                let message = format!("{} parameters of {rows} rows", params.len());
                return Err(KernelError::new(ErrorCode::InvalidArgument, message));
            }
            let scratch: &mut [u8] = views.scratch()?;
            let (scales, sums) = scratch.split_at_mut(rows * size_of::<RowScale>());
            let (scales, sums): (&mut [RowScale], &mut [i32]) = (
                bytemuck::cast_slice_mut(scales),
                bytemuck::cast_slice_mut(&mut sums[..Inputs::sums_of([rows, width], block) * size_of::<i32>()]),
            );
            for (to, params) in scales.iter_mut().zip(params.chunks_exact(2)) {
                *to = RowScale { scale: params[0], zero_point: params[1] as i32 };
            }
            let inputs = Inputs::new(x, [rows, width], block, sums)?;
            let mut out = views.out(OUT)?;
            let out = out.as_slice::<f32>()?;
            match &product {
                Product::Channels(product) => product.multiply(&inputs, scales, out)?,
                Product::Blocks(product) => product.multiply(&inputs, scales, out)?,
            }
            Ok(())
        })
    })
}

enum Product {
    Channels(Dynamic),
    Blocks(DynamicBlocks),
}

const CONVOLUTION: &str = "(Tensor x, Tensor params, Tensor w, Tensor? b, *, Tensor(a!) out) -> Tensor(a!)";
const OUT: usize = 4;

/// A convolution of images that are quantised one by one, with weights `[groups * Co, kh, kw, Ci]`.
pub(crate) fn convolution(scales: Vec<f32>, windows: Windows, bounds: Bounds) -> Arc<dyn Operator> {
    own("xnnpack::convolution_of_rows.out", CONVOLUTION, Alias::Disjoint, move |args| {
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
