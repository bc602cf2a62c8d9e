//! Windows over channels-last images of `f32`: a vector of channels at a time.

use std::ops::Range;

use super::reduce::Reduce;
use super::{Axis, Windows};
use crate::simd::apart::{Apart, each_row};
use crate::simd::floats::{Floats, LANES as VECTOR, WithFloats, write};
use crate::spatial::Slide;

/// A row of the results of windows over channels-last pixels.
pub(super) struct Row<'a, 'o, R> {
    pub(super) windows: &'a Windows,
    /// Elements from those of the image on.
    pub(super) data: &'a [f32],
    pub(super) y: usize,
    pub(super) reduce: R,
    pub(super) out: &'o mut [f32],
}

impl<R: Reduce> WithFloats for Row<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(mut self, floats: F) {
        let Windows { out: to, axes: [_, _, right], .. } = self.windows;
        let (width, mut inside) = (to.sizes[2], 0..0);
        if let Axis::Sliding(slide) = *right {
            let Slide { input, kernel, stride, padding, dilation } = slide;
            let left = padding.div_ceil(stride).min(width);
            let end = (input + padding).checked_sub(slide.reach()).map_or(0, |free| free / stride + 1).min(width);
            if end >= left + PIXELS && self.has_vectors(&slide, end) {
                inside = left..end;
                self.each(floats, 0..left);
                match (kernel, stride, dilation) {
                    (2, 1, 1) => self.near::<F, 2, 1>(floats, &inside, padding),
                    (2, 2, 1) => self.near::<F, 2, 2>(floats, &inside, padding),
                    (3, 1, 1) => self.near::<F, 3, 1>(floats, &inside, padding),
                    (3, 2, 1) => self.near::<F, 3, 2>(floats, &inside, padding),
                    (5, 1, 1) => self.near::<F, 5, 1>(floats, &inside, padding),
                    _ => self.each_vector(|row, first| {
                        floats.apart(Inside { row, first, places: inside.clone(), slide });
                    }),
                }
            }
        }
        self.each(floats, inside.end..width);
    }
}

impl<R: Reduce> Row<'_, '_, R> {
    /// Returns whether a vector can be read of all that windows before the place `end` meet: where pixels have fewer channels,
    /// of the pixels behind them, too.
    fn has_vectors(&self, slide: &Slide, end: usize) -> bool {
        let Windows { input, axes: [_, down, _], .. } = self.windows;
        let (channels, height) = (input.channels.0, down.taps(self.y));
        let line = (height.first + height.count.saturating_sub(1) * down.dilation()) * input.strides[1];
        let last = (end - 1) * slide.stride + slide.reach() - 1 - slide.padding;
        channels >= VECTOR || line + last * channels + VECTOR <= self.data.len()
    }

    /// Places one by one. What is written behind the channels of a place is written again with the next one.
    #[inline(always)]
    fn each<F: Floats>(&mut self, floats: F, places: Range<usize>) {
        let channels = self.windows.out.channels.0;
        for x in places {
            let mut first = 0;
            while first < channels {
                // The last vector begins early enough to be whole, if there are so many channels.
                first = first.min(channels.saturating_sub(VECTOR));
                let result = self.windows.reduced(floats, self.data, self.reduce, [self.y, x, first]);
                write(floats, result, &mut self.out[x * channels + first..]);
                first += VECTOR;
            }
        }
    }
}

/// Results of windows over channels-last pixels, of up to so many channels as a vector has, to a plane for each.
pub(super) struct Planes<'a, 'o, R> {
    pub(super) windows: &'a Windows,
    /// Elements from those of the image on.
    pub(super) data: &'a [f32],
    /// The first channel.
    pub(super) first: usize,
    pub(super) reduce: R,
    pub(super) out: &'o mut [f32],
}

impl<R: Reduce> WithFloats for Planes<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Planes { windows, data, first, reduce, out } = self;
        let (area, [_, height, width]) = (windows.out.area(), windows.out.sizes);
        let mut numbers = [0.0; VECTOR];
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            floats.store(windows.reduced(floats, data, reduce, [y, x, first]), &mut numbers);
            for (plane, number) in out.chunks_exact_mut(area).zip(numbers) {
                plane[y * width + x] = number;
            }
        }
    }
}

impl Windows {
    /// A vector of channels from `first` on of the place `[y, x]`; lanes behind the last channel have any content.
    #[inline(always)]
    fn reduced<F: Floats, R: Reduce>(&self, floats: F, data: &[f32], reduce: R, [y, x, first]: [usize; 3]) -> F::V {
        let Windows { input, axes: [_, down, right], .. } = self;
        let (channels, height, width) = (input.channels.0, down.taps(y), right.taps(x));
        let mut all = floats.splat(R::NOTHING);
        for y in (height.first..).step_by(down.dilation()).take(height.count) {
            let line = &data[y * input.strides[1] + first..];
            for x in (width.first..).step_by(right.dilation()).take(width.count) {
                let values = &line[x * channels..];
                let values = match values.first_chunk() {
                    Some(values) => floats.load(values),
                    None => {
                        // The last channels of the last pixels.
                        let mut numbers = [0.0; VECTOR];
                        numbers[..values.len()].copy_from_slice(values);
                        floats.load(&numbers)
                    }
                };
                all = reduce.add(floats, all, values);
            }
        }
        reduce.finish(floats, all, height.count * width.count, down.padded(y, height) * right.padded(x, width))
    }
}

/// Neighbouring pixels that are computed together.
const PIXELS: usize = 4;
/// The most columns that their windows meet.
const MOST_COLUMNS: usize = 12;

impl<R: Reduce> Row<'_, '_, R> {
    /// All channels of places whose windows are inside of the line and have so many taps.
    #[inline(always)]
    fn near<F: Floats, const WIDTH: usize, const STRIDE: usize>(
        &mut self,
        floats: F,
        places: &Range<usize>,
        padding: usize,
    ) {
        self.each_vector(|row, first| {
            floats.apart(Near::<R, WIDTH, STRIDE> { row, first, places: places.clone(), padding });
        });
    }

    /// Calls `f` with the first channel of each vector of them.
    #[inline(always)]
    fn each_vector(&mut self, f: impl Fn(&mut Self, usize)) {
        let channels = self.windows.out.channels.0;
        let mut first = 0;
        while first < channels {
            // The last vector begins early enough to be whole.
            first = first.min(channels.saturating_sub(VECTOR));
            f(self, first);
            first += VECTOR;
        }
    }
}

/// A vector of channels of places whose windows are inside of the line: a function of its own, so that what columns have stays
/// in registers. Of each column the result of all lines is found once, or, where the order counts, what each line has there is
/// read once.
struct Near<'b, 'a, 'o, R, const WIDTH: usize, const STRIDE: usize> {
    row: &'b mut Row<'a, 'o, R>,
    first: usize,
    places: Range<usize>,
    /// Columns before the first of the line.
    padding: usize,
}

impl<F: Floats, R: Reduce, const WIDTH: usize, const STRIDE: usize> Apart<F> for Near<'_, '_, '_, R, WIDTH, STRIDE> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Near { row: Row { windows, data, y, reduce, out }, first, places, padding } = self;
        let Windows { input, out: to, axes: [_, down, _] } = windows;
        let (channels, height) = (to.channels.0, down.taps(*y));
        let (inside, around) = (height.count * WIDTH, down.padded(*y, height) * WIDTH);
        for x in places.clone().step_by(PIXELS) {
            // The last pixels begin early enough to be as many.
            let x = x.min(places.end - PIXELS);
            let left = x * STRIDE - padding;
            let mut columns = [floats.splat(R::NOTHING); MOST_COLUMNS];
            let mut all = [floats.splat(R::NOTHING); PIXELS];
            for y in (height.first..).step_by(down.dilation()).take(height.count) {
                let line = &data[y * input.strides[1] + left * channels + first..];
                let line = &line[..(WIDTH + (PIXELS - 1) * STRIDE - 1) * channels + VECTOR];
                each_row!(column < WIDTH + (PIXELS - 1) * STRIDE => {
                    if let Some(values) = line[column * channels..].first_chunk() {
                        let values = floats.load(values);
                        columns[column] =
                            if R::ANY_ORDER { reduce.add(floats, columns[column], values) } else { values };
                    }
                });
                if !R::ANY_ORDER {
                    each_row!(pixel < PIXELS => {
                        all[pixel] = across::<F, R, WIDTH>(floats, *reduce, all[pixel], &columns[pixel * STRIDE..]);
                    });
                }
            }
            each_row!(pixel < PIXELS => {
                if R::ANY_ORDER {
                    all[pixel] = across::<F, R, WIDTH>(floats, *reduce, all[pixel], &columns[pixel * STRIDE..]);
                }
                let result = reduce.finish(floats, all[pixel], inside, around);
                write(floats, result, &mut out[(x + pixel) * channels + first..]);
            });
        }
    }
}

/// Adds the first columns of a list to a result.
#[inline(always)]
fn across<F: Floats, R: Reduce, const WIDTH: usize>(floats: F, reduce: R, mut all: F::V, columns: &[F::V]) -> F::V {
    for values in &columns[..WIDTH] {
        all = reduce.add(floats, all, *values);
    }
    all
}

/// A vector of channels of places whose windows are inside of the line, of any width: each tap is met at all of a few places
/// before the next.
struct Inside<'b, 'a, 'o, R> {
    row: &'b mut Row<'a, 'o, R>,
    first: usize,
    places: Range<usize>,
    slide: Slide,
}

impl<F: Floats, R: Reduce> Apart<F> for Inside<'_, '_, '_, R> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Inside { row: Row { windows, data, y, reduce, out }, first, places, slide } = self;
        let Windows { input, out: to, axes: [_, down, _] } = windows;
        let (channels, height) = (to.channels.0, down.taps(*y));
        let (inside, around) = (height.count * slide.kernel, down.padded(*y, height) * slide.kernel);
        let (tap, step) = (slide.dilation * channels, slide.stride * channels);
        for x in places.clone().step_by(PIXELS) {
            // The last pixels begin early enough to be as many.
            let x = x.min(places.end - PIXELS);
            let left = x * slide.stride - slide.padding;
            let mut all = [floats.splat(R::NOTHING); PIXELS];
            for y in (height.first..).step_by(down.dilation()).take(height.count) {
                let line = &data[y * input.strides[1] + left * channels + first..];
                let line = &line[..(slide.kernel - 1) * tap + (PIXELS - 1) * step + VECTOR];
                for met in line.windows((PIXELS - 1) * step + VECTOR).step_by(tap) {
                    each_row!(pixel < PIXELS => {
                        if let Some(values) = met[pixel * step..].first_chunk() {
                            all[pixel] = reduce.add(floats, all[pixel], floats.load(values));
                        }
                    });
                }
            }
            each_row!(pixel < PIXELS => {
                let result = reduce.finish(floats, all[pixel], inside, around);
                write(floats, result, &mut out[(x + pixel) * channels + first..]);
            });
        }
    }
}
