//! Channels-last images of few channels: a row of pixels is a row of numbers, whose vectors are whole whatever pixels they are
//! of. Taps are as far from each other as pixels, and their weights are those of all channels over and over.
//!
//! Invariant: a result is one sum over taps, started with the bias, whatever vector, piece or thread it is in.

use super::TAP;
use crate::conv::geometry::{Geometry, Operands};
use crate::epilogue::{Activate, Activation, Epilogue, WithActivation};
use crate::padded::{PADDED, Padded};
use crate::simd::apart::each_row;
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES as VECTOR, WithFloats, write};
use crate::threads::{self, Cost, WriteAll, even, for_each_at};

/// Rows of results that are summed together: they share their weights.
const ROWS: usize = 4;

/// Numbers of a piece of a row of results, at least.
const PIECE: usize = 2 * VECTOR;

/// Parts that a thread gets, so that all end at about the same time.
const PARTS: usize = 4;

/// Returns whether a depthwise convolution of channels-last images has so few channels, and rows that are looked at in pieces.
pub(in crate::conv) fn fits_rows(geometry: &Geometry) -> bool {
    geometry.out.channels.0 < VECTOR && pieces(geometry).is_some()
}

/// Numbers of a tap: its weights of all channels, and over again until a vector may begin at each channel.
pub(in crate::conv) fn tap_len(geometry: &Geometry) -> usize {
    geometry.out.channels.0 + VECTOR
}

/// Columns of results that are computed together, and the input that some rows of them meet.
fn pieces(geometry: &Geometry) -> Option<(Padded, usize)> {
    let Geometry { slides: [_, down, right], out: to, .. } = geometry;
    let ([_, height, width], channels) = (to.sizes, to.channels.0);
    let lines = down.stride.saturating_mul(ROWS.min(height).checked_sub(1)?).saturating_add(down.reach());
    let numbers = PADDED.checked_div(lines.saturating_mul(right.stride))?.checked_sub(VECTOR)?;
    let columns = (numbers / channels).checked_sub(right.reach() / right.stride + 1)?.min(width);
    let fits = columns == width || columns * channels >= PIECE;
    let padded = Padded::of([*down, *right], columns, channels)?;
    (fits && columns > 0).then_some((padded, columns))
}

/// Computes all images. The weight has [so many numbers](tap_len) of each tap.
pub(in crate::conv) fn rows(
    geometry: &Geometry,
    operands: &Operands<'_, f32>,
    epilogue: Option<&Epilogue>,
    out: &mut [f32],
) {
    let Geometry { input: images, out: to, weight: kernel, .. } = geometry;
    let ([_, height, width], channels) = (to.sizes, to.channels.0);
    let (all, columns) = pieces(geometry).expect("rows that are looked at in pieces");
    let weights = &operands.weight[..kernel.area() * tap_len(geometry)];
    let mut bias = [0.0; 2 * VECTOR];
    if let Some(numbers) = operands.bias {
        let again = numbers[..channels].iter().cycle();
        bias.iter_mut().zip(again).for_each(|(to, x)| *to = *x);
    }
    let (path, activation) = (FloatPath::best(), epilogue.map_or(Activation::None, Epilogue::activation));
    // Parts are rows, or pieces of a row that is all of an image.
    let threads = threads::current();
    let part_of = |count: usize, least: usize| {
        let most = (count / least).clamp(1, threads * PARTS);
        if threads > 1 { even(count, most, threads, |part| part.next_multiple_of(least) + 1) } else { count }
    };
    let [lines, each] = if height == 1 { [1, part_of(width, PIECE)] } else { [part_of(height, ROWS), width] };
    let cost = Cost::nanoseconds(TAP * (kernel.area() * lines * each * channels) as f64);
    for n in 0..to.batch.0 {
        let data = &operands.input[n * images.batch.1..];
        let out = &mut out[n * to.batch.1..][..height * width * channels];
        for_each_at(cost, WriteAll(out, lines * each * channels), |part, out| {
            let [y, x] = if height == 1 { [0, part * each] } else { [part * lines, 0] };
            let pitch = out.len().min(width * channels);
            let (count, here) = (out.len() / pitch, pitch / channels);
            let mut band = [0.0; PADDED];
            for from in (0..here).step_by(columns) {
                let (padded, met) = all.from(x + from);
                if from > 0 {
                    band.fill(0.0);
                }
                for rows in padded.bands(y..y + count) {
                    padded.fill(&data[met * channels..], images.strides[1], &rows, 0.0, &mut band);
                    let sizes = [rows.len(), columns.min(here - from) * channels];
                    let out = &mut out[(rows.start - y) * pitch + from * channels..];
                    let (padded, band, bias) = (&padded, &band, &bias);
                    path.run(Band { padded, band, weights, bias, channels, sizes, pitch, activation, out });
                }
            }
            if let Some(epilogue) = epilogue {
                epilogue.finish(out);
            }
        });
    }
}

/// Rows of results of a piece of columns.
struct Band<'a, 'o> {
    padded: &'a Padded,
    band: &'a [f32; PADDED],
    weights: &'a [f32],
    /// Of all channels, over and over.
    bias: &'a [f32; 2 * VECTOR],
    channels: usize,
    /// Number of rows, and of numbers of each.
    sizes: [usize; 2],
    /// Numbers of `out` from one row to the next.
    pitch: usize,
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
        let (floats, mut band) = self;
        let [rows, _] = band.sizes;
        let together = rows / ROWS * ROWS;
        for row in (0..together).step_by(ROWS) {
            band.rows::<F, ROWS>(floats, row, function);
        }
        for row in together..rows {
            band.rows::<F, 1>(floats, row, function);
        }
    }
}

impl Band<'_, '_> {
    /// Computes some rows, from a row on.
    #[inline(always)]
    fn rows<F: Floats, const ROWS: usize>(&mut self, floats: F, row: usize, function: impl Activate<F>) {
        let Band { padded, band, weights, bias, channels, sizes: [_, len], pitch, .. } = *self;
        let (first, line, taps) = (padded.row(row), padded.row(1), padded.taps());
        let reach = taps.iter().fold(0, |most, tap| most.max(*tap as usize)) + VECTOR;
        // Channel that the vector begins with, and how far behind it the next vector begins.
        let (mut channel, step) = (0, VECTOR % channels);
        for start in (0..len).step_by(VECTOR) {
            // Slices of one length, which is compared once for all rows.
            let mut numbers = [&band[..reach]; ROWS];
            for (row, numbers) in numbers.iter_mut().enumerate() {
                *numbers = &band[first + row * line + start..][..reach];
            }
            let mut sums = [floats.load(at(bias, channel)); ROWS];
            for (&tap, weights) in taps.iter().zip(weights.chunks_exact(channels + VECTOR)) {
                let factors = floats.load(at(weights, channel));
                each_row!(row < ROWS => {
                    sums[row] = floats.fma(floats.load(at(numbers[row], tap as usize)), factors, sums[row]);
                });
            }
            let end = (start + VECTOR).min(len);
            each_row!(index < ROWS => {
                let results = function.of(floats, sums[index]);
                write(floats, results, &mut self.out[(row + index) * pitch..][start..end]);
            });
            channel += step;
            if channel >= channels {
                channel -= channels;
            }
        }
    }
}

/// A vector from a place on.
#[inline(always)]
fn at(numbers: &[f32], place: usize) -> &[f32; VECTOR] {
    // Numbers go on for a vector behind each channel and each tap.
    numbers[place..].first_chunk().unwrap_or(&[0.0; VECTOR])
}

#[cfg(test)]
mod tests {
    use crate::conv::algorithm::Algorithm;
    use crate::conv::geometry::Geometry;
    use crate::conv::tests::agrees;
    use crate::random::Random;
    use crate::spatial::{Images, Slide};

    fn geometry(channels: usize, down: Slide, right: Slide) -> Geometry {
        let slides = [Slide::POINT, down, right];
        Geometry {
            input: Images::channels_last(2, channels, slides.map(|slide| slide.input)),
            weight: Images::channels_first(channels, 1, slides.map(|slide| slide.kernel)),
            out: Images::channels_last(2, channels, slides.map(|slide| slide.places(false).unwrap())),
            slides,
            groups: channels,
            transposed: false,
        }
    }

    #[test]
    fn few_channels_agree_with_the_definition() {
        let mut random = Random::new(70);
        for (round, channels) in (2..16).cycle().take(70).enumerate() {
            let mut slide = |input, kernel: usize| Slide {
                input,
                kernel,
                stride: 1 + round % 3,
                padding: random.below(kernel + 2),
                dilation: 1 + round / 3 % 2,
            };
            let (down, right) = (slide(9 + round % 8, 1 + round % 5), slide(11 + 3 * round, 1 + round % 4));
            let geometry = geometry(channels, down, right);
            assert_eq!(Algorithm::of(&geometry), Algorithm::DepthwiseRows);
            agrees(&mut random, geometry);
        }
    }

    /// Rows of which a band has pieces, of images and alone.
    #[test]
    fn long_rows_of_few_channels_agree_with_the_definition() {
        let mut random = Random::new(72);
        for (channels, kernel, stride, dilation) in [(3, 7, 1, 1), (12, 3, 2, 1), (8, 5, 1, 3), (15, 64, 3, 1)] {
            let right = Slide { input: 2500, kernel, stride, padding: kernel / 2, dilation };
            for height in [1, 5] {
                let down = Slide { input: height, kernel: height.min(1 + 64 / kernel / 4), ..Slide::POINT };
                let geometry = geometry(channels, down, right);
                assert_eq!(Algorithm::of(&geometry), Algorithm::DepthwiseRows);
                agrees(&mut random, geometry);
            }
        }
        let far = Slide { input: 2500, kernel: 3, stride: usize::MAX / 2, padding: 1, dilation: 1 };
        let geometry = geometry(8, Slide { input: 90, kernel: 3, ..far }, far);
        assert_ne!(Algorithm::of(&geometry), Algorithm::DepthwiseRows);
    }

    /// A number that is not finite stays in its channel, and where its taps reach.
    #[test]
    fn channels_do_not_meet() {
        let slide = |input| Slide { input, kernel: 3, stride: 1, padding: 1, dilation: 1 };
        let geometry = geometry(6, slide(9), slide(20));
        let (weight, mut input) = (vec![1.0; 54], vec![1.0f32; 2 * 9 * 20 * 6]);
        (input[(4 * 20 + 7) * 6 + 2], input[(4 * 20 + 19) * 6 + 5]) = (f32::INFINITY, f32::NAN);
        let operands = crate::conv::Operands { input: &input, weight: &weight, bias: None };
        let [mut want, mut have] = [vec![0f32; input.len()], vec![0f32; input.len()]];
        crate::conv::direct::convolve(&geometry, &operands, &mut want);
        crate::conv::Convolution::new(true, None).run(&geometry, &operands, None, &mut [], &mut have).unwrap();
        assert!(have.iter().zip(&want).all(|(have, want)| have == want || have.is_nan() && want.is_nan()));
    }
}
