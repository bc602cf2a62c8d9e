//! Places of the results of a block of pixels, which are made of sums.

use super::requantise::{Epilogue, Images};
use crate::simd::apart::each_row;
use crate::simd::bytes::Bytes;
use crate::threads::Columns;

/// The place of results of a block of pixels, and what makes them of sums.
pub(super) struct Results<'a, E: Epilogue, const C: usize> {
    pub epilogue: &'a E,
    pub tiles: E::Tiles<'a, C>,
    pub images: Images,
    /// A row for each pixel, and the columns of the tiles.
    pub out: Columns<'a, E::Out>,
}

impl<E: Epilogue, const C: usize> Results<'_, E, C> {
    /// Number of pixels.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.out.rows()
    }

    /// Sums that begin with what every pixel begins with.
    #[inline(always)]
    pub(super) fn start<B: Bytes>(&self, bytes: B) -> [B::Sums; C] {
        E::start(bytes, &self.tiles)
    }

    /// Writes results of the sums of each pixel from one on, those of four tiles at a time.
    #[inline(always)]
    pub(super) fn write<B: Bytes, const R: usize>(&mut self, bytes: B, from: usize, sums: &[[B::Sums; C]; R]) {
        let Results { epilogue, tiles, images, out } = self;
        let (rows, columns) = ((out.rows() - from).min(R), 0..out.columns());
        let together = if C < 3 { 4 / C } else { 1 };
        each_row!(row < R => {
            let (first, at) = (row - row % together, from + row);
            let is_whole = first + together <= rows;
            if row == first && is_whole && C == 1 {
                let sums = [&sums[row], &sums[row + 1], &sums[row + 2], &sums[row + 3]];
                epilogue.finish(bytes, tiles, images.after(at), sums, &mut out.part(at..at + 4, columns.clone()));
            } else if row == first && is_whole && C == 2 {
                let sums = [&sums[row], &sums[row + 1]];
                epilogue.finish(bytes, tiles, images.after(at), sums, &mut out.part(at..at + 2, columns.clone()));
            } else if row < rows && (together == 1 || !is_whole) {
                let to = &mut out.part(at..at + 1, columns.clone());
                epilogue.finish(bytes, tiles, images.after(at), [&sums[row]], to);
            }
        });
    }
}
