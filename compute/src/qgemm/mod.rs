//! Products of quantised matrices: rows of `i8` times weights of eight or four bits a channel.
//!
//! Invariant: integers are exact modulo 2³², floats are rounded where the formulas of [`Static`], [`Dynamic`] and
//! [`DynamicBlocks`] say and nowhere else, so results are the same bits on every machine, in every path and for any number
//! of threads.
//!
//! Weights are packed once. Those stored as numbers from −128 (or −8) on are packed as numbers from 0 on, which the
//! instructions want; what that adds to a sum is 128 (or 8) times the sum of the inputs, which [`Inputs`] has.

mod blocks;
mod channels;
mod pack;
#[cfg(test)]
mod tests;
mod tile;

pub use blocks::DynamicBlocks;
pub use channels::{Dynamic, Static, StaticScales};
pub use pack::{Bits, Blocks, Inputs, RowScale, Weights};

use std::ops::Range;

use crate::error::{Error, ErrorKind, room};
use crate::simd::dot::{CHANNELS, Dot, WithDot};
use crate::simd::path::Path;
use crate::threads::{self, Columns, Cost, WriteAll, WriteColumns, even, for_each_at};

/// Limits of a real result, smallest and largest.
pub type Limits = [f32; 2];

/// No limits.
pub const UNLIMITED: Limits = [f32::NEG_INFINITY, f32::INFINITY];

/// A product, one block of rows and tiles of channels after the other.
trait Product: Sync {
    type Out: Send;

    /// True if a block of up to four rows takes four tiles at once; if not, of six rows two, and of [`FEW_ROWS`] one: what
    /// comes from memory is read as one stream.
    const MANY_TILES: bool;

    /// Packed weights; their channels are the columns of the output.
    fn weights(&self) -> &Weights;

    /// Computes rows and tiles from `row` and `tile` on, whose results go to the rows from `to` on and the columns from
    /// `column` on.
    fn block<D: Dot, const R: usize, const C: usize>(&self, dot: D, at: Place, to: &mut Columns<'_, Self::Out>);
}

/// The first row and tile of a block, and the row and column of its first result among those it writes.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    tile: usize,
    to_row: usize,
    to_column: usize,
}

/// Rows, up to which a product waits for its weights more than it computes.
const FEW_ROWS: usize = 4;
/// Channels of a piece that a thread takes.
const PIECE_CHANNELS: usize = 4 * CHANNELS;
/// Rows of a block.
const BLOCK_ROWS: usize = 6;
/// Rows of a piece that a thread takes, at least.
const PIECE_ROWS: usize = 16;
/// Least number of rows that are cut into pieces instead of the channels, if there are more pieces of rows.
const MANY_ROWS: usize = 4 * PIECE_ROWS;

/// A multiplication and an addition of bytes: 0.006 ns to 0.03 ns, by machine.
const MULTIPLICATION: f64 = 0.006;
/// A multiplication and an addition of bytes for one row, where weights come from memory.
const LOADED_MULTIPLICATION: f64 = 0.04;

/// Computes all of a product, on all threads if that is worth it.
fn multiply<P: Product>(product: &P, path: Path, rows: usize, out: &mut [P::Out]) -> Result<(), Error> {
    let [channels, inner] = product.weights().sizes();
    if rows.checked_mul(channels) != Some(out.len()) {
        let message = format!("{rows} rows of {channels} channels are not {} results", out.len());
        return Err(Error::new(ErrorKind::Geometry, message));
    }
    let each = if rows == 1 { LOADED_MULTIPLICATION } else { MULTIPLICATION };
    let cost = |rows: usize, channels: usize| Cost::nanoseconds(each * rows as f64 * channels as f64 * inner as f64);
    if rows >= MANY_ROWS && rows / PIECE_ROWS > channels / PIECE_CHANNELS {
        let each = even(rows, rows / PIECE_ROWS, threads::current(), |rows| rows.next_multiple_of(BLOCK_ROWS));
        for_each_at(cost(each, channels), WriteAll(out, each * channels), |index, out| {
            let first = index * each;
            let count = out.len() / channels;
            path.run(Piece { product, rows: first..first + count, first_tile: 0, out: Columns::all(out, channels) });
        });
    } else {
        let each = if rows <= FEW_ROWS { streamed(channels) } else { PIECE_CHANNELS };
        for_each_at(cost(rows, each), WriteColumns(out, channels, each), |index, out| {
            path.run(Piece { product, rows: 0..rows, first_tile: index * (each / CHANNELS), out });
        });
    }
    Ok(())
}

/// Channels of a piece whose weights a thread reads as one stream: few long ones, as memory is slow at the begin of each.
fn streamed(channels: usize) -> usize {
    /// Pieces of a thread: what is left when one is done first is shared.
    const PARTS: usize = 2;
    channels.div_ceil(threads::current() * PARTS).next_multiple_of(CHANNELS).max(CHANNELS)
}

/// Some rows and channels of a product.
struct Piece<'a, P: Product> {
    product: &'a P,
    rows: Range<usize>,
    first_tile: usize,
    out: Columns<'a, P::Out>,
}

impl<P: Product> WithDot for Piece<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<D: Dot>(mut self, dot: D) {
        let tiles = self.out.columns().div_ceil(CHANNELS);
        let two = P::MANY_TILES || self.rows.len() > FEW_ROWS;
        let mut tile = 0;
        while tile < tiles {
            tile += match tiles - tile {
                4.. if const { D::TILES >= 4 && P::MANY_TILES } => self.all_rows::<D, 4>(dot, tile),
                2.. if const { D::TILES >= 2 } && two => self.all_rows::<D, 2>(dot, tile),
                _ => self.all_rows::<D, 1>(dot, tile),
            };
        }
    }
}

impl<P: Product> Piece<'_, P> {
    /// Computes `C` tiles of all rows, and returns `C`.
    #[inline(always)]
    fn all_rows<D: Dot, const C: usize>(&mut self, dot: D, tile: usize) -> usize {
        let mut row = self.rows.start;
        while row < self.rows.end {
            let at =
                Place { row, tile: self.first_tile + tile, to_row: row - self.rows.start, to_column: tile * CHANNELS };
            row += match self.rows.end - row {
                6.. if const { D::TILES >= 4 && !P::MANY_TILES && C <= 2 } => self.some_rows::<D, 6, C>(dot, at),
                4.. if const { D::ROWS >= 4 } => self.some_rows::<D, 4, C>(dot, at),
                2.. if const { D::ROWS >= 2 } => self.some_rows::<D, 2, C>(dot, at),
                _ => self.some_rows::<D, 1, C>(dot, at),
            };
        }
        C
    }

    #[inline(always)]
    fn some_rows<D: Dot, const R: usize, const C: usize>(&mut self, dot: D, at: Place) -> usize {
        self.product.block::<D, R, C>(dot, at, &mut self.out);
        R
    }
}

/// Writes the results of a tile, as many as there are channels left.
#[inline(always)]
fn store<T: Copy>(results: [T; CHANNELS], to: &mut [T]) {
    match to.first_chunk_mut::<CHANNELS>() {
        Some(to) => *to = results,
        None => to.copy_from_slice(&results[..to.len()]),
    }
}

/// Numbers by channel, by tile; what is missing at the end is 0.
fn by_tile<T: Copy + Default>(numbers: &[T]) -> Result<Vec<[T; CHANNELS]>, Error> {
    let mut tiles = room(numbers.len().div_ceil(CHANNELS))?;
    tiles.extend(numbers.chunks(CHANNELS).map(|numbers| {
        let mut tile = [T::default(); CHANNELS];
        tile[..numbers.len()].copy_from_slice(numbers);
        tile
    }));
    Ok(tiles)
}

/// A bias by tile, 0 if there is none.
fn bias_by_tile(bias: Option<&[f32]>, channels: usize) -> Result<Vec<[f32; CHANNELS]>, Error> {
    check_channels("biases", bias.map_or(channels, <[f32]>::len), channels)?;
    let Some(bias) = bias else {
        let mut tiles = room(channels.div_ceil(CHANNELS))?;
        tiles.resize(channels.div_ceil(CHANNELS), [0.0; CHANNELS]);
        return Ok(tiles);
    };
    by_tile(bias)
}

/// Refuses numbers by channel that are not as many.
fn check_channels(what: &str, count: usize, channels: usize) -> Result<(), Error> {
    match count == channels {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Geometry, format!("{count} {what} of {channels} channels"))),
    }
}

/// Refuses scales that are not positive and finite.
fn check_scales(scales: impl IntoIterator<Item = f32>) -> Result<(), Error> {
    match scales.into_iter().find(|scale| !(scale.is_finite() && *scale > 0.0)) {
        Some(scale) => Err(Error::new(ErrorKind::Unsupported, format!("a scale of {scale}"))),
        None => Ok(()),
    }
}
