//! Bilinear resizing of `f32` to planes whose pixels are neighbours along a row.
//!
//! A row of the output is a mixture of two rows of the input, each mixed along its columns first. Rows that follow each
//! other mostly share them, so those are kept.
//!
//! Invariant: results are those of the loop over pixels, to the bit.

use super::{Line, Neighbours, Resize};
use crate::simd::wide;
use crate::threads::{Cost, for_each_piece_at};

/// Columns of the output that are computed at once; two such rows are on the stack.
const STRIP: usize = 512;

/// Nanoseconds of a pixel of the output, about.
const PIXEL: f64 = 0.3;

/// Writes every plane of the output, which has no gaps.
pub(super) fn mix(resize: &Resize, rows: &Line, data: &[f32], out: &mut [f32], columns: &[Neighbours]) {
    let ([batch, channels, height, width], from) = (resize.out.sizes, resize.input.strides);
    let (plane, all) = (height * width, batch * channels * height * width);
    for_each_piece_at(Cost::nanoseconds(PIXEL), &mut out[..all], plane, |start, out| {
        for (index, out) in (start / plane..).zip(out.chunks_exact_mut(plane)) {
            let data = &data[index / channels * from[0] + index % channels * from[1]..];
            for (strip, columns) in columns.chunks(STRIP).enumerate() {
                let lines = [[0.0; STRIP]; 2];
                let mut lines = Lines { data, strides: [from[2], from[3]], columns, lines, rows: [None; 2] };
                for (y, out) in out.chunks_exact_mut(width).enumerate() {
                    lines.mix(rows.at(y), &mut out[strip * STRIP..][..columns.len()]);
                }
            }
        }
    });
}

/// Two rows of the input, mixed along some columns of the output.
struct Lines<'a> {
    /// A plane of the input, and how far apart its rows and its columns are.
    data: &'a [f32],
    strides: [usize; 2],
    columns: &'a [Neighbours],
    lines: [[f32; STRIP]; 2],
    /// The rows that are in `lines`.
    rows: [Option<u32>; 2],
}

impl Lines<'_> {
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
        let (down, up) = (row.weight as f32, (1.0 - row.weight) as f32);
        let [upper, lower] = &self.lines;
        wide(|| {
            for ((out, upper), lower) in out.iter_mut().zip(upper).zip(lower) {
                *out = up * upper + down * lower;
            }
        });
    }

    fn fill(&mut self, at: usize, row: u32) {
        let [pitch, step] = self.strides;
        let (data, columns) = (&self.data[row as usize * pitch..], self.columns);
        for (out, column) in self.lines[at].iter_mut().zip(columns) {
            let (right, left) = (column.weight as f32, (1.0 - column.weight) as f32);
            *out = left * data[column.first as usize * step] + right * data[column.second as usize * step];
        }
        self.rows[at] = Some(row);
    }
}
