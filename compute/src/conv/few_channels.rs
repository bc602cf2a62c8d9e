//! Windows over channels-last images of few channels, such as those that networks begin with. A row of taps meets numbers
//! that are next to each other: they are multiplied where they are, or, where pixels are less than a tile and at the left and
//! the right border, copied once with the zeros of the padding. Short lines are copied as a whole.
//!
//! Invariant: an output element is the sum that [`pixels`](super::pixels) computes for it, in the same order.

use arrayvec::ArrayVec;

use super::blocked::{Channels, Image};
use super::geometry::Geometry;
use crate::simd::apart::Apart;
use crate::simd::floats::{Floats, HALF, Vectors, WithFloats, copy_few};
use crate::simd::products::{Ahead, add_products, add_products_of};
use crate::spatial::Slide;
use crate::threads::Columns;

/// Numbers that the taps of a pixel meet, at most: 7 by 7 taps of three channels, and some more.
const PATCH: usize = 160;
/// Numbers of a row of taps, at most: longer ones are read where they are.
const ROW: usize = 32;
/// Pixels whose patches are copied together: a multiple of those of every tile, and half of it of those of most.
const PIXELS: usize = 24;

/// Rows of taps that are multiplied where they are, at most.
const TAP_ROWS: usize = 16;
/// The numbers that a row of taps meets above and below the image.
const ZEROS: [f32; ROW] = [0.0; ROW];

/// Returns whether this is faster than a tap at a time.
pub(super) fn pays(geometry: &Geometry) -> bool {
    let [channels, _] = geometry.group_channels();
    let row = geometry.weight.sizes[2].saturating_mul(channels);
    let few = row <= ROW && row.saturating_mul(geometry.weight.sizes[1]) <= PATCH;
    few && !geometry.transposed && geometry.groups == 1 && !geometry.is_pointwise() && geometry.slides[2].dilation == 1
}

/// Places of a line that are computed by themselves, at least: fewer do not fill tiles.
const LEAST_WIDTH: usize = 4;
/// Places of a line that is copied with the padding around it, at most: of many the border is little.
const MOST_WIDTH: usize = 64;
/// Numbers of all lines that a row of places meets, with the padding, at most.
const LINES: usize = 1 << 12;

/// Some pixels in all blocks of output channels.
pub(super) struct Patches<'a, 'o> {
    pub(super) image: &'a Image<'a>,
    /// The first pixel, and how many there are. They are the rows of `out`.
    pub(super) pixels: [usize; 2],
    pub(super) out: &'a mut Columns<'o, f32>,
}

/// Room for the numbers that the taps of pixels meet, pixel by pixel.
type Copied = ArrayVec<f32, { PATCH * PIXELS }>;

/// The numbers that rows of taps meet, in order: from those of the first pixel on, and how far those of the next one are.
type TapRows<'a> = ArrayVec<(&'a [f32], usize), TAP_ROWS>;

impl WithFloats for Patches<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(mut self, floats: F) {
        let Geometry { slides: [_, down, right], out, .. } = self.image.geometry;
        let width = out.sizes[2];
        // Places of the window that are inside of a line.
        let left = right.padding.div_ceil(right.stride);
        let free = (right.input + right.padding).checked_sub(right.kernel);
        let inside = left..free.map_or(0, |free| free / right.stride + 1).min(width);
        let [first, count] = self.pixels;
        let line_len = right.reach_of(width) * self.image.geometry.input.channels.0;
        let has_border = inside.len() < width;
        if down.kernel > TAP_ROWS || width < LEAST_WIDTH || line_len == 0 {
            return self.copied(floats, 0, count);
        }
        if has_border && width <= MOST_WIDTH && line_len * down.kernel <= LINES {
            return self.lines(floats, line_len);
        }
        if has_border && inside.len() < PIXELS {
            return self.copied(floats, 0, count);
        }
        // Without borders nothing need be copied.
        let tile = match self.image.blocks.tiles(0) {
            _ if !has_border => 1,
            3 => PIXELS,
            _ => PIXELS / 2,
        };
        let mut done = 0;
        while done < count {
            let (y, x) = ((first + done) / width, (first + done) % width);
            let left = count - done;
            let here = inside.end.saturating_sub(x).min(left) / tile * tile;
            if here > 0 && x >= inside.start {
                let image = self.image;
                let (rows, len) = image.tap_rows([y, x], here);
                self.blocks(floats, &rows, len, [done, here]);
                done += here;
            } else {
                // What is less than a tile is copied, and so are the borders next to it, of the next line, too.
                let border = if x < inside.start { inside.start } else { width + inside.start };
                let here = (border - x).min(left);
                self.copied(floats, done, here);
                done += here;
            }
        }
    }
}

impl Patches<'_, '_> {
    /// All blocks of output channels, line by line: what the windows of one meet is copied with the padding around it, `line_len`
    /// numbers for each row of taps.
    #[inline(always)]
    fn lines<F: Floats>(&mut self, floats: F, line_len: usize) {
        let image = self.image;
        let Geometry { input: images, slides: [_, down, right], out, .. } = image.geometry;
        let (channels, [first, count]) = (images.channels.0, self.pixels);
        let (len, step, before) = (right.kernel * channels, right.stride * channels, right.padding * channels);
        let met = (right.input * channels).min(line_len - before);
        let mut lines = [0.0; LINES];
        let mut done = 0;
        while done < count {
            let (y, x) = ((first + done) / out.sizes[2], (first + done) % out.sizes[2]);
            let here = (out.sizes[2] - x).min(count - done);
            for (tap, line) in (0..down.kernel).zip(lines.chunks_exact_mut(line_len)) {
                if let Some(row) = down.element(y, tap) {
                    // The padding around stays.
                    let numbers = &image.data[row * images.strides[1]..][..met];
                    line[before..before + met].copy_from_slice(numbers);
                }
            }
            let mut rows = TapRows::new();
            for (tap, line) in (0..down.kernel).zip(lines.chunks_exact(line_len)) {
                rows.push(match down.element(y, tap) {
                    Some(_) => (&line[x * step..], step),
                    None => (&ZEROS[..len], 0),
                });
            }
            self.blocks(floats, &rows, len, [done, here]);
            done += here;
        }
    }

    /// All blocks of output channels of some neighbouring pixels, whose numbers are copied.
    #[inline(always)]
    fn copied<F: Floats>(&mut self, floats: F, first: usize, count: usize) {
        let mut copied = Copied::new();
        let len = self.image.blocks.depth;
        for start in (first..first + count).step_by(PIXELS) {
            let here = PIXELS.min(first + count - start);
            self.image.copy(self.pixels[0] + start, here, &mut copied);
            self.blocks(floats, &[(&copied[..], len)], len, [start, here]);
        }
    }

    /// All blocks of output channels of some pixels. Each row of taps meets `len` numbers.
    #[inline(always)]
    fn blocks<F: Floats>(&mut self, floats: F, rows: &[(&[f32], usize)], len: usize, [first, count]: [usize; 2]) {
        let blocks = self.image.blocks;
        for block in 0..blocks.count() {
            let at = [block, first, count];
            if const { F::HALVES } && blocks.columns(block).len() <= HALF {
                self.block::<F::Half, 12, 1>(floats.half(), rows, len, at);
                continue;
            }
            match (F::ROWS, blocks.tiles(block)) {
                (2, _) => self.block::<F, 2, 1>(floats, rows, len, at),
                (6, _) => self.block::<F, 6, 1>(floats, rows, len, at),
                (_, 4) => self.block::<F, 6, 4>(floats, rows, len, at),
                (_, 3) => self.block::<F, 8, 3>(floats, rows, len, at),
                (_, 2) => self.block::<F, 12, 2>(floats, rows, len, at),
                _ => self.block::<F, 12, 1>(floats, rows, len, at),
            }
        }
    }

    /// A block of output channels of some pixels, in tiles.
    #[inline(always)]
    fn block<F: Vectors, const ROWS: usize, const TILES: usize>(
        &mut self,
        floats: F,
        tap_rows: &[(&[f32], usize)],
        len: usize,
        [block, first, count]: [usize; 3],
    ) {
        let offset = self.image.blocks.columns(block).start;
        let channels = Channels::new(floats, self.image, [0, block], offset, self.pixels[0]);
        for tile in (0..count).step_by(ROWS) {
            let (channels, count, out) = (&channels, ROWS.min(count - tile), &mut *self.out);
            floats.apart(Tile::<F, ROWS, TILES> { channels, tap_rows, len, tile, to: first + tile, count, out });
        }
    }
}

/// A block of output channels at up to `ROWS` pixels, from inputs to results in memory: a function of its own, so that sums
/// stay in registers.
struct Tile<'a, 'o, F: Vectors, const ROWS: usize, const TILES: usize> {
    channels: &'a Channels<'a, F, TILES>,
    /// Numbers that each row of taps meets, and how many there are from one pixel to the next; `len` at each.
    tap_rows: &'a [(&'a [f32], usize)],
    len: usize,
    /// The first pixel of those of `tap_rows`, its row of the output, and the number of pixels.
    tile: usize,
    to: usize,
    count: usize,
    out: &'a mut Columns<'o, f32>,
}

impl<F: Vectors, const ROWS: usize, const TILES: usize> Apart<F> for Tile<'_, '_, F, ROWS, TILES> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Tile { channels, tap_rows, len, tile, to, count, out } = self;
        let mut sums = channels.start::<ROWS>();
        for ((numbers, step), weights) in tap_rows.iter().zip(channels.weights.chunks_exact(len.max(1))) {
            let ahead = Ahead::near(weights);
            if count == ROWS {
                add_products_of(floats, (&numbers[tile * step..], *step), weights, ahead, &mut sums);
                continue;
            }
            let mut rows: [&[f32]; ROWS] = [&[]; ROWS];
            for (row, place) in rows.iter_mut().enumerate() {
                *place = &numbers[(tile + row.min(count - 1)) * step..][..len];
            }
            add_products(floats, rows, weights, ahead, &mut sums);
        }
        channels.write(floats, &mut sums, [to, 1, count], out);
    }
}

impl<'a> Image<'a> {
    /// Returns what rows of taps meet at so many places of a line from one on, all inside of the line, and how many numbers a
    /// row of taps meets at each.
    #[inline(always)]
    fn tap_rows(&self, [y, x]: [usize; 2], count: usize) -> (TapRows<'a>, usize) {
        let Geometry { input: images, slides: [_, down, right], .. } = self.geometry;
        let channels = images.channels.0;
        let (len, step) = (right.kernel * channels, right.stride * channels);
        let from = (x * right.stride - right.padding) * channels;
        let row = |tap| match down.element(y, tap) {
            Some(line) => (&self.data[line * images.strides[1] + from..][..(count - 1) * step + len], step),
            None => (&ZEROS[..len], 0),
        };
        ((0..down.kernel).map(row).collect(), len)
    }

    /// Copies what the taps of some neighbouring pixels meet.
    fn copy(&self, first: usize, count: usize, to: &mut Copied) {
        let Geometry { input: images, slides: [_, down, right], out, .. } = self.geometry;
        let channels = images.channels.0;
        let Slide { kernel: width, input, .. } = *right;
        let (row, patch) = (width * channels, width * channels * down.kernel);
        let (mut y, mut x) = (first / out.sizes[2], first % out.sizes[2]);
        // Patches of all pixels fit; what no tap meets stays 0.
        to.clear();
        to.extend(std::iter::repeat_n(0.0, count * patch));
        for to in to.chunks_exact_mut(patch.max(1)) {
            let [top, left] = [(down, y), (right, x)].map(|(slide, at)| slide.start(at));
            // Taps before the image, and those that meet it.
            let before = left.min(0).unsigned_abs().min(width);
            let from = left.max(0) as usize;
            let met = (width - before).min(input.saturating_sub(from)) * channels;
            for (ky, to) in to.chunks_exact_mut(row.max(1)).enumerate() {
                let line = top + (ky * down.dilation) as isize;
                // What is before the first is a great number, too.
                if (line as usize) < down.input && met > 0 {
                    let numbers = &self.data[line as usize * images.strides[1] + from * channels..][..met];
                    copy_few(numbers, &mut to[before * channels..][..met]);
                }
            }
            x += 1;
            (y, x) = if x == out.sizes[2] { (y + 1, 0) } else { (y, x) };
        }
    }
}
