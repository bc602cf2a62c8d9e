//! Bilinear resizing of `f32` to images without gaps: planes, or pixels of a few channels.
//!
//! A row of the output is a mixture of two rows of the input, each mixed along its columns first. Rows that follow each
//! other mostly share them, so those are kept.
//!
//! Invariant: results are those of the loop over pixels, to the bit.

use super::{Interpolation, Neighbours, Resize, Row};
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
        for_each_piece_at(Cost::nanoseconds(ELEMENT), &mut out[..all], unit, |start, mut out| {
            let mut row = start / len;
            while !out.is_empty() {
                let (image, first) = (row / height, row % height);
                let count = (height - first).min(out.len() / len);
                let (here, rest) = out.split_at_mut(count * len);
                let data = &data[image / planes * from[0] + image % planes * from[1]..];
                for (strip, columns) in columns.chunks(STRIP / run).enumerate() {
                    let mut lines = Two::new(data, [from[2], from[3]], run, columns);
                    for (y, out) in (first..).zip(here.chunks_exact_mut(len)) {
                        lines.mix(rows.at(y), &mut out[strip * (STRIP / run) * run..][..columns.len() * run]);
                    }
                }
                (row, out) = (row + count, rest);
            }
        });
    }
}

/// Two rows of the input, mixed along some columns of the output.
struct Two<'a> {
    /// An image of the input, how far apart its rows and its columns are, and the channels of a pixel.
    data: &'a [f32],
    strides: [usize; 2],
    run: usize,
    columns: &'a [Neighbours],
    /// Weights of the first and the second neighbour of each column.
    weights: [[f32; STRIP]; 2],
    lines: [[f32; STRIP]; 2],
    /// The rows that are in `lines`.
    rows: [Option<u32>; 2],
}

impl<'a> Two<'a> {
    fn new(data: &'a [f32], strides: [usize; 2], run: usize, columns: &'a [Neighbours]) -> Self {
        let mut two =
            Two { data, strides, run, columns, weights: [[0.0; STRIP]; 2], lines: [[0.0; STRIP]; 2], rows: [None; 2] };
        let [left, right] = &mut two.weights;
        for ((left, right), column) in left.iter_mut().zip(right).zip(columns) {
            (*left, *right) = ((1.0 - column.weight) as f32, column.weight as f32);
        }
        two
    }

    /// Writes a row of the output.
    fn mix(&mut self, row: Neighbours, out: &mut [f32]) {
        if self.rows[0] != Some(row.first) && self.rows[1] == Some(row.first) {
            self.lines.swap(0, 1);
            self.rows.swap(0, 1);
        }
        for (at, wanted) in [row.first, row.second].into_iter().enumerate() {
            if self.rows[at] != Some(wanted) {
                self.fill(at, wanted);
            }
        }
        run_wide(Mixed { lines: &self.lines, weight: row.weight, out });
    }

    fn fill(&mut self, at: usize, row: u32) {
        let ([pitch, step], run) = (self.strides, self.run);
        let (data, columns) = (&self.data[row as usize * pitch..], self.columns);
        let (line, weights) = (&mut self.lines[at], &self.weights);
        if run == 1 {
            let [left, right] = weights;
            for (((out, column), left), right) in line.iter_mut().zip(columns).zip(left).zip(right) {
                *out = left * data[column.first as usize * step] + right * data[column.second as usize * step];
            }
        } else {
            run_wide(Pixels { data, step, run, columns, weights, line });
        }
        self.rows[at] = Some(row);
    }
}

/// A mixture of two rows.
struct Mixed<'a> {
    lines: &'a [[f32; STRIP]; 2],
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

/// A row that is mixed along columns, pixel by pixel.
struct Pixels<'a> {
    data: &'a [f32],
    step: usize,
    run: usize,
    columns: &'a [Neighbours],
    weights: &'a [[f32; STRIP]; 2],
    line: &'a mut [f32; STRIP],
}

impl Loop for Pixels<'_> {
    #[inline(always)]
    fn run(self) {
        let Pixels { data, step, run, columns, weights: [left, right], line } = self;
        let weights = left.iter().zip(right);
        for ((out, column), (left, right)) in line.chunks_exact_mut(run).zip(columns).zip(weights) {
            let pixel = |at: u32| &data[at as usize * step..][..run];
            let (first, second) = (pixel(column.first), pixel(column.second));
            for ((out, first), second) in out.iter_mut().zip(first).zip(second) {
                *out = left * first + right * second;
            }
        }
    }
}
