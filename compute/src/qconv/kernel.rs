//! Blocks of pixels times tiles of channels.
//!
//! Invariant: every function is inlined into what a path of `simd::bytes` runs. Vectors go through loops, never through
//! `array::map` and its like, which are not always inlined, and then neither are the instructions. A block, from its inputs to
//! results in memory, is a function of its own, so that its sums stay in registers; what it reads is found before.

use std::ops::Range;

use super::band::{self, Fill, Seeing};
use super::block::{Block, Finish, Gather, Lined, Products, Scattered, Windowed};
use super::pack::Packed;
use super::patches::{Patches, Pixel};
use super::requantise::{Epilogue, Images};
use super::results::Results;
use crate::simd::bytes::{Bytes, Offsets, WithBytes};
use crate::simd::dot::CHANNELS;
use crate::simd::matrices::Matrices;
use crate::threads::Columns;

/// Some pixels and tiles of a convolution.
pub(super) struct Piece<'a, E: Epilogue> {
    pub packed: &'a Packed,
    pub patches: &'a Patches<'a>,
    pub epilogue: &'a E,
    pub pixels: Range<usize>,
    /// Pixels of an image that has a scale.
    pub per_image: usize,
    /// Tiles of every group of channels; the first is the first of a block.
    pub tiles: Range<usize>,
    /// Registers that hold matrices, if the machine has them and windows see enough for them.
    pub matrices: Option<Matrices>,
    pub out: Columns<'a, E::Out>,
}

/// Pixels whose inputs are found together: as many as blocks of every size have; and a few more, if they are the last.
const PIXELS: usize = 24;
const MOST: usize = PIXELS + 8;
const LAST: usize = PIXELS + 6;

/// Lines of memory for gathered inputs.
#[repr(align(64))]
struct Lines<const LINES: usize>([[u8; 64]; LINES]);

/// Lines for small images and kernels: fewer are zeroed for each piece of a convolution, and they stay in the nearest cache.
const SMALL: usize = 16 << 10 >> 6;
/// Lines for all others.
const LARGE: usize = 56 << 10 >> 6;

/// Output pixels of a band, at least, if more memory gives them.
const MANY: usize = 2 * PIXELS;

/// A tile of a group of channels.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub group: usize,
    pub tile: usize,
}

/// Pixels of an image next to each other whose inputs are at hand together.
#[derive(Clone, Copy)]
struct Batch {
    /// The first pixel, and the row of its results.
    first: Pixel,
    row: usize,
    /// Number of pixels.
    count: usize,
}

impl Batch {
    /// Pixels from one on, of which there are so many.
    #[inline(always)]
    fn of(first: Pixel, row: usize, left: usize) -> Batch {
        Batch { first, row, count: if left <= LAST { left } else { PIXELS } }
    }
}

/// Inputs of the pixels of a batch.
enum Inputs<'g, I> {
    /// All that the windows see, as memory has it.
    Seen(&'g [&'g [[I; 4]]; MOST]),
    /// The same, of pixels next to each other: from the first one on, and how far those of the next are.
    Line(&'g [[I; 4]], usize),
    /// A band, and where in it the first span of each window is.
    Band(&'g Band<'g, I>, &'g [usize; MOST]),
    /// Room for some groups of four inputs of each pixel.
    Parts(&'g mut [[I; 4]]),
}

/// A band of inputs, and where groups of them are under its windows if there are few.
struct Band<'g, I> {
    inputs: &'g [I],
    shape: band::Shape,
    offsets: Option<&'g Offsets>,
}

impl<E: Epilogue> WithBytes for Piece<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<B: Bytes>(self, bytes: B) {
        // What no path needs is not compiled for it.
        if B::MATRICES
            && let Some(matrices) = self.matrices()
        {
            if self.patches.dense(self.pixels.start, 0).is_some() {
                return self.run_in_matrices(bytes, matrices);
            }
        } else if self.patches.seen::<B>(self.patches.pixel(self.pixels.start), 0).is_some() {
            return self.run_seen(bytes);
        }
        let shape = |lines: usize| band::Shape::of(self.patches, 64 * lines / size_of::<B::Input>());
        if let Some(shape) = shape(SMALL).filter(|shape| shape.lines * shape.columns >= MANY.min(self.pixels.len())) {
            let mut lines = Lines([[0; 64]; SMALL]);
            return self.run_bands(bytes, shape, bytemuck::cast_slice_mut(&mut lines.0));
        }
        let mut lines = Lines([[0; 64]; LARGE]);
        match shape(LARGE) {
            Some(shape) => self.run_bands(bytes, shape, bytemuck::cast_slice_mut(&mut lines.0)),
            None => self.run_parts(bytes, bytemuck::cast_slice_mut(&mut lines.0)),
        }
    }
}

impl<E: Epilogue> Piece<'_, E> {
    /// Computes all pixels of inputs that memory has as products take them.
    #[inline(always)]
    fn run_seen<B: Bytes>(mut self, bytes: B) {
        let mut row = 0;
        while row < self.pixels.len() {
            let batch = self.batch(row);
            for group in 0..self.packed.order.groups {
                if let Some((line, step)) = self.patches.line::<B>(self.pixels.start + row, group) {
                    self.group(bytes, group, batch, &mut Inputs::Line(line, step));
                    continue;
                }
                let mut seen: [&[[B::Input; 4]]; MOST] = [&[]; MOST];
                let mut pixel = batch.first;
                for seen in &mut seen[..batch.count] {
                    *seen = self.patches.seen::<B>(pixel, group).unwrap_or(&[]);
                    self.patches.advance(&mut pixel);
                }
                // Computed with the others of a block, and written nowhere.
                let last = seen[batch.count - 1];
                seen[batch.count..].fill(last);
                self.group(bytes, group, batch, &mut Inputs::Seen(&seen));
            }
            row += batch.count;
        }
    }

    /// Computes all pixels, band after band.
    #[inline(always)]
    fn run_bands<B: Bytes>(mut self, bytes: B, shape: band::Shape, room: &mut [B::Input]) {
        let (patches, [line, step]) = (self.patches, shape.steps(self.patches));
        let one_by_one = B::ONE_BY_ONE && self.matrices().is_none();
        let offsets = if one_by_one { shape.offsets(patches) } else { None };
        let mut row = 0;
        while row < self.pixels.len() {
            let first = patches.pixel(self.pixels.start + row);
            let seeing = Seeing::of(patches, shape, first, self.pixels.len() - row);
            let (columns, end) = (seeing.columns, row + seeing.count);
            let padding = self.epilogue.zero(first.image);
            bytes.apart(Fill { patches, shape, seeing, padding, to: &mut *room });
            if B::MATRICES
                && let Some(matrices) = self.matrices()
            {
                self.band_in_matrices(bytes, matrices, (room, shape), row..end, columns);
                row = end;
                continue;
            }
            let band = Band { inputs: &*room, shape, offsets: offsets.as_ref() };
            let (mut x, mut start) = (0, 0);
            while row < end {
                let batch = Batch::of(first, row, end - row);
                let mut places = [0; MOST];
                for place in &mut places[..batch.count] {
                    *place = start + x * step;
                    x += 1;
                    if x == columns {
                        (x, start) = (0, start + line);
                    }
                }
                for group in 0..self.packed.order.groups {
                    self.group(bytes, group, batch, &mut Inputs::Band(&band, &places));
                }
                row += batch.count;
            }
        }
    }

    /// Computes all pixels, of whose inputs a part is gathered at a time.
    #[inline(always)]
    fn run_parts<B: Bytes>(mut self, bytes: B, room: &mut [[B::Input; 4]]) {
        let mut row = 0;
        while row < self.pixels.len() {
            let batch = self.batch(row);
            for group in 0..self.packed.order.groups {
                self.group(bytes, group, batch, &mut Inputs::Parts(&mut *room));
            }
            row += batch.count;
        }
    }

    /// Pixels from that of a row of results on, up to the end of its image.
    #[inline(always)]
    fn batch(&self, row: usize) -> Batch {
        let of_image = self.patches.counts[0] * self.patches.counts[1];
        let left = of_image - (self.pixels.start + row) % of_image;
        Batch::of(self.patches.pixel(self.pixels.start + row), row, left.min(self.pixels.len() - row))
    }

    /// Computes all tiles of a group of channels.
    #[inline(always)]
    fn group<B: Bytes>(&mut self, bytes: B, group: usize, batch: Batch, inputs: &mut Inputs<'_, B::Input>) {
        let mut tile = self.tiles.start;
        while tile < self.tiles.end {
            let count = self.packed.block.min(self.tiles.end - tile);
            let at = Place { group, tile };
            match count {
                4 if const { B::TILES >= 4 } => self.tiles::<B, 4, 6, 3>(bytes, at, batch, inputs),
                3 if const { B::TILES >= 4 } => self.tiles::<B, 3, 8, 4>(bytes, at, batch, inputs),
                2 if const { B::TILES >= 4 } => self.tiles::<B, 2, 8, 4>(bytes, at, batch, inputs),
                _ if const { B::ROWS >= 8 } => self.tiles::<B, 1, 8, 4>(bytes, at, batch, inputs),
                _ if const { B::ROWS >= 6 } => self.tiles::<B, 1, 6, 3>(bytes, at, batch, inputs),
                _ if const { B::ROWS >= 2 } => self.tiles::<B, 1, 2, 2>(bytes, at, batch, inputs),
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
        batch: Batch,
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
        batch: Batch,
        first: usize,
        inputs: &mut Inputs<'_, B::Input>,
    ) {
        let Piece { packed, patches, epilogue, pixels: Range { start: from, .. }, .. } = *self;
        let order = &packed.order;
        let count = R.min(batch.count - first);
        let panel = packed.panel(at.group, at.tile, C).as_chunks::<C>().0;
        let results = self.results::<C>(at, batch.row + first..batch.row + first + count);
        match inputs {
            Inputs::Seen(all) => {
                let rows: &[&[[B::Input; 4]]; R] =
                    all[first..].first_chunk().expect("a multiple of the rows of a block");
                bytes.apart(Block { rows: *rows, panel, results });
            }
            Inputs::Line(line, step) => {
                let line = &line[first * *step..];
                bytes.apart(Lined::<B, E, C, R> { line, step: *step, count, panel, results });
            }
            Inputs::Band(Band { inputs, shape, offsets }, places) => {
                let places: &[usize; R] = places[first..].first_chunk().expect("a multiple of the rows of a block");
                let first = if order.groups > 1 { at.group * order.len } else { 0 };
                let (band, shape) = (&inputs[first..], *shape);
                match offsets {
                    Some(offsets) => bytes.apart(Scattered::<B, E, C, R> { band, offsets, places, panel, results }),
                    None => bytes.apart(Windowed { patches, band, shape, places, panel, results }),
                }
            }
            Inputs::Parts(room) => {
                let part = room.len() / PIXELS;
                let pixel = patches.pixel(from + batch.row + first);
                let padding = epilogue.zero(pixel.image);
                let mut sums = [results.start(bytes); R];
                for (index, panel) in panel.chunks(part).enumerate() {
                    let (start, row) = (index * part, panel.len());
                    let to = &mut room[..count * row];
                    bytes.apart(Gather::<B> { patches, pixel, group: at.group, start, padding, row, to });
                    let mut rows: [&[[B::Input; 4]]; R] = [&room[..row]; R];
                    for (index, to) in rows.iter_mut().enumerate().take(count) {
                        *to = &room[index * row..][..row];
                    }
                    bytes.apart(Products { sums: &mut sums, rows: &rows, panel });
                }
                bytes.apart(Finish { sums: &sums, results });
            }
        }
    }
}

impl<E: Epilogue> Piece<'_, E> {
    /// The place of results of `C` tiles for some rows of the piece.
    #[inline(always)]
    pub(super) fn results<const C: usize>(&mut self, at: Place, rows: Range<usize>) -> Results<'_, E, C> {
        let Piece { packed, epilogue, .. } = *self;
        let order = &packed.order;
        let column = at.group * order.each + (at.tile - self.tiles.start) * CHANNELS;
        let end = ((at.group + 1) * order.each).min(order.outputs) - self.tiles.start * CHANNELS;
        Results {
            epilogue,
            tiles: epilogue.tiles::<C>(at.group * order.tiles() + at.tile),
            images: Images { first: self.pixels.start + rows.start, per_image: self.per_image },
            out: self.out.part(rows, column..end.min(column + C * CHANNELS)),
        }
    }
}
