//! Planes of channels-first images with padding around them, for loops over the taps of windows.
//!
//! A plane is copied in bands of as many rows of results as fit [`PADDED`] elements. Its columns are sorted by their number
//! modulo the stride of the window: elements that a tap meets at neighbouring places are neighbours in memory, and no loop
//! looks whether a tap is inside. A column has an element, or those of all channels.

use std::ops::Range;

use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES as VECTOR, WithFloats, copy_few, write};
use crate::simd::window::MOST_TAPS;
use crate::spatial::Slide;

/// Most elements of a band with the padding around it; they stay in the nearest cache.
pub(crate) const PADDED: usize = 1 << 13;

/// The sizes of a band.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Padded {
    down: Slide,
    right: Slide,
    /// Elements of a column.
    depth: usize,
    /// Rows of results of a band.
    rows: usize,
    /// Elements of each of as many parts of a row as the stride is.
    width: usize,
    /// Distances of the taps from the first in a band, row by row.
    taps: [u32; MOST_TAPS],
}

impl Padded {
    /// Returns the sizes for windows that slide down and right over columns of `depth` elements, to as many columns of results
    /// as `width`; `None` if not even the input of one row of them fits, or there are more than [`MOST_TAPS`] taps.
    pub fn of([down, right]: [Slide; 2], width: usize, depth: usize) -> Option<Padded> {
        let reach = |slide: &Slide| slide.dilation.checked_mul(slide.kernel - 1);
        let beyond = (reach(&right)? / right.stride + 1).checked_mul(depth)?;
        let width = width.checked_mul(depth)?.checked_next_multiple_of(VECTOR)?.checked_add(beyond)?;
        let lines = PADDED / width.checked_mul(right.stride)?;
        let rows = lines.checked_sub(reach(&down)? + 1)? / down.stride + 1;
        let mut padded = Padded { down, right, depth, rows, width, taps: [0; MOST_TAPS] };
        let line = padded.line();
        let column = |tap: usize| {
            let column = tap * right.dilation;
            column % right.stride * width + column / right.stride * depth
        };
        let taps = padded.taps.get_mut(..down.kernel.checked_mul(right.kernel)?)?;
        for (row, taps) in taps.chunks_exact_mut(right.kernel).enumerate() {
            let start = row * down.dilation * line;
            taps.iter_mut().enumerate().for_each(|(tap, at)| *at = (start + column(tap)) as u32);
        }
        Some(padded)
    }

    /// The bands of some rows of results.
    pub fn bands(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let (band, end) = (self.rows, rows.end);
        rows.step_by(band).map(move |first| first..(first + band).min(end))
    }

    /// The sizes for results from a column on, and the first column of the input that their windows meet: planes begin there.
    pub fn from(&self, column: usize) -> (Padded, usize) {
        let Padded { right, .. } = *self;
        let start = right.start(column);
        let before = (start.max(0) as usize).min(right.input);
        let right = Slide { input: right.input - before, padding: start.min(0).unsigned_abs(), ..right };
        (Padded { right, ..*self }, before)
    }

    /// Elements of a row of the input, in all its parts.
    fn line(&self) -> usize {
        self.width * self.right.stride
    }

    /// Copies what the windows of a band of results meet of a plane whose rows are so far apart. `band` is full of what is
    /// around planes before the first call, and stays so at the sides.
    pub fn fill(&self, data: &[f32], pitch: usize, results: &Range<usize>, around: f32, band: &mut [f32; PADDED]) {
        FloatPath::best().run(Fill { padded: self, data, pitch, results, around, band });
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

/// A band that is being filled with what the windows of some results meet.
struct Fill<'a, 'b> {
    padded: &'a Padded,
    data: &'a [f32],
    /// Elements from one row of the plane to the next.
    pitch: usize,
    results: &'a Range<usize>,
    around: f32,
    band: &'b mut [f32; PADDED],
}

impl WithFloats for Fill<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Fill { padded, data, pitch, results, around, band } = self;
        let Padded { down, right, depth, width, .. } = *padded;
        let first = down.start(results.start);
        let count = (results.len() - 1) * down.stride + down.dilation * (down.kernel - 1) + 1;
        // The first column of a part that is inside, and where in the part it is.
        let part = |phase: usize| {
            let column = (phase + right.stride - right.padding % right.stride) % right.stride;
            [column, ((column + right.padding) / right.stride * depth).min(width)]
        };
        let halves = (right.stride == 2 && depth == 1).then(|| [part(0), part(1)]);
        for (y, to) in (first..).zip(band.chunks_exact_mut(padded.line()).take(count)) {
            if y < 0 || y as usize >= down.input {
                to.fill(around);
                continue;
            }
            let row = &data[y as usize * pitch..][..right.input * depth];
            if let Some([[column, start], [_, other]]) = halves {
                let (to, others) = to.split_at_mut(width);
                let (to, others) = (&mut to[start..], &mut others[other..]);
                halve(floats, row, if column == 0 { [to, others] } else { [others, to] });
                continue;
            }
            for (phase, to) in to.chunks_exact_mut(width).enumerate() {
                let [column, start] = part(phase);
                let (row, to) = (row.get(column * depth..).unwrap_or_default(), &mut to[start..]);
                match (right.stride, depth) {
                    (1, _) => {
                        let count = to.len().min(row.len());
                        to[..count].copy_from_slice(&row[..count]);
                    }
                    (stride, 1) => to.iter_mut().zip(row.iter().step_by(stride)).for_each(|(to, x)| *to = *x),
                    (stride, _) => gather(row, depth, stride, to),
                }
            }
        }
    }
}

/// Copies every second number, from the first on and from the second on, as many as there are or have room.
#[inline(always)]
fn halve<F: Floats>(floats: F, row: &[f32], [even, odd]: [&mut [f32]; 2]) {
    const EVEN: [u32; VECTOR] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];
    const ODD: [u32; VECTOR] = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31];
    let counts = [row.len().div_ceil(2).min(even.len()), (row.len() / 2).min(odd.len())];
    let (evens, odds) = (even[..counts[0]].chunks_mut(VECTOR), odd[..counts[1]].chunks_mut(VECTOR));
    let mut odds = odds.into_iter();
    for (pairs, even) in row.chunks(2 * VECTOR).zip(evens) {
        let mut last = [0.0; 2 * VECTOR];
        let pairs = match pairs.first_chunk() {
            Some(pairs) => pairs,
            None => {
                copy_few(pairs, &mut last[..pairs.len()]);
                &last
            }
        };
        let [a, b] = [0, 1].map(|half| floats.load(&pairs.as_chunks().0[half]));
        write(floats, floats.picked(a, b, &EVEN), even);
        if let Some(odd) = odds.next() {
            write(floats, floats.picked(a, b, &ODD), odd);
        }
    }
}

/// Copies every `step`-th column of `depth` elements, as many as there are or have room.
fn gather(row: &[f32], depth: usize, step: usize, to: &mut [f32]) {
    let count = (row.len() / depth).div_ceil(step).min(to.len() / depth);
    let to = &mut to[..count * depth];
    for index in 0..count {
        let (from, at) = (index * step * depth, index * depth);
        // What a vector has behind the column is where the next columns are copied to.
        match (row[from..].first_chunk::<VECTOR>(), to[at..].first_chunk_mut::<VECTOR>()) {
            (Some(column), Some(to)) if depth <= VECTOR => *to = *column,
            _ => to[at..at + depth].copy_from_slice(&row[from..from + depth]),
        }
    }
}

/// Returns what a tap meets at neighbouring results.
#[inline(always)]
pub(crate) fn met(band: &[f32; PADDED], first: usize, tap: u32) -> &[f32; VECTOR] {
    // Lines have room for whole vectors of results, so this is inside.
    band[first.wrapping_add(tap as usize)..].first_chunk().unwrap_or(&[0.0; VECTOR])
}
