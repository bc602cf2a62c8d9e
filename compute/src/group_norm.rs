//! Normalisation of groups of channels of images whose pixels have their channels next to each other.
//!
//! Sums are taken channel by channel, of some pixels in `f32` and of all in double precision, and groups add up those of their
//! channels: a result does not depend on threads.

use crate::error::{Error, ErrorKind, expect_elements};
use crate::norm::{RowOperands, RowResults};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, WithFloats, read, write};
use crate::threads::{WriteAll, for_each, for_each_piece, pays};

/// Vectors of channels that are summed together, and the channels.
const TILES: usize = 4;
const CHANNELS: usize = TILES * LANES;
/// Pixels that are summed in single precision.
const PIXELS: usize = 64;

/// Images of neighbouring pixels, and the groups of their channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pixels {
    /// Pixels of an image.
    pub area: usize,
    /// Channels of a pixel, next to each other.
    pub channels: usize,
    /// Groups, of as many neighbouring channels each.
    pub groups: usize,
}

impl Pixels {
    /// Returns how many numbers [`normalise_pixels`] needs in scratch memory.
    pub fn scratch(&self) -> usize {
        self.channels.saturating_mul(2)
    }
}

/// Normalises the groups of channels of each image as [`normalise_rows`](crate::norm::normalise_rows) does: the statistics of
/// a group are those of a row, and each channel has a factor and an offset.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if output, statistics, factors or scratch memory are shorter than the
/// images need, or groups do not divide the channels.
///
/// ```
/// use edgepack_compute::group_norm::{Pixels, normalise_pixels};
/// use edgepack_compute::norm::{RowOperands, RowResults};
///
/// // Two pixels of two channels, each of which is a group.
/// let pixels = Pixels { area: 2, channels: 2, groups: 2 };
/// let operands = RowOperands { input: &[1.0, 5.0, 3.0, 9.0], weight: None, bias: None, eps: 0.0 };
/// let (mut out, mut means, mut scales) = ([0.0; 4], [0.0; 2], [0.0; 2]);
/// let results = RowResults { out: &mut out, means: &mut means, scales: &mut scales };
/// normalise_pixels(pixels, operands, results, &mut [0.0; 4])?;
/// assert_eq!((out, means, scales), ([-1.0, -1.0, 1.0, 1.0], [2.0, 7.0], [1.0, 0.5]));
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn normalise_pixels(
    pixels: Pixels,
    operands: RowOperands<'_, f32>,
    results: RowResults<'_, f32>,
    scratch: &mut [f64],
) -> Result<(), Error> {
    let Pixels { area, channels, groups } = pixels;
    let RowOperands { input, weight, bias, eps } = operands;
    let RowResults { out, means, scales } = results;
    let image = (area * channels).max(1);
    let count = input.len() / image;
    expect_elements("the output", out.len(), count * image)?;
    expect_elements("the list of means", means.len(), count * groups)?;
    expect_elements("the list of scales", scales.len(), count * groups)?;
    expect_elements("the scratch memory", scratch.len(), pixels.scratch())?;
    if channels.checked_rem(groups) != Some(0) {
        return Err(Error::new(ErrorKind::Geometry, format!("{groups} groups do not divide {channels} channels")));
    }
    for factors in [weight, bias].into_iter().flatten() {
        expect_elements("a list of factors", factors.len(), channels)?;
    }
    let each = channels / groups;
    if each == 0 {
        return Ok(());
    }
    let (sums, centers) = scratch[..pixels.scratch()].split_at_mut(channels);
    let parallel = pays(size_of_val(out));
    let of_group = (area * each) as f64;
    let images = input.chunks_exact(image).zip(out.chunks_exact_mut(image));
    let statistics = means.chunks_exact_mut(groups).zip(scales.chunks_exact_mut(groups));
    for ((input, out), (means, scales)) in images.zip(statistics) {
        centers.fill(0.0);
        sum::<false>(parallel, input, centers, sums);
        for ((center, sums), mean) in centers.chunks_exact_mut(each).zip(sums.chunks_exact(each)).zip(&mut *means) {
            center.fill(sums.iter().sum::<f64>() / of_group);
            *mean = center[0] as f32;
        }
        sum::<true>(parallel, input, centers, sums);
        for (sums, scale) in sums.chunks_exact_mut(each).zip(&mut *scales) {
            let of_one = 1.0 / (sums.iter().sum::<f64>() / of_group + eps).sqrt();
            sums.fill(of_one);
            *scale = of_one as f32;
        }
        let (centers, sums) = (&*centers, &*sums);
        for_each_piece(out, channels, |start, out| {
            let input = &input[start..start + out.len()];
            FloatPath::best().run(Normalised { input, out, statistics: [centers, sums], factors: [weight, bias] });
        });
    }
    Ok(())
}

/// Adds up what pixels have in each channel, less the center of the channel, or the squares of that.
fn sum<const SQUARES: bool>(parallel: bool, input: &[f32], centers: &[f64], sums: &mut [f64]) {
    let (channels, path) = (centers.len(), FloatPath::best());
    for_each(parallel, WriteAll(sums, CHANNELS), |block, sums| {
        path.run(Sums::<SQUARES> { input, channels, first: block * CHANNELS, centers, sums });
    });
}

/// Sums of some channels from one on.
struct Sums<'a, const SQUARES: bool> {
    input: &'a [f32],
    channels: usize,
    first: usize,
    centers: &'a [f64],
    sums: &'a mut [f64],
}

impl<const SQUARES: bool> WithFloats for Sums<'_, SQUARES> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Sums { input, channels, first, centers, sums } = self;
        sums.fill(0.0);
        for pixels in input.chunks(PIXELS * channels) {
            let (wholes, rest) = sums.as_chunks_mut::<CHANNELS>();
            if let [sums] = wholes {
                add::<F, TILES, SQUARES>(floats, pixels, [channels, first], centers, sums);
            }
            for (vector, sums) in rest.chunks_mut(LANES).enumerate() {
                let first = first + wholes.len() * CHANNELS + vector * LANES;
                add::<F, 1, SQUARES>(floats, pixels, [channels, first], centers, sums);
            }
        }
    }
}

/// Adds up what some pixels have in channels from one on, up to as many as so many vectors have lanes.
#[inline(always)]
fn add<F: Floats, const COUNT: usize, const SQUARES: bool>(
    floats: F,
    pixels: &[f32],
    [channels, first]: [usize; 2],
    centers: &[f64],
    sums: &mut [f64],
) {
    let width = sums.len();
    let center = lanes::<F, COUNT>(floats, &centers[first..first + width], 0.0);
    let mut partial = [floats.splat(0.0); COUNT];
    for pixel in pixels.chunks_exact(channels) {
        let x = load::<F, COUNT>(floats, &pixel[first..first + width], 0.0);
        for tile in 0..COUNT {
            let distance = floats.minus(x[tile], center[tile]);
            partial[tile] = match SQUARES {
                true => floats.fma(distance, distance, partial[tile]),
                false => floats.plus(partial[tile], distance),
            };
        }
    }
    for (partial, sums) in partial.into_iter().zip(sums.chunks_mut(LANES)) {
        let mut numbers = [0.0; LANES];
        floats.store(partial, &mut numbers);
        sums.iter_mut().zip(numbers).for_each(|(sum, part)| *sum += f64::from(part));
    }
}

/// Reads numbers of so many vectors, of the last of which there may be fewer, and `rest` behind them.
#[inline(always)]
fn load<F: Floats, const COUNT: usize>(floats: F, from: &[f32], rest: f32) -> [F::V; COUNT] {
    let mut vectors = [floats.splat(rest); COUNT];
    for (vector, from) in vectors.iter_mut().zip(from.chunks(LANES)) {
        *vector = read(floats, from, rest);
    }
    vectors
}

/// [`load`] of doubles, which are rounded.
#[inline(always)]
fn lanes<F: Floats, const COUNT: usize>(floats: F, from: &[f64], rest: f32) -> [F::V; COUNT] {
    let mut numbers = [rest; CHANNELS];
    numbers.iter_mut().zip(from).for_each(|(to, from)| *to = *from as f32);
    load(floats, &numbers[..from.len()], rest)
}

/// Whole pixels that are normalised, whose channels have a center and a scale each.
struct Normalised<'a> {
    input: &'a [f32],
    out: &'a mut [f32],
    /// Centers and scales.
    statistics: [&'a [f64]; 2],
    /// Weights and biases.
    factors: [Option<&'a [f32]>; 2],
}

impl WithFloats for Normalised<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Normalised { input, out, statistics: [centers, scales], factors: [weight, bias] } = self;
        let channels = centers.len();
        for first in (0..channels).step_by(LANES) {
            let here = first..channels.min(first + LANES);
            let [center] = lanes::<F, 1>(floats, &centers[here.clone()], 0.0);
            let [scale] = lanes::<F, 1>(floats, &scales[here.clone()], 0.0);
            let [factor] = load::<F, 1>(floats, weight.map_or(&[], |weight| &weight[here.clone()]), 1.0);
            let [offset] = load::<F, 1>(floats, bias.map_or(&[], |bias| &bias[here.clone()]), 0.0);
            for (from, to) in input.chunks_exact(channels).zip(out.chunks_exact_mut(channels)) {
                let [x] = load::<F, 1>(floats, &from[here.clone()], 0.0);
                let x = floats.fma(floats.minus(x, center), scale, floats.splat(-0.0));
                write(floats, floats.fma(x, factor, offset), &mut to[here.clone()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::norm::{Rows, normalise_rows};
    use crate::random::Random;
    use crate::threads::Threads;

    #[test]
    fn pixels_agree_with_rows_on_any_number_of_threads() {
        let mut random = Random::new(71);
        for (area, channels, groups) in [(1, 4, 2), (37, 6, 3), (300, 64, 8), (150, 200, 10), (1100, 320, 32)] {
            let rows = random.floats(2 * area * channels);
            let (weight, bias) = (random.floats(channels), random.floats(channels));
            // Pixel by pixel.
            let mut input = vec![0.0; rows.len()];
            for (at, x) in rows.iter().enumerate() {
                let (image, channel, pixel) = (at / (area * channels), at / area % channels, at % area);
                input[(image * area + pixel) * channels + channel] = x + channel as f32;
            }
            let shifted: Vec<f32> = rows.iter().enumerate().map(|(at, x)| x + (at / area % channels) as f32).collect();
            for (weight, bias) in [(None, None), (Some(&weight[..]), Some(&bias[..]))] {
                let mut want = (vec![0.0; rows.len()], vec![0.0; 2 * groups], vec![0.0; 2 * groups]);
                let factors = channels / groups;
                let form = Rows { width: area * factors, span: area, factors, period: groups };
                let operands = RowOperands { input: &shifted, weight, bias, eps: 1e-5 };
                let results = RowResults { out: &mut want.0, means: &mut want.1, scales: &mut want.2 };
                normalise_rows(form, operands, results).unwrap();
                let mut first: Option<Vec<f32>> = None;
                for threads in [1, 2, 3] {
                    let mut have = (vec![0.0; rows.len()], vec![0.0; 2 * groups], vec![0.0; 2 * groups]);
                    let pixels = Pixels { area, channels, groups };
                    let operands = RowOperands { input: &input, weight, bias, eps: 1e-5 };
                    let results = RowResults { out: &mut have.0, means: &mut have.1, scales: &mut have.2 };
                    let mut scratch = vec![f64::NAN; pixels.scratch()];
                    let run = || normalise_pixels(pixels, operands, results, &mut scratch);
                    Threads::new(threads).unwrap().run(run).unwrap();
                    let near =
                        |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 2e-4 * b.abs().max(1.0));
                    assert!(near(&have.1, &want.1) && near(&have.2, &want.2), "{pixels:?}");
                    for (at, want) in want.0.iter().enumerate() {
                        let (image, channel, pixel) = (at / (area * channels), at / area % channels, at % area);
                        let have = have.0[(image * area + pixel) * channels + channel];
                        assert!((have - want).abs() < 1e-3, "{pixels:?}: {have}, not {want}");
                    }
                    let first = first.get_or_insert_with(|| have.0.clone());
                    assert!(first.iter().zip(&have.0).all(|(a, b)| a.to_bits() == b.to_bits()), "{pixels:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_short_is_refused() {
        let run = |groups: usize, scratch: usize| {
            let (mut out, mut means, mut scales) = ([0.0; 8], [0.0; 4], [0.0; 4]);
            let operands = RowOperands { input: &[1.0; 8], weight: None, bias: None, eps: 0.0 };
            let results = RowResults { out: &mut out, means: &mut means, scales: &mut scales };
            normalise_pixels(Pixels { area: 2, channels: 4, groups }, operands, results, &mut vec![0.0; scratch])
        };
        assert!(run(2, 8).is_ok());
        assert!(run(2, 7).is_err());
        assert!(run(3, 8).is_err());
    }
}
