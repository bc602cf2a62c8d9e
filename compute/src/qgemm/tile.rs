//! Sums of products of some rows of inputs with some tiles of weights.
//!
//! Invariant: every function is inlined into what a path of `simd::dot` runs, and gives sums of products with packed
//! weights on top of what sums start from, wrapped. Vectors go through loops, never through `array::map` and its like,
//! which are not always inlined, and then neither are the instructions.

use crate::simd::dot::{CHANNELS, Dot, Eight, Group, cut};

/// Sums by row and tile.
pub(super) type Sums<const R: usize, const C: usize> = [[[i32; CHANNELS]; C]; R];

/// A number of bits of weights.
pub(super) trait Weigh {
    /// Groups that have the weights of eight inputs.
    const GROUPS: usize;

    /// Adds the products of eights of inputs with the weights of several tiles, which begin with those of the first eight.
    fn add<D: Dot, const R: usize, const C: usize>(
        dot: D,
        sums: &mut [[D::Sums; R]; C],
        tiles: [&[Group]; C],
        inputs: [&[Eight]; R],
    );
}

/// Weights of a byte.
pub(super) struct EightBits;

impl Weigh for EightBits {
    const GROUPS: usize = 2;

    #[inline(always)]
    fn add<D: Dot, const R: usize, const C: usize>(
        dot: D,
        sums: &mut [[D::Sums; R]; C],
        tiles: [&[Group]; C],
        inputs: [&[Eight]; R],
    ) {
        dot.add_bytes(sums, tiles, inputs);
    }
}

/// Weights of half a byte.
pub(super) struct FourBits;

impl Weigh for FourBits {
    const GROUPS: usize = 1;

    #[inline(always)]
    fn add<D: Dot, const R: usize, const C: usize>(
        dot: D,
        sums: &mut [[D::Sums; R]; C],
        tiles: [&[Group]; C],
        inputs: [&[Eight]; R],
    ) {
        dot.add_halves(sums, tiles, inputs);
    }
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
    W::add(dot, &mut sums, tiles, rows);
    if !rests[0].is_empty() {
        let mut last: [[Eight; 1]; R] = [[[[0; 4]; 2]]; R];
        for (last, rest) in last.iter_mut().zip(rests) {
            last.as_flattened_mut().as_flattened_mut()[..rest.len()].copy_from_slice(rest);
        }
        let first = rows[0].len() * W::GROUPS;
        for (row, last) in rows.iter_mut().zip(&last) {
            *row = last;
        }
        W::add(dot, &mut sums, cut(tiles, first..tiles[0].len()), rows);
    }
    stored(dot, &settled(dot, sums))
}

/// A row in eights, and the inputs behind the last of them.
#[inline(always)]
pub(super) fn whole_eights(row: &[i8]) -> (&[Eight], &[i8]) {
    let (fours, _) = row.as_chunks::<4>();
    let (eights, _) = fours.as_chunks::<2>();
    (eights, &row[8 * eights.len()..])
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
