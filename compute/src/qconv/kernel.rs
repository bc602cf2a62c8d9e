//! Blocks of pixels times tiles of channels.
//!
//! Invariant: every function is inlined into what a path of `simd::bytes` runs. Vectors go through loops, never through
//! `array::map` and its like, which are not always inlined, and then neither are the instructions.

use std::ops::Range;

use super::pack::Packed;
use super::patches::{PART, Patches, Pixel, Rows};
use super::requantise::Epilogue;
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

impl<E: Epilogue> WithBytes for Piece<'_, E> {
    #[inline(always)]
    fn run<B: Bytes>(mut self, bytes: B) {
        let mut rows = Rows::ZERO;
        for group in 0..self.packed.channel_groups {
            let mut tile = self.tiles.start;
            while tile < self.tiles.end {
                let count = self.packed.block.min(self.tiles.end - tile);
                let at = Place { group, tile };
                match count {
                    4 if B::TILES >= 4 => self.tiles::<B, 4, 6, 3>(bytes, at, &mut rows),
                    3 if B::TILES >= 4 => self.tiles::<B, 3, 8, 4>(bytes, at, &mut rows),
                    2 if B::TILES >= 4 => self.tiles::<B, 2, 12, 4>(bytes, at, &mut rows),
                    _ if B::ROWS >= 12 => self.tiles::<B, 1, 12, 4>(bytes, at, &mut rows),
                    _ if B::ROWS >= 6 => self.tiles::<B, 1, 6, 3>(bytes, at, &mut rows),
                    _ if B::ROWS >= 2 => self.tiles::<B, 1, 2, 2>(bytes, at, &mut rows),
                    _ => self.tiles::<B, 1, 1, 1>(bytes, at, &mut rows),
                }
                tile += count;
            }
        }
    }
}

/// A tile of a group of channels.
#[derive(Clone, Copy)]
struct Place {
    group: usize,
    tile: usize,
}

impl<E: Epilogue> Piece<'_, E> {
    /// Computes `C` tiles of all pixels, at most `R` at a time, or `FEW`, or one.
    #[inline(always)]
    fn tiles<B: Bytes, const C: usize, const R: usize, const FEW: usize>(
        &mut self,
        bytes: B,
        at: Place,
        rows: &mut Rows,
    ) {
        let mut pixel = self.patches.pixel(self.pixels.start);
        let mut done = 0;
        while done < self.pixels.len() {
            let left = self.pixels.len() - done;
            done += match left {
                1 => self.pixels::<B, C, 1>(bytes, at, rows, &mut pixel, [done, left]),
                _ if left <= FEW => self.pixels::<B, C, FEW>(bytes, at, rows, &mut pixel, [done, left]),
                _ => self.pixels::<B, C, R>(bytes, at, rows, &mut pixel, [done, left]),
            };
        }
    }

    /// Computes `C` tiles of the next pixels, `R` of them if there are as many, and returns how many.
    #[inline(always)]
    fn pixels<B: Bytes, const C: usize, const R: usize>(
        &mut self,
        bytes: B,
        at: Place,
        rows: &mut Rows,
        pixel: &mut Pixel,
        [done, left]: [usize; 2],
    ) -> usize {
        let count = R.min(left);
        let inner = self.packed.inner;
        let panel = self.packed.panel(at.group, at.tile, C);
        let mut pixels = [*pixel; R];
        for pixels in &mut pixels[..count] {
            *pixels = *pixel;
            self.patches.advance(pixel);
        }
        let mut sums = [[bytes.zero(); C]; R];
        let mut start = 0;
        while start < inner {
            let len = PART.min(inner - start);
            for (pixel, row) in pixels[..count].iter().zip(&mut rows.0) {
                let zero = self.epilogue.zero(pixel.image) as u8;
                self.patches.gather(*pixel, at.group, [start, len], [zero, B::FLIP], row);
            }
            accumulate(bytes, &mut sums, rows, &panel[start / 4 * C..][..len.div_ceil(4) * C]);
            start += len;
        }
        let column = at.group * self.packed.each;
        for (row, (sums, pixel)) in sums.iter().zip(pixels).take(count).enumerate() {
            let to = self.out.row(done + row);
            for (tile, sums) in sums.iter().enumerate() {
                let first = (at.tile + tile - self.tiles.start) * CHANNELS;
                let end = (first + CHANNELS).min(self.packed.each - self.tiles.start * CHANNELS);
                let index = at.group * self.packed.tiles() + at.tile + tile;
                let results = self.epilogue.finish(index, pixel.image, &bytes.sums(*sums));
                store(&results, &mut to[column + first..column + end]);
            }
        }
        count
    }
}

/// Adds products of rows with the groups of `C` tiles.
#[inline(always)]
fn accumulate<B: Bytes, const C: usize, const R: usize>(
    bytes: B,
    sums: &mut [[B::Sums; C]; R],
    rows: &Rows,
    panel: &[Group],
) {
    let panel = panel.as_chunks::<C>().0;
    let mut all = *sums;
    for index in 0..panel.len().min(PART / 4) {
        let mut weights = [bytes.weights(&panel[index][0]); C];
        for (weights, group) in weights.iter_mut().zip(&panel[index]) {
            *weights = bytes.weights(group);
        }
        for (sums, row) in all.iter_mut().zip(&rows.0) {
            for (sums, weights) in sums.iter_mut().zip(&weights) {
                *sums = bytes.add(*sums, *weights, row[index]);
            }
        }
    }
    *sums = all;
}

/// Writes the results of a tile, as many as there are channels left.
#[inline(always)]
fn store<T: Copy>(results: &[T; CHANNELS], to: &mut [T]) {
    if let Some(to) = to.first_chunk_mut::<CHANNELS>() {
        return *to = *results;
    }
    // Pieces that overlap, rather than a call for a few bytes.
    match to.len() {
        8.. => ends::<T, 8>(results, to),
        4.. => ends::<T, 4>(results, to),
        2.. => ends::<T, 2>(results, to),
        _ => ends::<T, 1>(results, to),
    }
}

/// Writes `N` to `2 * N` results by their two ends, or none.
#[inline(always)]
fn ends<T: Copy, const N: usize>(results: &[T; CHANNELS], to: &mut [T]) {
    if let (Some(from), Some(to)) = (results[..to.len()].last_chunk::<N>(), to.last_chunk_mut::<N>()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (results.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
}
