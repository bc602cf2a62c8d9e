//! Normalisation: of rows, which get mean 0 and variance 1, and of channels, which get a factor and an offset each.
//!
//! Statistics are taken in double precision, those of rows from sums in the element's own; what is scaled is computed in the element's
//! own precision, in `f32` for 16-bit floats. A row does not depend on the others, nor on threads.

mod float_rows;

use float_rows::{FloatRows, together};

use crate::error::{Error, expect_elements};
use crate::float::Float;
use crate::fold::{double_sum, row_sum};
use crate::layout::AxisView;
use crate::number::{Cast, Compute, Number, as_floats, as_floats_mut};
use crate::simd::float_path::FloatPath;
use crate::simd::{Loop, run_wide, wide};
use crate::threads::{Cost, Read, Write, WriteAll, for_each, for_each_at, for_each_piece_at, pays};

/// Neighbouring channels whose statistics are taken together.
const NEIGHBOURS: usize = 32;

/// Nanoseconds of an element that is measured, and of one that is scaled, about.
const MEASURED: f64 = 0.2;
const SCALED: f64 = 0.1;

/// Rows of neighbouring elements and the factors they use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    /// Elements of a row, at least 1.
    pub width: usize,
    /// Neighbouring elements that share a factor: all of a channel, or one.
    pub span: usize,
    /// Factors a row uses: `width / span`.
    pub factors: usize,
    /// Rows until the factors repeat.
    pub period: usize,
}

impl Rows {
    /// Those of the factors that a row uses.
    #[inline(always)]
    fn factors_of<'a, T>(&self, row: usize, all: [Option<&'a [T]>; 2]) -> [Option<&'a [T]>; 2] {
        let first = row % self.period.max(1) * self.factors;
        all.map(|list| list.map(|list| &list[first..first + self.factors]))
    }
}

/// Operands of a normalisation of rows.
#[derive(Clone, Copy, Debug)]
pub struct RowOperands<'a, T> {
    /// The rows, one after the other.
    pub input: &'a [T],
    /// Factors of the normalised elements, `factors × period`.
    pub weight: Option<&'a [T]>,
    /// Offsets of the normalised elements, `factors × period`.
    pub bias: Option<&'a [T]>,
    /// Added to every variance before its root is taken.
    pub eps: f64,
}

/// Results of a normalisation of rows.
#[derive(Debug)]
pub struct RowResults<'a, T> {
    /// The normalised rows, laid out as the input.
    pub out: &'a mut [T],
    /// The mean of every row.
    pub means: &'a mut [T],
    /// One over the standard deviation of every row.
    pub scales: &'a mut [T],
}

/// Normalises rows: `(x - mean) / sqrt(variance + eps) * weight + bias`.
///
/// # Errors
///
/// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if output, statistics or factors are shorter than the rows of the
/// input need.
///
/// ```
/// use edgepack_compute::norm::{RowOperands, RowResults, Rows, normalise_rows};
///
/// let rows = Rows { width: 2, span: 1, factors: 2, period: 1 };
/// let operands = RowOperands { input: &[1.0f32, 3.0, 5.0, 9.0], weight: None, bias: None, eps: 0.0 };
/// let (mut out, mut means, mut scales) = ([0.0; 4], [0.0; 2], [0.0; 2]);
/// normalise_rows(rows, operands, RowResults { out: &mut out, means: &mut means, scales: &mut scales })?;
/// assert_eq!((out, means, scales), ([-1.0, 1.0, -1.0, 1.0], [2.0, 7.0], [1.0, 0.5]));
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn normalise_rows<T>(rows: Rows, operands: RowOperands<'_, T>, results: RowResults<'_, T>) -> Result<(), Error>
where
    T: Number<Compute: Float>,
{
    let RowOperands { input, weight, bias, .. } = operands;
    let RowResults { out, means, scales } = results;
    let count = input.len() / rows.width.max(1);
    expect_elements("the output", out.len(), count * rows.width)?;
    expect_elements("the list of means", means.len(), count)?;
    expect_elements("the list of scales", scales.len(), count)?;
    for factors in [weight, bias].into_iter().flatten() {
        expect_elements("a list of factors", factors.len(), rows.factors * rows.period)?;
    }
    let parallel = pays(size_of_val(out));
    let together = together(rows.width);
    let out = WriteAll(&mut out[..count * rows.width], rows.width * together);
    let lists = (out, WriteAll(&mut means[..count], together), WriteAll(&mut scales[..count], together));
    for_each(parallel, lists, |index, (out, means, scales)| {
        let first = index * together;
        let operands = RowOperands { input: &input[first * rows.width..][..out.len()], ..operands };
        let results = RowResults { out, means, scales };
        normalise_some(rows, first, operands, results);
    });
    Ok(())
}

/// Normalises some rows, the first of which has a number among all.
fn normalise_some<T>(rows: Rows, first: usize, operands: RowOperands<'_, T>, results: RowResults<'_, T>)
where
    T: Number<Compute: Float>,
{
    let RowOperands { input, weight, bias, eps } = operands;
    let RowResults { out, means, scales } = results;
    if let (Some(input), Some(out)) = (as_floats(input), as_floats_mut(out))
        && let (Some(means), Some(scales)) = (as_floats_mut(means), as_floats_mut(scales))
    {
        let (weight, bias) = (weight.and_then(as_floats), bias.and_then(as_floats));
        let operands = RowOperands { input, weight, bias, eps };
        return FloatPath::best().run(FloatRows { rows, first, operands, results: RowResults { out, means, scales } });
    }
    let lines = input.chunks_exact(rows.width).zip(out.chunks_exact_mut(rows.width));
    for (index, ((input, out), (saved_mean, saved_scale))) in lines.zip(means.iter_mut().zip(scales)).enumerate() {
        let [weight, bias] = rows.factors_of(first + index, [weight, bias]);
        wide(|| {
            let (mean, scale) = statistics(input, eps);
            (*saved_mean, *saved_scale) = (rounded(mean), rounded(scale));
            normalise(input, out, rows.span, Float::of(mean), Float::of(scale), weight, bias);
        });
    }
}

/// Returns a double as an element, rounded through the type the element is computed in.
pub fn rounded<T: Number<Compute: Float>>(x: f64) -> T {
    <T::Compute as Float>::of(x).cast()
}

/// The mean, and one over the standard deviation.
#[inline(always)]
fn statistics<T: Number<Compute: Float>>(row: &[T], eps: f64) -> (f64, f64) {
    let count = row.len() as f64;
    let mean = row_sum(row, |x| x) / count;
    let center = <T::Compute as Float>::of(mean);
    let variance = row_sum(row, |x| x.minus(center).times(x.minus(center))) / count;
    (mean, inverse_deviation(variance, eps))
}

/// One over the standard deviation.
#[inline(always)]
fn inverse_deviation(variance: f64, eps: f64) -> f64 {
    1.0 / (variance + eps).sqrt()
}

#[inline(always)]
fn normalise<T: Number<Compute: Float>>(
    input: &[T],
    out: &mut [T],
    span: usize,
    mean: T::Compute,
    scale: T::Compute,
    weight: Option<&[T]>,
    bias: Option<&[T]>,
) {
    let one = |x: T| x.to_compute().minus(mean).times(scale);
    if span > 1 {
        for (channel, (input, out)) in input.chunks_exact(span).zip(out.chunks_exact_mut(span)).enumerate() {
            let factor = weight.map_or(T::Compute::ONE, |weight| weight[channel].to_compute());
            let offset = bias.map_or(T::Compute::ZERO, |bias| bias[channel].to_compute());
            for (out, &x) in out.iter_mut().zip(input) {
                *out = one(x).times(factor).plus(offset).cast();
            }
        }
        return;
    }
    let pairs = out.iter_mut().zip(input);
    match (weight, bias) {
        (None, None) => pairs.for_each(|(out, &x)| *out = one(x).cast()),
        (Some(weight), None) => {
            pairs.zip(weight).for_each(|((out, &x), w)| *out = one(x).times(w.to_compute()).cast());
        }
        (None, Some(bias)) => pairs.zip(bias).for_each(|((out, &x), b)| *out = one(x).plus(b.to_compute()).cast()),
        (Some(weight), Some(bias)) => {
            for (((out, &x), w), b) in pairs.zip(weight).zip(bias) {
                *out = one(x).times(w.to_compute()).plus(b.to_compute()).cast();
            }
        }
    }
}

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
            let block = |block: usize| &input[(block * size + first) * inner..][..inner];
            wide(|| {
                let mean = (0..outer).map(|at| double_sum(block(at), |x| x)).sum::<f64>() / count;
                let squares = |at| double_sum(block(at), |x| (x - mean) * (x - mean));
                (means[0], scales[0]) = (mean, inverse_deviation((0..outer).map(squares).sum::<f64>() / count, eps));
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
    use super::*;
    use crate::ErrorKind;
    use crate::random::Random;
    use crate::threads::Threads;

    fn moments(x: &[f32]) -> (f64, f64) {
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / x.len() as f64;
        (mean, 1.0 / (variance + 1e-5).sqrt())
    }

    fn close(have: f32, want: f64) {
        assert!((f64::from(have) - want).abs() < 1e-4, "{have} is not {want}");
    }

    #[test]
    fn rows_agree_with_the_formula() {
        let mut random = Random::new(31);
        // Rows with a factor for every element, and rows of channels with one each.
        for rows in
            [Rows { width: 37, span: 1, factors: 37, period: 1 }, Rows { width: 10, span: 5, factors: 2, period: 3 }]
        {
            let (x, w) = (random.floats(6 * rows.width), random.floats(rows.factors * rows.period));
            let b = random.floats(w.len());
            let (mut out, mut means, mut scales) = (vec![0.0; x.len()], [0.0; 6], [0.0; 6]);
            for (weight, bias) in [(true, true), (true, false), (false, true), (false, false)] {
                let (weight, bias) = (weight.then_some(&w[..]), bias.then_some(&b[..]));
                let operands = RowOperands { input: &x, weight, bias, eps: 1e-5 };
                let results = RowResults { out: &mut out, means: &mut means, scales: &mut scales };
                normalise_rows(rows, operands, results).unwrap();
                for (row, x) in x.chunks(rows.width).enumerate() {
                    let (mean, scale) = moments(x);
                    close(means[row], mean);
                    close(scales[row], scale);
                    for (i, &x) in x.iter().enumerate() {
                        let factor = row % rows.period * rows.factors + i / rows.span;
                        let y = (f64::from(x) - mean) * scale * weight.map_or(1.0, |w| w[factor].into());
                        close(out[row * rows.width + i], y + bias.map_or(0.0, |b| f64::from(b[factor])));
                    }
                }
            }
        }
    }

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
    fn short_slices_are_refused() {
        let rows = Rows { width: 2, span: 1, factors: 2, period: 1 };
        let operands = RowOperands { input: &[1.0f32; 4], weight: None, bias: None, eps: 0.0 };
        let results = RowResults { out: &mut [0.0; 4], means: &mut [0.0; 1], scales: &mut [0.0; 2] };
        assert_eq!(normalise_rows(rows, operands, results).unwrap_err().kind, ErrorKind::Geometry);
        let mut statistics = ChannelStatistics { means: &mut [0.0; 2], scales: &mut [0.0; 2] };
        let view = AxisView { outer: 1, size: 3, inner: 1 };
        assert_eq!(statistics.measure(view, &[0.0f32; 3], 0.0).unwrap_err().kind, ErrorKind::Geometry);
    }
}
