//! Patches of images as columns of a matrix, gathered while a product fills its panels.
//!
//! A patch holds the elements that the taps of a window meet at one place; elements in the padding are 0. Its rows are in the
//! order of the weight: channels, and the taps of each.

use std::ops::Range;

use super::geometry::Geometry;
use crate::gemm::blocks::Fill;
use crate::gemm::tiles::MOST_COLUMNS;
use crate::simd::floats::{LANES, Line};

/// The patches of the channels of one group of an image.
pub(super) struct Patches<'a> {
    geometry: &'a Geometry,
    /// The image from the first of the channels on.
    data: &'a [f32],
}

/// Neighbouring output pixels of a row.
#[derive(Clone, Copy)]
struct Run {
    y: usize,
    x: usize,
    len: usize,
}

impl<'a> Patches<'a> {
    /// The patches of an image from the first channel of a group on.
    pub(super) fn new(geometry: &'a Geometry, data: &'a [f32]) -> Self {
        Patches { geometry, data }
    }

    /// Writes what a tap meets in a row of the image at neighbouring pixels; what is in the padding is not written.
    fn gather(&self, line: &[f32], run: &Run, kx: usize, out: &mut [f32]) {
        let (slide, stride) = (&self.geometry.slides[2], self.geometry.input.strides[2]);
        let offset = run.x * slide.stride + kx * slide.dilation;
        // Pixels before the first that meets an element, and those up to the last that does.
        let skipped = slide.padding.saturating_sub(offset).div_ceil(slide.stride).min(out.len());
        let end = (slide.input + slide.padding).saturating_sub(offset).div_ceil(slide.stride).min(out.len());
        if skipped >= end {
            return;
        }
        let first = (offset + skipped * slide.stride - slide.padding) * stride;
        let out = &mut out[skipped..end];
        match slide.stride * stride {
            1 => out.copy_from_slice(&line[first..][..out.len()]),
            step => out.iter_mut().zip(line[first..].iter().step_by(step.max(1))).for_each(|(to, x)| *to = *x),
        }
    }
}

impl Fill for Patches<'_> {
    fn sizes(&self) -> [usize; 2] {
        let [channels, _] = self.geometry.group_channels();
        [channels * self.geometry.weight.area(), self.geometry.out.area()]
    }

    fn fill(&self, rows: Range<usize>, pixels: Range<usize>, lines: &mut [Line]) {
        let tiles = pixels.len().div_ceil(LANES).max(1);
        let [_, down, right] = &self.geometry.slides;
        let (area, width) = (down.kernel * right.kernel, self.geometry.out.sizes[2]);
        let mut runs = [Run { y: 0, x: 0, len: 0 }; MOST_COLUMNS];
        let (mut count, mut next) = (0, pixels.start);
        while next < pixels.end {
            let (y, x) = (next / width, next % width);
            let len = (width - x).min(pixels.end - next);
            runs[count] = Run { y, x, len };
            (count, next) = (count + 1, next + len);
        }
        for (row, lines) in rows.zip(lines.chunks_exact_mut(tiles)) {
            let (channel, tap) = (row / area, row % area);
            let (ky, kx) = (tap / right.kernel, tap % right.kernel);
            let plane = &self.data[channel * self.geometry.input.channels.1..];
            let numbers: &mut [f32] = bytemuck::cast_slice_mut(lines);
            let mut place = 0;
            for run in &runs[..count] {
                if let Some(y) = down.element(run.y, ky) {
                    self.gather(
                        &plane[y * self.geometry.input.strides[1]..],
                        run,
                        kx,
                        &mut numbers[place..][..run.len],
                    );
                }
                place += run.len;
            }
        }
    }
}
