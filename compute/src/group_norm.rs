//! Normalisation of groups of channels of images whose pixels have their channels next to each other.
//!
//! Sums are taken channel by channel, of some pixels in `f32` and of all in double precision, and groups add up those of their
//! channels: a result does not depend on threads.

use crate::error::{Error, ErrorKind, expect_elements};
use crate::norm::{RowOperands, RowResults};
use crate::simd::{Loop, run_wide};
use crate::threads::{WriteAll, for_each, for_each_piece, pays};

/// Channels that are summed together.
const CHANNELS: usize = 64;
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
            run_wide(Normalised { input, out, statistics: [centers, sums], factors: [weight, bias] });
        });
    }
    Ok(())
}

/// Adds up what pixels have in each channel, less the center of the channel, or the squares of that.
fn sum<const SQUARES: bool>(parallel: bool, input: &[f32], centers: &[f64], sums: &mut [f64]) {
    let channels = centers.len();
    for_each(parallel, WriteAll(sums, CHANNELS), |block, sums| {
        run_wide(Sums::<SQUARES> { input, channels, first: block * CHANNELS, centers, sums });
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

impl<const SQUARES: bool> Loop for Sums<'_, SQUARES> {
    #[inline(always)]
    fn run(self) {
        let Sums { input, channels, first, centers, sums } = self;
        let count = sums.len();
        let mut center = [0.0; CHANNELS];
        center.iter_mut().zip(&centers[first..]).for_each(|(to, from)| *to = *from as f32);
        sums.fill(0.0);
        for pixels in input.chunks(PIXELS * channels) {
            let mut partial = [0.0; CHANNELS];
            for pixel in pixels.chunks_exact(channels) {
                let pixel = &pixel[first..first + count];
                match <&[f32; CHANNELS]>::try_from(pixel) {
                    Ok(pixel) => add::<SQUARES>(&mut partial, pixel, &center),
                    Err(_) => add::<SQUARES>(&mut partial, pixel, &center),
                }
            }
            sums.iter_mut().zip(partial).for_each(|(sum, part)| *sum += f64::from(part));
        }
    }
}

#[inline(always)]
fn add<const SQUARES: bool>(sums: &mut [f32; CHANNELS], pixel: &[f32], centers: &[f32; CHANNELS]) {
    for ((sum, x), center) in sums.iter_mut().zip(pixel).zip(centers) {
        let x = x - center;
        *sum += if SQUARES { x * x } else { x };
    }
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

impl Loop for Normalised<'_> {
    #[inline(always)]
    fn run(self) {
        let Normalised { input, out, statistics: [centers, scales], factors: [weight, bias] } = self;
        let channels = centers.len();
        for first in (0..channels).step_by(CHANNELS) {
            let count = CHANNELS.min(channels - first);
            let (mut center, mut scale) = ([0.0; CHANNELS], [0.0; CHANNELS]);
            let (mut factor, mut offset) = ([1.0; CHANNELS], [0.0; CHANNELS]);
            center.iter_mut().zip(&centers[first..]).for_each(|(to, from)| *to = *from as f32);
            scale.iter_mut().zip(&scales[first..]).for_each(|(to, from)| *to = *from as f32);
            if let Some(weight) = weight {
                factor[..count].copy_from_slice(&weight[first..first + count]);
            }
            if let Some(bias) = bias {
                offset[..count].copy_from_slice(&bias[first..first + count]);
            }
            for (from, to) in input.chunks_exact(channels).zip(out.chunks_exact_mut(channels)) {
                let (from, to) = (&from[first..first + count], &mut to[first..first + count]);
                match (<&[f32; CHANNELS]>::try_from(from), <&mut [f32; CHANNELS]>::try_from(&mut *to)) {
                    (Ok(from), Ok(to)) => scaled(from, to, [&center, &scale, &factor, &offset]),
                    _ => scaled(from, to, [&center, &scale, &factor, &offset]),
                }
            }
        }
    }
}

#[inline(always)]
fn scaled(from: &[f32], to: &mut [f32], [center, scale, factor, offset]: [&[f32; CHANNELS]; 4]) {
    for (lane, (from, to)) in from.iter().zip(to).enumerate().take(CHANNELS) {
        *to = (from - center[lane]) * scale[lane] * factor[lane] + offset[lane];
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
