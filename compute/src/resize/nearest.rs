//! Nearest pixels of images whose output has no gaps, channels first or channels last.
//!
//! A row of the output is copied from the one before it where both are of the same row of the input.
//!
//! Invariant: results are those of the loop over pixels.

use super::{Neighbours, Resize, Row};
use crate::layout::Strided;
use crate::number::Number;
use crate::simd::{Loop, run_wide};
use crate::threads::{Cost, for_each_piece_at};

/// Nanoseconds of a byte of the output, about.
const BYTE: f64 = 0.02;

/// Rows of an image whose places are found once for all images.
const ROWS: usize = 256;

/// Writes the whole output. Returns whether it has no gaps, and with channels last the input has neither.
pub(super) fn copy<T: Number>(resize: &Resize, rows: &Row, data: &[T], out: &mut [T], columns: &[Neighbours]) -> bool {
    let Resize { input, out: to, .. } = resize;
    let [_, channels, height, width] = to.sizes;
    let pixel = if is_placed(to, [channels * height * width, height * width, width, 1]) {
        1
    } else if is_placed(to, [channels * height * width, 1, width * channels, channels]) && input.strides[1] == 1 {
        channels
    } else {
        return false;
    };
    let repeats = (2..=4).find(|&factor| repeats_all(columns, factor)).filter(|_| pixel == 1 && input.strides[3] == 1);
    let line = width * pixel;
    for_each_piece_at(Cost::nanoseconds(BYTE * size_of::<T>() as f64), &mut out[..to.count()], line, |start, out| {
        let mut places = [0; ROWS];
        for (y, place) in places.iter_mut().enumerate().take(height) {
            *place = rows.at(y).first;
        }
        let lines = Lines { resize, rows, places: &places, data, columns, pixel, first: start / line, out };
        match repeats {
            Some(2) => run_wide(Repeated::<T, 2>(lines)),
            Some(3) => run_wide(Repeated::<T, 3>(lines)),
            Some(4) => run_wide(Repeated::<T, 4>(lines)),
            _ => run_wide(Gathered(lines)),
        }
    });
    true
}

/// Returns whether elements are that far apart; the distance along a dimension of one element does not matter.
fn is_placed(images: &Strided<4>, strides: [usize; 4]) -> bool {
    (0..4).all(|dim| images.sizes[dim] == 1 || images.strides[dim] == strides[dim])
}

/// Returns whether the columns are the first ones of the input, each so many times.
fn repeats_all(columns: &[Neighbours], factor: usize) -> bool {
    columns.len().is_multiple_of(factor)
        && columns.chunks_exact(factor).enumerate().all(|(x, all)| all.iter().all(|column| column.first as usize == x))
}

/// Rows of the output.
struct Lines<'a, 'o, T> {
    resize: &'a Resize,
    rows: &'a Row,
    /// Places of the first rows of an image.
    places: &'a [u32; ROWS],
    data: &'a [T],
    columns: &'a [Neighbours],
    /// Elements that are copied together.
    pixel: usize,
    /// Number of the first row, of those of all images.
    first: usize,
    out: &'o mut [T],
}

impl<T: Number> Lines<'_, '_, T> {
    /// Writes every row, of those that differ from the one before it with `write`, which gets the input from the row on.
    #[inline(always)]
    fn each(self, write: impl Fn(&[T], &mut [T])) {
        let ([_, channels, height, width], from) = (self.resize.out.sizes, self.resize.input.strides);
        let planes = if self.pixel == 1 { channels } else { 1 };
        let (mut plane, mut y) = (self.first / height, self.first % height);
        let mut lines = self.out.chunks_exact_mut(width * self.pixel);
        while lines.len() > 0 {
            let data = &self.data[plane / planes * from[0] + plane % planes * from[1]..];
            let mut before: Option<(u32, &[T])> = None;
            for (y, out) in (y..height).zip(&mut lines) {
                let row = if y < ROWS { self.places[y] } else { self.rows.at(y).first };
                match before {
                    Some((same, line)) if same == row => out.copy_from_slice(line),
                    _ => write(&data[row as usize * from[2]..], out),
                }
                before = Some((row, out));
            }
            (plane, y) = (plane + 1, 0);
        }
    }
}

/// Rows whose columns are those of the input, each so many times.
struct Repeated<'a, 'o, T, const FACTOR: usize>(Lines<'a, 'o, T>);

impl<T: Number, const FACTOR: usize> Loop for Repeated<'_, '_, T, FACTOR> {
    #[inline(always)]
    fn run(self) {
        self.0.each(|from, out| {
            for (out, &x) in out.as_chunks_mut::<FACTOR>().0.iter_mut().zip(from) {
                *out = [x; FACTOR];
            }
        });
    }
}

/// Rows whose columns are anywhere.
struct Gathered<'a, 'o, T>(Lines<'a, 'o, T>);

impl<T: Number> Loop for Gathered<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Lines { columns, pixel, .. } = self.0;
        let step = self.0.resize.input.strides[3];
        self.0.each(|from, out| {
            if pixel == 1 {
                for (out, column) in out.iter_mut().zip(columns) {
                    *out = from[column.first as usize * step];
                }
                return;
            }
            for (out, column) in out.chunks_exact_mut(pixel).zip(columns) {
                out.copy_from_slice(&from[column.first as usize * step..][..pixel]);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resize::Interpolation;
    use crate::threads::Threads;

    fn strided(sizes: [usize; 4], last: bool) -> Strided<4> {
        let [_, channels, height, width] = sizes;
        let strides = match last {
            false => [channels * height * width, height * width, width, 1],
            true => [channels * height * width, 1, width * channels, channels],
        };
        Strided { sizes, strides }
    }

    #[test]
    fn images_without_gaps_are_copied_as_others_are() {
        let cases = [
            ([2, 3, 5, 7], [10, 14], [None; 2]),
            ([1, 4, 6, 16], [18, 48], [None; 2]),
            ([2, 5, 3, 9], [12, 36], [Some(4.0); 2]),
            ([1, 3, 9, 8], [4, 5], [None; 2]),
            ([2, 1, 1, 1], [3, 2], [None; 2]),
            ([1, 16, 5, 6], [700, 13], [None, Some(2.2)]),
            ([3, 2, 4, 4], [4, 4], [None; 2]),
        ];
        for (sizes, [height, width], scales) in cases {
            let [batch, channels, ..] = sizes;
            let values: Vec<f32> = (0..sizes.iter().product()).map(|i: usize| i as f32).collect();
            let columns = &mut vec![Neighbours::default(); width];
            for (from_last, last) in [(false, false), (true, false), (true, true), (false, true)] {
                let (input, out) = (strided(sizes, from_last), strided([batch, channels, height, width], last));
                let resize = Resize { input, out, scales, interpolation: Interpolation::Nearest };
                // Gaps between rows are what the other way is for.
                let gaps = strided([batch, channels, height, width + 1], last).strides;
                let gaps = Resize { out: Strided { strides: gaps, ..out }, ..resize };
                let mut want = vec![0.0; gaps.out.reach()];
                gaps.run(&values, &mut want, columns).unwrap();
                let place = |strides: [usize; 4], at: usize| {
                    let (image, plane) = (at / (channels * height * width), at / (height * width) % channels);
                    let place = [image, plane, at / width % height, at % width];
                    (0..4).map(|dim| place[dim] * strides[dim]).sum::<usize>()
                };
                for threads in 1..4 {
                    let mut have = vec![-1.0; out.count()];
                    let run = || resize.run(&values, &mut have, columns);
                    Threads::new(threads).unwrap().run(run).unwrap();
                    let same = |at| have[place(out.strides, at)] == want[place(gaps.out.strides, at)];
                    assert!((0..out.count()).all(same), "{resize:?}");
                }
            }
        }
    }
}
