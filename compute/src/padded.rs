//! Planes of channels-first images with padding around them, for loops over the taps of windows.
//!
//! A plane is copied in bands of as many rows of results as fit [`PADDED`] elements. Its columns are sorted by their number
//! modulo the stride of the window: elements that a tap meets at neighbouring places are neighbours in memory, and no loop
//! looks whether a tap is inside.

use std::ops::Range;

use crate::simd::floats::LANES as VECTOR;
use crate::simd::window::MOST_TAPS;
use crate::spatial::Slide;

/// Most elements of a band with the padding around it; they stay in the nearest cache.
pub(crate) const PADDED: usize = 1 << 13;

/// The sizes of a band.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Padded {
    down: Slide,
    right: Slide,
    /// Rows of results of a band.
    rows: usize,
    /// Columns of each of as many parts of a row as the stride is.
    width: usize,
    /// Distances of the taps from the first in a band, row by row.
    taps: [u32; MOST_TAPS],
}

impl Padded {
    /// Returns the sizes for windows that slide down and right, to results of a width; `None` if not even the input of one
    /// row of them fits, or there are more than [`MOST_TAPS`] taps.
    pub fn of([down, right]: [Slide; 2], width: usize) -> Option<Padded> {
        let reach = |slide: &Slide| slide.dilation.checked_mul(slide.kernel - 1);
        let width = width.checked_next_multiple_of(VECTOR)?.checked_add(reach(&right)? / right.stride + 1)?;
        let lines = PADDED / width.checked_mul(right.stride)?;
        let rows = lines.checked_sub(reach(&down)? + 1)? / down.stride + 1;
        let mut padded = Padded { down, right, rows, width, taps: [0; MOST_TAPS] };
        let line = padded.line();
        let column = |tap: usize| {
            let column = tap * right.dilation;
            column % right.stride * width + column / right.stride
        };
        let taps = padded.taps.get_mut(..down.kernel.checked_mul(right.kernel)?)?;
        for (row, taps) in taps.chunks_exact_mut(right.kernel).enumerate() {
            let start = row * down.dilation * line;
            taps.iter_mut().enumerate().for_each(|(tap, at)| *at = (start + column(tap)) as u32);
        }
        Some(padded)
    }

    /// The bands of so many rows of results.
    pub fn bands(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let band = self.rows;
        (0..rows).step_by(band).map(move |first| first..(first + band).min(rows))
    }

    /// Elements of a row of the input, in all its parts.
    fn line(&self) -> usize {
        self.width * self.right.stride
    }

    /// Copies what the windows of a band of results meet of a plane whose rows are so far apart. `band` is full of what is
    /// around planes before the first call, and stays so at the sides.
    pub fn fill(&self, data: &[f32], pitch: usize, results: &Range<usize>, around: f32, band: &mut [f32; PADDED]) {
        let Padded { down, right, .. } = self;
        let first = down.start(results.start);
        let count = (results.len() - 1) * down.stride + down.dilation * (down.kernel - 1) + 1;
        for (y, to) in (first..).zip(band.chunks_exact_mut(self.line()).take(count)) {
            if y < 0 || y as usize >= down.input {
                to.fill(around);
                continue;
            }
            let row = &data[y as usize * pitch..][..right.input];
            if right.stride == 1 {
                let to = &mut to[right.padding.min(self.width)..];
                let count = to.len().min(row.len());
                to[..count].copy_from_slice(&row[..count]);
                continue;
            }
            for (phase, to) in to.chunks_exact_mut(self.width).enumerate() {
                // The first column of this part that is inside.
                let first = (phase + right.stride - right.padding % right.stride) % right.stride;
                let to = &mut to[((first + right.padding) / right.stride).min(self.width)..];
                let row = row.get(first..).unwrap_or_default();
                if right.stride == 2 {
                    // A stride that is known is a shuffle of vectors.
                    let (pairs, rest) = row.as_chunks::<2>();
                    to.iter_mut().zip(pairs).for_each(|(to, pair)| *to = pair[0]);
                    if let (Some(to), [x]) = (to.get_mut(pairs.len()), rest) {
                        *to = *x;
                    }
                } else {
                    to.iter_mut().zip(row.iter().step_by(right.stride)).for_each(|(to, x)| *to = *x);
                }
            }
        }
    }

    /// Returns the distances of the taps from the first in a band, row by row.
    #[inline(always)]
    pub fn taps(&self) -> &[u32] {
        &self.taps[..self.down.kernel * self.right.kernel]
    }

    /// Returns where in a band the first tap of the windows of one of its rows of results is, at the first result.
    #[inline(always)]
    pub fn row(&self, row: usize) -> usize {
        row * self.down.stride * self.line()
    }
}

/// Returns what a tap meets at neighbouring results.
#[inline(always)]
pub(crate) fn met(band: &[f32; PADDED], first: usize, tap: u32) -> &[f32; VECTOR] {
    // Lines have room for whole vectors of results, so this is inside.
    band[first.wrapping_add(tap as usize)..].first_chunk().unwrap_or(&[0.0; VECTOR])
}
