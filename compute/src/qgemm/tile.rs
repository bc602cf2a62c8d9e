//! Sums of products of some rows of inputs with some tiles of weights.
//!
//! Invariant: every function is inlined into what a path of `simd::dot` runs, and gives sums of products with packed
//! weights on top of what sums start from, wrapped. Vectors go through loops, never through `array::map` and its like,
//! which are not always inlined, and then neither are the instructions.

use std::ops::Range;

use crate::simd::dot::{CHANNELS, Dot, Eight, Group};

/// Sums by row and tile.
pub(super) type Sums<const R: usize, const C: usize> = [[[i32; CHANNELS]; C]; R];

/// Weights of eight inputs, of several tiles.
pub(super) trait Weigh {
    /// The weights of the eight inputs at a place among the eights of a row.
    fn at<D: Dot, const C: usize>(dot: D, tiles: [&[Group]; C], eight: usize) -> [[D::Weights; 2]; C];
}

/// Weights of a byte: two groups have those of eight inputs.
pub(super) struct EightBits;

impl Weigh for EightBits {
    #[inline(always)]
    fn at<D: Dot, const C: usize>(dot: D, tiles: [&[Group]; C], eight: usize) -> [[D::Weights; 2]; C] {
        let (first, second) = (2 * eight, 2 * eight + 1);
        let mut weights = [[dot.bytes(&tiles[0][first]); 2]; C];
        for (weights, tile) in weights.iter_mut().zip(tiles) {
            // Past an odd number of groups there are no inputs either.
            *weights = [dot.bytes(&tile[first]), dot.bytes(&tile[second.min(tile.len() - 1)])];
        }
        weights
    }
}

/// Weights of half a byte: a group has those of eight inputs.
pub(super) struct FourBits;

impl Weigh for FourBits {
    #[inline(always)]
    fn at<D: Dot, const C: usize>(dot: D, tiles: [&[Group]; C], eight: usize) -> [[D::Weights; 2]; C] {
        let mut weights = [dot.halves(&tiles[0][eight]); C];
        for (weights, tile) in weights.iter_mut().zip(tiles) {
            *weights = dot.halves(&tile[eight]);
        }
        weights
    }
}

/// A block of half bytes of weights: the groups `from` to `to` of the tiles.
#[inline(always)]
pub(super) fn block<D: Dot, const R: usize, const C: usize>(
    dot: D,
    inputs: [&[Eight]; R],
    starts: [i32; R],
    tiles: [&[Group]; C],
    groups: Range<usize>,
) -> [[D::Sums; R]; C] {
    let mut sums = [dot.start_rows(starts); C];
    for group in groups {
        add(dot, &mut sums, FourBits::at(dot, tiles, group), eights(inputs, group));
    }
    settled(dot, sums)
}

/// Rows of inputs with the weights of eight inputs after the other.
#[inline(always)]
pub(super) fn whole_rows<W: Weigh, D: Dot, const R: usize, const C: usize>(
    dot: D,
    inputs: [&[i8]; R],
    starts: [i32; R],
    tiles: [&[Group]; C],
) -> Sums<R, C> {
    let mut sums = [dot.start_rows(starts); C];
    let (mut rows, mut rests): ([&[Eight]; R], [&[i8]; R]) = ([&[]; R], [&[]; R]);
    for ((row, rest), input) in rows.iter_mut().zip(&mut rests).zip(inputs) {
        (*row, *rest) = whole_eights(input);
    }
    let whole = rows[0].len();
    for eight in 0..whole {
        add(dot, &mut sums, W::at(dot, tiles, eight), eights(rows, eight));
    }
    if !rests[0].is_empty() {
        let mut last: [[Eight; 1]; R] = [[[[0; 4]; 2]]; R];
        for (last, rest) in last.iter_mut().zip(rests) {
            last.as_flattened_mut().as_flattened_mut()[..rest.len()].copy_from_slice(rest);
        }
        let mut rows: [&[Eight]; R] = [&[]; R];
        for (row, last) in rows.iter_mut().zip(&last) {
            *row = last;
        }
        add(dot, &mut sums, W::at(dot, tiles, whole), eights(rows, 0));
    }
    stored(dot, &settled(dot, sums))
}

/// Eight inputs of each row.
#[inline(always)]
fn eights<const R: usize>(rows: [&[Eight]; R], at: usize) -> [&Eight; R] {
    let mut inputs = [&[[0; 4]; 2]; R];
    for (inputs, row) in inputs.iter_mut().zip(rows) {
        *inputs = &row[at];
    }
    inputs
}

/// A row in eights, and the inputs behind the last of them.
#[inline(always)]
pub(super) fn whole_eights(row: &[i8]) -> (&[Eight], &[i8]) {
    let (fours, _) = row.as_chunks::<4>();
    let (eights, _) = fours.as_chunks::<2>();
    (eights, &row[8 * eights.len()..])
}

/// Adds the products of eight inputs of each row.
#[inline(always)]
fn add<D: Dot, const R: usize, const C: usize>(
    dot: D,
    sums: &mut [[D::Sums; R]; C],
    weights: [[D::Weights; 2]; C],
    inputs: [&Eight; R],
) {
    for (sums, weights) in sums.iter_mut().zip(weights) {
        dot.add_rows(sums, weights, inputs);
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
