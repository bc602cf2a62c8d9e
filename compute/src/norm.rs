//! Normalisation: of rows, which get mean 0 and variance 1, and of channels, which get a factor and an offset each.
//!
//! Statistics are taken in double precision, those of rows from sums in the element's own; what is scaled is computed in the element's
//! own precision, in `f32` for 16-bit floats. A row does not depend on the others, nor on threads.

mod channels;
mod float_rows;

pub use channels::ChannelStatistics;
use float_rows::{FloatRows, together};

use crate::error::{Error, expect_elements};
use crate::float::Float;
use crate::fold::row_sum;
use crate::number::{Cast, Compute, Number, as_floats, as_floats_mut};
use crate::simd::float_path::FloatPath;
use crate::simd::wide;
use crate::threads::{WriteAll, for_each, pays};

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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::random::Random;

    pub(super) fn moments(x: &[f32]) -> (f64, f64) {
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / x.len() as f64;
        (mean, 1.0 / (variance + 1e-5).sqrt())
    }

    pub(super) fn close(have: f32, want: f64) {
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
    fn short_slices_are_refused() {
        let rows = Rows { width: 2, span: 1, factors: 2, period: 1 };
        let operands = RowOperands { input: &[1.0f32; 4], weight: None, bias: None, eps: 0.0 };
        let results = RowResults { out: &mut [0.0; 4], means: &mut [0.0; 1], scales: &mut [0.0; 2] };
        assert_eq!(normalise_rows(rows, operands, results).unwrap_err().kind, ErrorKind::Geometry);
    }
}
