//! Rows that are quantised when they are known, and their products with weights of 8 or 4 bits.
//!
//! Each row has a scale and a zero point of its own, which are stored in a second tensor: `[rows, 2]`, scale first.

use std::sync::Arc;

use edgepack_compute::parts::{PARTS, joined};
use edgepack_compute::qconv::{self, DynamicScales, Windows};
use edgepack_compute::qgemm;
use edgepack_compute::simd::{Loop, run_wide};
use edgepack_compute::threads::{Cost, Read, Write, for_each_at};
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;
use half::f16;

use super::integer::{constant as constant_of, image_sizes, resize_rows};
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
            let (out, params) = (out.as_mut_slice::<i8>()?, params.as_mut_slice::<f32>()?);
            let width = width.max(1);
            let cost = Cost::nanoseconds(0.15 * width as f64);
            let pieces = (Write(out, width), Write(params, 2));
            match dtype {
                ScalarType::HALF => {
                    let x = Read(x.as_slice::<f16>()?, width);
                    for_each_at(cost, (x, pieces), |_, (x, (out, params))| {
                        run_wide(Quantize { x, real: f16::to_f32, out, params });
                    });
                }
                _ => {
                    let x = Read(x.as_slice::<f32>()?, width);
                    for_each_at(cost, (x, pieces), |_, (x, (out, params))| {
                        run_wide(Quantize { x, real: |x: f32| x, out, params });
                    });
                }
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}

/// Numbers of a row whose least and greatest are found at once.
const LANES: usize = 2 * PARTS;

/// Added to a small number and taken off again, this rounds it, ties to even.
const ROUND: f32 = 12_582_912.0;

/// A row, its quantised numbers, and their scale and zero point.
struct Quantize<'a, T, F> {
    x: &'a [T],
    real: F,
    out: &'a mut [i8],
    params: &'a mut [f32],
}

impl<T: Copy, F: Fn(T) -> f32> Loop for Quantize<'_, T, F> {
    #[inline(always)]
    fn run(self) {
        quantize_row(self.x, self.real, self.out, self.params);
    }
}

#[inline(always)]
fn quantize_row<T: Copy>(x: &[T], real: impl Fn(T) -> f32, out: &mut [i8], params: &mut [f32]) {
    // NaN is neither less nor greater.
    let (mut low, mut high) = ([0f32; LANES], [0f32; LANES]);
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            let x = real(chunk[lane]);
            low[lane] = if x < low[lane] { x } else { low[lane] };
            high[lane] = if x > high[lane] { x } else { high[lane] };
        }
    }
    for x in rest.iter().map(|x| real(*x)) {
        (low[0], high[0]) = (low[0].min(x), high[0].max(x));
    }
    let (least, most) = (one(low, |a, b| if b < a { b } else { a }), one(high, |a, b| if b > a { b } else { a }));
    let k = if least == most { 1.0 } else { 255.0 / (most - least) };
    let (a, b) = (least * k, most * k);
    let zero = if (-128.0 + a) + (127.0 + b) > 0.0 { -128.0 - a } else { 127.0 - b };
    let zero = zero.clamp(-128.0, 127.0).round_ties_even();
    params[0] = 1.0 / k;
    params[1] = zero;
    for (out, x) in out.iter_mut().zip(x) {
        *out = quantized(real(*x), k, zero);
    }
}

/// Numbers of all lanes as one.
#[inline(always)]
fn one(lanes: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut parts = [0.0; PARTS];
    for lane in 0..PARTS {
        parts[lane] = f(lanes[lane], lanes[lane + PARTS]);
    }
    joined(parts, f)
}

/// A number as a byte, NaN as 0; vectors of the machine can do all of it.
#[inline(always)]
fn quantized(x: f32, k: f32, zero: f32) -> i8 {
    // Between whole limits a number is rounded to one of them at most, so the order of the two does not matter.
    let (low, high) = (-128.0 - zero, 127.0 - zero);
    let t = x * k;
    let t = if t < low { low } else { t };
    let t = if t > high { high } else { t };
    let t = if t.is_nan() { -zero } else { t };
    // What is whole has its bits at the end.
    ((t + ROUND) + zero).to_bits() as i8
}

/// Packed weights of products, one row for each channel.
#[derive(Clone)]
pub(crate) enum Weights {
    /// Bytes, a scale for each channel.
    Eight(Arc<qconv::Packed>, Vec<f32>),
    /// Four bits, a scale for each channel.
    Four(Arc<qgemm::Weights>, Vec<f32>),
    /// Four bits, with a scale for each block.
    Blocks(Arc<qgemm::Weights>),
}

impl Weights {
    /// Channels, and inputs of each.
    fn sizes(&self) -> [usize; 2] {
        match self {
            Weights::Eight(packed, _) => packed.sizes(),
            Weights::Four(packed, _) | Weights::Blocks(packed) => packed.sizes(),
        }
    }
}

/// Least and greatest result; NaN stays.
pub(crate) type Bounds = (f32, f32);

/// Schema of a product; the kind of weights is known from their packed form.
const PRODUCT: &str = "(Tensor x, Tensor params, Tensor w, Tensor? b, *, Tensor(a!) out) -> Tensor(a!)";
const BIAS: usize = 3;
const OUT: usize = 4;

/// Rows whose scales and sums are at hand at a time.
const ROWS: usize = 64;

/// A product with packed weights.
enum Product {
    Eight(qconv::DynamicConvolution),
    Four(qgemm::Dynamic),
    Blocks(qgemm::DynamicBlocks, usize),
}

impl Product {
    fn new(weights: &Weights, bias: Option<&[f32]>, bounds: Bounds) -> Result<Self, KernelError> {
        let limits = [bounds.0, bounds.1];
        Ok(match weights.clone() {
            Weights::Eight(packed, scales) => {
                let scales = DynamicScales { weights: &scales, bias, limits };
                Product::Eight(qconv::DynamicConvolution::new(packed, Windows::ONE, scales)?)
            }
            Weights::Four(packed, scales) => Product::Four(qgemm::Dynamic::new(packed, &scales, bias, limits)?),
            Weights::Blocks(packed) => {
                let block = packed.block().unwrap_or(1);
                Product::Blocks(qgemm::DynamicBlocks::new(packed, bias, limits)?, block)
            }
        })
    }

    /// Bytes that a product takes besides its weights, which are charged where they are packed.
    fn bytes(weights: &Weights) -> usize {
        let [channels, _] = weights.sizes();
        match weights {
            Weights::Eight(packed, _) => qconv::DynamicConvolution::bytes(packed.sizes(), &Windows::ONE),
            Weights::Four(..) => qgemm::Dynamic::bytes(channels),
            Weights::Blocks(_) => qgemm::DynamicBlocks::bytes(channels),
        }
    }

    /// Inputs of a block of which sums are taken.
    fn block(&self) -> Option<usize> {
        match self {
            Product::Blocks(_, block) => Some(*block),
            _ => None,
        }
    }

    /// Computes rows, each with a scale and a zero point.
    fn multiply(
        &self,
        x: &[i8],
        [rows, width, channels]: [usize; 3],
        params: &[[f32; 2]],
        sums: &mut [i32],
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        if let Product::Eight(product) = self {
            return Ok(product.run(x, [rows, 1, 1, width], params, out)?);
        }
        for first in (0..rows).step_by(ROWS) {
            let count = ROWS.min(rows - first);
            let mut scales = [qgemm::RowScale { zero_point: 0, scale: 0.0 }; ROWS];
            for (to, [scale, zero]) in scales.iter_mut().zip(&params[first..][..count]) {
                *to = qgemm::RowScale { zero_point: *zero as i32, scale: *scale };
            }
            let (x, out) = (&x[first * width..][..count * width], &mut out[first * channels..][..count * channels]);
            let inputs = qgemm::Inputs::new(x, [count, width], self.block(), sums)?;
            match self {
                Product::Four(product) => product.multiply(&inputs, &scales[..count], out)?,
                Product::Blocks(product, _) => product.multiply(&inputs, &scales[..count], out)?,
                Product::Eight(_) => {}
            }
        }
        Ok(())
    }
}

/// Rows times weights `[N, K]`.
pub(crate) fn product(weights: Weights, bounds: Bounds) -> Arc<dyn Operator> {
    own("xnnpack::product_of_rows.out", PRODUCT, Alias::Disjoint, move |args| {
        let [channels, width] = weights.sizes();
        if *args.tensor(0)?.meta.sizes.last().unwrap_or(&1) != width {
            return Err(KernelError::unsupported("weights of another width"));
        }
        let retained = Product::bytes(&weights);
        args.retained().reserve(retained)?;
        let packed = Product::new(&weights, constant_of(args, BIAS)?, bounds)?;
        let rows: usize = args.tensor(0)?.meta.sizes.iter().rev().skip(1).product();
        let sums = match packed {
            Product::Eight(_) => 0,
            _ => qgemm::Inputs::sums_of([rows.min(ROWS), width], packed.block()),
        };
        args.scratch(sums * size_of::<i32>());
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let rows = resize_rows(cx, OUT, [width, channels])?;
            let views = cx.views();
            let (x, params) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<f32>()?);
            let sums: &mut [i32] = bytemuck::cast_slice_mut(&mut views.scratch()?[..sums * size_of::<i32>()]);
            let params = params.as_chunks().0;
            packed.multiply(x, [rows, width, channels], params, sums, views.out(OUT)?.as_mut_slice::<f32>()?)
        })
    })
}

/// A convolution of images that are quantised one by one, with packed weights `[groups * Co, kh * kw * Ci]`.
pub(crate) fn convolution(
    packed: Arc<qconv::Packed>,
    scales: Vec<f32>,
    windows: Windows,
    bounds: Bounds,
) -> Arc<dyn Operator> {
    own("xnnpack::convolution_of_rows.out", PRODUCT, Alias::Disjoint, move |args| {
        let [outputs, inner] = packed.sizes();
        let inputs = inner / (windows.kernel[0] * windows.kernel[1]).max(1) * windows.groups;
        let retained = qconv::DynamicConvolution::bytes(packed.sizes(), &windows);
        args.retained().reserve(retained)?;
        let scales = DynamicScales { weights: &scales, bias: constant_of(args, BIAS)?, limits: [bounds.0, bounds.1] };
        let convolution = qconv::DynamicConvolution::new(Arc::clone(&packed), windows, scales)?;
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, Some(inputs))?;
            let [oh, ow] = windows.counts([h, w]);
            cx.resize(OUT, &[n, oh, ow, outputs])?;
            let views = cx.views();
            let (x, params) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<f32>()?);
            let params = params.as_chunks().0;
            Ok(convolution.run(x, [n, h, w, c], params, views.out(OUT)?.as_mut_slice::<f32>()?)?)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element against the formula, with numbers beyond all limits.
    #[test]
    fn rows_are_quantised_as_the_formula_says() {
        let mut x: Vec<f32> = (0..1000).map(|at| ((at * 7919) % 2003) as f32 / 97.0 - 9.0).collect();
        let rows = [vec![0.0; 5], vec![], vec![f32::NAN, 1.0, -1.0], vec![3.5; 33], vec![-1e30, 1e30, 5.0], x.clone()];
        x.iter_mut().for_each(|x| *x *= -1e-3);
        for x in rows.into_iter().chain([x]) {
            let (mut out, mut params) = (vec![99; x.len()], [0.0; 2]);
            run_wide(Quantize { x: &x, real: |x: f32| x, out: &mut out, params: &mut params });
            let (least, most) = (x.iter().fold(0f32, |a, b| a.min(*b)), x.iter().fold(0f32, |a, b| a.max(*b)));
            let k = if least == most { 1.0 } else { 255.0 / (most - least) };
            assert_eq!(params[0], 1.0 / k);
            for (out, x) in out.iter().zip(&x) {
                let whole = (x * k).clamp(-32768.0, 32767.0).round_ties_even();
                assert_eq!(*out, (whole + params[1]).clamp(-128.0, 127.0) as i8, "{x}");
            }
        }
    }
}
