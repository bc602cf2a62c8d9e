//! Pooling: the greatest element or the average of windows over images of one, two or three spatial dimensions.
//!
//! One loop over output pixels and the taps of their windows. Where the channels of a pixel are neighbours they are pooled
//! next to each other; where the pixels of a row are, blocks of places.

mod pixels;
mod reduce;
mod vectors;

use std::ops::Range;

use crate::element::Scalar;
use crate::number::{Cast, Compute, Number, as_floats, as_floats_mut};
use crate::simd::wide;
use crate::spatial::{Images, Slide, Taps};
use crate::threads::{Cost, for_each_piece_at};

/// Nanoseconds of a tap of a window.
const TAP: f64 = 0.2;

/// Channels pooled next to each other where they are neighbours.
const LANES: usize = 32;
/// Places of a row pooled next to each other where its pixels are neighbours.
const BLOCK: usize = 8;

/// The windows along one dimension.
#[derive(Clone, Copy, Debug)]
pub enum Axis {
    /// Windows that slide.
    Sliding(Slide),
    /// Windows that divide the input into `out` parts, as evenly as possible, overlapping where it does not divide.
    Adaptive {
        /// Elements of the input.
        input: usize,
        /// Windows.
        out: usize,
    },
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

    /// Taps inside the input or its padding, of a window that has these inside the input.
    fn padded(&self, place: usize, taps: Taps) -> usize {
        match self {
            Axis::Sliding(slide) => {
                let start = place * slide.stride;
                (slide.input + 2 * slide.padding).saturating_sub(start).min(slide.kernel)
            }
            Axis::Adaptive { .. } => taps.count,
        }
    }

    /// The same windows as sliding ones, if they are: those that divide the input into equal parts.
    fn sliding(self) -> Axis {
        match self {
            Axis::Adaptive { input, out } if input > 0 && out > 0 && input.is_multiple_of(out) => {
                let kernel = input / out;
                Axis::Sliding(Slide { input, kernel, stride: kernel, padding: 0, dilation: 1 })
            }
            axis => axis,
        }
    }
}

/// Windows over images, and where their results go.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// The images they are over.
    pub input: Images,
    /// The images of results: as many, with as many channels, and a pixel per place.
    pub out: Images,
    /// Along depth, height and width.
    pub axes: [Axis; 3],
}

impl Windows {
    /// Computes the greatest element of every window, and its place in the image: `(z * height + y) * width + x`. A NaN is
    /// greater than anything, the last one greatest.
    ///
    /// ```
    /// use edgepack_compute::pool::{Axis, Windows};
    /// use edgepack_compute::spatial::{Images, Slide};
    ///
    /// let slide = Slide { input: 4, kernel: 2, stride: 2, ..Slide::POINT };
    /// let point = Axis::Sliding(Slide::POINT);
    /// let (input, out) = (Images::channels_first(1, 1, [1, 1, 4]), Images::channels_first(1, 1, [1, 1, 2]));
    /// let windows = Windows { input, out, axes: [point, point, Axis::Sliding(slide)] };
    /// let (mut greatest, mut places) = ([0; 2], [0; 2]);
    /// windows.greatest(&[3, 1, 4, 1], &mut greatest, &mut places);
    /// assert_eq!((greatest, places), ([3, 4], [0, 2]));
    /// ```
    ///
    /// # Panics
    ///
    /// If a slice is shorter than the windows say.
    pub fn greatest<T: Number>(&self, data: &[T], out: &mut [T], places: &mut [i64]) {
        let windows = self.sliding();
        windows.run(data, &Greatest, windows.everything(), |at, (value, place): (T::Compute, usize)| {
            out[at] = value.cast();
            places[at] = place as i64;
        });
    }

    /// Computes the greatest element of every window as [`Windows::greatest`] does, without the places.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than the windows say.
    pub fn greatest_values<T: Number>(&self, data: &[T], out: &mut [T]) {
        let windows = self.sliding();
        if let (Some(data), Some(out)) = (as_floats(data), as_floats_mut(out))
            && windows.greatest_vectors(data, out)
        {
            return;
        }
        windows.share(data, &GreatestValue, out);
    }

    /// Computes the average of every window; integers are divided towards zero.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than the windows say.
    pub fn average<T: Number>(&self, data: &[T], average: Average, out: &mut [T]) {
        let windows = self.sliding();
        if let (Some(data), Some(out)) = (as_floats(data), as_floats_mut(out))
            && windows.average_vectors(data, average, out)
        {
            return;
        }
        windows.share(data, &average, out);
    }

    /// The same windows, sliding where they can.
    fn sliding(&self) -> Windows {
        Windows { axes: self.axes.map(Axis::sliding), ..*self }
    }

    /// All images, channels and rows.
    fn everything(&self) -> [Range<usize>; 3] {
        [0..self.input.batch.0, 0..self.input.channels.0, 0..self.out.sizes[1]]
    }

    /// Pools in several threads if that pays and the output has no gaps.
    fn share<T: Number, P: Pool<T, Result = T> + Sync>(&self, data: &[T], pool: &P, out: &mut [T]) {
        let Windows { input, out: to, axes } = self;
        let (channels, [depth, height, width]) = (to.channels.0, to.sizes);
        let taps: usize = axes.iter().zip(to.sizes).map(|(axis, size)| axis.taps(size / 2).count.max(1)).product();
        let cost = Cost::nanoseconds(TAP * taps as f64);
        let all = input.batch.0 * channels * to.area();
        let last = Images::channels_last(input.batch.0, channels, to.sizes);
        let first = Images::channels_first(input.batch.0, channels, to.sizes);
        if to.is_placed_as(&last) && depth == 1 {
            for_each_piece_at(cost, &mut out[..all], width * channels, |start, out| {
                for row in start / (width * channels)..(start + out.len()) / (width * channels) {
                    let (n, y) = (row / height, row % height);
                    let before = start + n * to.batch.1 - n * last.batch.1;
                    self.run(data, pool, [n..n + 1, 0..channels, y..y + 1], write_from(before, out));
                }
            });
        } else if to.is_placed_as(&first) {
            for_each_piece_at(cost, &mut out[..all], to.area(), |start, out| {
                for plane in start / to.area()..(start + out.len()) / to.area() {
                    let (n, channel) = (plane / channels, plane % channels);
                    let before = start + n * to.batch.1 - n * first.batch.1;
                    self.run(data, pool, [n..n + 1, channel..channel + 1, 0..height], write_from(before, out));
                }
            });
        } else {
            self.run(data, pool, self.everything(), write_from(0, out));
        }
    }

    /// Pools some images, channels and rows, and hands every result with its place in the output to `emit`.
    fn run<T: Number, P: Pool<T>>(
        &self,
        data: &[T],
        pool: &P,
        which: [Range<usize>; 3],
        emit: impl FnMut(usize, P::Result),
    ) {
        if self.input.is_channels_last() {
            wide(|| self.pixels::<T, P, LANES>(data, pool, which, emit));
        } else {
            wide(|| self.pixels::<T, P, 1>(data, pool, which, emit));
        }
    }

    #[inline(always)]
    fn pixels<T: Number, P: Pool<T>, const L: usize>(
        &self,
        data: &[T],
        pool: &P,
        [images, channels, rows]: [Range<usize>; 3],
        mut emit: impl FnMut(usize, P::Result),
    ) {
        let (input, out) = (&self.input, &self.out);
        for (n, c) in images.flat_map(|n| channels.clone().step_by(L).map(move |c| (n, c))) {
            let lanes = L.min(channels.end - c);
            let data = &data[n * input.batch.1 + c * input.channels.1..];
            let to = n * out.batch.1 + c * out.channels.1;
            for z in 0..out.sizes[0] {
                let depth = self.axes[0].taps(z);
                for y in rows.clone() {
                    let height = self.axes[1].taps(y);
                    let to = to + z * out.strides[0] + y * out.strides[1];
                    let inner = if L == 1 { self.inner(height, depth) } else { 0..0 };
                    let padded = self.axes[0].padded(z, depth) * self.axes[1].padded(y, height);
                    for x in (0..inner.start).chain(inner.end..out.sizes[2]) {
                        let width = self.axes[2].taps(x);
                        let mut accs = [pool.start(); L];
                        self.window(data, pool, &mut accs[..lanes], [depth, height, width]);
                        let inside = depth.count * height.count * width.count;
                        let padded = padded * self.axes[2].padded(x, width);
                        for (lane, &acc) in accs[..lanes].iter().enumerate() {
                            let to = to + x * out.strides[2] + lane * out.channels.1;
                            emit(to, pool.finish(acc, inside, padded));
                        }
                    }
                    self.row(data, pool, inner, [depth, height], |x, acc, inside, width| {
                        emit(to + x * out.strides[2], pool.finish(acc, inside, padded * width));
                    });
                }
            }
        }
    }

    /// Places of a row whose windows are inside the input, in whole blocks, if its pixels are neighbours.
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
                    match (<&mut [P::Acc; LANES]>::try_from(&mut *accs), <&[T; LANES]>::try_from(pixel)) {
                        (Ok(accs), Ok(pixel)) => {
                            accs.iter_mut().zip(pixel).for_each(|(acc, &value)| pool.add(acc, value, place, first));
                        }
                        _ => accs.iter_mut().zip(pixel).for_each(|(acc, &value)| pool.add(acc, value, place, first)),
                    }
                    first = false;
                }
            }
        }
    }
}

/// Returns what writes a result with its place, where the first of these places is `before`. Loops that write are the same code
/// with it wherever they begin.
fn write_from<T>(before: usize, out: &mut [T]) -> impl FnMut(usize, T) {
    move |at, value| out[at - before] = value
}

/// A result for the elements of a window.
trait Pool<T: Number> {
    /// State after some of the taps.
    type Acc: Copy;
    /// The result for a pixel.
    type Result;

    /// Before the first tap.
    fn start(&self) -> Self::Acc;
    /// One tap: the element and its place in the image. `first` marks the first of a window.
    fn add(&self, acc: &mut Self::Acc, x: T, place: usize, first: bool);
    /// The result; `inside` taps were visited of `padded` that are in the input or its padding.
    fn finish(&self, acc: Self::Acc, inside: usize, padded: usize) -> Self::Result;
}

/// The greatest element and its place; the last NaN if there is one.
struct Greatest;

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

/// The greatest element, or the last NaN if there is one.
struct GreatestValue;

impl<T: Number> Pool<T> for GreatestValue {
    type Acc = T::Compute;
    type Result = T;

    fn start(&self) -> Self::Acc {
        T::Compute::LEAST
    }

    #[inline(always)]
    fn add(&self, acc: &mut Self::Acc, x: T, _: usize, first: bool) {
        let x = x.to_compute();
        *acc = if first | acc.less(x) | x.is_nan() { x } else { *acc };
    }

    fn finish(&self, acc: Self::Acc, _: usize, _: usize) -> T {
        acc.cast()
    }
}

/// The divisor of averages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Average {
    /// True if padding counts as zeros.
    pub count_padding: bool,
    /// The divisor instead of the count of elements.
    pub divisor: Option<i64>,
}

impl Average {
    /// The divisor of a window of which `inside` taps are in the input, of `padded` that are in the input or its padding.
    #[inline(always)]
    fn divisor(&self, inside: usize, padded: usize) -> i64 {
        self.divisor.unwrap_or(if self.count_padding { padded } else { inside } as i64)
    }
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
        let divisor = self.divisor(inside, padded);
        T::from_scalar(if T::Compute::FLOATING {
            Scalar::Double(Cast::<f64>::cast(acc) / divisor as f64)
        } else {
            Scalar::Int(Cast::<i64>::cast(acc).checked_div(divisor).unwrap_or(0))
        })
    }
}

/// A place that no image has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutsideImage(pub i64);

/// Adds the gradients of the greatest elements of windows, which are laid out as `from` says, to the places they were
/// found at: those are laid out as `places` says, and are numbers of pixels of a plane of `out`, which is laid out as
/// `to` says. All have one layer.
///
/// ```
/// use edgepack_compute::pool::{OutsideImage, add_to_places};
/// use edgepack_compute::spatial::Images;
///
/// let (from, to) = (Images::channels_first(1, 1, [1, 1, 2]), Images::channels_first(1, 1, [1, 1, 3]));
/// let mut out = [0.0f32; 3];
/// add_to_places([&from, &from, &to], &[1.0, 2.0], &[2, 2], &mut out).unwrap();
/// assert_eq!(out, [0.0, 0.0, 3.0]);
/// assert_eq!(add_to_places([&from, &from, &to], &[1.0, 2.0], &[0, 3], &mut out), Err(OutsideImage(3)));
/// ```
///
/// # Panics
///
/// If a slice is shorter than its images say.
pub fn add_to_places<T: Number>(
    [from, places, to]: [&Images; 3],
    grad: &[T],
    indices: &[i64],
    out: &mut [T],
) -> Result<(), OutsideImage> {
    for plane in 0..from.batch.0 * from.channels.0 {
        let (n, channel) = (plane / from.channels.0, plane % from.channels.0);
        let start = n * from.batch.1 + channel * from.channels.1;
        let target = n * to.batch.1 + channel * to.channels.1;
        for pixel in 0..from.area() {
            let (y, x) = (pixel / from.sizes[2], pixel % from.sizes[2]);
            let at = start + y * from.strides[1] + x * from.strides[2];
            let index =
                n * places.batch.1 + channel * places.channels.1 + y * places.strides[1] + x * places.strides[2];
            let place = usize::try_from(indices[index]).ok().filter(|&place| place < to.area());
            let place = place.ok_or(OutsideImage(indices[index]))?;
            let at_out = target + place / to.sizes[2] * to.strides[1] + place % to.sizes[2] * to.strides[2];
            out[at_out] = out[at_out].to_compute().plus(grad[at].to_compute()).cast();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Layouts, windows in and over the padding, and blocks of rows give what visiting every tap of every window gives.
    #[test]
    fn windows_agree_with_visiting_every_tap() {
        let mut random = Random::new(43);
        for round in 0..40 {
            let (channels, sizes) =
                (random.below(40) + 1, [random.below(2) + 1, random.below(4) + 4, random.below(40) + 4]);
            let slides: [Slide; 3] = std::array::from_fn(|i| {
                let kernel = if i == 0 { 1 } else { random.below(3) + 1 };
                let stride = random.below(3) + 1;
                Slide { input: sizes[i], kernel, stride, padding: random.below(kernel / 2 + 1), dilation: 1 }
            });
            let places = slides.map(|slide| slide.places(round % 3 == 0).unwrap());
            let images = |sizes| match round % 2 {
                0 => Images::channels_first(2, channels, sizes),
                _ => Images::channels_last(2, channels, sizes),
            };
            let windows = Windows { input: images(sizes), out: images(places), axes: slides.map(Axis::Sliding) };
            let offset = |images: &Images, n: usize, c: usize, at: [usize; 3]| {
                let inner: usize = at.iter().zip(&images.strides).map(|(at, stride)| at * stride).sum();
                n * images.batch.1 + c * images.channels.1 + inner
            };
            let data: Vec<i32> = random.values(2 * channels * windows.input.area());
            let len = 2 * channels * windows.out.area();
            let (mut greatest, mut at, mut mean) = (vec![0; len], vec![0; len], vec![0; len]);
            windows.greatest(&data, &mut greatest, &mut at);
            let mut values = vec![0; len];
            windows.greatest_values(&data, &mut values);
            assert_eq!(values, greatest, "{windows:?}");
            windows.average(&data, Average { count_padding: false, divisor: Some(3) }, &mut mean);
            for index in 0..len {
                let (n, c, pixel) = (
                    index / channels / windows.out.area(),
                    index / windows.out.area() % channels,
                    index % windows.out.area(),
                );
                let place = [pixel / places[2] / places[1], pixel / places[2] % places[1], pixel % places[2]];
                let (mut best, mut found, mut sum) = (i32::MIN, 0, 0);
                for tap in 0..slides.iter().map(|slide| slide.kernel).product() {
                    let taps = [0, tap / slides[2].kernel, tap % slides[2].kernel];
                    let element: Vec<usize> = (0..3).filter_map(|i| slides[i].element(place[i], taps[i])).collect();
                    let Ok(element) = <[usize; 3]>::try_from(element) else { continue };
                    let x = data[offset(&windows.input, n, c, element)];
                    if x > best {
                        (best, found) = (x, (element[0] * sizes[1] + element[1]) * sizes[2] + element[2]);
                    }
                    sum += x;
                }
                let to = offset(&windows.out, n, c, place);
                assert_eq!((greatest[to], at[to], mean[to]), (best, found as i64, sum / 3), "{windows:?} {place:?}");
            }
        }
    }
}
