//! Sums of products of some rows of inputs with some tiles of weights.
//!
//! Invariant: every function is inlined into what a path of `simd::dot` runs, and gives sums of products with packed
//! weights on top of what sums start from, wrapped. Vectors go through loops, never through `array::map` and its like,
//! which are not always inlined, and then neither are the instructions.

use crate::simd::dot::{CHANNELS, Dot, Group};

/// Sums by row and tile.
pub(super) type Sums<const R: usize, const C: usize> = [[[i32; CHANNELS]; C]; R];

/// Bytes of weights.
#[inline(always)]
pub(super) fn eight_bits<D: Dot, const R: usize, const C: usize>(
    dot: D,
    inputs: [&[i8]; R],
    starts: [i32; R],
    tiles: [&[Group]; C],
) -> Sums<R, C> {
    let mut sums = started(dot, starts);
    let rows = inputs.map(|row| row.as_chunks::<4>());
    let whole = rows[0].0.len();
    for group in 0..whole {
        let weights = loaded(dot, tiles, group);
        for (sums, row) in sums.iter_mut().zip(&rows) {
            add(dot, sums, &weights, row.0[group]);
        }
    }
    if !rows[0].1.is_empty() {
        let weights = loaded(dot, tiles, whole);
        for (sums, row) in sums.iter_mut().zip(&rows) {
            add(dot, sums, &weights, filled(row.1));
        }
    }
    stored(dot, &sums)
}

/// Half bytes of weights.
#[inline(always)]
pub(super) fn four_bits<D: Dot, const R: usize, const C: usize>(
    dot: D,
    inputs: [&[i8]; R],
    starts: [i32; R],
    tiles: [&[Group]; C],
) -> Sums<R, C> {
    let mut sums = started(dot, starts);
    let rows = inputs.map(|row| row.as_chunks::<8>());
    let whole = rows[0].0.len();
    for group in 0..whole {
        add_halves(dot, &mut sums, tiles.map(|tile| &tile[group]), rows.map(|row| row.0[group]));
    }
    if !rows[0].1.is_empty() {
        add_halves(dot, &mut sums, tiles.map(|tile| &tile[whole]), rows.map(|row| filled(row.1)));
    }
    stored(dot, &sums)
}

/// A block of half bytes of weights: as many groups as the tiles have.
#[inline(always)]
pub(super) fn block<D: Dot, const R: usize, const C: usize>(
    dot: D,
    inputs: [&[[i8; 8]]; R],
    starts: [i32; R],
    tiles: [&[Group]; C],
) -> [[D::Sums; C]; R] {
    let mut sums = started(dot, starts);
    for group in 0..tiles[0].len() {
        add_halves(dot, &mut sums, tiles.map(|tile| &tile[group]), inputs.map(|row| row[group]));
    }
    sums
}

#[inline(always)]
fn add_halves<D: Dot, const R: usize, const C: usize>(
    dot: D,
    sums: &mut [[D::Sums; C]; R],
    groups: [&Group; C],
    inputs: [[i8; 8]; R],
) {
    let mut weights = [dot.halves(groups[0]); C];
    for (weights, group) in weights.iter_mut().zip(groups) {
        *weights = dot.halves(group);
    }
    for (sums, inputs) in sums.iter_mut().zip(inputs) {
        let [a, b, c, d, e, f, g, h] = inputs;
        for (sums, weights) in sums.iter_mut().zip(&weights) {
            *sums = dot.add(*sums, weights[0], [a, b, c, d]);
            *sums = dot.add(*sums, weights[1], [e, f, g, h]);
        }
    }
}

/// Sums that start from a number a row.
#[inline(always)]
fn started<D: Dot, const R: usize, const C: usize>(dot: D, starts: [i32; R]) -> [[D::Sums; C]; R] {
    let mut sums = [[dot.start(0); C]; R];
    for (sums, start) in sums.iter_mut().zip(starts) {
        *sums = [dot.start(start); C];
    }
    sums
}

/// The sums as numbers.
#[inline(always)]
fn stored<D: Dot, const R: usize, const C: usize>(dot: D, sums: &[[D::Sums; C]; R]) -> Sums<R, C> {
    let mut numbers = [[[0; CHANNELS]; C]; R];
    for (numbers, sums) in numbers.iter_mut().zip(sums) {
        for (numbers, sums) in numbers.iter_mut().zip(sums) {
            *numbers = dot.sums(*sums);
        }
    }
    numbers
}

/// Bytes of a group of each tile.
#[inline(always)]
fn loaded<D: Dot, const C: usize>(dot: D, tiles: [&[Group]; C], group: usize) -> [D::Weights; C] {
    let mut weights = [dot.bytes(&tiles[0][group]); C];
    for (weights, tile) in weights.iter_mut().zip(tiles) {
        *weights = dot.bytes(&tile[group]);
    }
    weights
}

#[inline(always)]
fn add<D: Dot, const C: usize>(dot: D, sums: &mut [D::Sums; C], weights: &[D::Weights; C], inputs: [i8; 4]) {
    for (sums, weights) in sums.iter_mut().zip(weights) {
        *sums = dot.add(*sums, *weights, inputs);
    }
}

/// The last inputs of a row, and zeros.
#[inline(always)]
fn filled<const N: usize>(rest: &[i8]) -> [i8; N] {
    let mut all = [0; N];
    all[..rest.len()].copy_from_slice(rest);
    all
}
