//! The loop over output pixels and the taps of their windows.

use std::ops::Range;

use edgepack_executor::tensor::Scalar;

use crate::spatial::{Images, Slide, Taps};
use edgepack_compute::number::{Cast, Compute, Number};
use edgepack_compute::simd::wide;

/// Channels pooled side by side where they are neighbours.
const LANES: usize = 32;
/// Places of a row pooled side by side where its pixels are.
const BLOCK: usize = 8;

/// The windows along one dimension.
#[derive(Clone, Copy, Debug)]
pub enum Axis {
    /// They slide.
    Sliding(Slide),
    /// They divide the input into `out` windows, as evenly as possible, overlapping where it does not divide.
    Adaptive { input: usize, out: usize },
}

impl Axis {
    #[inline]
    fn taps(&self, place: usize) -> Taps {
        match self {
            Axis::Sliding(slide) => slide.taps(place),
            Axis::Adaptive { input, out } => {
                let (first, end) = (place * input / out, ((place + 1) * input).div_ceil(*out));
                Taps { first, skipped: 0, count: end - first }
            }
        }
    }

    fn dilation(&self) -> usize {
        match self {
            Axis::Sliding(slide) => slide.dilation,
            Axis::Adaptive { .. } => 1,
        }
    }

    /// Taps inside the input or its padding.
    fn padded(&self, place: usize) -> usize {
        match self {
            Axis::Sliding(slide) => {
                let start = place * slide.stride;
                (slide.input + 2 * slide.padding).saturating_sub(start).min(slide.kernel)
            }
            Axis::Adaptive { .. } => self.taps(place).count,
        }
    }
}

/// What becomes of the elements of a window.
pub trait Pool<T: Number> {
    /// What is kept while taps are visited.
    type Acc: Copy;
    /// The result for a pixel.
    type Result;

    /// Before the first tap.
    fn start(&self) -> Self::Acc;
    /// One tap: the element and its place in the image. `first` marks the first of a window.
    fn add(&self, acc: &mut Self::Acc, x: T, place: usize, first: bool);
    /// The result; `inside` taps were visited of `padded` that lie in the input or its padding.
    fn finish(&self, acc: Self::Acc, inside: usize, padded: usize) -> Self::Result;
}

/// The greatest element and its place; the last NaN if there is one.
pub struct Greatest;

impl<T: Number> Pool<T> for Greatest {
    type Acc = (T::Compute, usize);
    type Result = (T::Compute, usize);

    fn start(&self) -> Self::Acc {
        (T::Compute::LEAST, 0)
    }

    #[inline(always)]
    fn add(&self, acc: &mut Self::Acc, x: T, place: usize, first: bool) {
        let x = x.to_compute();
        // Where the greatest is cannot be foreseen: choosing is faster than jumping.
        let take = first | acc.0.less(x) | x.is_nan();
        acc.0 = if take { x } else { acc.0 };
        acc.1 = if take { place } else { acc.1 };
    }

    fn finish(&self, acc: Self::Acc, _: usize, _: usize) -> Self::Result {
        acc
    }
}

/// The average.
pub struct Average {
    /// Whether padding counts as zeros.
    pub count_padding: bool,
    /// What to divide by instead of the count.
    pub divisor: Option<i64>,
}

impl<T: Number> Pool<T> for Average {
    type Acc = T::Compute;
    type Result = T;

    fn start(&self) -> T::Compute {
        T::Compute::ZERO
    }

    #[inline(always)]
    fn add(&self, acc: &mut T::Compute, x: T, _: usize, _: bool) {
        *acc = acc.plus(x.to_compute());
    }

    fn finish(&self, acc: T::Compute, inside: usize, padded: usize) -> T {
        let count = if self.count_padding { padded } else { inside };
        let divisor = self.divisor.unwrap_or(count as i64);
        T::from_scalar(if T::Compute::FLOATING {
            Scalar::Double(Cast::<f64>::cast(acc) / divisor as f64)
        } else {
            Scalar::Int(Cast::<i64>::cast(acc).checked_div(divisor).unwrap_or(0))
        })
    }
}

/// The windows of a call.
pub struct Windows {
    /// Where they read.
    pub input: Images,
    /// Where the results go.
    pub out: Images,
    /// Along depth, height and width.
    pub axes: [Axis; 3],
}

impl Windows {
    /// Pools, and hands every result with its place in the output to `emit`.
    pub fn run<T: Number, P: Pool<T>>(&self, data: &[T], pool: &P, emit: impl FnMut(usize, P::Result)) {
        if self.input.is_channels_last() {
            wide(|| self.pixels::<T, P, LANES>(data, pool, emit));
        } else {
            wide(|| self.pixels::<T, P, 1>(data, pool, emit));
        }
    }

    #[inline(always)]
    fn pixels<T: Number, P: Pool<T>, const L: usize>(
        &self,
        data: &[T],
        pool: &P,
        mut emit: impl FnMut(usize, P::Result),
    ) {
        let (input, out) = (&self.input, &self.out);
        for (n, c) in (0..input.batch.0).flat_map(|n| (0..input.channels.0).step_by(L).map(move |c| (n, c))) {
            let lanes = L.min(input.channels.0 - c);
            let data = &data[n * input.batch.1 + c * input.channels.1..];
            let to = n * out.batch.1 + c * out.channels.1;
            for z in 0..out.sizes[0] {
                let depth = self.axes[0].taps(z);
                for y in 0..out.sizes[1] {
                    let height = self.axes[1].taps(y);
                    let to = to + z * out.strides[0] + y * out.strides[1];
                    let inner = if L == 1 { self.inner(height, depth) } else { 0..0 };
                    for x in (0..inner.start).chain(inner.end..out.sizes[2]) {
                        let width = self.axes[2].taps(x);
                        let mut accs = [pool.start(); L];
                        self.window(data, pool, &mut accs[..lanes], [depth, height, width]);
                        let inside = depth.count * height.count * width.count;
                        let padded = self.axes[0].padded(z) * self.axes[1].padded(y) * self.axes[2].padded(x);
                        for (lane, &acc) in accs[..lanes].iter().enumerate() {
                            let to = to + x * out.strides[2] + lane * out.channels.1;
                            emit(to, pool.finish(acc, inside, padded));
                        }
                    }
                    let padded = self.axes[0].padded(z) * self.axes[1].padded(y);
                    self.row(data, pool, inner, [depth, height], |x, acc, inside, wide| {
                        emit(to + x * out.strides[2], pool.finish(acc, inside, padded * wide));
                    });
                }
            }
        }
    }

    /// Places of a row whose windows lie inside the input, in whole blocks, if its pixels are neighbours.
    fn inner(&self, height: Taps, depth: Taps) -> Range<usize> {
        let Axis::Sliding(slide) = self.axes[2] else { return 0..0 };
        let dense = self.input.strides[2] == 1 && slide.dilation == 1;
        if !dense || height.count * depth.count == 0 || slide.input < slide.kernel {
            return 0..0;
        }
        let first = slide.padding.div_ceil(slide.stride);
        let last = (slide.input + slide.padding - slide.kernel) / slide.stride;
        let count = (last + 1).min(self.out.sizes[2]).saturating_sub(first) / BLOCK * BLOCK;
        first..first + count
    }

    /// Pools such places a block at a time: every tap of all of them, then the next.
    #[inline(always)]
    fn row<T: Number, P: Pool<T>>(
        &self,
        data: &[T],
        pool: &P,
        inner: Range<usize>,
        [depth, height]: [Taps; 2],
        mut emit: impl FnMut(usize, P::Acc, usize, usize),
    ) {
        let Axis::Sliding(slide) = self.axes[2] else { return };
        let (input, [dz, dy]) = (&self.input, [self.axes[0].dilation(), self.axes[1].dilation()]);
        let inside = depth.count * height.count * slide.kernel;
        for x in inner.step_by(BLOCK) {
            let left = x * slide.stride - slide.padding;
            let (mut accs, mut first) = ([pool.start(); BLOCK], true);
            for z in (depth.first..).step_by(dz).take(depth.count) {
                for y in (height.first..).step_by(dy).take(height.count) {
                    let row = &data[z * input.strides[0] + y * input.strides[1]..][left..];
                    let place = (z * input.sizes[1] + y) * input.sizes[2] + left;
                    for tap in 0..slide.kernel {
                        let taps = &row[tap..][..(BLOCK - 1) * slide.stride + 1];
                        for (lane, acc) in accs.iter_mut().enumerate() {
                            let at = lane * slide.stride;
                            pool.add(acc, taps[at], place + tap + at, first);
                        }
                        first = false;
                    }
                }
            }
            accs.iter().enumerate().for_each(|(lane, &acc)| emit(x + lane, acc, inside, slide.kernel));
        }
    }

    #[inline(always)]
    fn window<T: Number, P: Pool<T>>(
        &self,
        data: &[T],
        pool: &P,
        accs: &mut [P::Acc],
        [depth, height, width]: [Taps; 3],
    ) {
        let (input, mut first) = (&self.input, true);
        let [dz, dy, dx] = [self.axes[0].dilation(), self.axes[1].dilation(), self.axes[2].dilation()];
        for z in (depth.first..).step_by(dz).take(depth.count) {
            for y in (height.first..).step_by(dy).take(height.count) {
                let row = z * input.strides[0] + y * input.strides[1];
                for x in (width.first..).step_by(dx).take(width.count) {
                    let place = (z * input.sizes[1] + y) * input.sizes[2] + x;
                    let pixel = &data[row + x * input.strides[2]..][..accs.len()];
                    for (acc, &value) in accs.iter_mut().zip(pixel) {
                        pool.add(acc, value, place, first);
                    }
                    first = false;
                }
            }
        }
    }
}
