//! Windows over images of `f32`: a vector of channels at a time over channels-last images, of places over channels-first.
//!
//! Invariant: results are those of the loop over elements, to the bit but for the bits of NaN and, of the greatest elements, the
//! sign of zero.

use super::pixels::{Planes, Row};
use super::reduce::{Greatest, Reduce};
use super::{Average, Axis, Windows};
use crate::padded::{PADDED, Padded, met};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES as VECTOR, WithFloats, write};
use crate::spatial::{Images, Slide};
use crate::threads::{Cost, for_each_piece_at};

/// Nanoseconds of a tap of a window.
const TAP: f64 = 0.05;

/// Divisors from here on may not be a float.
const MOST_DIVISOR: i64 = 1 << f32::MANTISSA_DIGITS;

impl Windows {
    /// Computes what [`Windows::greatest_values`] does, in images without gaps of one layer. Returns whether the images are
    /// such.
    pub(super) fn greatest_vectors(&self, data: &[f32], out: &mut [f32]) -> bool {
        self.vectors(data, Greatest, |_| true, out)
    }

    /// Computes what [`Windows::average`] does, in images without gaps of one layer whose windows all have one divisor if they are
    /// channels-first. Returns whether the images are such.
    pub(super) fn average_vectors(&self, data: &[f32], average: Average, out: &mut [f32]) -> bool {
        let fits = average.divisor.is_none_or(|divisor| divisor.abs() < MOST_DIVISOR);
        // Windows that are all inside of the input, or of that and its padding.
        let whole = |slide: &Slide, places: usize| {
            let padding = if average.count_padding { slide.padding } else { 0 };
            let inside = average.count_padding || slide.padding == 0;
            inside && places.saturating_sub(1) * slide.stride + slide.reach() <= slide.input + 2 * padding
        };
        let one_divisor = |slides: [Slide; 2]| {
            let places = [self.out.sizes[1], self.out.sizes[2]];
            average.divisor.is_some() || slides.iter().zip(places).all(|(slide, places)| whole(slide, places))
        };
        fits && self.vectors(data, average, one_divisor, out)
    }

    /// Reduces windows; those of channels-first images if `planes` allows it. Returns whether it did.
    fn vectors<R: Reduce>(
        &self,
        data: &[f32],
        reduce: R,
        planes: impl FnOnce([Slide; 2]) -> bool,
        out: &mut [f32],
    ) -> bool {
        let Windows { input, out: to, axes } = self;
        let placed = |images: &Images, order: fn(usize, usize, [usize; 3]) -> Images| {
            images.is_placed_as(&order(images.batch.0, images.channels.0, images.sizes))
        };
        // One layer, and no padding before or behind it that might count.
        if input.sizes[0] != 1 || to.sizes[0] != 1 || axes[0].padded(0, axes[0].taps(0)) != 1 {
            return false;
        }
        let out = &mut out[..to.batch.0 * to.area() * to.channels.0];
        let first = placed(to, Images::channels_first);
        if placed(input, Images::channels_last) && input.channels.0 > 1 {
            match (placed(to, Images::channels_last), first) {
                (true, _) => self.rows(data, reduce, out),
                (false, true) => self.blocks_of_planes(data, reduce, out),
                (false, false) => return false,
            }
            return true;
        }
        if placed(input, Images::channels_first)
            && first
            && let [_, Axis::Sliding(down), Axis::Sliding(right)] = *axes
            && let Some(padded) = Padded::of([down, right], to.sizes[2], 1)
            && planes([down, right])
        {
            self.planes(&padded, data, reduce, out);
            return true;
        }
        false
    }

    fn cost(&self) -> Cost {
        let taps = self.axes.iter().zip(self.out.sizes).map(|(axis, size)| axis.taps(size / 2).count.max(1));
        Cost::nanoseconds(TAP * taps.product::<usize>() as f64)
    }

    /// Channels-last images to channels-last ones.
    fn rows<R: Reduce>(&self, data: &[f32], reduce: R, out: &mut [f32]) {
        let Windows { input, out: to, .. } = self;
        let (path, width) = (FloatPath::best(), (to.sizes[2] * to.channels.0).max(1));
        for_each_piece_at(self.cost(), out, width, |start, out| {
            for (index, out) in out.chunks_exact_mut(width).enumerate() {
                let row = start / width + index;
                let data = &data[row / to.sizes[1] * input.area() * input.channels.0..];
                path.run(Row { windows: self, data, y: row % to.sizes[1], reduce, out });
            }
        });
    }

    /// Channels-last images to channels-first ones.
    fn blocks_of_planes<R: Reduce>(&self, data: &[f32], reduce: R, out: &mut [f32]) {
        let Windows { input, out: to, .. } = self;
        let (path, image) = (FloatPath::best(), (to.area() * to.channels.0).max(1));
        let block = (to.area() * VECTOR).max(1);
        for (n, out) in out.chunks_exact_mut(image).enumerate() {
            let data = &data[n * input.area() * input.channels.0..];
            for_each_piece_at(self.cost(), out, block, |start, out| {
                for (index, out) in out.chunks_mut(block).enumerate() {
                    path.run(Planes { windows: self, data, first: (start / block + index) * VECTOR, reduce, out });
                }
            });
        }
    }

    /// Channels-first images to channels-first ones.
    fn planes<R: Reduce>(&self, padded: &Padded, data: &[f32], reduce: R, out: &mut [f32]) {
        let Windows { input, out: to, axes } = self;
        let (path, [_, height, width], area) = (FloatPath::best(), to.sizes, to.area().max(1));
        let [down, right] = [axes[1].taps(0), axes[2].taps(0)];
        let counts = [down.count * right.count, axes[1].padded(0, down) * axes[2].padded(0, right)];
        for_each_piece_at(self.cost(), out, area, |start, out| {
            let mut band = [R::NOTHING; PADDED];
            for (index, out) in out.chunks_exact_mut(area).enumerate() {
                let data = &data[(start / area + index) * input.area()..][..input.area()];
                for rows in padded.bands(0..height) {
                    padded.fill(data, input.sizes[2], &rows, R::NOTHING, &mut band);
                    let out = &mut out[rows.start * width..rows.end * width];
                    path.run(Band { padded, band: &band, width, counts, reduce, out });
                }
            }
        });
    }
}

/// A band of the results of windows over a channels-first plane.
struct Band<'a, 'o, R> {
    padded: &'a Padded,
    band: &'a [f32; PADDED],
    width: usize,
    /// Taps of a window that are in the input, and in that or its padding.
    counts: [usize; 2],
    reduce: R,
    out: &'o mut [f32],
}

impl<R: Reduce> WithFloats for Band<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        for (y, out) in self.out.chunks_exact_mut(self.width).enumerate() {
            let of = Line { floats, padded: self.padded, band: self.band, counts: self.counts, reduce: self.reduce };
            let first = self.padded.row(y);
            if self.width < VECTOR {
                let [result] = of.results(first);
                floats.store_some(result, out);
                continue;
            }
            // The last vectors begin early enough to be whole.
            let mut start = 0;
            while start < self.width {
                if self.width - start > (TOGETHER - 1) * VECTOR && self.width >= TOGETHER * VECTOR {
                    start = start.min(self.width - TOGETHER * VECTOR);
                    let results: [F::V; TOGETHER] = of.results(first + start);
                    for (result, out) in results.into_iter().zip(out[start..].as_chunks_mut().0) {
                        floats.store(result, out);
                    }
                    start += TOGETHER * VECTOR;
                } else {
                    start = start.min(self.width - VECTOR);
                    let [result] = of.results(first + start);
                    write(floats, result, &mut out[start..]);
                    start += VECTOR;
                }
            }
        }
    }
}

/// Vectors of results of which each tap is met before the next.
const TOGETHER: usize = 4;

/// Operands of the results of windows over a band.
#[derive(Clone, Copy)]
struct Line<'a, F, R> {
    floats: F,
    padded: &'a Padded,
    band: &'a [f32; PADDED],
    counts: [usize; 2],
    reduce: R,
}

impl<F: Floats, R: Reduce> Line<'_, F, R> {
    /// Neighbouring results, of which the first tap of the first meets a place of the band.
    #[inline(always)]
    fn results<const COUNT: usize>(self, first: usize) -> [F::V; COUNT] {
        let Line { floats, padded, band, counts: [inside, around], reduce } = self;
        let mut all = [floats.splat(R::NOTHING); COUNT];
        for &tap in padded.taps() {
            for (vector, all) in all.iter_mut().enumerate() {
                *all = reduce.add(floats, *all, floats.load(met(band, first + vector * VECTOR, tap)));
            }
        }
        for all in &mut all {
            *all = reduce.finish(floats, *all, inside, around);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Windows that slide down and right, some of which need several bands.
    fn slides(random: &mut Random, round: usize, dilated: bool) -> [Slide; 3] {
        let mut slide = |most: usize| {
            let kernel = random.below(4) + 1;
            let (stride, dilation) = (random.below(3) + 1, if dilated { random.below(2) + 1 } else { 1 });
            let input = random.below(most) + (kernel - 1) * dilation + 1;
            Slide { input, kernel, stride, padding: random.below(kernel / 2 + 1), dilation }
        };
        let mut slides = [Slide::POINT, slide(if round.is_multiple_of(5) { 150 } else { 9 }), slide(70)];
        if round % 6 == 1 {
            slides[2] = Slide { input: 23, kernel: 5, stride: 1, padding: 2, dilation: 1 };
        }
        slides
    }

    type Order = fn(usize, usize, [usize; 3]) -> Images;

    const ORDERS: [[Order; 2]; 3] = [
        [Images::channels_last, Images::channels_last],
        [Images::channels_last, Images::channels_first],
        [Images::channels_first, Images::channels_first],
    ];

    /// Two images of so many channels, NaN among their elements, and windows over them.
    fn images(
        random: &mut Random,
        channels: usize,
        slides: [Slide; 3],
        [from, to]: [Order; 2],
        ceil: bool,
    ) -> (Windows, Vec<f32>) {
        let places = slides.map(|slide| slide.places(ceil).unwrap());
        let input = from(2, channels, slides.map(|slide| slide.input));
        let mut windows = Windows { input, out: to(2, channels, places), axes: slides.map(Axis::Sliding) };
        // A dimension that is not there has no distance.
        (windows.input.strides[0], windows.out.strides[0]) = (0, 0);
        let mut data: Vec<f32> = random.floats(2 * channels * input.area());
        data.iter_mut().step_by(37).for_each(|x| *x = f32::NAN);
        (windows, data)
    }

    const CHANNELS: [usize; 5] = [16, 24, 70, 3, 6];

    fn same(a: &[f32], b: &[f32]) -> bool {
        a.iter().zip(b).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
    }

    #[test]
    fn greatest_vectors_agree_with_elements() {
        let mut random = Random::new(44);
        for round in 0..60 {
            let slides = slides(&mut random, round, true);
            for order in ORDERS {
                let channels = CHANNELS[round % 5];
                let (windows, data) = images(&mut random, channels, slides, order, false);
                let len = 2 * channels * windows.out.area();
                let (mut want, mut have, mut at) = (vec![0f32; len], vec![0f32; len], vec![0; len]);
                windows.greatest(&data, &mut want, &mut at);
                assert!(windows.greatest_vectors(&data, &mut have), "{windows:?}");
                assert!(same(&want, &have), "{windows:?}");
            }
        }
    }

    /// Averages of windows in the padding and over the end too, with every kind of divisor.
    #[test]
    fn averages_of_vectors_agree_with_elements() {
        let mut random = Random::new(45);
        let mut planes = 0;
        for round in 0..90 {
            let slides = slides(&mut random, round, false);
            let average = Average { count_padding: round % 2 == 0, divisor: (round % 3 == 0).then_some(-7) };
            for order in ORDERS {
                let channels = CHANNELS[round % 5];
                let (windows, data) = images(&mut random, channels, slides, order, round % 4 == 3);
                let len = 2 * channels * windows.out.area();
                let (mut want, mut have) = (vec![0f32; len], vec![0f32; len]);
                windows.run(&data, &average, windows.everything(), |at, value| want[at] = value);
                let done = windows.average_vectors(&data, average, &mut have);
                let is_first = windows.input.channels.1 != 1;
                assert!(done || is_first, "{windows:?}");
                planes += usize::from(done && is_first);
                assert!(!done || same(&want, &have), "{windows:?} {average:?}");
            }
        }
        assert!(planes > 30, "{planes} of 90 rounds have one divisor");
    }

    #[test]
    fn divisors_that_are_no_float_are_left_to_elements() {
        let slides = [Slide::POINT, Slide { input: 4, kernel: 2, stride: 2, ..Slide::POINT }, Slide::POINT];
        let (windows, data) = images(&mut Random::new(46), 16, slides, ORDERS[0], false);
        let average = Average { count_padding: false, divisor: Some(MOST_DIVISOR + 1) };
        assert!(!windows.average_vectors(&data, average, &mut [0.0; 64]));
    }

    #[test]
    fn layers_whose_padding_counts_are_left_to_elements() {
        let slides = [Slide { input: 1, kernel: 2, stride: 2, padding: 1, dilation: 1 }, Slide::POINT, Slide::POINT];
        for order in ORDERS {
            let (windows, data) = images(&mut Random::new(47), 16, slides, order, false);
            let (average, mut out) = (Average { count_padding: true, divisor: None }, [0.0; 32]);
            assert!(!windows.average_vectors(&data, average, &mut out), "{windows:?}");
            windows.average(&data, average, &mut out);
            assert!(out.iter().zip(&data).all(|(out, x)| out.is_nan() && x.is_nan() || *out == x / 2.0), "{out:?}");
        }
    }
}
