//! Products and convolutions of 8-bit numbers whose weights have a zero point of their own, and transposed convolutions in
//! groups: what no exporter writes, but a payload can say. One loop computes all, window by window.

use std::sync::Arc;

use edgepack_compute::qconv::Windows;
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run};
use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::Dims;

use super::integer::{Requantize, image_sizes};
use super::own;

const SCHEMA: &str = "(Tensor x, Tensor w, Tensor? b, *, Tensor(a!) out) -> Tensor(a!)";
const OUT: usize = 3;

/// Weights and what becomes of sums.
#[derive(Clone, Debug)]
pub(crate) struct Weighted {
    pub how: Requantize,
    /// The weight that represents zero.
    pub zero: i32,
}

impl Weighted {
    /// Adds the products of one tap to a sum.
    fn add(&self, sum: i32, x: &[i8], w: &[i8]) -> i32 {
        x.iter().zip(w).fold(sum, |sum, (x, w)| {
            sum.wrapping_add((i32::from(*x) - self.how.zero_x).wrapping_mul(i32::from(*w) - self.zero))
        })
    }
}

/// Rows `[..., K]` times weights `[N, K]`.
pub(crate) fn product(weighted: Weighted) -> Arc<dyn Operator> {
    own("xnnpack::product_with_zero.int8", SCHEMA, Alias::Disjoint, move |args| {
        let [channels, width] = *args.tensor(1)?.meta.sizes else { return Err(KernelError::unsupported("weights")) };
        let weighted = weighted.clone();
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
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
            let rows = x.chunks_exact(width.max(1));
            for (out, x) in out.as_mut_slice::<i8>()?.chunks_exact_mut(channels.max(1)).zip(rows) {
                for (channel, (out, w)) in out.iter_mut().zip(w.chunks_exact(width.max(1))).enumerate() {
                    let bias = bias.map_or(0, |bias| bias[channel]);
                    *out = weighted.how.result(weighted.add(bias, x, w), channel);
                }
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}

/// A kind of convolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Weights `[groups * Co, kh, kw, Ci]`.
    Dense,
    /// Weights `[1, kh, kw, C * multiplier]`.
    Depthwise,
    /// Weights as those of `Dense`; so many rows and columns more.
    Transposed([usize; 2]),
}

impl Kind {
    fn sizes(self, windows: &Windows, sizes: [usize; 2]) -> [usize; 2] {
        match self {
            Kind::Transposed(more) => windows.spread(sizes, more),
            _ => windows.counts(sizes),
        }
    }

    /// The place in the image that reaches a place of the result by a tap.
    fn source(self, windows: &Windows, side: usize, place: usize, tap: usize, size: usize) -> Option<usize> {
        if !matches!(self, Kind::Transposed(_)) {
            return windows.place(side, place, tap, size);
        }
        let place = (place + windows.padding[side][0]).checked_sub(tap * windows.dilation[side])?;
        place.is_multiple_of(windows.stride[side]).then_some(place / windows.stride[side]).filter(|p| *p < size)
    }
}

/// A convolution of images `[N, H, W, C]`.
pub(crate) fn convolution(weighted: Weighted, windows: Windows, kind: Kind) -> Arc<dyn Operator> {
    own("xnnpack::convolution_with_zero.int8", SCHEMA, Alias::Disjoint, move |args| {
        let [first, kh, kw, last] = *args.tensor(1)?.meta.sizes else {
            return Err(KernelError::unsupported("weights"));
        };
        let (outputs, each) = if kind == Kind::Depthwise { (last, 1) } else { (first, last) };
        let inputs = windows.groups * each;
        let (weighted, per_group) = (weighted.clone(), outputs.checked_div(windows.groups).unwrap_or(0).max(1));
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, Some(inputs))?;
            let [oh, ow] = kind.sizes(&windows, [h, w]);
            cx.resize(OUT, &[n, oh, ow, outputs])?;
            let views = cx.views();
            let (x, weights) = (views.tensor(0)?.as_slice::<i8>()?, views.tensor(1)?.as_slice::<i8>()?);
            let bias = views.tensor_opt(2)?.map(|bias| bias.as_slice::<i32>()).transpose()?;
            let mut out = views.out(OUT)?;
            let mut pixels = out.as_mut_slice::<i8>()?.chunks_exact_mut(outputs.max(1));
            for image in x.chunks_exact((h * w * c).max(1)).take(n) {
                for (oy, ox) in (0..oh).flat_map(|oy| (0..ow).map(move |ox| (oy, ox))) {
                    let Some(pixel) = pixels.next() else { return Ok(()) };
                    for (channel, out) in pixel.iter_mut().enumerate() {
                        let from = channel / per_group * each;
                        let mut sum = bias.map_or(0, |bias| bias[channel]);
                        for (ky, kx) in (0..kh).flat_map(|ky| (0..kw).map(move |kx| (ky, kx))) {
                            let y = kind.source(&windows, 0, oy, ky, h);
                            let Some((y, column)) = y.zip(kind.source(&windows, 1, ox, kx, w)) else { continue };
                            let at = match kind {
                                Kind::Depthwise => (ky * kw + kx) * outputs + channel,
                                _ => ((channel * kh + ky) * kw + kx) * each,
                            };
                            let seen = &image[(y * w + column) * c + from..][..each];
                            sum = weighted.add(sum, seen, &weights[at..at + each]);
                        }
                        *out = weighted.how.result(sum, channel);
                    }
                }
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}
