//! The greatest `f32` of windows: a vector of channels at a time over channels-last images, of places over channels-first.
//!
//! Invariant: results are those of the loop over elements, to the bit but for the bits of NaN and the sign of zero.

use std::ops::Range;

use super::{Axis, Windows};
use crate::padded::{PADDED, Padded, met};
use crate::simd::apart::{Apart, each_row};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES as VECTOR, WithFloats, write};
use crate::spatial::{Images, Slide};
use crate::threads::{Cost, for_each_piece_at};

/// Nanoseconds of a tap of a window.
const TAP: f64 = 0.05;

impl Windows {
    /// Computes what [`Windows::greatest_values`] does, in images without gaps of one layer. Returns whether the images are
    /// such.
    pub(super) fn greatest_vectors(&self, data: &[f32], out: &mut [f32]) -> bool {
        let Windows { input, out: to, axes } = self;
        let placed = |images: &Images, order: fn(usize, usize, [usize; 3]) -> Images| {
            images.is_placed_as(&order(images.batch.0, images.channels.0, images.sizes))
        };
        if input.sizes[0] != 1 || to.sizes[0] != 1 {
            return false;
        }
        let out = &mut out[..to.batch.0 * to.area() * to.channels.0];
        if [input, to].iter().all(|images| placed(images, Images::channels_last)) && to.channels.0 >= VECTOR {
            self.greatest_rows(data, out);
            return true;
        }
        if [input, to].iter().all(|images| placed(images, Images::channels_first))
            && let [_, Axis::Sliding(down), Axis::Sliding(right)] = *axes
            && let Some(padded) = Padded::of([down, right], to.sizes[2], 1)
        {
            self.greatest_planes(&padded, data, out);
            return true;
        }
        false
    }

    fn cost(&self) -> Cost {
        let taps = self.axes.iter().zip(self.out.sizes).map(|(axis, size)| axis.taps(size / 2).count.max(1));
        Cost::nanoseconds(TAP * taps.product::<usize>() as f64)
    }

    fn greatest_rows(&self, data: &[f32], out: &mut [f32]) {
        let Windows { input, out: to, .. } = self;
        let (path, width) = (FloatPath::best(), to.sizes[2] * to.channels.0);
        for_each_piece_at(self.cost(), out, width, |start, out| {
            for (index, out) in out.chunks_exact_mut(width).enumerate() {
                let row = start / width + index;
                let data = &data[row / to.sizes[1] * input.area() * input.channels.0..];
                path.run(GreatestRow { windows: self, data, y: row % to.sizes[1], out });
            }
        });
    }

    fn greatest_planes(&self, padded: &Padded, data: &[f32], out: &mut [f32]) {
        let Windows { input, out: to, .. } = self;
        let (path, [_, height, width], area) = (FloatPath::best(), to.sizes, to.area().max(1));
        for_each_piece_at(self.cost(), out, area, |start, out| {
            let mut band = [f32::NEG_INFINITY; PADDED];
            for (index, out) in out.chunks_exact_mut(area).enumerate() {
                let data = &data[(start / area + index) * input.area()..][..input.area()];
                for rows in padded.bands(0..height) {
                    padded.fill(data, input.sizes[2], &rows, f32::NEG_INFINITY, &mut band);
                    let out = &mut out[rows.start * width..rows.end * width];
                    path.run(GreatestBand { padded, band: &band, width, out });
                }
            }
        });
    }
}

/// A band of the greatest elements of windows over a channels-first plane.
struct GreatestBand<'a, 'o> {
    padded: &'a Padded,
    band: &'a [f32; PADDED],
    width: usize,
    out: &'o mut [f32],
}

impl WithFloats for GreatestBand<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        for (y, out) in self.out.chunks_exact_mut(self.width).enumerate() {
            let first = self.padded.row(y);
            for (block, out) in out.chunks_mut(VECTOR).enumerate() {
                let first = first + block * VECTOR;
                let mut greatest = floats.splat(f32::NEG_INFINITY);
                for &tap in self.padded.taps() {
                    greatest = floats.greater(greatest, floats.load(met(self.band, first, tap)));
                }
                write(floats, greatest, out);
            }
        }
    }
}

/// A row of the greatest elements of windows over channels-last pixels.
struct GreatestRow<'a, 'o> {
    windows: &'a Windows,
    data: &'a [f32],
    y: usize,
    out: &'o mut [f32],
}

impl WithFloats for GreatestRow<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(mut self, floats: F) {
        let Windows { out: to, axes: [_, _, right], .. } = self.windows;
        let (channels, width) = (to.channels.0, to.sizes[2]);
        // Places whose windows are inside of the line, if so many are computed together.
        let mut inside = 0..0;
        if let Axis::Sliding(Slide { input, kernel, stride, padding, dilation: 1 }) = *right {
            let left = padding.div_ceil(stride).min(width);
            let end = (input + padding).checked_sub(kernel).map_or(0, |free| free / stride + 1).min(width);
            if end >= left + PIXELS {
                inside = match (kernel, stride) {
                    (2, 2) => self.near::<F, 2, 2>(floats, left..end, padding),
                    (3, 1) => self.near::<F, 3, 1>(floats, left..end, padding),
                    (3, 2) => self.near::<F, 3, 2>(floats, left..end, padding),
                    (5, 1) => self.near::<F, 5, 1>(floats, left..end, padding),
                    _ => 0..0,
                };
            }
        }
        for x in (0..inside.start).chain(inside.end..width) {
            let mut first = 0;
            while first < channels {
                // The last vector begins early enough to be whole.
                first = first.min(channels - VECTOR);
                self.window(floats, x, first);
                first += VECTOR;
            }
        }
    }
}

/// Neighbouring pixels that are computed together.
const PIXELS: usize = 4;
/// The most columns that their windows meet.
const MOST_COLUMNS: usize = 12;

impl GreatestRow<'_, '_> {
    /// A vector of channels from `first` on of the place `x`.
    #[inline(always)]
    fn window<F: Floats>(&mut self, floats: F, x: usize, first: usize) {
        let Windows { input, out: to, axes: [_, down, right] } = self.windows;
        let (channels, height, width) = (to.channels.0, down.taps(self.y), right.taps(x));
        let mut greatest = floats.splat(f32::NEG_INFINITY);
        for y in (height.first..).step_by(down.dilation()).take(height.count) {
            let line = &self.data[y * input.strides[1] + first..];
            for x in (width.first..).step_by(right.dilation()).take(width.count) {
                let Some(values) = line[x * channels..].first_chunk() else { continue };
                greatest = floats.greater(greatest, floats.load(values));
            }
        }
        if let Some(out) = self.out[x * channels + first..].first_chunk_mut() {
            floats.store(greatest, out);
        }
    }

    /// All channels of places whose windows are inside of the line and have so many taps; returns the places.
    #[inline(always)]
    fn near<F: Floats, const WIDTH: usize, const STRIDE: usize>(
        &mut self,
        floats: F,
        places: Range<usize>,
        padding: usize,
    ) -> Range<usize> {
        let channels = self.windows.out.channels.0;
        let mut first = 0;
        while first < channels {
            // The last vector begins early enough to be whole.
            first = first.min(channels - VECTOR);
            floats.apart(Near::<WIDTH, STRIDE> { row: &mut *self, first, places: places.clone(), padding });
            first += VECTOR;
        }
        places
    }
}

/// A vector of channels of places whose windows are inside of the line: a function of its own, so that what columns have stays
/// in registers. Of each column the greatest of all lines is found once.
struct Near<'b, 'a, 'o, const WIDTH: usize, const STRIDE: usize> {
    row: &'b mut GreatestRow<'a, 'o>,
    first: usize,
    places: Range<usize>,
    /// Columns before the first of the line.
    padding: usize,
}

impl<F: Floats, const WIDTH: usize, const STRIDE: usize> Apart<F> for Near<'_, '_, '_, WIDTH, STRIDE> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Near { row: GreatestRow { windows, data, y, out }, first, places, padding } = self;
        let Windows { input, out: to, axes: [_, down, _] } = windows;
        let (channels, height) = (to.channels.0, down.taps(*y));
        for x in places.clone().step_by(PIXELS) {
            // The last pixels begin early enough to be as many.
            let x = x.min(places.end - PIXELS);
            let left = x * STRIDE - padding;
            let mut columns = [floats.splat(f32::NEG_INFINITY); MOST_COLUMNS];
            for y in (height.first..).step_by(down.dilation()).take(height.count) {
                let line = &data[y * input.strides[1] + left * channels + first..];
                let line = &line[..(WIDTH + (PIXELS - 1) * STRIDE - 1) * channels + VECTOR];
                each_row!(column < WIDTH + (PIXELS - 1) * STRIDE => {
                    if let Some(values) = line[column * channels..].first_chunk() {
                        columns[column] = floats.greater(columns[column], floats.load(values));
                    }
                });
            }
            each_row!(pixel < PIXELS => {
                let mut greatest = columns[pixel * STRIDE];
                for column in 1..WIDTH {
                    greatest = floats.greater(greatest, columns[pixel * STRIDE + column]);
                }
                if let Some(out) = out[(x + pixel) * channels + first..].first_chunk_mut() {
                    floats.store(greatest, out);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The greatest floats, NaN among them, with vectors and without.
    #[test]
    fn vectors_agree_with_elements() {
        let mut random = Random::new(44);
        for round in 0..60 {
            let channels = [16, 24, 70, 3][round % 4];
            let mut slide = |most: usize| {
                let kernel = random.below(4) + 1;
                let (stride, dilation) = (random.below(3) + 1, random.below(2) + 1);
                let input = random.below(most) + (kernel - 1) * dilation + 1;
                Slide { input, kernel, stride, padding: random.below(kernel / 2 + 1), dilation }
            };
            // Some need several bands.
            let mut slides = [Slide::POINT, slide(if round % 5 == 0 { 150 } else { 9 }), slide(70)];
            if round % 6 == 1 {
                slides[2] = Slide { input: 23, kernel: 5, stride: 1, padding: 2, dilation: 1 };
            }
            let places = slides.map(|slide| slide.places(false).unwrap());
            let sizes = slides.map(|slide| slide.input);
            for order in [Images::channels_last, Images::channels_first] {
                let (input, out) = (order(2, channels, sizes), order(2, channels, places));
                let mut windows = Windows { input, out, axes: slides.map(Axis::Sliding) };
                // A dimension that is not there has no distance.
                (windows.input.strides[0], windows.out.strides[0]) = (0, 0);
                let mut data: Vec<f32> = random.floats(2 * channels * input.area());
                data.iter_mut().step_by(37).for_each(|x| *x = f32::NAN);
                let len = 2 * channels * out.area();
                let (mut want, mut have, mut at) = (vec![0f32; len], vec![0f32; len], vec![0; len]);
                windows.greatest(&data, &mut want, &mut at);
                let is_last = channels < VECTOR && windows.input.is_channels_last();
                assert_eq!(windows.greatest_vectors(&data, &mut have), !is_last);
                assert!(
                    is_last || want.iter().zip(&have).all(|(a, b)| a == b || a.is_nan() && b.is_nan()),
                    "{windows:?}"
                );
            }
        }
    }
}
