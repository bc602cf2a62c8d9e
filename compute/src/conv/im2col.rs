//! Patches of images as columns of a matrix, gathered while a product fills its panels.
//!
//! A patch holds the elements that the taps of a window meet at one place; elements in the padding are 0. Its rows are in the
//! order of the weight: channels, and the taps of each.

use std::ops::Range;

use super::geometry::Geometry;
use crate::gemm::blocks::Fill;
use crate::gemm::tiles::MOST_COLUMNS;
use crate::simd::floats::{LANES, Line};
use crate::simd::{Loop, run_wide};

/// The patches of the channels of one group of an image.
pub(super) struct Patches<'a> {
    geometry: &'a Geometry,
    /// The image from the first of the channels on.
    data: &'a [f32],
}

/// Neighbouring output pixels of a row.
#[derive(Clone, Copy, Default)]
struct Run {
    /// The first of them among the pixels that are gathered.
    first: usize,
    layer: usize,
    y: usize,
    x: usize,
    len: usize,
}

/// Elements of a row of a plane that a tap meets at neighbouring pixels.
#[derive(Clone, Copy, Default)]
struct Met {
    /// The first of the pixels among those that are gathered.
    pixel: usize,
    len: usize,
    /// The first of the elements in the plane.
    start: usize,
}

impl<'a> Patches<'a> {
    /// The patches of an image from the first channel of a group on.
    pub(super) fn new(geometry: &'a Geometry, data: &'a [f32]) -> Self {
        Patches { geometry, data }
    }

    /// Elements that a tap meets at neighbouring pixels; none if all of them are padding.
    fn met(&self, run: &Run, [layer, ky, kx]: [usize; 3]) -> Option<Met> {
        let ([deep, down, right], strides) = (&self.geometry.slides, &self.geometry.input.strides);
        let line = deep.element(run.layer, layer)? * strides[0] + down.element(run.y, ky)? * strides[1];
        let offset = run.x * right.stride + kx * right.dilation;
        // Pixels before the first that meets an element, and those up to the last that does.
        let skipped = right.padding.saturating_sub(offset).div_ceil(right.stride).min(run.len);
        let end = (right.input + right.padding).saturating_sub(offset).div_ceil(right.stride).min(run.len);
        let first = (offset + skipped * right.stride).checked_sub(right.padding)?;
        (skipped < end).then(|| Met {
            pixel: run.first + skipped,
            len: end - skipped,
            start: line + first * strides[2],
        })
    }
}

/// Every `step`-th number.
#[inline(always)]
fn gather(numbers: &[f32], step: usize, out: &mut [f32]) {
    match step {
        1 => out.copy_from_slice(&numbers[..out.len()]),
        // Pairs, which vectors are made of; the last number has no other behind it.
        2 => {
            let (pairs, _) = numbers.as_chunks::<2>();
            out.iter_mut().zip(pairs).for_each(|(to, pair)| *to = pair[0]);
            if let Some(last) = out.len().checked_sub(1) {
                out[last] = numbers[2 * last];
            }
        }
        step => out.iter_mut().zip(numbers.iter().step_by(step.max(1))).for_each(|(to, x)| *to = *x),
    }
}

impl Fill for Patches<'_> {
    fn sizes(&self) -> [usize; 2] {
        let [channels, _] = self.geometry.group_channels();
        [channels * self.geometry.weight.area(), self.geometry.out.area()]
    }

    fn fill(&self, rows: Range<usize>, pixels: Range<usize>, lines: &mut [Line]) {
        run_wide(Gather { patches: self, rows, pixels, lines });
    }
}

/// [`Fill::fill`] of patches.
struct Gather<'p, 'l> {
    patches: &'p Patches<'p>,
    rows: Range<usize>,
    pixels: Range<usize>,
    lines: &'l mut [Line],
}

impl Loop for Gather<'_, '_> {
    #[inline(always)]
    fn run(self) {
        let Gather { patches, rows, pixels, lines } = self;
        let Patches { geometry, data } = patches;
        let tiles = pixels.len().div_ceil(LANES).max(1);
        let [deep, down, right] = &geometry.slides;
        let (area, [_, height, width]) = (deep.kernel * down.kernel * right.kernel, geometry.out.sizes);
        let mut runs = [Run::default(); MOST_COLUMNS];
        let (mut count, mut next) = (0, pixels.start);
        while next < pixels.end {
            let (line, x) = (next / width, next % width);
            let len = (width - x).min(pixels.end - next);
            runs[count] = Run { first: next - pixels.start, layer: line / height, y: line % height, x, len };
            (count, next) = (count + 1, next + len);
        }
        let step = right.stride * geometry.input.strides[2];
        let mut met = [Met::default(); MOST_COLUMNS];
        // A tap meets elements at the same places of all channels.
        for first in rows.clone().take(area) {
            let tap = first % area;
            let mut parts = 0;
            for run in &runs[..count] {
                let (line, kx) = (tap / right.kernel, tap % right.kernel);
                if let Some(part) = patches.met(run, [line / down.kernel, line % down.kernel, kx]) {
                    met[parts] = part;
                    parts += 1;
                }
            }
            for row in (first..rows.end).step_by(area) {
                let plane = &data[row / area * geometry.input.channels.1..];
                let numbers: &mut [f32] = bytemuck::cast_slice_mut(&mut lines[(row - rows.start) * tiles..][..tiles]);
                for Met { pixel, len, start } in &met[..parts] {
                    gather(&plane[*start..], step, &mut numbers[*pixel..][..*len]);
                }
            }
        }
    }
}
