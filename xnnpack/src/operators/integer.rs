//! Operators on 8-bit numbers with one scale and zero point each.
//!
//! Sums are exact in 32 bits and wrap, as they do in every library; what follows them is one rounding per operation in the
//! order that is written here, so results are those of the library to the bit.

use std::sync::Arc;

use edgepack_compute::qconv::{self, Requantise, Windows, requantised};
use edgepack_compute::simd::{Loop, look_up, run_wide, wide};
use edgepack_compute::threads::{Cost, for_each_piece_at};
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Prepare, Run};
use edgepack_executor::tensor::PodElement;
use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::{Dims, MAX_RANK};

use super::{elementwise, own, retaining};

/// Conversion of sums to 8-bit numbers.
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
        let limits = self.bounds.map(|bound| (bound - self.zero_y) as f32);
        requantised(sum, self.scales[channel % self.scales.len()], limits, self.zero_y)
    }

    /// For loops that take results of many channels at once. Zero points and bounds are bytes.
    fn of_channels(&self) -> Requantise<'_> {
        Requantise {
            factors: &self.scales,
            input_zero: self.zero_x as i8,
            output_zero: self.zero_y as i8,
            output_limits: self.bounds.map(|bound| bound as i8),
        }
    }
}

/// Schema of a product; the kind of weights is known from their packed form, where there is one.
const PRODUCT: &str = "(Tensor x, Tensor w, Tensor? b, *, Tensor(a!) out) -> Tensor(a!)";
const BIAS: usize = 2;
const OUT: usize = 3;

/// A constant of a call, if it is there.
pub(super) fn constant<'p, T: PodElement>(args: &Prepare<'p>, at: usize) -> Result<Option<&'p [T]>, KernelError> {
    let Some(tensor) = args.tensor_opt(at)? else { return Ok(None) };
    let data = tensor.constant.ok_or_else(|| KernelError::unsupported("weights that change"))?;
    data.as_slice::<T>().map(Some)
}

/// Rows `[..., K]` times packed weights `[N, K]`.
pub(crate) fn product(how: Requantize, packed: Arc<qconv::Packed>) -> Arc<dyn Operator> {
    own("xnnpack::product.int8", PRODUCT, Alias::Disjoint, move |args| {
        let [channels, width] = packed.sizes();
        let retained = qconv::Convolution::bytes(packed.sizes(), &Windows::ONE);
        args.retained().reserve(retained)?;
        let (bias, packed) = (constant(args, BIAS)?, Arc::clone(&packed));
        let product = qconv::Convolution::new(packed, Windows::ONE, bias, how.of_channels())?;
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let rows = resize_rows(cx, OUT, [width, channels])?;
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            Ok(product.run(x, [rows, 1, 1, width], views.out(OUT)?.as_mut_slice::<i8>()?)?)
        })
    })
}

/// Sets the sizes of rows of `to` elements that are made of those of `from` elements, and returns their number.
pub(super) fn resize_rows(
    cx: &mut KernelContext<'_>,
    out: usize,
    [from, to]: [usize; 2],
) -> Result<usize, KernelError> {
    let mut sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
    match sizes.last_mut() {
        Some(last) if *last == from => *last = to,
        _ => return Err(KernelError::new(ErrorCode::InvalidArgument, "rows of another length")),
    }
    cx.resize(out, &sizes)?;
    Ok(sizes[..sizes.len() - 1].iter().product())
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

/// A convolution with packed weights `[groups * Co, kh * kw * Ci]`.
pub(crate) fn convolution(how: Requantize, windows: Windows, packed: Arc<qconv::Packed>) -> Arc<dyn Operator> {
    own("xnnpack::convolution.int8", PRODUCT, Alias::Disjoint, move |args| {
        let [outputs, inner] = packed.sizes();
        let inputs = inner / (windows.kernel[0] * windows.kernel[1]).max(1) * windows.groups;
        let retained = qconv::Convolution::bytes(packed.sizes(), &windows);
        args.retained().reserve(retained)?;
        let (bias, packed) = (constant(args, BIAS)?, Arc::clone(&packed));
        let convolution = qconv::Convolution::new(packed, windows, bias, how.of_channels())?;
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, Some(inputs))?;
            let [oh, ow] = windows.counts([h, w]);
            cx.resize(OUT, &[n, oh, ow, outputs])?;
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            Ok(convolution.run(x, [n, h, w, c], views.out(OUT)?.as_mut_slice::<i8>()?)?)
        })
    })
}

/// A convolution of few channels, of images that are always as large as now, with weights `[Co, kh, kw, Ci]`.
pub(crate) fn narrow(how: Requantize, windows: Windows) -> Arc<dyn Operator> {
    own("xnnpack::convolution.int8", PRODUCT, Alias::Disjoint, move |args| {
        let [outputs, kh, kw, inputs] = *args.tensor(1)?.meta.sizes else {
            return Err(KernelError::unsupported("weights"));
        };
        let [_, h, w, _] = *args.tensor(0)?.meta.sizes else { return Err(KernelError::unsupported("no image")) };
        let sizes = [outputs, kh * kw * inputs];
        let retained = qconv::NarrowConvolution::bytes(sizes, &windows, [h, w])
            .ok_or_else(|| KernelError::unsupported(format!("{windows:?}")))?;
        args.retained().reserve(retained)?;
        let weights = constant(args, 1)?.ok_or_else(|| KernelError::unsupported("no weights"))?;
        let (bias, how) = (constant(args, BIAS)?, how.of_channels());
        let convolution = qconv::NarrowConvolution::new(weights, sizes, windows, [h, w], bias, how)?;
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let image @ [n, h, w, _] = image_sizes(cx, Some(inputs))?;
            let [oh, ow] = windows.counts([h, w]);
            cx.resize(OUT, &[n, oh, ow, outputs])?;
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            Ok(convolution.run(x, image, views.out(OUT)?.as_mut_slice::<i8>()?)?)
        })
    })
}

/// A convolution of so many channels, each by itself, with packed weights `[kh * kw, C]`.
pub(crate) fn depthwise(how: Requantize, windows: Windows, packed: Arc<qconv::PackedTaps>) -> Arc<dyn Operator> {
    own("xnnpack::depthwise.int8", PRODUCT, Alias::Disjoint, move |args| {
        let [_, channels] = packed.sizes();
        let retained = qconv::Depthwise::bytes(channels, &windows);
        args.retained().reserve(retained)?;
        let (bias, packed) = (constant(args, BIAS)?, Arc::clone(&packed));
        let depthwise = qconv::Depthwise::new(packed, windows, bias, how.of_channels())?;
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, Some(channels))?;
            let [oh, ow] = windows.counts([h, w]);
            cx.resize(OUT, &[n, oh, ow, channels])?;
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            Ok(depthwise.run(x, [n, h, w, c], views.out(OUT)?.as_mut_slice::<i8>()?)?)
        })
    })
}

/// A transposed convolution with weights `[Co, kh, kw, Ci]` that is split into phases; `more` are the rows and columns it adds.
pub(crate) fn transposed(how: Requantize, windows: Windows, more: [usize; 2]) -> Arc<dyn Operator> {
    own("xnnpack::transposed_convolution.int8", PRODUCT, Alias::Disjoint, move |args| {
        let [outputs, _, _, inputs] = *args.tensor(1)?.meta.sizes else {
            return Err(KernelError::unsupported("weights"));
        };
        let image = <[usize; 4]>::try_from(args.tensor(0)?.meta.sizes).ok();
        // An image that never has several columns, and stays so, is computed as a line.
        let is_column = windows.kernel[1] == 1 && windows.padding[1] == [0; 2] && more[1] == 0;
        let is_line = is_column && image.is_some_and(|[_, _, w, _]| w == 1);
        let turn = move |sides: [usize; 2]| if is_line { [sides[1], sides[0]] } else { sides };
        let (along, more_along) = (if is_line { windows.turned() } else { windows }, turn(more));
        let retained = qconv::TransposedConvolution::bytes([outputs, inputs], &along, more_along)
            .ok_or_else(|| KernelError::unsupported(format!("{windows:?}")))?;
        args.retained().reserve(retained)?;
        let weights = constant(args, 1)?.ok_or_else(|| KernelError::unsupported("no weights"))?;
        let (bias, sizes) = (constant(args, BIAS)?, [outputs, inputs]);
        let how = how.of_channels();
        let convolution = qconv::TransposedConvolution::new(weights, sizes, along, more_along, bias, how)?;
        let turned = move |[n, h, w, c]: [usize; 4]| {
            let [h, w] = turn([h, w]);
            [n, h, w, c]
        };
        if let Some(image) = image {
            args.scratch(convolution.scratch(turned(image)));
        }
        retaining(retained, move |cx: &mut KernelContext<'_>| {
            let image @ [n, h, w, _] = image_sizes(cx, Some(inputs))?;
            if is_line && w > 1 {
                return Err(KernelError::new(ErrorCode::InvalidArgument, format!("an image of {w} columns")));
            }
            let [oh, ow] = windows.spread([h, w], more);
            cx.resize(OUT, &[n, oh, ow, outputs])?;
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            let scratch = bytemuck::cast_slice_mut(views.scratch()?);
            Ok(convolution.run(x, turned(image), scratch, views.out(OUT)?.as_mut_slice::<i8>()?)?)
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
    /// Returns the sum for scales and zero points; `None` if the scales are too far apart.
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
        let bias = 1i32.wrapping_shl(self.shift.wrapping_sub(1)).wrapping_sub(ma.wrapping_mul(self.zeros[0]));
        let sum = bias.wrapping_sub(mb.wrapping_mul(self.zeros[1]));
        let sum = sum.wrapping_add(ma.wrapping_mul(a.into())).wrapping_add(mb.wrapping_mul(b.into()));
        sum.wrapping_shr(self.shift).wrapping_add(self.zero_y).max(self.bounds[0]).min(self.bounds[1]) as i8
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
        let [za, zb] = self.zeros;
        let product = i32::from(a).wrapping_sub(za).wrapping_mul(i32::from(b).wrapping_sub(zb));
        let [least, most] = self.bounds;
        let limits = [least.wrapping_sub(self.zero_y) as f32, most.wrapping_sub(self.zero_y) as f32];
        requantised(product, self.scale, limits, self.zero_y)
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
    elementwise(name, BINARY, move |_| {
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
            let out = out.as_mut_slice::<i8>()?;
            if out.is_empty() {
                return Ok(());
            }
            let (merged, count) = merged(&sizes, [&sa, &sb]);
            let (inner, outer) = (merged[0], &merged[1..count]);
            let unit = if outer.is_empty() { 1 } else { inner.0 };
            for_each_piece_at(ELEMENT, out, unit, |start, out| {
                run_wide(Rows { start, inner, outer, out, a, b, result });
            });
            Ok(())
        }) as Box<dyn Run>)
    })
}

/// A dimension: its size, and the step of each input.
type Dimension = (usize, [usize; 2]);

/// The dimensions from the innermost on, at least one, and how many: neighbours in which each input has all elements, or one of
/// them, are one dimension.
fn merged(sizes: &[usize], steps: [&[usize]; 2]) -> ([Dimension; MAX_RANK], usize) {
    let (mut dimensions, mut count, mut repeats) = ([(1, [0; 2]); MAX_RANK], 0, [false; 2]);
    for dim in (0..sizes.len()).rev().filter(|&dim| sizes[dim] > 1) {
        let steps = steps.map(|steps| steps[dim]);
        let of_dim = steps.map(|step| step == 0);
        if count == 0 || of_dim != repeats {
            (dimensions[count], repeats) = ((1, steps), of_dim);
            count += 1;
        }
        dimensions[count - 1].0 *= sizes[dim];
    }
    (dimensions, count.max(1))
}

/// The result of two bytes.
const ELEMENT: Cost = Cost::nanoseconds(0.15);

/// Results from one on, the steps of whose innermost dimension are 0 or 1.
struct Rows<'a, F> {
    start: usize,
    inner: Dimension,
    outer: &'a [Dimension],
    out: &'a mut [i8],
    a: &'a [i8],
    b: &'a [i8],
    result: F,
}

impl<F: Fn(i8, i8) -> i8 + Copy> Loop for Rows<'_, F> {
    #[inline(always)]
    fn run(self) {
        let Rows { start, inner: (size, steps), outer, out, a, b, result } = self;
        let first = start % size;
        for (at, out) in (start / size..).zip(out.chunks_mut(size)) {
            let (mut left, mut places) = (at, steps.map(|step| step * first));
            for (dim, &(size, steps)) in outer.iter().enumerate() {
                let place = if dim + 1 == outer.len() { left } else { left % size };
                places = [places[0] + place * steps[0], places[1] + place * steps[1]];
                left /= size;
            }
            let len = steps.map(|step| if step == 0 { 1 } else { out.len() });
            row(out, &a[places[0]..][..len[0]], &b[places[1]..][..len[1]], result);
        }
    }
}

/// Results of rows, either of which may be one element that is repeated.
#[inline(always)]
fn row(out: &mut [i8], a: &[i8], b: &[i8], result: impl Fn(i8, i8) -> i8) {
    match (a, b) {
        (a, b) if a.len() == out.len() && b.len() == out.len() => {
            out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = result(*a, *b));
        }
        (a, &[b]) if a.len() == out.len() => out.iter_mut().zip(a).for_each(|(out, a)| *out = result(*a, b)),
        (&[a], b) if b.len() == out.len() => out.iter_mut().zip(b).for_each(|(out, b)| *out = result(a, *b)),
        _ => out.iter_mut().for_each(|out| *out = result(a[0], b[0])),
    }
}

const UNARY: &str = "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)";

/// Each number as a table of 256 says; the first entry is that of -128.
pub(crate) fn table(table: [i8; 256]) -> Arc<dyn Operator> {
    let limits = [table[0], table[255]];
    let is_limit = |(number, entry): (i8, &i8)| *entry == number.max(limits[0]).min(limits[1]);
    let limits = (i8::MIN..=i8::MAX).zip(&table).all(is_limit).then_some(limits);
    let cost = Cost::nanoseconds(if limits.is_some() { 0.03 } else { 0.1 });
    elementwise("xnnpack::table.int8", UNARY, move |_| {
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            cx.resize(1, &sizes)?;
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            let mut out = views.out(1)?;
            for_each_piece_at(cost, out.as_mut_slice::<i8>()?, 1, |start, out| {
                let x = &x[start..][..out.len()];
                match limits {
                    Some([least, most]) => wide(|| {
                        out.iter_mut().zip(x).for_each(|(out, x)| *out = (*x).max(least).min(most));
                    }),
                    None => look_up(&table, x, out),
                }
            });
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
            Ok(qconv::means(x, [h * w, c], [inverse, offset], out.as_mut_slice::<i8>()?)?)
        }) as Box<dyn Run>)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_repeated_along_any_dimensions() {
        for kinds in 0..4usize.pow(4) {
            // For each dimension: both have it, either repeats, or its size is 1.
            let (mut sizes, mut steps, mut lens) = ([1; 4], [[0; 4]; 2], [1; 2]);
            for dim in (0..4).rev() {
                let kind = kinds / 4usize.pow(dim as u32) % 4;
                sizes[dim] = if kind == 3 { 1 } else { 2 + dim };
                for input in 0..2 {
                    if kind != 3 && kind != input + 1 {
                        steps[input][dim] = lens[input];
                        lens[input] *= sizes[dim];
                    }
                }
            }
            let [a, b] = lens.map(|len| (0..len).map(|at| at as i8).collect::<Vec<_>>());
            let place = |at: usize, steps: &[usize; 4]| {
                (0..4)
                    .rev()
                    .fold((at, 0), |(left, sum), dim| (left / sizes[dim], sum + left % sizes[dim] * steps[dim]))
                    .1
            };
            let result = |a: i8, b: i8| a.wrapping_mul(3).wrapping_sub(b);
            let want: Vec<i8> = (0..sizes.iter().product())
                .map(|at| result(a[place(at, &steps[0])], b[place(at, &steps[1])]))
                .collect();
            let (dimensions, count) = merged(&sizes, [&steps[0], &steps[1]]);
            let (inner, outer) = (dimensions[0], &dimensions[1..count]);
            for start in [0, if count == 1 { want.len() / 2 } else { inner.0 }] {
                let mut out = vec![99; want.len() - start];
                Rows { start, inner, outer, out: &mut out, a: &a, b: &b, result }.run();
                assert_eq!(out, want[start..], "{sizes:?} {steps:?} from {start}");
            }
        }
    }
}
