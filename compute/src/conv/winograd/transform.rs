//! The transforms of Winograd's convolution of tiles of 2 by 2 results with 3 by 3 taps, on vectors of channels.
//!
//! With `w` a matrix of taps, `x` the 4 by 4 numbers of the input that a tile meets and `.` the product element by element,
//! results are `A' (G w G' . B' x B) A`. The matrices are those of A. Lavin and S. Gray, "Fast Algorithms for Convolutional
//! Neural Networks" (2015): their numbers are 0, 1 and 1/2, so that nothing but sums is rounded.

use crate::simd::floats::Floats;

/// Numbers of a line of a tile of the input.
pub(super) const SIDE: usize = 4;
/// Numbers of a transformed tile, and of transformed taps: the products of a channel.
pub(super) const POINTS: usize = SIDE * SIDE;
/// Taps of a window.
pub(super) const TAPS: usize = 9;
/// Results of a line of a tile.
pub(super) const RESULTS: usize = 2;
/// The point whose product is a term of every result of a tile, once.
pub(super) const IN_ALL: usize = SIDE + 1;

/// `B' x B` of the numbers that a tile meets.
#[inline(always)]
pub(super) fn tile<F: Floats>(floats: F, x: [F::V; POINTS]) -> [F::V; POINTS] {
    let mut lines = x;
    for column in 0..SIDE {
        let [a, b, c, d] = [x[column], x[SIDE + column], x[2 * SIDE + column], x[3 * SIDE + column]];
        lines[column] = floats.minus(a, c);
        lines[SIDE + column] = floats.plus(b, c);
        lines[2 * SIDE + column] = floats.minus(c, b);
        lines[3 * SIDE + column] = floats.minus(b, d);
    }
    let mut points = lines;
    for line in 0..SIDE {
        let first = line * SIDE;
        let [a, b, c, d] = [lines[first], lines[first + 1], lines[first + 2], lines[first + 3]];
        points[first] = floats.minus(a, c);
        points[first + 1] = floats.plus(b, c);
        points[first + 2] = floats.minus(c, b);
        points[first + 3] = floats.minus(b, d);
    }
    points
}

/// `A' y A` of the sums of the points of a tile: its results, line by line.
#[inline(always)]
pub(super) fn results<F: Floats>(floats: F, y: [F::V; POINTS]) -> [F::V; RESULTS * RESULTS] {
    let mut lines = [[y[0]; SIDE]; RESULTS];
    for column in 0..SIDE {
        let [a, b, c, d] = [y[column], y[SIDE + column], y[2 * SIDE + column], y[3 * SIDE + column]];
        lines[0][column] = floats.plus(floats.plus(a, b), c);
        lines[1][column] = floats.minus(floats.minus(b, c), d);
    }
    let mut results = [y[0]; RESULTS * RESULTS];
    for line in 0..RESULTS {
        let [a, b, c, d] = lines[line];
        results[RESULTS * line] = floats.plus(floats.plus(a, b), c);
        results[RESULTS * line + 1] = floats.minus(floats.minus(b, c), d);
    }
    results
}

/// `G w G'` of taps.
#[inline(always)]
pub(super) fn taps<F: Floats>(floats: F, w: [F::V; TAPS]) -> [F::V; POINTS] {
    let mut lines = [[w[0]; 3]; SIDE];
    for column in 0..3 {
        let line = points_of_line(floats, [w[column], w[3 + column], w[6 + column]]);
        for point in 0..SIDE {
            lines[point][column] = line[point];
        }
    }
    let mut points = [w[0]; POINTS];
    for line in 0..SIDE {
        let of_line = points_of_line(floats, lines[line]);
        for point in 0..SIDE {
            points[line * SIDE + point] = of_line[point];
        }
    }
    points
}

/// `G` times three numbers.
#[inline(always)]
fn points_of_line<F: Floats>(floats: F, [a, b, c]: [F::V; 3]) -> [F::V; SIDE] {
    let (outer, half, zero) = (floats.plus(a, c), floats.splat(0.5), floats.splat(0.0));
    let (sum, difference) = (floats.plus(outer, b), floats.minus(outer, b));
    [a, floats.fma(half, sum, zero), floats.fma(half, difference, zero), c]
}
