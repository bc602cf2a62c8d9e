//! Blocks of pixels times tiles of channels.
//!
//! Invariant: every function is inlined into what a path of `simd::bytes` runs. Vectors go through loops, never through
//! `array::map` and its like, which are not always inlined, and then neither are the instructions.

use std::ops::Range;

use super::pack::Packed;
use super::patches::{LONG, Patches, Pixel, ROWS, Rows, SHORT};
use super::requantise::Epilogue;
use super::store::store_tiles;
use crate::simd::bytes::{Bytes, WithBytes};
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

/// Pixels next to each other, gathered together.
struct Gathered<'g, const FOURS: usize> {
    rows: &'g mut Rows<FOURS>,
    pixels: [Pixel; ROWS],
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
        match self.packed.inner <= Rows::<SHORT>::PART {
            true => self.run_by::<B, SHORT>(bytes),
            false => self.run_by::<B, LONG>(bytes),
        }
    }
}

impl<E: Epilogue> Piece<'_, E> {
    /// Computes all pixels with patches of so many fours of bytes.
    #[inline(always)]
    fn run_by<B: Bytes, const FOURS: usize>(mut self, bytes: B) {
        let mut rows = Rows::<FOURS>::ZERO;
        let mut pixel = self.patches.pixel(self.pixels.start);
        for first in (0..self.pixels.len()).step_by(ROWS) {
            let count = ROWS.min(self.pixels.len() - first);
            let mut pixels = [pixel; ROWS];
            for pixels in &mut pixels[..count] {
                *pixels = pixel;
                self.patches.advance(&mut pixel);
            }
            let mut gathered = Gathered { rows: &mut rows, pixels, count, first };
            for group in 0..self.packed.channel_groups {
                self.group(bytes, group, &mut gathered);
            }
        }
    }

    /// Computes all tiles of a group of channels.
    #[inline(always)]
    fn group<B: Bytes, const FOURS: usize>(&mut self, bytes: B, group: usize, gathered: &mut Gathered<'_, FOURS>) {
        if self.packed.inner <= Rows::<FOURS>::PART {
            self.gather::<B, FOURS>(group, 0..gathered.count, [0, self.packed.inner], gathered);
        }
        let mut tile = self.tiles.start;
        while tile < self.tiles.end {
            let count = self.packed.block.min(self.tiles.end - tile);
            let at = Place { group, tile };
            match count {
                4 if B::TILES >= 4 => self.tiles::<B, 4, 6, 3, FOURS>(bytes, at, gathered),
                3 if B::TILES >= 4 => self.tiles::<B, 3, 8, 4, FOURS>(bytes, at, gathered),
                2 if B::TILES >= 4 => self.tiles::<B, 2, 12, 4, FOURS>(bytes, at, gathered),
                _ if B::ROWS >= 12 => self.tiles::<B, 1, 12, 4, FOURS>(bytes, at, gathered),
                _ if B::ROWS >= 6 => self.tiles::<B, 1, 6, 3, FOURS>(bytes, at, gathered),
                _ if B::ROWS >= 2 => self.tiles::<B, 1, 2, 2, FOURS>(bytes, at, gathered),
                _ => self.tiles::<B, 1, 1, 1, FOURS>(bytes, at, gathered),
            }
            tile += count;
        }
    }

    /// Gathers a part of the patches of some pixels.
    #[inline(always)]
    fn gather<B: Bytes, const FOURS: usize>(
        &self,
        group: usize,
        which: Range<usize>,
        part: [usize; 2],
        gathered: &mut Gathered<'_, FOURS>,
    ) {
        for (pixel, row) in gathered.pixels[which.clone()].iter().zip(&mut gathered.rows.0[which]) {
            let zero = self.epilogue.zero(pixel.image) as u8;
            self.patches.gather(*pixel, group, part, [zero, B::FLIP], row.as_flattened_mut());
        }
    }

    /// Computes `C` tiles of all pixels, at most `R` at a time, or `FEW`, or one. [`ROWS`] is a multiple of `R`.
    #[inline(always)]
    fn tiles<B: Bytes, const C: usize, const R: usize, const FEW: usize, const FOURS: usize>(
        &mut self,
        bytes: B,
        at: Place,
        gathered: &mut Gathered<'_, FOURS>,
    ) {
        let mut first = 0;
        while first < gathered.count {
            match gathered.count - first {
                1 => self.pixels::<B, C, 1, FOURS>(bytes, at, gathered, first),
                left if left <= FEW => self.pixels::<B, C, FEW, FOURS>(bytes, at, gathered, first),
                _ => self.pixels::<B, C, R, FOURS>(bytes, at, gathered, first),
            }
            first += R;
        }
    }

    /// Computes `C` tiles of the pixels from `first` on, `R` of them if there are as many.
    #[inline(always)]
    fn pixels<B: Bytes, const C: usize, const R: usize, const FOURS: usize>(
        &mut self,
        bytes: B,
        at: Place,
        gathered: &mut Gathered<'_, FOURS>,
        first: usize,
    ) {
        let end = gathered.count.min(first + R);
        let inner = self.packed.inner;
        let panel = self.packed.panel(at.group, at.tile, C);
        let mut sums = [[bytes.zero(); C]; R];
        let mut start = 0;
        while start < inner {
            let len = Rows::<FOURS>::PART.min(inner - start);
            if inner > Rows::<FOURS>::PART {
                self.gather::<B, FOURS>(at.group, first..end, [start, len], gathered);
            }
            let Some(rows) = gathered.rows.0[first..].first_chunk::<R>() else { return };
            let panel = &panel[start / 4 * C..][..len.div_ceil(4) * C];
            bytes.accumulate(&mut sums, rows, panel.as_chunks::<C>().0);
            start += len;
        }
        let columns = at.group * self.packed.each..(at.group + 1) * self.packed.each - self.tiles.start * CHANNELS;
        let tiles = self.epilogue.tiles::<C>(at.group * self.packed.tiles() + at.tile);
        let column = columns.start + (at.tile - self.tiles.start) * CHANNELS;
        let last = columns.end.min(column + C * CHANNELS);
        for (row, (sums, pixel)) in (gathered.first + first..).zip(sums.iter().zip(&gathered.pixels[first..end])) {
            let results = self.epilogue.finish(bytes, &tiles, pixel.image, sums);
            store_tiles(&results, &mut self.out.row(row)[column..last]);
        }
    }
}
