//! Sums of products of rows and weights, while both stay in registers.
#![allow(unsafe_code)]

use super::apart::each_row;
use super::floats::{Line, Vectors};

/// Rows of weights between what is multiplied and what is fetched: about the time that memory takes.
const AHEAD: usize = 32;

/// Lines that are asked for while products are computed: with each row of weights as many as a row has. They are no more than
/// a hint.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    line: *const Line,
    /// Lines from those of a row to those of the next.
    step: usize,
}

/// Tiles that meet a block, at most: where there are more, the time that the first waits for memory is a small part of all.
const MOST_SHARES: usize = 32;

impl Ahead {
    /// The rows of these weights themselves, some time before each is read.
    #[inline(always)]
    pub(crate) fn near<const TILES: usize>(weights: &[[Line; TILES]]) -> Ahead {
        Ahead { line: weights.as_ptr().cast::<Line>().wrapping_add(AHEAD * TILES), step: TILES }
    }

    /// A share of the block of weights that is read next, so that memory is read all the time, and not only while the first tile
    /// meets a block: that of tile number `tile`, of so many that meet these weights one after the other, of as many lines that
    /// begin `depth` rows behind the first. [`Ahead::near`] of a tile that has none, such as the first: it meets weights that may
    /// still be in memory.
    #[inline(always)]
    pub(crate) fn of<const TILES: usize>(weights: &[[Line; TILES]], depth: usize, [tile, tiles]: [usize; 2]) -> Ahead {
        let Some(before) = tile.checked_sub(1).filter(|_| (2..=MOST_SHARES).contains(&tiles)) else {
            return Ahead::near(weights);
        };
        let step = TILES.div_ceil(tiles - 1);
        if before * step >= TILES {
            return Ahead::near(weights);
        }
        let line = weights.as_ptr().cast::<Line>().wrapping_add(depth * TILES + before * step * weights.len());
        Ahead { line, step }
    }

    /// Those that are asked for from a row of the weights on.
    #[inline(always)]
    pub(crate) fn at_row(self, row: usize) -> Ahead {
        Ahead { line: self.line.wrapping_add(row * self.step), ..self }
    }

    /// Asks for those of a row, and turns to those of the next.
    #[inline(always)]
    fn ask<F: Vectors, const TILES: usize>(&mut self, floats: F) {
        for tile in 0..TILES {
            floats.prefetch(self.line.wrapping_add(tile));
        }
        self.line = self.line.wrapping_add(self.step);
    }
}

/// Adds products to sums: the `k`-th number of each row times the `k`-th of the rows of weights.
///
/// # Panics
///
/// If a row is shorter than there are rows of weights.
#[inline(always)]
pub(crate) fn add_products<F: Vectors, const ROWS: usize, const TILES: usize>(
    floats: F,
    rows: [&[f32]; ROWS],
    weights: &[[Line; TILES]],
    mut ahead: Ahead,
    sums: &mut [[F::V; TILES]; ROWS],
) {
    rows.iter().for_each(|row| assert!(row.len() >= weights.len(), "a row is shorter than its weights"));
    let starts = rows.map(<[f32]>::as_ptr);
    let mut all = *sums;
    for (k, line) in weights.iter().enumerate() {
        ahead.ask::<F, TILES>(floats);
        let line: [F::V; TILES] = std::array::from_fn(|tile| floats.load(&line[tile].0));
        for row in 0..ROWS {
            // SAFETY: `k` is below the number of rows of weights, and no row is shorter.
            let x = floats.splat(unsafe { *starts[row].add(k) });
            for tile in 0..TILES {
                all[row][tile] = floats.fma(x, line[tile], all[row][tile]);
            }
        }
    }
    *sums = all;
}

/// Rows that are found from one place.
const NEAR: usize = 4;
/// The most rows: those of [`each_row`].
const MOST_ROWS: usize = 12;

/// Adds products as [`add_products`] does, to the same bits, of rows that are `step` numbers apart: their places take fewer
/// registers then.
///
/// # Panics
///
/// If the last row is shorter than there are rows of weights.
#[inline(always)]
pub(crate) fn add_products_of<F: Vectors, const ROWS: usize, const TILES: usize>(
    floats: F,
    (numbers, step): (&[f32], usize),
    weights: &[[Line; TILES]],
    mut ahead: Ahead,
    sums: &mut [[F::V; TILES]; ROWS],
) {
    let end = step.saturating_mul(ROWS - 1).saturating_add(weights.len());
    assert!(end <= numbers.len(), "a row is shorter than its weights");
    let mut places = [numbers.as_ptr(); MOST_ROWS / NEAR];
    for (index, place) in places.iter_mut().enumerate() {
        *place = place.wrapping_add((index * NEAR).wrapping_mul(step));
    }
    let mut all = *sums;
    for line in weights {
        ahead.ask::<F, TILES>(floats);
        let line: [F::V; TILES] = std::array::from_fn(|tile| floats.load(&line[tile].0));
        each_row!(row < ROWS => {
            // SAFETY: the place of the first row is one of as many as there are rows of weights, and this row is `row` steps
            // behind it, the last of which is within the numbers.
            let x = floats.splat(unsafe { *places[row / NEAR].add(row % NEAR * step) });
            for tile in 0..TILES {
                all[row][tile] = floats.fma(x, line[tile], all[row][tile]);
            }
        });
        for place in &mut places {
            *place = place.wrapping_add(1);
        }
    }
    *sums = all;
}
