//! Blocks of pixels times tiles of channels.
//!
//! Invariant: every function is inlined into what a path of `simd::bytes` runs. Vectors go through loops, never through
//! `array::map` and its like, which are not always inlined, and then neither are the instructions. A block, from its inputs to
//! results in memory, is a function of its own, so that its sums stay in registers; what it reads is found before.

use std::ops::Range;

use super::pack::Packed;
use super::patches::{Patches, Pixel, SLACK};
use super::requantise::Epilogue;
use crate::simd::apart::{Apart, each_row};
use crate::simd::bytes::{Bytes, WithBytes};
use crate::simd::dot::{CHANNELS, Group};
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

/// A tile of a group of channels.
#[derive(Clone, Copy)]
struct Place {
    group: usize,
    tile: usize,
}

/// Pixels next to each other whose inputs are at hand together.
struct Batch {
    pixels: [Pixel; PIXELS],
    /// Number of pixels, and the row of results of the first.
    count: usize,
    first: usize,
    shape: Shape,
}

/// Inputs of the pixels of a batch.
enum Inputs<'g, I> {
    /// The whole patches.
    Patches(&'g [&'g [[I; 4]]; PIXELS]),
    /// Room for a part of each.
    Parts(&'g mut [[I; 4]]),
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
    fn run_with<B: Bytes>(mut self, bytes: B, shape: Shape, room: &mut [[B::Input; 4]]) {
        let mut pixel = self.patches.pixel(self.pixels.start);
        for first in (0..self.pixels.len()).step_by(shape.pixels) {
            let count = shape.pixels.min(self.pixels.len() - first);
            let mut pixels = [pixel; PIXELS];
            for pixels in &mut pixels[..count] {
                *pixels = pixel;
                self.patches.advance(&mut pixel);
            }
            let batch = Batch { pixels, count, first, shape };
            for group in 0..self.packed.channel_groups {
                let mut patches: [&[[B::Input; 4]]; PIXELS] = [&[]; PIXELS];
                let mut inputs = if shape.part < self.packed.inner {
                    Inputs::Parts(&mut *room)
                } else {
                    self.find(bytes, group, &batch, &mut *room, &mut patches);
                    Inputs::Patches(&patches)
                };
                self.group(bytes, group, &batch, &mut inputs);
            }
        }
    }

    /// Finds the whole patches of a batch, or gathers them where there is room for that.
    #[inline(always)]
    fn find<'g, B: Bytes>(
        &self,
        bytes: B,
        group: usize,
        batch: &Batch,
        room: &'g mut [[B::Input; 4]],
        patches: &mut [&'g [[B::Input; 4]]; PIXELS],
    ) where
        Self: 'g,
    {
        let Shape { row, part, .. } = batch.shape;
        if !room.is_empty() {
            let Piece { patches: images, epilogue, .. } = *self;
            let (pixels, to) = (&batch.pixels[..batch.count], &mut *room);
            bytes.apart(Gather::<B, E> { patches: images, epilogue, pixels, group, part: [0, part], row, to });
            let fours = part.div_ceil(4);
            for (patch, inputs) in patches.iter_mut().zip(room.chunks_exact(row)).take(batch.count) {
                *patch = &inputs[..fours];
            }
        } else if let Some(seen) = self.patches.in_line(self.pixels.start + batch.first) {
            for (patch, pixel) in patches.iter_mut().zip(seen).take(batch.count) {
                *patch = self.patches.of_group::<B>(pixel, group).unwrap_or(&[]);
            }
        } else {
            for (patch, pixel) in patches.iter_mut().zip(&batch.pixels).take(batch.count) {
                *patch = self.patches.seen::<B>(*pixel, group).unwrap_or(&[]);
            }
        }
        // What is computed with the others of a block, and goes nowhere.
        let last = patches[batch.count - 1];
        patches[batch.count..].fill(last);
    }

    /// Computes all tiles of a group of channels.
    #[inline(always)]
    fn group<B: Bytes>(&mut self, bytes: B, group: usize, batch: &Batch, inputs: &mut Inputs<'_, B::Input>) {
        let mut tile = self.tiles.start;
        while tile < self.tiles.end {
            let count = self.packed.block.min(self.tiles.end - tile);
            let at = Place { group, tile };
            match count {
                4 if B::TILES >= 4 => self.tiles::<B, 4, 6, 3>(bytes, at, batch, inputs),
                3 if B::TILES >= 4 => self.tiles::<B, 3, 8, 4>(bytes, at, batch, inputs),
                2 if B::TILES >= 4 => self.tiles::<B, 2, 12, 4>(bytes, at, batch, inputs),
                _ if B::ROWS >= 12 => self.tiles::<B, 1, 12, 4>(bytes, at, batch, inputs),
                _ if B::ROWS >= 6 => self.tiles::<B, 1, 6, 3>(bytes, at, batch, inputs),
                _ if B::ROWS >= 2 => self.tiles::<B, 1, 2, 2>(bytes, at, batch, inputs),
                _ => self.tiles::<B, 1, 1, 1>(bytes, at, batch, inputs),
            }
            tile += count;
        }
    }

    /// Computes `C` tiles of all pixels, at most `R` at a time, or `FEW`, or one. Of a batch there are a multiple of `R`.
    #[inline(always)]
    fn tiles<B: Bytes, const C: usize, const R: usize, const FEW: usize>(
        &mut self,
        bytes: B,
        at: Place,
        batch: &Batch,
        inputs: &mut Inputs<'_, B::Input>,
    ) {
        let mut first = 0;
        while first < batch.count {
            match batch.count - first {
                1 => self.pixels::<B, C, 1>(bytes, at, batch, first, inputs),
                left if left <= FEW => self.pixels::<B, C, FEW>(bytes, at, batch, first, inputs),
                _ => self.pixels::<B, C, R>(bytes, at, batch, first, inputs),
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
        batch: &Batch,
        first: usize,
        inputs: &mut Inputs<'_, B::Input>,
    ) {
        let Piece { packed, patches, epilogue, .. } = *self;
        let pixels = &batch.pixels[first..batch.count.min(first + R)];
        let panel = packed.panel(at.group, at.tile, C).as_chunks::<C>().0;
        let column = at.group * packed.each + (at.tile - self.tiles.start) * CHANNELS;
        let end = (at.group + 1) * packed.each - self.tiles.start * CHANNELS;
        let results = Results {
            epilogue,
            tiles: epilogue.tiles::<C>(at.group * packed.tiles() + at.tile),
            pixels,
            row: batch.first + first,
            columns: column..end.min(column + C * CHANNELS),
            out: &mut self.out,
        };
        match inputs {
            Inputs::Patches(all) => {
                let rows: &[&[[B::Input; 4]]; R] =
                    all[first..].first_chunk().expect("a multiple of the rows of a block");
                bytes.apart(Block { rows, panel, results });
            }
            Inputs::Parts(room) => {
                let Shape { row, part, .. } = batch.shape;
                let mut sums = [E::start(bytes, &results.tiles); R];
                for start in (0..packed.inner).step_by(part) {
                    let len = part.min(packed.inner - start);
                    let to = &mut room[..pixels.len() * row];
                    let (group, part) = (at.group, [start, len]);
                    bytes.apart(Gather::<B, E> { patches, epilogue, pixels, group, part, row, to });
                    let fours = len.div_ceil(4);
                    let mut rows: [&[[B::Input; 4]]; R] = [&room[..fours]; R];
                    for (index, to) in rows.iter_mut().enumerate().take(pixels.len()) {
                        *to = &room[index * row..][..fours];
                    }
                    bytes.apart(Products { sums: &mut sums, rows: &rows, panel: &panel[start / 4..][..fours] });
                }
                bytes.apart(Finish { sums: &sums, results });
            }
        }
    }
}

/// The place of results of a block of pixels, and what makes them of sums.
struct Results<'a, 'o, E: Epilogue, const C: usize> {
    epilogue: &'a E,
    tiles: E::Tiles<'a, C>,
    pixels: &'a [Pixel],
    /// Row of the first pixel, and the columns of the tiles.
    row: usize,
    columns: Range<usize>,
    out: &'a mut Columns<'o, E::Out>,
}

impl<E: Epilogue, const C: usize> Results<'_, '_, E, C> {
    /// Writes results of the sums of each pixel.
    #[inline(always)]
    fn write<B: Bytes, const R: usize>(self, bytes: B, sums: &[[B::Sums; C]; R]) {
        let Results { epilogue, tiles, columns, out, .. } = self;
        each_row!(row < R => {
            if let Some(pixel) = self.pixels.get(row) {
                let to = &mut out.row(self.row + row)[columns.clone()];
                epilogue.finish(bytes, &tiles, pixel.image, &sums[row], to);
            }
        });
    }
}

/// Patches times tiles of channels.
struct Block<'a, 'o, B: Bytes, E: Epilogue, const C: usize, const R: usize> {
    rows: &'a [&'a [[B::Input; 4]]; R],
    panel: &'a [[Group; C]],
    results: Results<'a, 'o, E, C>,
}

impl<B: Bytes, E: Epilogue, const C: usize, const R: usize> Apart<B> for Block<'_, '_, B, E, C, R> {
    #[inline(always)]
    fn run(self, bytes: B) {
        let mut sums = [E::start(bytes, &self.results.tiles); R];
        bytes.accumulate(&mut sums, *self.rows, self.panel);
        self.results.write(bytes, &sums);
    }
}

/// Parts of patches times parts of tiles of channels.
struct Products<'a, B: Bytes, const C: usize, const R: usize> {
    sums: &'a mut [[B::Sums; C]; R],
    rows: &'a [&'a [[B::Input; 4]]; R],
    panel: &'a [[Group; C]],
}

impl<B: Bytes, const C: usize, const R: usize> Apart<B> for Products<'_, B, C, R> {
    #[inline(always)]
    fn run(self, bytes: B) {
        bytes.accumulate(self.sums, *self.rows, self.panel);
    }
}

/// Sums of all parts.
struct Finish<'a, 'o, B: Bytes, E: Epilogue, const C: usize, const R: usize> {
    sums: &'a [[B::Sums; C]; R],
    results: Results<'a, 'o, E, C>,
}

impl<B: Bytes, E: Epilogue, const C: usize, const R: usize> Apart<B> for Finish<'_, '_, B, E, C, R> {
    #[inline(always)]
    fn run(self, bytes: B) {
        self.results.write(bytes, self.sums);
    }
}

/// Pixels of which a part of the patches is gathered.
struct Gather<'a, B: Bytes, E: Epilogue> {
    patches: &'a Patches<'a>,
    epilogue: &'a E,
    pixels: &'a [Pixel],
    group: usize,
    part: [usize; 2],
    /// Fours of inputs from one pixel to the next.
    row: usize,
    to: &'a mut [[B::Input; 4]],
}

impl<B: Bytes, E: Epilogue> Apart<B> for Gather<'_, B, E> {
    #[inline(always)]
    fn run(self, bytes: B) {
        let Gather { patches, epilogue, group, part, .. } = self;
        for (pixel, row) in self.pixels.iter().zip(self.to.chunks_exact_mut(self.row)) {
            patches.gather(bytes, *pixel, group, part, epilogue.zero(pixel.image), row.as_flattened_mut());
        }
    }
}
