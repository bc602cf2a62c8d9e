//! Normalisation of channels: statistics of each, or given ones, and a factor and an offset.

use super::inverse_deviation;
use crate::error::{Error, expect_elements};
use crate::float::Float;
use crate::fold::double_sum;
use crate::layout::AxisView;
use crate::number::{Cast, Compute, Number};
use crate::simd::{Loop, run_wide, wide};
use crate::threads::{Cost, Read, Write, WriteAll, for_each_at, for_each_piece_at};

/// Neighbouring channels whose statistics are taken together.
const NEIGHBOURS: usize = 32;

/// Nanoseconds of an element that is measured, and of one that is scaled, about.
const MEASURED: f64 = 0.2;
const SCALED: f64 = 0.1;

/// Means and inverse deviations (`1 / sqrt(variance + eps)`), one of each for every channel.
#[derive(Debug)]
pub struct ChannelStatistics<'a> {
    /// Mean of each channel, in double precision.
    pub means: &'a mut [f64],
    /// One over the standard deviation of each channel, where `eps` is part of the variance.
    pub scales: &'a mut [f64],
}

impl ChannelStatistics<'_> {
    /// Takes the statistics of the channels of an input, which are the viewed dimension.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if a slice has fewer elements than the view.
    pub fn measure<T: Number>(&mut self, channels: AxisView, input: &[T], eps: f64) -> Result<(), Error> {
        self.expect(channels)?;
        expect_elements("the input", input.len(), channels.count())?;
        let AxisView { outer, size, inner } = channels;
        let input = &input[..channels.count()];
        let count = (outer * inner) as f64;
        let (means, scales) = (&mut self.means[..size], &mut self.scales[..size]);
        // Some channels are summed next to each other if they are neighbours.
        let together = if inner == 1 { NEIGHBOURS } else { 1 };
        let cost = Cost::nanoseconds(MEASURED * count * together as f64);
        for_each_at(cost, (WriteAll(means, together), WriteAll(scales, together)), |index, (means, scales)| {
            let first = index * together;
            if inner == 1 {
                return run_wide(Columns { input, size, first, count, eps, means, scales });
            }
            run_wide(Blocks {
                input: input.get(first * inner..).unwrap_or_default(),
                outer,
                step: size * inner,
                inner,
                eps,
                mean: &mut means[0],
                scale: &mut scales[0],
            });
        });
        Ok(())
    }

    /// Takes given means and variances, as many as there are in all lists.
    pub fn load<T: Number>(&mut self, means: &[T], variances: &[T], eps: f64) {
        self.means.iter_mut().zip(means).for_each(|(to, &from)| *to = from.cast());
        self.scales.iter_mut().zip(variances).for_each(|(to, &from)| *to = inverse_deviation(from.cast(), eps));
    }

    /// Normalises the channels of an input, which are the viewed dimension, with these statistics:
    /// `(x - mean) * scale * weight + bias`. Afterwards the statistics are gone: the lists hold what each element was
    /// multiplied with, and what was added to it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if a slice has fewer elements than the view.
    ///
    /// ```
    /// use edgepack_compute::layout::AxisView;
    /// use edgepack_compute::norm::ChannelStatistics;
    ///
    /// let mut statistics = ChannelStatistics { means: &mut [0.0; 2], scales: &mut [0.0; 2] };
    /// statistics.load(&[1.0f32, 2.0], &[4.0, 1.0], 0.0);
    /// let mut out = [0.0; 4];
    /// let channels = AxisView { outer: 1, size: 2, inner: 2 };
    /// statistics.normalise(channels, &[3.0f32, 5.0, 2.0, 4.0], None, Some(&[0.0, 1.0]), &mut out)?;
    /// assert_eq!(out, [1.0, 2.0, 1.0, 3.0]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn normalise<T: Number<Compute: Float>>(
        self,
        channels: AxisView,
        input: &[T],
        weight: Option<&[T]>,
        bias: Option<&[T]>,
        out: &mut [T],
    ) -> Result<(), Error> {
        self.expect(channels)?;
        expect_elements("the input", input.len(), channels.count())?;
        expect_elements("the output", out.len(), channels.count())?;
        for factors in [weight, bias].into_iter().flatten() {
            expect_elements("a list of factors", factors.len(), channels.size)?;
        }
        // From here on: y = x * scale + offset, the offset where the mean was.
        let (offsets, scales) = (self.means, self.scales);
        let pairs = offsets.iter_mut().zip(&mut *scales).take(channels.size);
        for (channel, (offset, scale)) in pairs.enumerate() {
            let factor = weight.map_or(1.0, |weight| weight[channel].cast());
            let bias: f64 = bias.map_or(0.0, |bias| bias[channel].cast());
            *scale *= factor;
            *offset = bias - *offset * *scale;
        }
        scale_channels(channels, input, out, scales, offsets);
        Ok(())
    }

    fn expect(&self, channels: AxisView) -> Result<(), Error> {
        expect_elements("the list of means", self.means.len(), channels.size)?;
        expect_elements("the list of scales", self.scales.len(), channels.size)
    }
}

/// Statistics of a channel, whose elements are blocks of `inner` that begin `step` elements apart.
struct Blocks<'a, 'o, T> {
    input: &'a [T],
    outer: usize,
    step: usize,
    inner: usize,
    eps: f64,
    mean: &'o mut f64,
    scale: &'o mut f64,
}

impl<T: Number> Loop for Blocks<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Blocks { input, outer, step, inner, eps, mean, scale } = self;
        let (count, mut sum, mut squares) = ((outer * inner) as f64, 0.0, 0.0);
        for block in 0..outer {
            sum += double_sum(&input[block * step..][..inner], |x| x);
        }
        *mean = sum / count;
        for block in 0..outer {
            squares += double_sum(&input[block * step..][..inner], |x| (x - *mean) * (x - *mean));
        }
        *scale = inverse_deviation(squares / count, eps);
    }
}

/// Statistics of some neighbouring channels of pixels of `size` each.
struct Columns<'a, 'o, T> {
    input: &'a [T],
    size: usize,
    first: usize,
    /// Number of pixels.
    count: f64,
    eps: f64,
    means: &'o mut [f64],
    scales: &'o mut [f64],
}

impl<T: Number> Loop for Columns<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let means = self.sums(&[0.0; NEIGHBOURS], |x, _| x).map(|sum| sum / self.count);
        let squares = self.sums(&means, |x, mean| (x - mean) * (x - mean));
        let Columns { count, eps, .. } = self;
        self.means.copy_from_slice(&means[..self.means.len()]);
        self.scales.iter_mut().zip(squares).for_each(|(to, sum)| *to = inverse_deviation(sum / count, eps));
    }
}

impl<T: Number> Columns<'_, '_, T> {
    /// Sums of what `f` makes of the elements of each channel and a number of it.
    #[inline(always)]
    fn sums(&self, numbers: &[f64; NEIGHBOURS], f: impl Fn(f64, f64) -> f64) -> [f64; NEIGHBOURS] {
        let mut sums = [0.0; NEIGHBOURS];
        for pixel in self.input.chunks_exact(self.size) {
            let pixel = &pixel[self.first..][..self.means.len()];
            if let Some(pixel) = pixel.first_chunk::<NEIGHBOURS>() {
                for lane in 0..NEIGHBOURS {
                    sums[lane] += f(pixel[lane].cast(), numbers[lane]);
                }
                continue;
            }
            for ((sum, &x), &number) in sums.iter_mut().zip(pixel).zip(numbers) {
                *sum += f(x.cast(), number);
            }
        }
        sums
    }
}

fn scale_channels<T>(view: AxisView, input: &[T], out: &mut [T], scales: &[f64], offsets: &[f64])
where
    T: Number<Compute: Float>,
{
    let AxisView { size, inner, .. } = view;
    if view.count() == 0 {
        return;
    }
    let (input, out) = (&input[..view.count()], &mut out[..view.count()]);
    let of = <T::Compute as Float>::of;
    if inner == 1 {
        for_each_piece_at(Cost::nanoseconds(SCALED), out, size, |start, out| {
            run_wide(Pixels { input: &input[start..], out, scales: &scales[..size], offsets: &offsets[..size] });
        });
        return;
    }
    let cost = Cost::nanoseconds(SCALED * inner as f64);
    for_each_at(cost, (Read(input, inner), Write(out, inner)), |index, (input, out)| {
        let (scale, offset) = (of(scales[index % size]), of(offsets[index % size]));
        wide(|| {
            for (out, &x) in out.iter_mut().zip(input) {
                *out = x.to_compute().times(scale).plus(offset).cast();
            }
        });
    });
}

/// Pixels whose channels are neighbours, each to be multiplied and added to.
struct Pixels<'a, 'o, T> {
    input: &'a [T],
    out: &'o mut [T],
    scales: &'a [f64],
    offsets: &'a [f64],
}

impl<T: Number<Compute: Float>> Loop for Pixels<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Pixels { input, out, scales, offsets } = self;
        let (of, size) = (<T::Compute as Float>::of, scales.len());
        for first in (0..size).step_by(NEIGHBOURS) {
            let count = NEIGHBOURS.min(size - first);
            let (mut factors, mut terms) = ([T::Compute::ONE; NEIGHBOURS], [T::Compute::ZERO; NEIGHBOURS]);
            factors.iter_mut().zip(&scales[first..]).for_each(|(to, &scale)| *to = of(scale));
            terms.iter_mut().zip(&offsets[first..]).for_each(|(to, &offset)| *to = of(offset));
            for (input, out) in input.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
                let (input, out) = (&input[first..][..count], &mut out[first..][..count]);
                for (((out, &x), &scale), &offset) in out.iter_mut().zip(input).zip(&factors).zip(&terms) {
                    *out = x.to_compute().times(scale).plus(offset).cast();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{close, moments};
    use super::*;
    use crate::ErrorKind;
    use crate::random::Random;
    use crate::threads::Threads;

    #[test]
    fn channels_get_the_statistics_of_their_elements() {
        for (outer, size, inner) in
            [(2, 3, 5), (10, 3, 1), (700, 33, 1), (300, 64, 1), (1, 5, 9000), (3, 70, 257), (4, 3, 16)]
        {
            let (view, len) = (AxisView { outer, size, inner }, outer * size * inner);
            let x = Random::new(34).floats(len);
            let mut first = None;
            for threads in 1..4 {
                let (mut means, mut scales, mut out) = (vec![0.0; size], vec![0.0; size], vec![0.0; len]);
                Threads::new(threads).unwrap().run(|| {
                    let mut statistics = ChannelStatistics { means: &mut means, scales: &mut scales };
                    statistics.measure(view, &x, 1e-5).unwrap();
                    statistics.normalise(view, &x, None, None, &mut out).unwrap();
                });
                for channel in 0..size {
                    let own: Vec<usize> = (0..len).filter(|at| at / inner % size == channel).collect();
                    let (mean, scale) = moments(&own.iter().map(|&at| x[at]).collect::<Vec<_>>());
                    own.iter().for_each(|&at| close(out[at], (f64::from(x[at]) - mean) * scale));
                }
                assert!(first.get_or_insert_with(|| out.clone()) == &out, "{view:?}, {threads} threads");
            }
        }
    }

    #[test]
    fn statistics_of_channels_are_exact_far_from_zero() {
        for view in [AxisView { outer: 1, size: 2, inner: 4096 }, AxisView { outer: 4096, size: 2, inner: 1 }] {
            let x: Vec<f32> = (0..8192).map(|at| [1e6 - 1.0, 1e6 + 1.0][(at / 2 + at) % 2]).collect();
            let (mut means, mut scales) = ([0.0; 2], [0.0; 2]);
            let mut statistics = ChannelStatistics { means: &mut means, scales: &mut scales };
            statistics.measure(view, &x, 0.0).unwrap();
            assert_eq!((means, scales), ([1e6; 2], [1.0; 2]));
        }
    }

    #[test]
    fn channels_without_elements_have_no_statistics() {
        for view in [AxisView { outer: 0, size: 2, inner: 1 }, AxisView { outer: 0, size: 2, inner: 3 }] {
            let (mut means, mut scales) = ([0.0; 2], [0.0; 2]);
            let mut statistics = ChannelStatistics { means: &mut means, scales: &mut scales };
            statistics.measure::<f32>(view, &[], 0.0).unwrap();
            statistics.normalise::<f32>(view, &[], None, None, &mut []).unwrap();
            assert!(means.iter().chain(&scales).all(|x| x.is_nan()));
        }
    }

    #[test]
    fn short_lists_are_refused() {
        let mut statistics = ChannelStatistics { means: &mut [0.0; 2], scales: &mut [0.0; 2] };
        let view = AxisView { outer: 1, size: 3, inner: 1 };
        assert_eq!(statistics.measure(view, &[0.0f32; 3], 0.0).unwrap_err().kind, ErrorKind::Geometry);
    }
}
