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
    whole_rows(dot, inputs, starts, |pair| {
        let (first, second) = (2 * pair, 2 * pair + 1);
        let mut weights = [[dot.bytes(&tiles[0][first]); 2]; C];
        for (weights, tile) in weights.iter_mut().zip(tiles) {
            // Past an odd number of groups there are no inputs either.
            *weights = [dot.bytes(&tile[first]), dot.bytes(&tile[second.min(tile.len() - 1)])];
        }
        weights
    })
}

/// Half bytes of weights.
#[inline(always)]
pub(super) fn four_bits<D: Dot, const R: usize, const C: usize>(
    dot: D,
    inputs: [&[i8]; R],
    starts: [i32; R],
    tiles: [&[Group]; C],
) -> Sums<R, C> {
    whole_rows(dot, inputs, starts, |group| halves(dot, tiles, group))
}

/// A block of half bytes of weights: as many groups as the tiles have.
#[inline(always)]
pub(super) fn block<D: Dot, const R: usize, const C: usize>(
    dot: D,
    inputs: [&[[i8; 8]]; R],
    starts: [i32; R],
    tiles: [&[Group]; C],
) -> [[D::Sums; R]; C] {
    let mut sums = [dot.start_rows(starts); C];
    for group in 0..tiles[0].len() {
        add(dot, &mut sums, halves(dot, tiles, group), inputs.map(|row| row[group]));
    }
    settled(dot, sums)
}

/// Rows of inputs with the weights of eight inputs after the other.
#[inline(always)]
fn whole_rows<D: Dot, const R: usize, const C: usize>(
    dot: D,
    inputs: [&[i8]; R],
    starts: [i32; R],
    weights: impl Fn(usize) -> [[D::Weights; 2]; C],
) -> Sums<R, C> {
    let mut sums = [dot.start_rows(starts); C];
    let rows = inputs.map(|row| row.as_chunks::<8>());
    let whole = rows[0].0.len();
    for eight in 0..whole {
        add(dot, &mut sums, weights(eight), rows.map(|row| row.0[eight]));
    }
    if !rows[0].1.is_empty() {
        add(dot, &mut sums, weights(whole), rows.map(|row| filled(row.1)));
    }
    stored(dot, &settled(dot, sums))
}

/// The halves of a group of each tile.
#[inline(always)]
fn halves<D: Dot, const C: usize>(dot: D, tiles: [&[Group]; C], group: usize) -> [[D::Weights; 2]; C] {
    let mut weights = [dot.halves(&tiles[0][group]); C];
    for (weights, tile) in weights.iter_mut().zip(tiles) {
        *weights = dot.halves(&tile[group]);
    }
    weights
}

/// Adds the products of eight inputs of each row.
#[inline(always)]
fn add<D: Dot, const R: usize, const C: usize>(
    dot: D,
    sums: &mut [[D::Sums; R]; C],
    weights: [[D::Weights; 2]; C],
    inputs: [[i8; 8]; R],
) {
    for (sums, weights) in sums.iter_mut().zip(weights) {
        dot.add_rows(sums, weights, &inputs);
    }
}

#[inline(always)]
fn settled<D: Dot, const R: usize, const C: usize>(dot: D, mut sums: [[D::Sums; R]; C]) -> [[D::Sums; R]; C] {
    for sums in &mut sums {
        *sums = dot.settle(*sums);
    }
    sums
}

/// The sums as numbers.
#[inline(always)]
fn stored<D: Dot, const R: usize, const C: usize>(dot: D, sums: &[[D::Sums; R]; C]) -> Sums<R, C> {
    let mut numbers = [[[0; CHANNELS]; C]; R];
    for (tile, sums) in sums.iter().enumerate() {
        for (numbers, sums) in numbers.iter_mut().zip(sums) {
            numbers[tile] = dot.sums(*sums);
        }
    }
    numbers
}

/// The last inputs of a row, and zeros.
#[inline(always)]
fn filled<const N: usize>(rest: &[i8]) -> [i8; N] {
    let mut all = [0; N];
    all[..rest.len()].copy_from_slice(rest);
    all
}
