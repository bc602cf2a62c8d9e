//! Convolution where every input channel stands by itself (depthwise), in plain loops that vectorise.

use rayon::prelude::*;

use super::Geometry;
use crate::share::for_each_piece;
use crate::spatial::Slide;
use crate::steps::{Clamp, Steps};
use crate::wide::wide;

/// From so many multiplications on, handing rows to other threads pays.
const WORTH_THREADS: usize = 1 << 19;

/// Channels summed side by side; they fit the vector registers.
const LANES: usize = 32;

/// Channels-first: every output row is a sum of scaled input rows. Input rows are dense; a channel may have several
/// outputs.
pub fn rows(
    geometry: &Geometry,
    input: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    then: Option<&Steps>,
    out: &mut [f32],
) {
    let Geometry { input: images, weight: kernel, out: to, slides, .. } = geometry;
    let [_, multiple] = geometry.group_channels();
    let width = to.sizes[2];
    let (area, channels) = (to.area().max(1), to.channels.0.max(1));
    let out = &mut out[..to.batch.0 * to.channels.0 * to.area()];
    for_each_piece(out, area, |start, out| {
        for (index, out) in out.chunks_exact_mut(area).enumerate() {
            let (n, channel) = ((start / area + index) / channels, (start / area + index) % channels);
            let data = &input[n * images.batch.1 + channel / multiple * images.channels.1..];
            let weight = &weight[channel * kernel.batch.1..];
            let bias = bias.map_or(0.0, |bias| bias[channel]);
            for (y, out) in out.chunks_exact_mut(width).enumerate() {
                out.fill(bias);
                let taps = slides[1].taps(y);
                for tap in 0..taps.count {
                    let row = &data[(taps.first + tap * slides[1].dilation) * images.strides[1]..][..images.sizes[2]];
                    let weight = &weight[(taps.skipped + tap) * kernel.strides[1]..];
                    wide(|| add_row(&slides[2], row, weight, kernel.strides[2], out));
                }
                if let Some(then) = then {
                    then.in_place(out);
                }
            }
        }
    });
}

/// Adds one row of the input, by every tap of one row of the kernel.
#[inline(always)]
fn add_row(slide: &Slide, row: &[f32], weight: &[f32], step: usize, out: &mut [f32]) {
    for tap in 0..slide.kernel {
        let factor = weight[tap * step];
        let offset = tap * slide.dilation;
        // The first place whose tap is not before the input, and the first whose tap is behind it.
        let first = slide.padding.saturating_sub(offset).div_ceil(slide.stride);
        let end = match (slide.input + slide.padding).checked_sub(offset + 1) {
            Some(last) => (last / slide.stride + 1).min(out.len()),
            None => 0,
        };
        if first >= end {
            continue;
        }
        let row = &row[first * slide.stride + offset - slide.padding..];
        let out = &mut out[first..end];
        if slide.stride == 1 {
            out.iter_mut().zip(row).for_each(|(out, x)| *out += factor * x);
        } else {
            out.iter_mut().zip(row.iter().step_by(slide.stride)).for_each(|(out, x)| *out += factor * x);
        }
    }
}

/// Channels-last: every output pixel is a sum of scaled input pixels. The weight is by tap and then channel; a channel
/// has one output.
pub fn pixels(
    geometry: &Geometry,
    input: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    then: Option<&Steps>,
    out: &mut [f32],
) {
    let Geometry { input: images, out: to, .. } = geometry;
    let clamp = then.map_or(Clamp::NONE, Steps::first_clamp);
    let row = |n: usize, y: usize, out: &mut [f32]| {
        let data = &input[n * images.batch.1..];
        wide(|| {
            for (x, out) in out.chunks_exact_mut(to.channels.0).enumerate() {
                pixel(geometry, data, weight, bias, [y, x], clamp, out);
            }
        });
        if let Some(then) = then {
            then.finish(out);
        }
    };
    let (width, height) = (to.sizes[2] * to.channels.0, to.sizes[1]);
    for n in 0..to.batch.0 {
        let out = &mut out[n * to.batch.1..][..height * width];
        if geometry.work() >= WORTH_THREADS && rayon::current_num_threads() > 1 {
            out.par_chunks_exact_mut(width).enumerate().for_each(|(y, out)| row(n, y, out));
        } else {
            out.chunks_exact_mut(width).enumerate().for_each(|(y, out)| row(n, y, out));
        }
    }
}

#[inline(always)]
fn pixel(
    geometry: &Geometry,
    data: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    [y, x]: [usize; 2],
    clamp: Clamp,
    out: &mut [f32],
) {
    let Geometry { input: images, slides, .. } = geometry;
    let channels = out.len();
    let (down, right) = (slides[1].taps(y), slides[2].taps(x));
    for (block, out) in out.chunks_mut(LANES).enumerate() {
        let (first, count) = (block * LANES, out.len());
        let mut sums = [0.0; LANES];
        if let Some(bias) = bias {
            sums[..count].copy_from_slice(&bias[first..first + count]);
        }
        for ky in 0..down.count {
            let row = (down.first + ky * slides[1].dilation) * images.strides[1];
            for kx in 0..right.count {
                let from = row + (right.first + kx * slides[2].dilation) * images.strides[2] + first;
                let tap = (down.skipped + ky) * slides[2].kernel + right.skipped + kx;
                let values = &data[from..from + count];
                let factors = &weight[tap * channels + first..][..count];
                if let (Ok(values), Ok(factors)) =
                    (<&[f32; LANES]>::try_from(values), <&[f32; LANES]>::try_from(factors))
                {
                    for lane in 0..LANES {
                        sums[lane] += values[lane] * factors[lane];
                    }
                } else {
                    sums.iter_mut().zip(values.iter().zip(factors)).for_each(|(sum, (x, w))| *sum += x * w);
                }
            }
        }
        clamp.apply(&mut sums);
        out.copy_from_slice(&sums[..count]);
    }
}
