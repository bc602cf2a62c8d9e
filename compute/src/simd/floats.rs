//! Sixteen `f32` at a time, with fused multiply-add where the machine has it: what own loops over floats are written in.
//!
//! Invariant: a token of an implementation exists only where its instructions do. [`Plain`] is the oracle of the others, and
//! differs from them by the rounding of products alone.

use super::apart::Apart;
use crate::parts::joined;

/// Floats of a vector.
pub(crate) const LANES: usize = 16;
/// Floats of half a vector.
pub(crate) const HALF: usize = LANES / 2;

/// Bits of a float below its exponent.
pub(crate) const MANTISSA: u32 = f32::MANTISSA_DIGITS - 1;

/// Floats of one line of the cache.
#[derive(Clone, Copy, PartialEq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [f32; LANES]);

impl Line {
    /// Zeros.
    pub(crate) const ZERO: Line = Line([0.0; LANES]);
}

/// Instructions that sums of products are computed with, on vectors of [`LANES`] floats or fewer.
pub(crate) trait Vectors: Copy {
    /// Vector of floats, in one register or several.
    type V: Copy;

    /// True if [`Vectors::prefetch_far`] does something: more runs can be read at once than a machine follows.
    const ASKS: bool = false;

    /// One number in all lanes.
    fn splat(self, x: f32) -> Self::V;
    /// Reads the first numbers, as many as a vector has, at any alignment.
    fn load(self, from: &[f32; LANES]) -> Self::V;
    /// Writes the numbers from the first place on.
    fn store(self, v: Self::V, to: &mut [f32; LANES]);
    /// `a * b + c`.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `a / b`.
    fn over(self, a: Self::V, b: Self::V) -> Self::V;
    /// The greater of each pair, and `x` where one is NaN.
    fn at_least(self, least: Self::V, x: Self::V) -> Self::V;
    /// The smaller of each pair, and `x` where one is NaN.
    fn at_most(self, greatest: Self::V, x: Self::V) -> Self::V;
    /// Two to the power of whole numbers, 127 more of which are the lowest nine bits: the bits moved into the exponent.
    fn power(self, bits: Self::V) -> Self::V;
    /// Reads numbers, fewer than a vector has, and `rest` in the lanes behind them.
    #[inline(always)]
    fn load_some(self, from: &[f32], rest: f32) -> Self::V {
        let mut numbers = [rest; LANES];
        numbers[..from.len()].copy_from_slice(from);
        self.load(&numbers)
    }
    /// Writes the numbers of the first lanes, fewer than a vector has.
    #[inline(always)]
    fn store_some(self, v: Self::V, to: &mut [f32]) {
        let mut numbers = [0.0; LANES];
        self.store(v, &mut numbers);
        copy_few(&numbers, to);
    }
    /// Runs a part of a computation in a function of its own, where that is faster.
    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        with.run(self);
    }
    /// Says that a line will be read soon, if the machine wants to know. The line may be anywhere.
    #[inline(always)]
    fn prefetch(self, _line: *const Line) {}
    /// [`Vectors::prefetch`] of what is read, or written, later than the first level of cache would keep it beside all else.
    #[inline(always)]
    fn prefetch_far(self, _line: *const Line) {}
}

/// Instructions on vectors of [`LANES`] floats.
pub(crate) trait Floats: Vectors {
    /// The same on the first [`HALF`] floats of vectors.
    type Half: Vectors;
    /// Whether that takes half as long.
    const HALVES: bool;
    /// The most rows of sums of one vector that stay in registers: 12, 6 or 2.
    const ROWS: usize;
    /// The most vectors of a row of sums in [`add_products`](super::products::add_products).
    const TILES: usize;

    /// Instructions for [`HALF`] floats.
    fn half(self) -> Self::Half;
    /// `a + b`.
    fn plus(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`.
    fn minus(self, a: Self::V, b: Self::V) -> Self::V;
    /// `x` where it is greater than `greatest` or NaN, and `greatest` elsewhere.
    fn greater(self, greatest: Self::V, x: Self::V) -> Self::V;
    /// The sum of the lanes: of those eight apart, then four, two and one.
    fn total(self, v: Self::V) -> f32;
    /// The [`Floats::total`] of each vector.
    #[inline(always)]
    fn totals(self, vectors: [Self::V; LANES]) -> Self::V {
        let mut totals = [0.0; LANES];
        for (total, vector) in totals.iter_mut().zip(vectors) {
            *total = self.total(vector);
        }
        self.load(&totals)
    }
    /// The greatest of the lanes, and any number or NaN where one is NaN.
    #[inline(always)]
    fn peak(self, v: Self::V) -> f32 {
        let mut numbers = [0.0; LANES];
        self.store(v, &mut numbers);
        joined(numbers, |a, b| if a > b { a } else { b })
    }
    /// The lanes of `a` from number `by` on, up to [`LANES`], and behind them the first ones of `b`.
    #[inline(always)]
    fn moved(self, a: Self::V, b: Self::V, by: usize) -> Self::V {
        let (mut numbers, mut moved) = ([[0.0; LANES]; 2], [0.0; LANES]);
        self.store(a, &mut numbers[0]);
        self.store(b, &mut numbers[1]);
        moved.copy_from_slice(&numbers.as_flattened()[by..][..LANES]);
        self.load(&moved)
    }
    /// The lanes of two vectors with these numbers, modulo `2 * LANES`: those of `b` are behind those of `a`.
    #[inline(always)]
    fn picked(self, a: Self::V, b: Self::V, lanes: &[u32; LANES]) -> Self::V {
        let (mut numbers, mut picked) = ([[0.0; LANES]; 2], [0.0; LANES]);
        self.store(a, &mut numbers[0]);
        self.store(b, &mut numbers[1]);
        for (to, lane) in picked.iter_mut().zip(lanes) {
            *to = numbers.as_flattened()[*lane as usize % (2 * LANES)];
        }
        self.load(&picked)
    }
    /// Of each group of `GROUP` lanes, a power of two up to [`HALF`], the number at one place of the group in all its lanes.
    #[inline(always)]
    fn spread<const GROUP: usize>(self, v: Self::V, place: usize) -> Self::V {
        let (mut numbers, mut spread) = ([0.0; LANES], [0.0; LANES]);
        self.store(v, &mut numbers);
        for (lane, number) in spread.iter_mut().enumerate() {
            *number = numbers[lane / GROUP * GROUP + place % GROUP];
        }
        self.load(&spread)
    }
    /// Rows of a square as its columns.
    #[inline(always)]
    fn transposed(self, rows: [Self::V; LANES]) -> [Self::V; LANES] {
        let mut numbers = [[0.0; LANES]; LANES];
        for row in 0..LANES {
            self.store(rows[row], &mut numbers[row]);
        }
        let mut columns = rows;
        for column in 0..LANES {
            let mut of_column = [0.0; LANES];
            for row in 0..LANES {
                of_column[row] = numbers[row][column];
            }
            columns[column] = self.load(&of_column);
        }
        columns
    }
}

/// A computation that runs with the instructions; `run` must be inlined, and so must what it calls.
pub(crate) trait WithFloats {
    type Output;
    fn run<F: Floats>(self, floats: F) -> Self::Output;
}

/// Reads up to as many numbers as a vector has, and `rest` behind fewer.
#[inline(always)]
pub(crate) fn read<F: Floats>(floats: F, from: &[f32], rest: f32) -> F::V {
    match from.first_chunk() {
        Some(from) => floats.load(from),
        None => floats.load_some(from, rest),
    }
}

/// Writes as many numbers of a vector as there is room for.
#[inline(always)]
pub(crate) fn write<F: Floats>(floats: F, v: F::V, to: &mut [f32]) {
    match to.first_chunk_mut() {
        Some(to) => floats.store(v, to),
        None => floats.store_some(v, to),
    }
}

/// Copies a few numbers, as many as there is room for: a call would take longer.
#[inline(always)]
pub(crate) fn copy_few(from: &[f32], to: &mut [f32]) {
    let ((from, few), (to, last)) = (from[..to.len()].as_chunks::<4>(), to.as_chunks_mut::<4>());
    to.iter_mut().zip(from).for_each(|(to, numbers)| *to = *numbers);
    for at in 0..3 {
        if let (Some(to), Some(x)) = (last.get_mut(at), few.get(at)) {
            *to = *x;
        }
    }
}

/// Arrays, which the compiler makes vectors of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

/// [`Vectors::apart`]. In one function with all that it is called from, the compiler would take minutes for it.
#[inline(never)]
fn apart_plain<W: Apart<Plain>>(with: W) {
    with.run(Plain);
}

impl Vectors for Plain {
    type V = [f32; LANES];

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        *from
    }

    #[inline(always)]
    fn store(self, v: Self::V, to: &mut [f32; LANES]) {
        *to = v;
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, mut c: Self::V) -> Self::V {
        c.iter_mut().zip(a.iter().zip(b)).for_each(|(c, (a, b))| *c += a * b);
        c
    }

    #[inline(always)]
    fn over(self, mut a: Self::V, b: Self::V) -> Self::V {
        a.iter_mut().zip(b).for_each(|(a, b)| *a /= b);
        a
    }

    #[inline(always)]
    fn at_least(self, least: Self::V, mut x: Self::V) -> Self::V {
        x.iter_mut().zip(least).for_each(|(x, least)| *x = if least > *x { least } else { *x });
        x
    }

    #[inline(always)]
    fn at_most(self, greatest: Self::V, mut x: Self::V) -> Self::V {
        x.iter_mut().zip(greatest).for_each(|(x, greatest)| *x = if greatest < *x { greatest } else { *x });
        x
    }

    #[inline(always)]
    fn power(self, mut bits: Self::V) -> Self::V {
        bits.iter_mut().for_each(|x| *x = f32::from_bits(x.to_bits() << MANTISSA));
        bits
    }

    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        apart_plain(with);
    }
}

impl Floats for Plain {
    type Half = Plain;
    const HALVES: bool = false;
    const ROWS: usize = 2;
    const TILES: usize = 1;

    #[inline(always)]
    fn half(self) -> Plain {
        self
    }

    #[inline(always)]
    fn plus(self, mut a: Self::V, b: Self::V) -> Self::V {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    }

    #[inline(always)]
    fn minus(self, mut a: Self::V, b: Self::V) -> Self::V {
        a.iter_mut().zip(b).for_each(|(a, b)| *a -= b);
        a
    }

    #[inline(always)]
    fn greater(self, mut greatest: Self::V, x: Self::V) -> Self::V {
        greatest
            .iter_mut()
            .zip(x)
            .for_each(|(greatest, x)| *greatest = if *greatest < x || x.is_nan() { x } else { *greatest });
        greatest
    }

    #[inline(always)]
    fn total(self, v: Self::V) -> f32 {
        joined(v, |a, b| a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::float_path::FloatPath;

    /// Every function of a path, on numbers that tell.
    struct All([[f32; LANES]; 3]);

    impl WithFloats for All {
        type Output = [[f32; LANES]; 17];

        #[inline(always)]
        fn run<F: Floats>(self, floats: F) -> Self::Output {
            let [a, b, c] = self.0.map(|numbers| floats.load(&numbers));
            let results = [
                floats.fma(a, b, c),
                floats.over(a, floats.splat(4.0)),
                floats.plus(a, b),
                floats.minus(b, c),
                floats.at_least(a, b),
                floats.at_most(a, b),
                floats.greater(a, b),
                floats.splat(self.0[0][3]),
                floats.splat(floats.total(c)),
                floats.splat(floats.peak(c)),
                floats.load_some(&self.0[0][..11], 7.0),
                floats.load_some(&self.0[1][..5], -1.0),
                floats.totals(std::array::from_fn(|at| [a, b, c][at % 3])),
                floats.moved(a, b, 5),
                floats.moved(b, c, LANES),
                floats.picked(a, c, &std::array::from_fn(|lane| lane as u32 * 2)),
                floats.picked(c, b, &std::array::from_fn(|lane| (lane * 13 % 37) as u32)),
            ];
            results.map(|v| {
                let mut numbers = [0.0; LANES];
                floats.store(v, &mut numbers);
                numbers
            })
        }
    }

    /// A square of numbers, transposed.
    struct Transposed([[f32; LANES]; LANES]);

    impl WithFloats for Transposed {
        type Output = [[f32; LANES]; LANES];

        #[inline(always)]
        fn run<F: Floats>(self, floats: F) -> Self::Output {
            let columns = floats.transposed(self.0.map(|row| floats.load(&row)));
            columns.map(|v| {
                let mut numbers = [0.0; LANES];
                floats.store(v, &mut numbers);
                numbers
            })
        }
    }

    #[test]
    fn rows_of_a_square_become_its_columns() {
        let square = std::array::from_fn(|row| std::array::from_fn(|column| (row * LANES + column) as f32));
        for path in FloatPath::all().into_iter().flatten() {
            let columns = path.run(Transposed(square));
            let expected: [[f32; LANES]; LANES] =
                std::array::from_fn(|column| std::array::from_fn(|row| square[row][column]));
            assert_eq!(columns, expected, "{path:?}");
        }
    }

    /// Numbers of groups of 2, 4 and 8 lanes, at each place of a group of 8.
    struct Spread([f32; LANES]);

    impl WithFloats for Spread {
        type Output = Vec<[f32; LANES]>;

        #[inline(always)]
        fn run<F: Floats>(self, floats: F) -> Self::Output {
            let (v, mut all) = (floats.load(&self.0), Vec::new());
            for place in 0..HALF {
                let spread =
                    [floats.spread::<2>(v, place % 2), floats.spread::<4>(v, place % 4), floats.spread::<8>(v, place)];
                for v in spread {
                    let mut numbers = [0.0; LANES];
                    floats.store(v, &mut numbers);
                    all.push(numbers);
                }
            }
            all
        }
    }

    #[test]
    fn numbers_are_spread_over_their_groups() {
        let numbers = std::array::from_fn(|lane| lane as f32);
        for path in FloatPath::all().into_iter().flatten() {
            for (at, spread) in path.run(Spread(numbers)).into_iter().enumerate() {
                let (group, place) = (2 << (at % 3), at / 3);
                let expected = std::array::from_fn(|lane| (lane / group * group + place % group) as f32);
                assert_eq!(spread, expected, "{path:?}");
            }
        }
    }

    /// A vector, of which the first so many numbers are written.
    struct Some<'a>(&'a [f32; LANES], &'a mut [f32]);

    impl WithFloats for Some<'_> {
        type Output = ();

        #[inline(always)]
        fn run<F: Floats>(self, floats: F) {
            floats.store_some(floats.load(self.0), self.1);
        }
    }

    #[test]
    fn as_many_numbers_are_written_as_there_is_room_for() {
        let numbers = std::array::from_fn(|lane| lane as f32 + 1.0);
        for path in FloatPath::all().into_iter().flatten() {
            for len in 0..LANES {
                let mut out = [0.0; LANES];
                path.run(Some(&numbers, &mut out[..len]));
                let expected = std::array::from_fn(|lane| if lane < len { numbers[lane] } else { 0.0 });
                assert_eq!(out, expected, "{path:?}, {len}");
            }
        }
    }

    #[test]
    fn paths_agree_with_plain_loops() {
        let mut numbers = [[0f32; LANES]; 3];
        for (row, numbers) in numbers.iter_mut().enumerate() {
            for (i, x) in numbers.iter_mut().enumerate() {
                *x = ((i * 7 + row * 5) % 11) as f32 - 5.0;
            }
        }
        (numbers[0][1], numbers[1][2]) = (f32::NAN, f32::NAN);
        (numbers[0][4], numbers[1][4]) = (0.0, -0.0);
        (numbers[0][5], numbers[1][5]) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        let bits =
            |results: [[f32; LANES]; 17]| results.map(|row| row.map(|x| if x.is_nan() { 1 } else { x.to_bits() }));
        let want = bits(FloatPath::Plain.run(All(numbers)));
        for path in FloatPath::all().into_iter().flatten() {
            // Products of small whole numbers are exact.
            assert_eq!(bits(path.run(All(numbers))), want, "{path:?}");
        }
    }
}
