//! Taps that are transformed once, in blocks of output channels.
//!
//! Invariant: a block has, for every point and input channel in turn, all of its output channels.

use std::ops::Range;

use super::transform::{POINTS, TAPS, taps};
use crate::conv::blocked::multiply;
use crate::conv::geometry::Geometry;
use crate::error::{Error, room};
use crate::gemm::blocks::{Blocks, fill, fill_at};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, Line, WithFloats};
use crate::zeroed::Zeroed;

/// The most vectors of a block: tiles are many, so that a row of sums need not be long.
pub(super) const MOST_VECTORS: usize = 2;

/// Input channels whose taps are read together.
const TOGETHER: usize = LANES;

/// Lines of a point that are asked for before they are written.
const AHEAD: usize = 4;

/// A transformed weight.
#[derive(Default)]
pub(crate) struct TransformedWeight {
    lines: Zeroed<Line>,
    /// Zeros that a window meets in the padding: a number per input channel, of all groups.
    zeros: Vec<f32>,
    /// Factors of output channels that taps were multiplied by, if they were.
    factors: Vec<f64>,
}

/// The blocks of output channels.
pub(super) fn blocks_of(geometry: &Geometry) -> Blocks {
    let [inputs, channels] = geometry.group_channels();
    Blocks::of_vectors(POINTS.saturating_mul(inputs), channels, MOST_VECTORS)
}

impl TransformedWeight {
    /// The lines of all blocks.
    pub(super) fn lines(&self) -> &[Line] {
        self.lines.all()
    }

    /// Zeros, as many as there are input channels.
    pub(super) fn zeros(&self) -> &[f32] {
        &self.zeros
    }

    /// The factor of an output channel.
    pub(super) fn factor(&self, channel: usize) -> f64 {
        self.factors.get(channel).copied().unwrap_or(1.0)
    }

    /// Returns how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let more = self.zeros.capacity() * size_of::<f32>() + self.factors.capacity() * size_of::<f64>();
        self.lines.byte_len() + more
    }

    /// Returns how many bytes that of a geometry takes, with factors.
    pub(crate) fn bytes_of(geometry: &Geometry) -> usize {
        let [inputs, channels] = [geometry.input.channels.0, geometry.out.channels.0];
        let more = inputs.saturating_mul(size_of::<f32>()).saturating_add(channels.saturating_mul(size_of::<f64>()));
        blocks_of(geometry).bytes().saturating_mul(geometry.groups).saturating_add(more)
    }

    /// Transforms a weight, each output channel times its factor if there are factors, in the memory there is if that is
    /// enough.
    pub(crate) fn pack(&mut self, geometry: &Geometry, weight: &[f32], factors: Option<&[f64]>) -> Result<(), Error> {
        let (zeros, [_, channels]) = (geometry.input.channels.0, geometry.group_channels());
        if self.zeros.capacity() < zeros {
            self.zeros = room(zeros)?;
        }
        self.zeros.resize(zeros, 0.0);
        let factors = factors.map_or(&[][..], |factors| &factors[..geometry.out.channels.0]);
        self.factors.clear();
        if self.factors.capacity() < factors.len() {
            self.factors = room(factors.len())?;
        }
        self.factors.extend_from_slice(factors);
        let (lines, path) = (std::mem::take(&mut self.lines), FloatPath::best());
        self.lines = blocks_of(geometry).pack(lines, geometry.groups, |group, _, columns, lines| {
            let weight = &weight[group * channels * geometry.weight.batch.1..];
            let factors = factors.get(group * channels..).unwrap_or(&[]);
            path.run(Block { geometry, weight, factors, columns, lines });
        })?;
        Ok(())
    }
}

/// A block of output channels of a group, whose taps are transformed.
struct Block<'a, 'l> {
    geometry: &'a Geometry,
    /// The weight and the factors from the first of the group on.
    weight: &'a [f32],
    factors: &'a [f64],
    columns: Range<usize>,
    lines: &'l mut [Line],
}

impl WithFloats for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Block { geometry, weight, factors, columns, lines } = self;
        let [inputs, _] = geometry.group_channels();
        let vectors = columns.len().div_ceil(LANES).max(1);
        let mut read = [Line::ZERO; TAPS * TOGETHER * MOST_VECTORS];
        for first in (0..inputs).step_by(TOGETHER) {
            let some = first..inputs.min(first + TOGETHER);
            let count = some.len();
            let read = &mut read[..TAPS * count * vectors];
            gather(geometry, weight, factors.get(columns.clone()), some, columns.clone(), read);
            for place in 0..count * vectors {
                let mut numbers = [floats.splat(0.0); TAPS];
                for tap in 0..TAPS {
                    numbers[tap] = floats.load(&read[tap * count * vectors + place].0);
                }
                let points = taps(floats, numbers);
                for (point, numbers) in points.iter().enumerate() {
                    let at = (point * inputs + first) * vectors + place;
                    // Writing waits for lines, too: these are as many runs as points.
                    floats.prefetch_far(lines.as_ptr().wrapping_add(at + AHEAD));
                    floats.store(*numbers, &mut lines[at].0);
                }
            }
        }
    }
}

/// Reads the taps of some input channels and of a block of output channels, times the factors of these if there are any: for
/// every tap and input channel in turn a row of lines.
fn gather(
    geometry: &Geometry,
    weight: &[f32],
    factors: Option<&[f64]>,
    inputs: Range<usize>,
    columns: Range<usize>,
    lines: &mut [Line],
) {
    let kernel = &geometry.weight;
    let [row, column] = [kernel.channels.1, kernel.batch.1];
    let (count, vectors) = (inputs.len(), columns.len().div_ceil(LANES).max(1));
    if row == TAPS && kernel.strides[2] == 1 && kernel.is_linear() {
        // The taps of an input channel are next to each other, and those of all: one matrix.
        let rows = inputs.start * TAPS..inputs.end * TAPS;
        let place = |row: usize| row % TAPS * count + row / TAPS - inputs.start;
        return fill_at(weight, [1, column], rows, columns, lines, place, factors);
    }
    for (tap, lines) in lines.chunks_exact_mut((count * vectors).max(1)).enumerate() {
        let start = tap / kernel.sizes[2] * kernel.strides[1] + tap % kernel.sizes[2] * kernel.strides[2];
        fill(&weight[start..], [row, column], inputs.clone(), columns.clone(), lines);
    }
    if let Some(factors) = factors {
        multiply(lines, factors);
    }
}
