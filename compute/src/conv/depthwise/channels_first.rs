//! Channels-first images: every output row is a sum of scaled input rows.

use super::TAP;
use crate::conv::geometry::{Geometry, Operands};
use crate::epilogue::{Activate, Activation, Epilogue, WithActivation};
use crate::padded::{PADDED, Padded, met};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES as VECTOR, WithFloats, write};
use crate::simd::wide;
use crate::simd::window::MOST_TAPS;
use crate::spatial::{Images, Slide, Taps};
use crate::threads::{Cost, for_each_piece_at};

/// Elements of a row summed at once.
const BLOCK: usize = 16;

/// Channels-first: every output row is a sum of scaled input rows. Input rows are dense; a channel may have several
/// outputs.
pub(in crate::conv) fn nchw(
    geometry: &Geometry,
    operands: &Operands<'_, f32>,
    epilogue: Option<&Epilogue>,
    out: &mut [f32],
) {
    let Geometry { input: images, weight: kernel, out: to, slides, .. } = geometry;
    let Operands { input, weight, bias } = *operands;
    let [_, multiplier] = geometry.group_channels();
    let width = to.sizes[2];
    let (area, channels) = (to.area().max(1), to.channels.0.max(1));
    let out = &mut out[..to.batch.0 * to.channels.0 * to.area()];
    if is_whole(geometry) {
        return whole(geometry, operands, epilogue, out);
    }
    let padded = Padded::of([slides[1], slides[2]], width, 1);
    let path = FloatPath::best();
    let activation = epilogue.map_or(Activation::None, Epilogue::activation);
    let cost = Cost::nanoseconds(TAP * kernel.area() as f64);
    for_each_piece_at(cost, out, area, |start, out| {
        let mut band = [0.0; PADDED];
        for (index, out) in out.chunks_exact_mut(area).enumerate() {
            let (n, channel) = ((start / area + index) / channels, (start / area + index) % channels);
            let data = &input[n * images.batch.1 + channel / multiplier * images.channels.1..];
            let weight = &weight[channel * kernel.batch.1..];
            let bias = bias.map_or(0.0, |bias| bias[channel]);
            if let Some(padded) = &padded {
                for rows in padded.bands(0..to.sizes[1]) {
                    padded.fill(data, images.strides[1], &rows, 0.0, &mut band);
                    let out = &mut out[rows.start * width..rows.end * width];
                    path.run(Band { geometry, padded, band: &band, weight, bias, activation, out });
                }
                if let Some(epilogue) = epilogue {
                    epilogue.finish(out);
                }
                continue;
            }
            for (y, out) in out.chunks_exact_mut(width).enumerate() {
                let row = Row { geometry, taps: slides[1].taps(y), data, weight, bias };
                wide(|| match slides[2].stride {
                    1 => row.run::<1>(out),
                    2 => row.run::<2>(out),
                    _ => row.edge(0, out),
                });
                if let Some(epilogue) = epilogue {
                    epilogue.in_place(out);
                }
            }
        }
    });
}

/// Returns whether the window of a channel is its whole image, both dense.
fn is_whole(geometry: &Geometry) -> bool {
    let Geometry { input, weight, out, slides: [_, down, right], .. } = geometry;
    let dense = |images: &Images| images.strides[2] == 1 && (images.sizes[1] == 1 || images.is_linear());
    let alone = |slide: &Slide| slide.kernel == slide.input && slide.padding == 0 && slide.dilation == 1;
    out.area() == 1 && alone(down) && alone(right) && dense(input) && dense(weight)
}

/// Every element of the output is the product of an image and its taps: of vectors of both, and of what is left over.
fn whole(geometry: &Geometry, operands: &Operands<'_, f32>, epilogue: Option<&Epilogue>, out: &mut [f32]) {
    let cost = Cost::nanoseconds(TAP * geometry.weight.area() as f64);
    let path = FloatPath::best();
    for_each_piece_at(cost, out, 1, |start, out| {
        path.run(Whole { geometry, operands, start, out: &mut *out });
        if let Some(epilogue) = epilogue {
            epilogue.in_place(out);
        }
    });
}

/// Some elements of the output of [`whole`].
struct Whole<'a, 'o> {
    geometry: &'a Geometry,
    operands: &'a Operands<'a, f32>,
    /// The first of all elements.
    start: usize,
    out: &'o mut [f32],
}

impl WithFloats for Whole<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Whole { geometry, operands: &Operands { input, weight, bias }, start, out } = self;
        let Geometry { input: images, weight: kernel, out: to, .. } = geometry;
        let [_, multiplier] = geometry.group_channels();
        let taps = kernel.area();
        for (index, out) in (start..).zip(out) {
            let (n, channel) = (index / to.channels.0, index % to.channels.0);
            let image = &input[n * images.batch.1 + channel / multiplier * images.channels.1..][..taps];
            let weight = &weight[channel * kernel.batch.1..][..taps];
            let ((images, last), (weights, factors)) = (image.as_chunks::<VECTOR>(), weight.as_chunks::<VECTOR>());
            let mut sums = floats.splat(0.0);
            for (image, weight) in images.iter().zip(weights) {
                sums = floats.fma(floats.load(image), floats.load(weight), sums);
            }
            sums = floats.fma(floats.load_some(last, 0.0), floats.load_some(factors, 0.0), sums);
            *out = bias.map_or(0.0, |bias| bias[channel]) + floats.total(sums);
        }
    }
}

/// A band of a plane of the output of one channel.
struct Band<'a, 'o> {
    geometry: &'a Geometry,
    padded: &'a Padded,
    band: &'a [f32; PADDED],
    weight: &'a [f32],
    bias: f32,
    activation: Activation,
    out: &'o mut [f32],
}

impl WithFloats for Band<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        self.activation.with(floats, (floats, self));
    }
}

impl<F: Floats> WithActivation<F> for (F, Band<'_, '_>) {
    #[inline(always)]
    fn run(self, function: impl Activate<F>) {
        let (floats, Band { geometry, padded, band, weight, bias, out, .. }) = self;
        let Geometry { slides: [_, _, right], out: to, weight: kernel, .. } = geometry;
        let mut factors = [0.0; MOST_TAPS];
        for (tap, factor) in factors.iter_mut().enumerate().take(kernel.area()) {
            *factor = weight[tap / right.kernel * kernel.strides[1] + tap % right.kernel * kernel.strides[2]];
        }
        for (y, out) in out.chunks_exact_mut(to.sizes[2]).enumerate() {
            let first = padded.row(y);
            for (block, out) in out.chunks_mut(VECTOR).enumerate() {
                let first = first + block * VECTOR;
                let mut sums = floats.splat(bias);
                for (&tap, &factor) in padded.taps().iter().zip(&factors) {
                    sums = floats.fma(floats.load(met(band, first, tap)), floats.splat(factor), sums);
                }
                write(floats, function.of(floats, sums), out);
            }
        }
    }
}

/// One row of the output of one channel.
struct Row<'a> {
    geometry: &'a Geometry,
    /// The rows of the kernel that meet the input.
    taps: Taps,
    data: &'a [f32],
    weight: &'a [f32],
    bias: f32,
}

impl Row<'_> {
    /// The row of the input that row `ky` of the taps meets, and that row of the kernel.
    #[inline(always)]
    fn operands(&self, ky: usize) -> (&[f32], &[f32]) {
        let Geometry { input: images, weight: kernel, slides, .. } = self.geometry;
        let row = &self.data[(self.taps.first + ky * slides[1].dilation) * images.strides[1]..][..images.sizes[2]];
        (row, &self.weight[(self.taps.skipped + ky) * kernel.strides[1]..])
    }

    /// Blocks of elements where all taps of a row meet the input, others one by one.
    #[inline(always)]
    fn run<const STRIDE: usize>(&self, out: &mut [f32]) {
        let slide = &self.geometry.slides[2];
        let (reach, tap_stride) = (slide.dilation * (slide.kernel - 1), self.geometry.weight.strides[2]);
        let first = slide.padding.div_ceil(STRIDE).min(out.len());
        let end = match (slide.input + slide.padding).checked_sub(reach + 1) {
            Some(last) => (last / STRIDE + 1).min(out.len()),
            None => 0,
        };
        if end < first + BLOCK {
            return self.edge(0, out);
        }
        self.edge(0, &mut out[..first]);
        self.edge(end, &mut out[end..]);
        let mut start = first;
        while start < end {
            // The last block begins early enough to be whole.
            start = start.min(end - BLOCK);
            let mut sums = [self.bias; BLOCK];
            for ky in 0..self.taps.count {
                let (row, weight) = self.operands(ky);
                for kx in 0..slide.kernel {
                    let from = start * STRIDE + kx * slide.dilation - slide.padding;
                    let values = &row[from..from + (BLOCK - 1) * STRIDE + 1];
                    let factor = weight[kx * tap_stride];
                    for (sum, value) in sums.iter_mut().zip(values.iter().step_by(STRIDE)) {
                        *sum += factor * value;
                    }
                }
            }
            out[start..start + BLOCK].copy_from_slice(&sums);
            start += BLOCK;
        }
    }

    /// Elements from place `first` on, one by one.
    #[inline(always)]
    fn edge(&self, first: usize, out: &mut [f32]) {
        let Geometry { weight: kernel, slides, .. } = self.geometry;
        for (x, out) in (first..).zip(out) {
            let right = slides[2].taps(x);
            let mut sum = self.bias;
            for ky in 0..self.taps.count {
                let (row, weight) = self.operands(ky);
                for kx in 0..right.count {
                    sum +=
                        weight[(right.skipped + kx) * kernel.strides[2]] * row[right.first + kx * slides[2].dilation];
                }
            }
            *out = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::conv::algorithm::Algorithm;
    use crate::conv::geometry::Geometry;
    use crate::conv::tests::agrees;
    use crate::random::Random;
    use crate::spatial::{Images, Slide};

    /// Windows that are all of an image.
    #[test]
    fn windows_of_whole_images_agree_with_the_definition() {
        let mut random = Random::new(66);
        for (channels, each, [height, width]) in [(30, 1, [7, 7]), (5, 2, [4, 16]), (40, 1, [1, 33]), (70, 1, [3, 5])] {
            let slide = |input| Slide { input, kernel: input, stride: 1, padding: 0, dilation: 1 };
            let geometry = Geometry {
                input: Images::channels_first(2, channels, [1, height, width]),
                weight: Images::channels_first(channels * each, 1, [1, height, width]),
                out: Images::channels_first(2, channels * each, [1, 1, 1]),
                slides: [Slide::POINT, slide(height), slide(width)],
                groups: channels,
                transposed: false,
            };
            assert_eq!(Algorithm::of(&geometry), Algorithm::DepthwiseNchw, "{geometry:?}");
            agrees(&mut random, geometry);
        }
    }
}
