//! Blocks of pixels times tiles of channels in registers that hold matrices.
//!
//! Invariant: every function is inlined into what a path of `simd::bytes` runs, which has [`Bytes::MATRICES`]; its sums are those
//! of vectors, to the bit.

use std::ops::Range;

use super::band;
use super::kernel::{Piece, Place};
use super::requantise::Epilogue;
use super::results::Results;
use crate::simd::apart::{Apart, each_row};
use crate::simd::bytes::Bytes;
use crate::simd::dot::CHANNELS;
use crate::simd::matrices::{Inputs, Matrices, Places, ROWS, Shaped, Sums};

/// Pixels of a piece, at least: of fewer, most of a matrix is empty.
const LEAST: usize = 8;
/// Pixels that meet all channels before the next ones do.
const PIXELS: usize = 16 * ROWS;
/// Number that is added to inputs that are ready.
const OFFSET: i32 = 128;

/// Inputs of pixels, one after the other.
struct Seen<'a> {
    bytes: &'a [i8],
    /// True if they are as images have them, false if they are ready.
    signed: bool,
    /// Pixels of a line, and bytes from one line to the next and from one pixel to the next.
    columns: usize,
    line: usize,
    step: usize,
    /// Bytes from a tap to those below and beside it.
    taps: [usize; 2],
}

impl<'a> Seen<'a> {
    /// Inputs of so many pixels from one on; behind the last they are repeated.
    #[inline(always)]
    fn inputs(&self, first: usize, count: usize) -> Inputs<'a> {
        let Seen { bytes, signed, columns, line, step, .. } = *self;
        let (y, x) = (first / columns, first % columns);
        if count == ROWS && x + count <= columns {
            return Inputs { bytes, signed, places: Places::Steps(y * line + x * step, step) };
        }
        let mut places = [0; ROWS];
        let (mut start, mut x) = (y * line, x);
        for place in &mut places[..count] {
            *place = start + x * step;
            x += 1;
            if x == columns {
                (x, start) = (0, start + line);
            }
        }
        let last = places[count - 1];
        places[count..].fill(last);
        Inputs { bytes, signed, places: Places::Each(places) }
    }
}

impl<E: Epilogue> Piece<'_, E> {
    /// The registers, if this piece gains from them.
    #[inline(always)]
    pub(super) fn matrices(&self) -> Option<Matrices> {
        self.matrices.filter(|_| self.pixels.len() >= LEAST)
    }

    /// Computes all pixels of inputs that memory has one after the other.
    #[inline(always)]
    pub(super) fn run_in_matrices<B: Bytes>(mut self, bytes: B, matrices: Matrices) {
        let mut shaped = matrices.shaped(self.patches.order.span());
        for first in (0..self.pixels.len()).step_by(PIXELS) {
            let rows = first..self.pixels.len().min(first + PIXELS);
            for group in 0..self.packed.order.groups {
                let Some((line, step)) = self.patches.dense(self.pixels.start + first, group) else { continue };
                let seen = Seen { bytes: line, signed: true, columns: usize::MAX, line: 0, step, taps: [0; 2] };
                self.all_tiles(bytes, &mut shaped, group, rows.clone(), &seen);
            }
        }
    }

    /// Computes pixels that see a band, in lines of so many columns.
    #[inline(always)]
    pub(super) fn band_in_matrices<B: Bytes>(
        &mut self,
        bytes: B,
        matrices: Matrices,
        (band, shape): (&[B::Input], band::Shape),
        rows: Range<usize>,
        columns: usize,
    ) {
        let (patches, [line, step], [down, right]) =
            (self.patches, shape.steps(self.patches), self.patches.windows.dilation);
        let taps = [shape.place(patches, [down, 0]), shape.place(patches, [0, right])];
        let order = &patches.order;
        let mut shaped = matrices.shaped(order.span());
        for group in 0..order.groups {
            let first = if order.groups > 1 { group * order.len } else { 0 };
            let bytes_of_band = bytemuck::cast_slice(&band[first..]);
            let seen = Seen { bytes: bytes_of_band, signed: false, columns, line, step, taps };
            self.all_tiles(bytes, &mut shaped, group, rows.clone(), &seen);
        }
    }

    /// Computes all tiles of a group of channels.
    #[inline(always)]
    fn all_tiles<B: Bytes>(
        &mut self,
        bytes: B,
        shaped: &mut Shaped,
        group: usize,
        rows: Range<usize>,
        seen: &Seen<'_>,
    ) {
        let mut tile = self.tiles.start;
        while tile < self.tiles.end {
            let count = self.packed.block.min(self.tiles.end - tile);
            let at = Place { group, tile };
            match count {
                4 => self.some_tiles::<B, 4>(bytes, shaped, at, rows.clone(), seen),
                3 => self.some_tiles::<B, 3>(bytes, shaped, at, rows.clone(), seen),
                2 => self.some_tiles::<B, 2>(bytes, shaped, at, rows.clone(), seen),
                _ => self.some_tiles::<B, 1>(bytes, shaped, at, rows.clone(), seen),
            }
            tile += count;
        }
    }

    /// Computes `C` tiles of all pixels.
    #[inline(always)]
    fn some_tiles<B: Bytes, const C: usize>(
        &mut self,
        bytes: B,
        shaped: &mut Shaped,
        at: Place,
        rows: Range<usize>,
        seen: &Seen<'_>,
    ) {
        // That of the weights, and of the windows: they may see columns as lines.
        let (order, seen_order) = (&self.packed.order, &self.patches.order);
        let (panel, first) = (self.packed.panel(at.group, at.tile, C).as_chunks::<C>().0, rows.start);
        let of_tiles = E::start::<B, C>(bytes, &self.epilogue.tiles::<C>(at.group * order.tiles() + at.tile));
        let mut starts = [[0; CHANNELS]; C];
        for (index, starts) in starts.iter_mut().enumerate() {
            *starts = bytes.sums(of_tiles[index]);
            if seen.signed {
                let sums = &self.packed.sums()[at.group * order.tiles() + at.tile + index];
                starts.iter_mut().zip(sums).for_each(|(start, sum)| {
                    *start = start.wrapping_add(sum.wrapping_mul(OFFSET));
                });
            }
        }
        let mut sums = Sums([[[0; CHANNELS]; C]; ROWS]);
        for row in rows.clone().step_by(ROWS) {
            let count = ROWS.min(rows.end - row);
            let inputs = seen.inputs(row - first, count);
            shaped.start(&starts);
            let mut panels = panel.chunks_exact((seen_order.span() / 4).max(1));
            for y in 0..seen_order.rows {
                for x in 0..seen_order.columns {
                    let Some(panel) = panels.next() else { break };
                    shaped.add::<C>(&inputs, y * seen.taps[0] + x * seen.taps[1], panel);
                }
            }
            shaped.sums(&mut sums);
            bytes.apart(Finish { sums: &sums, results: self.results::<C>(at, row..row + count) });
        }
    }
}

/// Sums of some pixels.
struct Finish<'a, E: Epilogue, const C: usize> {
    sums: &'a Sums<C>,
    results: Results<'a, E, C>,
}

/// Pixels whose sums are in registers together.
const TOGETHER: usize = 4;

impl<B: Bytes, E: Epilogue, const C: usize> Apart<B> for Finish<'_, E, C> {
    #[inline(always)]
    fn run(mut self, bytes: B) {
        let Finish { sums, results } = &mut self;
        let (parts, _) = sums.0.as_chunks::<TOGETHER>();
        for (index, part) in parts.iter().enumerate() {
            let mut sums = [[bytes.zero(); C]; TOGETHER];
            each_row!(row < TOGETHER => {
                for tile in 0..C {
                    sums[row][tile] = bytes.start(&part[row][tile]);
                }
            });
            let first = index * TOGETHER;
            if first < results.count() {
                results.write(bytes, first, &sums);
            }
        }
    }
}
