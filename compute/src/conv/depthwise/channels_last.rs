//! Channels-last images: every output pixel is a sum of scaled input pixels.

use arrayvec::ArrayVec;

use super::{TAP, groups};
use crate::conv::geometry::{Geometry, Operands};
use crate::epilogue::{Activate, Activation, Epilogue, WithActivation};
use crate::simd::apart::{Apart, each_row};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES as VECTOR, WithFloats};
use crate::simd::wide;
use crate::simd::window::{MOST_TAPS, Window};
use crate::spatial::Slide;
use crate::threads::{self, Cost, WriteAll, even, for_each_at};

/// Channels summed at once; they fit the vector registers.
const LANES: usize = 32;

/// Channels-last: every output pixel is a sum of scaled input pixels. The weight is by tap and then channel, or of
/// [groups](super::groups) of a few channels in their order, and after the last tap there is a zero per channel; a channel has
/// one output.
pub(in crate::conv) fn nhwc(
    geometry: &Geometry,
    operands: &Operands<'_, f32>,
    epilogue: Option<&Epilogue>,
    out: &mut [f32],
) {
    let Geometry { input: images, out: to, .. } = geometry;
    let Operands { input, weight, bias } = *operands;
    let activation = epilogue.map_or(Activation::None, Epilogue::activation);
    let [_, down, right] = &geometry.slides;
    // Of a program, which may say any stride.
    let columns = (PIXELS - 1).saturating_mul(right.stride).saturating_add(right.reach());
    let fits = geometry.weight.area() <= MOST_TAPS && columns <= Window::most_columns(down.kernel);
    let tiles = to.channels.0 >= VECTOR && fits;
    let path = FloatPath::best();
    let [_, height, width] = to.sizes;
    let some = |n: usize, first: usize, out: &mut [f32]| {
        let (data, place) = (&input[n * images.batch.1..], |pixel: usize| [pixel / width.max(1), pixel % width.max(1)]);
        if tiles {
            path.run(Tiles { geometry, data, weight, bias, first: place(first), activation, out: &mut *out });
        } else {
            wide(|| {
                for (at, out) in (first..).zip(out.chunks_exact_mut(to.channels.0)) {
                    pixel(geometry, data, weight, bias, place(at), activation, out);
                }
            });
        }
        if let Some(epilogue) = epilogue {
            epilogue.finish(out);
        }
    };
    // Parts are lines, as many as go together and threads end together with, or pieces of a line that is all of an image.
    let threads = threads::current();
    let at_once = lines_at_once(down);
    let time = |lines: usize| 2 * lines + lines.div_ceil(at_once);
    let lines = if threads > 1 { even(height, threads * PARTS, threads, time) } else { height.clamp(1, at_once) };
    let each = if height == 1 { width.min(PIECE) } else { width * lines };
    let cost = Cost::nanoseconds(TAP * (groups::block_len(geometry) * each * to.channels.0) as f64);
    for n in 0..to.batch.0 {
        let out = &mut out[n * to.batch.1..][..height * width * to.channels.0];
        for_each_at(cost, WriteAll(out, each * to.channels.0), |part, out| some(n, part * each, out));
    }
}

/// Parts that a thread gets, so that all end at about the same time.
const PARTS: usize = 4;

/// Lines of input that are read together, at most.
const LINES: usize = 12;

/// Columns of input whose vectors stay in the nearest cache for a few lines.
const NEAR: usize = 64;

/// Lines of output whose windows are looked at together: what they share is read from the nearest cache.
fn lines_at_once(down: &Slide) -> usize {
    if down.dilation == 1 { down.places_within(LINES) } else { 1 }
}

/// Pixels of a part of a line that is all of an image.
const PIECE: usize = 32;

/// Pixels of a row that are summed at once.
const PIXELS: usize = 4;

/// Lines of input that windows on so many lines of output meet; of one, only those that taps meet.
fn lines_met(down: &Slide, lines: usize) -> usize {
    (lines - 1) * down.stride + down.kernel
}

/// Channels-last pixels of at least [`VECTOR`] channels: whole lines, or a piece of one.
struct Tiles<'a, 'o> {
    geometry: &'a Geometry,
    data: &'a [f32],
    weight: &'a [f32],
    bias: Option<&'a [f32]>,
    /// Line and column of the first pixel.
    first: [usize; 2],
    activation: Activation,
    out: &'o mut [f32],
}

impl WithFloats for Tiles<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(mut self, floats: F) {
        let Geometry { slides: [_, down, right], out: to, weight: kernel, .. } = *self.geometry;
        let (channels, out) = (to.channels.0, std::mem::take(&mut self.out));
        let grouped = kernel.channels.0 > 1;
        let len = if grouped { groups::vectors(self.geometry) * VECTOR } else { kernel.area() * channels };
        let (weights, zeros) = self.weight.split_at(len);
        let [line, start] = self.first;
        let pixels = out.len() / channels;
        let width = pixels.min(to.sizes[2]);
        // Of several lines together few columns at a time, if those are enough for some pixels.
        let together = lines_at_once(&down).min(pixels / width);
        let near = Window::most_columns(lines_met(&down, together)).min(NEAR);
        let (together, columns) = match together > 1 && near >= right.reach_of(PIXELS) {
            true => (together, near),
            false => (1, Window::most_columns(down.kernel)),
        };
        let most = right.places_within(columns) / PIXELS * PIXELS;
        let mut window = Window::new(channels);
        for from in (0..width).step_by(most) {
            let count = most.min(width - from);
            let columns = right.reach_of(count.next_multiple_of(PIXELS));
            let taps: ArrayVec<usize, MOST_TAPS> = (0..down.kernel)
                .flat_map(|ky| (0..right.kernel).map(move |kx| ky * columns + kx * right.dilation))
                .collect();
            for first in (0..pixels / width).step_by(together) {
                let lines = together.min(pixels / width - first);
                let met = lines_met(&down, lines);
                let x = right.start(start + from);
                meet(self.geometry, self.data, &mut window, [line + first, met], x, columns, zeros);
                let some = Stretch {
                    tiles: &self,
                    window: &window,
                    taps: &taps,
                    weights,
                    columns,
                    counts: [lines, count],
                    width,
                    out: &mut out[(first * width + from) * channels..],
                };
                some.run(floats);
            }
        }
    }
}

/// Finds what windows meet in so many lines of the input, the first of which is the first of a line of the output, and so many
/// columns, the first of which may be before it.
pub(in crate::conv) fn meet<'a>(
    geometry: &Geometry,
    data: &'a [f32],
    window: &mut Window<'a>,
    [line, lines]: [usize; 2],
    first: isize,
    columns: usize,
    zeros: &'a [f32],
) {
    let Geometry { input: images, slides: [_, down, right], .. } = geometry;
    let before = first.min(0).unsigned_abs().min(columns);
    let x = first.max(0) as usize;
    let inside = (columns - before).min(right.input.saturating_sub(x));
    window.clear();
    for ky in 0..lines {
        let y = down.start(line) + (ky * down.dilation) as isize;
        // A place before the first is a great number, too.
        if (y as usize) < down.input && inside > 0 {
            window.push_same(zeros, before);
            let line = &data[y as usize * images.strides[1] + x * images.strides[2]..];
            window.push_line(line, images.strides[2], inside);
            window.push_same(zeros, columns - before - inside);
        } else {
            window.push_same(zeros, columns);
        }
    }
}

/// Neighbouring pixels of some lines, and what their taps meet.
struct Stretch<'l, 'a, 'o> {
    tiles: &'l Tiles<'a, 'o>,
    window: &'l Window<'a>,
    /// Of each tap: the place that it meets behind the first.
    taps: &'l [usize],
    weights: &'l [f32],
    /// Places of a line of the input.
    columns: usize,
    /// Number of lines, and of pixels of each.
    counts: [usize; 2],
    /// Pixels from one line to the next.
    width: usize,
    out: &'l mut [f32],
}

impl Stretch<'_, '_, '_> {
    /// All pixels and channels.
    #[inline(always)]
    fn run<F: Floats>(mut self, floats: F) {
        let Geometry { slides: [_, _, right], weight, .. } = self.tiles.geometry;
        match (weight.channels.0, right.dilation, right.kernel, right.stride) {
            (2, _, _, 1) => self.pairs::<F, 3, 1, 2>(floats),
            (2, ..) => self.pairs::<F, 3, 2, 2>(floats),
            (4, _, _, 1) => self.pairs::<F, 3, 1, 4>(floats),
            (4, ..) => self.pairs::<F, 3, 2, 4>(floats),
            (8, _, _, 1) => self.pairs::<F, 3, 1, 8>(floats),
            (8, ..) => self.pairs::<F, 3, 2, 8>(floats),
            (_, 1, 3, 1) => self.pairs::<F, 3, 1, 1>(floats),
            (_, 1, 3, 2) => self.pairs::<F, 3, 2, 1>(floats),
            (_, 1, 5, 1) => self.pairs::<F, 5, 1, 1>(floats),
            (_, 1, 5, 2) => self.pairs::<F, 5, 2, 1>(floats),
            (_, 1, 7.., 1) => self.blocks::<F, 1>(floats),
            (_, 1, 7.., 2) => self.blocks::<F, 2>(floats),
            _ => self.blocks::<F, 0>(floats),
        }
    }

    /// Two vectors of channels at a time where windows have so many taps a line, next to each other, and groups so many
    /// channels.
    #[inline(always)]
    fn pairs<F: Floats, const WIDTH: usize, const STRIDE: usize, const GROUP: usize>(&mut self, floats: F) {
        let channels = self.window.channels();
        let mut first = 0;
        while first < channels {
            first += if const { F::TILES > 1 } && channels - first >= 2 * VECTOR {
                floats.apart(Near::<WIDTH, STRIDE, GROUP, 2> { line: &mut *self, first });
                2 * VECTOR
            } else {
                // The last block begins early enough to be whole.
                first = first.min(channels - VECTOR);
                floats.apart(Near::<WIDTH, STRIDE, GROUP, 1> { line: &mut *self, first });
                VECTOR
            };
        }
    }

    /// Some vectors of channels at a time: of windows that are `STRIDE` apart and have many taps a line, next to each other, or, if
    /// that is 0, of any windows.
    #[inline(always)]
    fn blocks<F: Floats, const STRIDE: usize>(&mut self, floats: F) {
        let channels = self.window.channels();
        let mut first = 0;
        while first < channels {
            let left = channels - first;
            first += if const { STRIDE == 0 && F::TILES > 1 } && left >= 4 * VECTOR {
                floats.apart(Any::<STRIDE, 4> { line: &mut *self, first });
                4 * VECTOR
            } else if const { F::TILES > 1 } && left >= 2 * VECTOR {
                floats.apart(Any::<STRIDE, 2> { line: &mut *self, first });
                2 * VECTOR
            } else {
                // The last block begins early enough to be whole.
                first = first.min(channels - VECTOR);
                floats.apart(Any::<STRIDE, 1> { line: &mut *self, first });
                VECTOR
            };
        }
    }

    /// The numbers that sums of some vectors of channels begin with.
    #[inline(always)]
    fn start<F: Floats, const TILES: usize>(&self, floats: F, first: usize) -> [[F::V; TILES]; PIXELS] {
        let mut start = [floats.splat(0.0); TILES];
        if let Some(bias) = self.tiles.bias {
            let (bias, _) = bias[first..first + TILES * VECTOR].as_chunks::<VECTOR>();
            for (start, bias) in start.iter_mut().zip(bias) {
                *start = floats.load(bias);
            }
        }
        [start; PIXELS]
    }

    /// Writes the results of some vectors of channels of neighbouring pixels.
    #[inline(always)]
    fn write<F: Floats, const TILES: usize>(
        &mut self,
        floats: F,
        [y, x, first]: [usize; 3],
        sums: &[[F::V; TILES]; PIXELS],
    ) {
        let (here, channels) = (PIXELS.min(self.counts[1] - x), self.window.channels());
        let out = &mut self.out[(y * self.width + x) * channels..];
        self.tiles.activation.with(floats, Results { floats, sums, here, channels: [first, channels], out });
    }
}

/// Some vectors of channels of all pixels, of windows with taps next to each other: a function of its own, so that
/// sums stay in registers.
struct Near<'b, 'l, 'a, 'o, const WIDTH: usize, const STRIDE: usize, const GROUP: usize, const TILES: usize> {
    line: &'b mut Stretch<'l, 'a, 'o>,
    first: usize,
}

impl<F: Floats, const WIDTH: usize, const STRIDE: usize, const GROUP: usize, const TILES: usize> Apart<F>
    for Near<'_, '_, '_, '_, WIDTH, STRIDE, GROUP, TILES>
{
    #[inline(always)]
    fn run(self, floats: F) {
        let Near { line, first } = self;
        let mut blocks: [&[[f32; VECTOR]]; TILES] = [&[]; TILES];
        if const { GROUP > 1 } {
            let (len, (vectors, _)) = (groups::block_len(line.tiles.geometry), line.weights.as_chunks());
            let of_first = &vectors[groups::block_of(first) * len..];
            for (block, vectors) in blocks.iter_mut().zip(of_first.chunks_exact(len)) {
                *block = vectors;
            }
        }
        let (start, down) = (line.start::<F, TILES>(floats, first), line.tiles.geometry.slides[1]);
        let ([lines, count], window) = (line.counts, line.window);
        // Vectors of nine taps fit the registers, all of them.
        let is_kept = const { GROUP == 1 && WIDTH == 3 && F::TILES > 1 } && down.kernel == WIDTH;
        let mut kept = [[[floats.splat(0.0); TILES]; WIDTH]; WIDTH];
        for (row, kept) in kept.iter_mut().enumerate().take(if is_kept { WIDTH } else { 0 }) {
            *kept = window.factors(floats, line.weights, row * WIDTH, first);
        }
        for y in 0..lines {
            for x in (0..count).step_by(PIXELS) {
                let from = y * down.stride * line.columns + x * STRIDE;
                let (mut sums, at) = (start, [down.kernel, line.columns, from]);
                if is_kept {
                    let at = [line.columns, from];
                    window.add_square::<F, TILES, PIXELS, WIDTH, STRIDE>(floats, &kept, at, first, &mut sums);
                } else if const { GROUP > 1 } {
                    window.add_groups::<F, TILES, PIXELS, WIDTH, STRIDE, GROUP>(floats, blocks, at, first, &mut sums);
                } else {
                    window.add_lines::<F, TILES, PIXELS, WIDTH, STRIDE>(floats, line.weights, at, first, &mut sums);
                }
                line.write(floats, [y, x, first], &sums);
            }
        }
    }
}

/// [`Near`] of any windows, or of those with many taps a line, as [`Stretch::blocks`] says.
struct Any<'b, 'l, 'a, 'o, const STRIDE: usize, const TILES: usize> {
    line: &'b mut Stretch<'l, 'a, 'o>,
    first: usize,
}

impl<F: Floats, const STRIDE: usize, const TILES: usize> Apart<F> for Any<'_, '_, '_, '_, STRIDE, TILES> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Any { line, first } = self;
        let (start, [_, down, right]) = (line.start::<F, TILES>(floats, first), line.tiles.geometry.slides);
        let ([lines, count], window) = (line.counts, line.window);
        for y in 0..lines {
            for x in (0..count).step_by(PIXELS) {
                let (mut sums, from) = (start, y * down.stride * line.columns + x * right.stride);
                if const { STRIDE > 0 } {
                    let (at, taps) = ([down.kernel, line.columns, from], (right.kernel, line.weights));
                    window.add_long_lines::<F, TILES, PIXELS, STRIDE>(floats, taps, at, first, &mut sums);
                } else {
                    window.add_taps(floats, (line.taps, line.weights), [from, right.stride], first, &mut sums);
                }
                line.write(floats, [y, x, first], &sums);
            }
        }
    }
}

/// Results of neighbouring pixels that are written.
struct Results<'a, F: Floats, const TILES: usize> {
    floats: F,
    sums: &'a [[F::V; TILES]; PIXELS],
    /// Number of pixels.
    here: usize,
    /// The first channel of the vectors, and the channels of a pixel.
    channels: [usize; 2],
    out: &'a mut [f32],
}

impl<F: Floats, const TILES: usize> WithActivation<F> for Results<'_, F, TILES> {
    #[inline(always)]
    fn run(self, function: impl Activate<F>) {
        let Results { floats, sums, here, channels: [first, channels], out } = self;
        each_row!(pixel < PIXELS => {
            if pixel < here {
                let results = function.of_each(floats, sums[pixel]);
                let (out, _) = out[pixel * channels + first..][..TILES * VECTOR].as_chunks_mut::<VECTOR>();
                for (result, out) in results.into_iter().zip(out) {
                    floats.store(result, out);
                }
            }
        });
    }
}

#[inline(always)]
fn pixel(
    geometry: &Geometry,
    data: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    [y, x]: [usize; 2],
    activation: Activation,
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
        activation.apply(&mut sums);
        out.copy_from_slice(&sums[..count]);
    }
}
