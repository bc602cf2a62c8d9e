//! Windows over channels-last images of few channels, such as those that networks begin with: what the taps of some pixels meet
//! is copied once, and multiplied with all blocks of output channels.
//!
//! Invariant: an output element is the sum that [`pixels`](super::pixels) computes for it, in the same order.

use arrayvec::ArrayVec;

use super::blocked::{Image, bound};
use super::geometry::Geometry;
use crate::gemm::tiles::{load, store};
use crate::simd::floats::{Floats, HALF, Vectors, WithFloats};
use crate::spatial::Slide;
use crate::threads::Columns;

/// Numbers that the taps of a pixel meet, at most: 7 by 7 taps of three channels, and some more.
const PATCH: usize = 160;
/// Numbers of a row of taps, at most: longer ones are read where they are.
const ROW: usize = 32;
/// Pixels whose patches are copied together: a multiple of those of every tile.
const PIXELS: usize = 24;

/// Returns whether copying patches pays.
pub(super) fn pays(geometry: &Geometry) -> bool {
    let [channels, _] = geometry.group_channels();
    let row = geometry.weight.sizes[2].saturating_mul(channels);
    let few = row <= ROW && row.saturating_mul(geometry.weight.sizes[1]) <= PATCH;
    few && !geometry.transposed && geometry.groups == 1 && !geometry.is_pointwise() && geometry.slides[2].dilation == 1
}

/// Some pixels in all blocks of output channels.
pub(super) struct Patches<'a, 'o> {
    pub(super) image: &'a Image<'a>,
    /// The first pixel, and how many there are. They are the rows of `out`.
    pub(super) pixels: [usize; 2],
    pub(super) out: &'a mut Columns<'o, f32>,
}

/// Numbers that the taps of pixels meet, pixel by pixel.
type Copied = ArrayVec<f32, { PATCH * PIXELS }>;

impl WithFloats for Patches<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(mut self, floats: F) {
        let blocks = self.image.blocks;
        let [first, count] = self.pixels;
        let mut copied = Copied::new();
        for start in (0..count).step_by(PIXELS) {
            let here = PIXELS.min(count - start);
            self.image.copy(first + start, here, &mut copied);
            for block in 0..blocks.count() {
                let at = [block, start, here];
                if let Some(half) = floats.half().filter(|_| blocks.columns(block).len() <= HALF) {
                    self.block::<F::Half, 12, 1>(half, &copied, at);
                    continue;
                }
                match (F::TILES, blocks.tiles(block)) {
                    (1, _) => self.block::<F, 6, 1>(floats, &copied, at),
                    (_, 4) => self.block::<F, 6, 4>(floats, &copied, at),
                    (_, 3) => self.block::<F, 8, 3>(floats, &copied, at),
                    (_, 2) => self.block::<F, 12, 2>(floats, &copied, at),
                    _ => self.block::<F, 12, 1>(floats, &copied, at),
                }
            }
        }
    }
}

impl Patches<'_, '_> {
    /// A block of output channels of pixels whose patches were copied, in tiles.
    #[inline(always)]
    fn block<F: Vectors, const ROWS: usize, const TILES: usize>(
        &mut self,
        floats: F,
        copied: &Copied,
        [block, first, count]: [usize; 3],
    ) {
        let Image { blocks, packed, bias, clamp, .. } = self.image;
        let (weights, _) = blocks.block(packed.lines(), block).as_chunks::<TILES>();
        let (columns, len) = (blocks.columns(block), blocks.depth);
        let start = load(floats, bias.get(columns.clone()).unwrap_or(&[]));
        let bounds = clamp.bounds().map(|bound| floats.splat(bound));
        for tile in (0..count).step_by(ROWS) {
            let here = ROWS.min(count - tile);
            let mut rows: [&[f32]; ROWS] = [&[]; ROWS];
            for (row, place) in rows.iter_mut().enumerate() {
                *place = &copied[(tile + row.min(here - 1)) * len..][..len];
            }
            let mut sums = [start; ROWS];
            floats.add_products(rows, weights, &mut sums);
            // By reference: an array that is moved is copied.
            for (pixel, sums) in sums.iter().enumerate().take(here) {
                let row = &mut self.out.row(first + tile + pixel)[columns.clone()];
                store(floats, bound(floats, *sums, bounds), row);
            }
        }
    }
}

impl Image<'_> {
    /// Copies what the taps of some neighbouring pixels meet.
    fn copy(&self, first: usize, count: usize, to: &mut Copied) {
        let Geometry { input: images, slides: [_, down, right], out, .. } = self.geometry;
        let channels = images.channels.0;
        let Slide { kernel: width, input, .. } = *right;
        let (mut y, mut x) = (first / out.sizes[2], first % out.sizes[2]);
        to.clear();
        for _ in 0..count {
            let [top, left] = [(down, y), (right, x)].map(|(slide, at)| slide.start(at));
            // Taps before the image, and those that meet it.
            let before = left.min(0).unsigned_abs().min(width);
            let from = left.max(0) as usize;
            let met = (width - before).min(input.saturating_sub(from));
            for ky in 0..down.kernel {
                let line = top + (ky * down.dilation) as isize;
                // What is before the first is a great number, too.
                let met = if (line as usize) < down.input { met } else { 0 };
                let mut zeros = |count: usize| to.extend(std::iter::repeat_n(0.0, count * channels));
                if met == 0 {
                    zeros(width);
                    continue;
                }
                zeros(before);
                let numbers = &self.data[line as usize * images.strides[1] + from * channels..][..met * channels];
                // Patches of all pixels fit.
                let _ = to.try_extend_from_slice(numbers);
                to.extend(std::iter::repeat_n(0.0, (width - before - met) * channels));
            }
            x += 1;
            (y, x) = if x == out.sizes[2] { (y + 1, 0) } else { (y, x) };
        }
    }
}
