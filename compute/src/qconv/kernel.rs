//! Blocks of pixels times tiles of channels.
//!
//! Invariant: every function is inlined into what a path of `simd::bytes` runs. Vectors go through loops, never through
//! `array::map` and its like, which are not always inlined, and then neither are the instructions.

use std::ops::Range;

use super::pack::Packed;
use super::patches::{Patches, Pixel, SLACK};
use super::requantise::Epilogue;
use crate::simd::bytes::{Bytes, WithBytes, store_tiles};
use crate::simd::dot::CHANNELS;
use crate::threads::Columns;

/// Some pixels and tiles of a convolution.
pub(super) struct Piece<'a, E: Epilogue> {
    pub packed: &'a Packed,
    pub patches: &'a Patches<'a>,
    pub epilogue: &'a E,
    pub pixels: Range<usize>,
    /// Tiles of every group of channels; the first is the first of a block.
    pub tiles: Range<usize>,
    pub out: Columns<'a, E::Out>,
}

/// Pixels that are gathered together, at most.
const PIXELS: usize = 24;

/// Lines of memory for gathered inputs.
#[repr(align(64))]
struct Lines<const LINES: usize>([[u8; 64]; LINES]);

/// Lines for small patches: fewer are zeroed for each piece of a convolution, and they stay in the nearest cache.
const SMALL: usize = 16 << 10 >> 6;
/// Lines for all others.
const LARGE: usize = 56 << 10 >> 6;

/// Places of gathered inputs.
#[derive(Clone, Copy)]
struct Shape {
    /// Pixels that are gathered together.
    pixels: usize,
    /// Fours of inputs from one to the next.
    row: usize,
    /// Inputs of a patch that are gathered at a time: a multiple of four, if not all.
    part: usize,
}

impl Shape {
    /// The shape for patches of so many inputs, in so many lines of memory: as many pixels as fit, if all their inputs do.
    fn of<B: Bytes>(inner: usize, lines: usize) -> Shape {
        let room = lines * 64 / size_of::<[B::Input; 4]>();
        let row = |part: usize| (part + SLACK).div_ceil(4);
        let fits = |pixels: usize| pixels >= B::ROWS && pixels * row(inner) <= room;
        if let Some(pixels) = [PIXELS, PIXELS / 2, PIXELS / 4].into_iter().find(|&pixels| fits(pixels)) {
            return Shape { pixels, row: row(inner), part: inner };
        }
        let row = room / PIXELS;
        Shape { pixels: PIXELS, row, part: 4 * row - SLACK }
    }
}

/// Pixels next to each other, gathered together.
struct Gathered<'g, I> {
    /// Room for their inputs; none where they are read from the image.
    inputs: &'g mut [[I; 4]],
    shape: Shape,
    pixels: [Pixel; PIXELS],
    /// Number of pixels, and the row of results of the first.
    count: usize,
    first: usize,
}

/// A tile of a group of channels.
#[derive(Clone, Copy)]
struct Place {
    group: usize,
    tile: usize,
}

impl<E: Epilogue> WithBytes for Piece<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<B: Bytes>(self, bytes: B) {
        if self.patches.seen::<B>(self.patches.pixel(self.pixels.start), 0).is_some() {
            let shape = Shape { pixels: PIXELS, row: 0, part: self.packed.inner };
            return self.run_with(bytes, shape, &mut []);
        }
        let small = Shape::of::<B>(self.packed.inner, SMALL);
        if small.pixels == PIXELS && small.part == self.packed.inner {
            let mut lines = Lines([[0; 64]; SMALL]);
            return self.run_with(bytes, small, bytemuck::cast_slice_mut(&mut lines.0));
        }
        let mut lines = Lines([[0; 64]; LARGE]);
        let large = Shape::of::<B>(self.packed.inner, LARGE);
        self.run_with(bytes, large, bytemuck::cast_slice_mut(&mut lines.0));
    }
}

impl<E: Epilogue> Piece<'_, E> {
    /// Computes all pixels with patches of this shape.
    #[inline(always)]
    fn run_with<B: Bytes>(mut self, bytes: B, shape: Shape, inputs: &mut [[B::Input; 4]]) {
        let mut pixel = self.patches.pixel(self.pixels.start);
        for first in (0..self.pixels.len()).step_by(shape.pixels) {
            let count = shape.pixels.min(self.pixels.len() - first);
            let mut pixels = [pixel; PIXELS];
            for pixels in &mut pixels[..count] {
                *pixels = pixel;
                self.patches.advance(&mut pixel);
            }
            let mut gathered = Gathered { inputs: &mut *inputs, shape, pixels, count, first };
            for group in 0..self.packed.channel_groups {
                self.group(bytes, group, &mut gathered);
            }
        }
    }

    /// Computes all tiles of a group of channels.
    #[inline(always)]
    fn group<B: Bytes>(&mut self, bytes: B, group: usize, gathered: &mut Gathered<'_, B::Input>) {
        if gathered.shape.part == self.packed.inner && !gathered.inputs.is_empty() {
            self.gather(bytes, group, 0..gathered.count, [0, self.packed.inner], gathered);
        }
        let mut tile = self.tiles.start;
        while tile < self.tiles.end {
            let count = self.packed.block.min(self.tiles.end - tile);
            let at = Place { group, tile };
            match count {
                4 if B::TILES >= 4 => self.tiles::<B, 4, 6, 3>(bytes, at, gathered),
                3 if B::TILES >= 4 => self.tiles::<B, 3, 8, 4>(bytes, at, gathered),
                2 if B::TILES >= 4 => self.tiles::<B, 2, 12, 4>(bytes, at, gathered),
                _ if B::ROWS >= 12 => self.tiles::<B, 1, 12, 4>(bytes, at, gathered),
                _ if B::ROWS >= 6 => self.tiles::<B, 1, 6, 3>(bytes, at, gathered),
                _ if B::ROWS >= 2 => self.tiles::<B, 1, 2, 2>(bytes, at, gathered),
                _ => self.tiles::<B, 1, 1, 1>(bytes, at, gathered),
            }
            tile += count;
        }
    }

    /// Gathers a part of the patches of some pixels.
    #[inline(always)]
    fn gather<B: Bytes>(
        &self,
        bytes: B,
        group: usize,
        which: Range<usize>,
        part: [usize; 2],
        gathered: &mut Gathered<'_, B::Input>,
    ) {
        bytes.apart(Gather {
            patches: self.patches,
            epilogue: self.epilogue,
            pixels: &gathered.pixels[which.clone()],
            group,
            part,
            row: gathered.shape.row,
            inputs: bytemuck::cast_slice_mut(&mut gathered.inputs[which.start * gathered.shape.row..]),
        });
    }

    /// Computes `C` tiles of all pixels, at most `R` at a time, or `FEW`, or one. There are rows for as many as `R`.
    #[inline(always)]
    fn tiles<B: Bytes, const C: usize, const R: usize, const FEW: usize>(
        &mut self,
        bytes: B,
        at: Place,
        gathered: &mut Gathered<'_, B::Input>,
    ) {
        let mut first = 0;
        while first < gathered.count {
            match gathered.count - first {
                1 => self.pixels::<B, C, 1>(bytes, at, gathered, first),
                left if left <= FEW => self.pixels::<B, C, FEW>(bytes, at, gathered, first),
                _ => self.pixels::<B, C, R>(bytes, at, gathered, first),
            }
            first += R;
        }
    }

    /// Computes `C` tiles of the pixels from `first` on, `R` of them if there are as many.
    #[inline(always)]
    fn pixels<B: Bytes, const C: usize, const R: usize>(
        &mut self,
        bytes: B,
        at: Place,
        gathered: &mut Gathered<'_, B::Input>,
        first: usize,
    ) {
        let end = gathered.count.min(first + R);
        let inner = self.packed.inner;
        let panel = self.packed.panel(at.group, at.tile, C);
        let mut sums = [[bytes.zero(); C]; R];
        let mut start = 0;
        while start < inner {
            let Shape { row, part, .. } = gathered.shape;
            let len = part.min(inner - start);
            if part < inner {
                self.gather(bytes, at.group, first..end, [start, len], gathered);
            }
            let fours = len.div_ceil(4);
            let mut rows: [&[[B::Input; 4]]; R] = [&[]; R];
            for (index, to) in (first..).zip(&mut rows) {
                *to = match self.patches.seen::<B>(gathered.pixels[index.min(PIXELS - 1)], at.group) {
                    Some(inputs) => inputs,
                    None => &gathered.inputs[index * row..][..fours],
                };
            }
            let panel = panel[start / 4 * C..].as_chunks::<C>().0;
            bytes.accumulate(&mut sums, rows, &panel[..fours]);
            start += len;
        }
        let columns = at.group * self.packed.each..(at.group + 1) * self.packed.each - self.tiles.start * CHANNELS;
        let tiles = self.epilogue.tiles::<C>(at.group * self.packed.tiles() + at.tile);
        let column = columns.start + (at.tile - self.tiles.start) * CHANNELS;
        let last = columns.end.min(column + C * CHANNELS);
        let images = gathered.pixels[first..end].iter().map(|pixel| pixel.image);
        let results = self.epilogue.finish(bytes, &tiles, images, &sums);
        for (row, results) in (gathered.first + first..gathered.first + end).zip(&results) {
            store_tiles(results, &mut self.out.row(row)[column..last]);
        }
    }
}

/// Pixels of which a part of the patches is gathered.
struct Gather<'a, E: Epilogue> {
    patches: &'a Patches<'a>,
    epilogue: &'a E,
    pixels: &'a [Pixel],
    group: usize,
    part: [usize; 2],
    /// Fours of inputs from one pixel to the next.
    row: usize,
    /// Room for inputs of the path, as bytes.
    inputs: &'a mut [u8],
}

impl<E: Epilogue> WithBytes for Gather<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<B: Bytes>(self, bytes: B) {
        let Gather { patches, epilogue, group, part, .. } = self;
        let rows = bytemuck::cast_slice_mut::<u8, [B::Input; 4]>(self.inputs).chunks_exact_mut(self.row);
        for (pixel, row) in self.pixels.iter().zip(rows) {
            patches.gather(bytes, *pixel, group, part, epilogue.zero(pixel.image), row.as_flattened_mut());
        }
    }
}
