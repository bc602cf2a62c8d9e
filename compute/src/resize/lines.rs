//! Bilinear resizing of `f32` to images without gaps: planes, or pixels of a few channels.
//!
//! A row of the output is a mixture of two rows of the input, each mixed along its columns first. Rows that follow each
//! other mostly share them, so those are kept.
//!
//! Invariant: results are those of the loop over pixels, to the bit.

use super::{Interpolation, Neighbours, Resize, Row};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, WithFloats};
use crate::simd::{Loop, run_wide};
use crate::threads::{Cost, for_each_piece_at};

/// Elements of a row of the output that are computed at once; two such rows are on the stack.
const STRIP: usize = 512;
/// Channels of a pixel, at most: a strip has several pixels.
const CHANNELS: usize = STRIP / 4;
/// Parts of an image of pixels, at most.
const PARTS: usize = 16;

/// Nanoseconds of an element of the output, about.
const ELEMENT: f64 = 0.3;

/// Images that are resized by themselves: planes of one channel, or all channels of a pixel next to each other.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    resize: &'a Resize,
    /// Channels of such an image, and how many images a batch has.
    run: usize,
    planes: usize,
}

impl<'a> Lines<'a> {
    /// The images of a resize, if pixels are mixed and the output has no gaps.
    pub(super) fn of(resize: &'a Resize) -> Option<Self> {
        let [_, channels, height, width] = resize.out.sizes;
        let has = |strides: [usize; 4]| (0..4).all(|d| resize.out.sizes[d] == 1 || resize.out.strides[d] == strides[d]);
        let image = channels * height * width;
        if !matches!(resize.interpolation, Interpolation::Bilinear { .. }) {
            return None;
        }
        if has([image, height * width, width, 1]) {
            return Some(Lines { resize, run: 1, planes: channels });
        }
        let is_near = channels <= CHANNELS && resize.input.strides[1] == 1;
        (is_near && has([image, 1, width * channels, channels])).then_some(Lines { resize, run: channels, planes: 1 })
    }

    /// Writes every image of the output.
    pub(super) fn mix(self, rows: &Row, data: &[f32], out: &mut [f32], columns: &[Neighbours]) {
        let Lines { resize, run, planes } = self;
        let ([batch, _, height, width], from) = (resize.out.sizes, resize.input.strides);
        let (len, all) = (width * run, batch * planes * height * width * run);
        let unit = if run == 1 { height } else { height.div_ceil(PARTS) } * len;
        for_each_piece_at(Cost::nanoseconds(ELEMENT), &mut out[..all], unit, |start, out| {
            for (strip, columns) in columns.chunks(STRIP / run).enumerate() {
                let mut lines = Two::new([from[2], from[3]], run, columns);
                let (mut row, mut out) = (start / len, &mut *out);
                while !out.is_empty() {
                    let (image, first) = (row / height, row % height);
                    let count = (height - first).min(out.len() / len);
                    let (here, rest) = out.split_at_mut(count * len);
                    let data = &data[image / planes * from[0] + image % planes * from[1]..];
                    lines.forget();
                    for (y, out) in (first..).zip(here.chunks_exact_mut(len)) {
                        let out = &mut out[strip * (STRIP / run) * run..][..columns.len() * run];
                        lines.mix(data, rows.at(y), out);
                    }
                    (row, out) = (row + count, rest);
                }
            }
        });
    }
}

/// Two rows of an image, mixed along some columns of the output.
struct Two<'a> {
    /// Elements from one row of an image to the next, and from one column to the next.
    strides: [usize; 2],
    /// Channels of a pixel.
    run: usize,
    columns: &'a [Neighbours],
    /// Weights of the first and the second neighbour of each column.
    weights: [[f32; STRIP]; 2],
    /// The neighbours of vectors of columns, if pixels have one channel and are next to each other.
    picks: Option<[Picks; STRIP / LANES]>,
    lines: [[f32; STRIP]; 2],
    /// The rows that are in `lines`.
    rows: [Option<u32>; 2],
}

impl<'a> Two<'a> {
    fn new(strides: [usize; 2], run: usize, columns: &'a [Neighbours]) -> Self {
        let mut weights = [[0.0; STRIP]; 2];
        let [left, right] = &mut weights;
        for ((left, right), column) in left.iter_mut().zip(right).zip(columns) {
            (*left, *right) = ((1.0 - column.weight) as f32, column.weight as f32);
        }
        let picks = if run == 1 && strides[1] == 1 { Picks::of(columns) } else { None };
        Two { strides, run, columns, weights, picks, lines: [[0.0; STRIP]; 2], rows: [None; 2] }
    }

    /// Forgets the rows that are there: those that follow are of another image.
    fn forget(&mut self) {
        self.rows = [None; 2];
    }

    /// Writes a row of the output.
    fn mix(&mut self, data: &[f32], row: Neighbours, out: &mut [f32]) {
        let [upper, lower] = [(row.first, row.second), (row.second, row.first)].map(|(wanted, other)| {
            let at = self.rows.iter().position(|row| *row == Some(wanted));
            at.unwrap_or_else(|| {
                let at = usize::from(self.rows[0] == Some(other));
                self.fill(data, at, wanted);
                at
            })
        });
        run_wide(Mixed { lines: [&self.lines[upper], &self.lines[lower]], weight: row.weight, out });
    }

    fn fill(&mut self, data: &[f32], at: usize, row: u32) {
        let ([pitch, step], run) = (self.strides, self.run);
        let (data, columns) = (&data[row as usize * pitch..], self.columns);
        let (line, weights) = (&mut self.lines[at], &self.weights);
        match &self.picks {
            Some(picks) => {
                let picks = &picks[..columns.len().div_ceil(LANES)];
                FloatPath::best().run(Picked { data, picks, weights, line });
            }
            None if run == 1 => {
                let [left, right] = weights;
                for (((out, column), left), right) in line.iter_mut().zip(columns).zip(left).zip(right) {
                    *out = left * data[column.first as usize * step] + right * data[column.second as usize * step];
                }
            }
            None => FloatPath::best().run(Pixels { data, step, run, columns, weights, line }),
        }
        self.rows[at] = Some(row);
    }
}

/// A mixture of two rows.
struct Mixed<'a> {
    lines: [&'a [f32; STRIP]; 2],
    weight: f64,
    out: &'a mut [f32],
}

impl Loop for Mixed<'_> {
    #[inline(always)]
    fn run(self) {
        let (down, up) = (self.weight as f32, (1.0 - self.weight) as f32);
        let [upper, lower] = self.lines;
        for ((out, upper), lower) in self.out.iter_mut().zip(upper).zip(lower) {
            *out = up * upper + down * lower;
        }
    }
}

/// Neighbours of a vector of columns: pixels from one on, and which of the two vectors that begin there are the first and the
/// second neighbours.
#[derive(Clone, Copy, Default)]
struct Picks {
    start: u32,
    lanes: [[u32; LANES]; 2],
}

impl Picks {
    /// The neighbours of some columns; `None` if those of a vector are further apart than two vectors reach.
    fn of(columns: &[Neighbours]) -> Option<[Picks; STRIP / LANES]> {
        let mut all = [Picks::default(); STRIP / LANES];
        for (picks, columns) in all.iter_mut().zip(columns.chunks(LANES)) {
            picks.start = columns.iter().map(|column| column.first).min()?;
            let lane = |pixel: u32| Some(pixel - picks.start).filter(|&lane| (lane as usize) < 2 * LANES);
            for (at, column) in columns.iter().enumerate() {
                (picks.lanes[0][at], picks.lanes[1][at]) = (lane(column.first)?, lane(column.second)?);
            }
        }
        Some(all)
    }
}

/// `left * first + right * second`, each product rounded.
#[inline(always)]
fn mixed<F: Floats>(floats: F, [left, right]: [F::V; 2], [first, second]: [F::V; 2]) -> F::V {
    let nothing = floats.splat(-0.0);
    floats.plus(floats.fma(left, first, nothing), floats.fma(right, second, nothing))
}

/// A row of pixels of one channel that is mixed along columns, a vector of them at a time.
struct Picked<'a> {
    data: &'a [f32],
    picks: &'a [Picks],
    weights: &'a [[f32; STRIP]; 2],
    line: &'a mut [f32; STRIP],
}

impl WithFloats for Picked<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Picked { data, picks, weights: [left, right], line } = self;
        let weights = left.as_chunks().0.iter().zip(right.as_chunks().0);
        for ((out, picks), (left, right)) in line.as_chunks_mut().0.iter_mut().zip(picks).zip(weights) {
            let pixels = &data[picks.start as usize..];
            let mut last = [0.0; 2 * LANES];
            let pixels = match pixels.first_chunk() {
                Some(pixels) => pixels,
                None => {
                    last[..pixels.len()].copy_from_slice(pixels);
                    &last
                }
            };
            let [a, b] = [0, 1].map(|half| floats.load(&pixels.as_chunks().0[half]));
            let neighbours = picks.lanes.each_ref().map(|lanes| floats.picked(a, b, lanes));
            floats.store(mixed(floats, [floats.load(left), floats.load(right)], neighbours), out);
        }
    }
}

/// A row that is mixed along columns, pixel by pixel.
struct Pixels<'a> {
    data: &'a [f32],
    step: usize,
    run: usize,
    columns: &'a [Neighbours],
    weights: &'a [[f32; STRIP]; 2],
    line: &'a mut [f32; STRIP],
}

impl WithFloats for Pixels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Pixels { data, step, run, columns, weights: [left, right], line } = self;
        let weights = left.iter().zip(right);
        for ((out, column), (left, right)) in line.chunks_exact_mut(run).zip(columns).zip(weights) {
            let pixel = |at: u32| &data[at as usize * step..][..run];
            let (first, second) = (pixel(column.first), pixel(column.second));
            let weights = [floats.splat(*left), floats.splat(*right)];
            let ((firsts, first), (seconds, second)) = (first.as_chunks(), second.as_chunks());
            let (outs, out) = out.as_chunks_mut();
            for ((out, first), second) in outs.iter_mut().zip(firsts).zip(seconds) {
                floats.store(mixed(floats, weights, [floats.load(first), floats.load(second)]), out);
            }
            if !out.is_empty() {
                let channels = [first, second].map(|channels| floats.load_some(channels, 0.0));
                floats.store_some(mixed(floats, weights, channels), out);
            }
        }
    }
}
