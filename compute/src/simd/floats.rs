//! Sixteen `f32` at a time, with fused multiply-add where the machine has it: what own loops over floats are written in.
//!
//! Invariant: a token of an implementation exists only where its instructions do. [`Plain`] is the oracle of the others, and
//! differs from them by the rounding of products alone.
#![allow(unsafe_code)]

use super::apart::{Apart, each_row};

/// Floats of a vector.
pub(crate) const LANES: usize = 16;
/// Floats of half a vector.
pub(crate) const HALF: usize = LANES / 2;

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
    /// Runs a part of a computation in a function of its own, where that is faster.
    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        with.run(self);
    }
    /// Says that a line will be read soon, if the machine wants to know. The line may be anywhere.
    #[inline(always)]
    fn prefetch(self, _line: *const Line) {}
}

/// Instructions on vectors of [`LANES`] floats.
pub(crate) trait Floats: Vectors {
    /// The same on the first [`HALF`] floats of vectors, if that takes half as long.
    type Half: Vectors;
    /// The most vectors of a row of sums in [`add_products`].
    const TILES: usize;

    /// Instructions for [`HALF`] floats; `None` if they take as long as those for all.
    fn half(self) -> Option<Self::Half>;
    /// `a + b`.
    fn plus(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`.
    fn minus(self, a: Self::V, b: Self::V) -> Self::V;
    /// `x` where it is greater than `greatest` or NaN, and `greatest` elsewhere.
    fn greater(self, greatest: Self::V, x: Self::V) -> Self::V;
    /// The sum of the lanes: of those eight apart, then four, two and one.
    fn total(self, v: Self::V) -> f32;
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

/// Writes as many numbers of a vector as there is room for.
#[inline(always)]
pub(crate) fn write<F: Floats>(floats: F, v: F::V, to: &mut [f32]) {
    match to.first_chunk_mut() {
        Some(to) => floats.store(v, to),
        None => {
            let mut numbers = [0.0; LANES];
            floats.store(v, &mut numbers);
            to.copy_from_slice(&numbers[..to.len()]);
        }
    }
}

/// Arrays, which the compiler makes vectors of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

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
}

impl Floats for Plain {
    type Half = Plain;
    const TILES: usize = 1;

    #[inline(always)]
    fn half(self) -> Option<Plain> {
        None
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
    fn total(self, mut v: Self::V) -> f32 {
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                v[lane] += v[lane + half];
            }
        }
        v[0]
    }
}

/// Rows of weights between what is multiplied and what is fetched: about the time that memory takes.
const AHEAD: usize = 32;

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
    sums: &mut [[F::V; TILES]; ROWS],
) {
    rows.iter().for_each(|row| assert!(row.len() >= weights.len(), "a row is shorter than its weights"));
    let starts = rows.map(<[f32]>::as_ptr);
    let mut all = *sums;
    for (k, line) in weights.iter().enumerate() {
        for tile in 0..TILES {
            floats.prefetch(line.as_ptr().wrapping_add(AHEAD * TILES + tile));
        }
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

/// The most taps of a window over neighbouring pixels.
pub(crate) const MOST_TAPS: usize = 64;
/// The most places of the input that a [`Window`] knows.
const MOST_PLACES: usize = 1024;

/// Places of the input that windows over neighbouring pixels of a line meet: some lines of the input, of as many columns each.
/// At a place is one number per channel.
///
/// Invariant: each of the places that were added points to `channels` floats that are borrowed for `'a`.
pub(crate) struct Window<'a> {
    places: arrayvec::ArrayVec<*const f32, MOST_PLACES>,
    channels: usize,
    data: std::marker::PhantomData<&'a [f32]>,
}

impl<'a> Window<'a> {
    /// Without places, of pixels with so many channels.
    pub(crate) fn new(channels: usize) -> Self {
        Window { places: arrayvec::ArrayVec::new(), channels, data: std::marker::PhantomData }
    }

    /// Channels of a pixel.
    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// The most columns of so many lines.
    pub(crate) fn most_columns(lines: usize) -> usize {
        MOST_PLACES / lines.max(1)
    }

    /// Takes all places away.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
    }

    /// Adds `count` columns that meet the same numbers.
    ///
    /// # Panics
    ///
    /// If there are too many places, or fewer numbers than channels.
    pub(crate) fn push_same(&mut self, numbers: &'a [f32], count: usize) {
        assert!(numbers.len() >= self.channels, "a pixel without all channels");
        self.places.extend(std::iter::repeat_n(numbers.as_ptr(), count));
    }

    /// Adds `count` columns of a line, each `step` numbers behind the one before it.
    ///
    /// # Panics
    ///
    /// If there are too many places, or the line ends before all channels of the last.
    pub(crate) fn push_line(&mut self, line: &'a [f32], step: usize, count: usize) {
        let Some(last) = count.checked_sub(1) else { return };
        let end = step.saturating_mul(last).saturating_add(self.channels);
        assert!(end <= line.len(), "a pixel without all channels");
        let start = line.as_ptr();
        self.places.extend((0..count).map(|column| start.wrapping_add(column * step)));
    }

    /// Adds to the sums of neighbouring pixels as [`Window::add_taps`] does, in the same order, for windows whose lines have
    /// `WIDTH` taps next to each other and are `STRIDE` places apart: what a place has is read once for all pixels. `columns`
    /// places of each of `lines` lines were added; the first tap of the first pixel meets place `from` of the first line.
    ///
    /// # Panics
    ///
    /// If there are fewer channels, weights or places.
    #[inline(always)]
    pub(crate) fn add_lines<
        F: Floats,
        const TILES: usize,
        const PIXELS: usize,
        const WIDTH: usize,
        const STRIDE: usize,
    >(
        &self,
        floats: F,
        weights: &[f32],
        [lines, columns, from]: [usize; 3],
        first: usize,
        sums: &mut [[F::V; TILES]; PIXELS],
    ) {
        let end = first.saturating_add(TILES * LANES);
        assert!(end <= self.channels, "channels beyond the last");
        assert!(lines.saturating_mul(WIDTH).saturating_mul(self.channels) <= weights.len(), "a tap without weights");
        let last = lines.saturating_sub(1).saturating_mul(columns).saturating_add(from);
        assert!(last.saturating_add(WIDTH + (PIXELS - 1) * STRIDE) <= self.places.len(), "places beyond the last");
        let (mut all, mut weight) = (*sums, weights.as_ptr());
        for line in 0..lines {
            let places = self.places.as_ptr().wrapping_add(from + line * columns);
            let mut factors = [[floats.splat(0.0); TILES]; WIDTH];
            for factors in &mut factors {
                for (tile, factor) in factors.iter_mut().enumerate() {
                    // SAFETY: `weight` is that of channel 0 of a tap, whose weights are in the slice, and `first` with the
                    // vectors behind it is within the channels; an array is aligned as its elements.
                    *factor = floats.load(unsafe { &*weight.add(first + tile * LANES).cast::<[f32; LANES]>() });
                }
                weight = weight.wrapping_add(self.channels);
            }
            each_row!(column < WIDTH + (PIXELS - 1) * STRIDE => {
                // SAFETY: the last place that the last pixel meets on the last line is one of those that there are.
                let place = unsafe { *places.add(column) };
                let mut values = [floats.splat(0.0); TILES];
                for (tile, value) in values.iter_mut().enumerate() {
                    // SAFETY: each place has `channels` floats, and `first` with the vectors behind it is within them.
                    *value = floats.load(unsafe { &*place.add(first + tile * LANES).cast::<[f32; LANES]>() });
                }
                each_row!(pixel < PIXELS => {
                    if column >= pixel * STRIDE && column - pixel * STRIDE < WIDTH {
                        for tile in 0..TILES {
                            let factor = factors[column - pixel * STRIDE][tile];
                            all[pixel][tile] = floats.fma(values[tile], factor, all[pixel][tile]);
                        }
                    }
                });
            });
        }
        *sums = all;
    }

    /// Adds what taps meet times their weights to the sums of neighbouring pixels, for some vectors of channels from `first`
    /// on. A tap meets the place that is `taps` of it behind `from`, and that of the next pixel `step` further; it has as
    /// many weights as there are channels.
    ///
    /// # Panics
    ///
    /// If there are fewer channels, weights or places.
    #[inline(always)]
    pub(crate) fn add_taps<F: Floats, const TILES: usize, const PIXELS: usize>(
        &self,
        floats: F,
        (taps, weights): (&[usize], &[f32]),
        [from, step]: [usize; 2],
        first: usize,
        sums: &mut [[F::V; TILES]; PIXELS],
    ) {
        let end = first.saturating_add(TILES * LANES);
        assert!(end <= self.channels, "channels beyond the last");
        assert!(taps.len().saturating_mul(self.channels) <= weights.len(), "a tap without weights");
        let last = step.saturating_mul(PIXELS - 1).saturating_add(from);
        let room = self.places.len().checked_sub(last).expect("places beyond the last");
        let mut pixels = [self.places.as_ptr().wrapping_add(from); PIXELS];
        for (pixel, places) in pixels.iter_mut().enumerate() {
            *places = places.wrapping_add(step.wrapping_mul(pixel));
        }
        let (mut all, mut weight) = (*sums, weights.as_ptr());
        for &tap in taps {
            assert!(tap < room, "places beyond the last");
            let mut factors = [floats.splat(0.0); TILES];
            for (tile, factor) in factors.iter_mut().enumerate() {
                // SAFETY: `weight` is that of channel 0 of this tap, whose weights are in the slice, and `first` with the
                // vectors behind it is within the channels; an array is aligned as its elements.
                *factor = floats.load(unsafe { &*weight.add(first + tile * LANES).cast::<[f32; LANES]>() });
            }
            for pixel in 0..PIXELS {
                // SAFETY: the place of the last pixel is one of those that there are.
                let place = unsafe { *pixels[pixel].add(tap) };
                for tile in 0..TILES {
                    // SAFETY: each place has `channels` floats, and `first` with the vectors behind it is within them.
                    let values = unsafe { &*place.add(first + tile * LANES).cast::<[f32; LANES]>() };
                    all[pixel][tile] = floats.fma(floats.load(values), factors[tile], all[pixel][tile]);
                }
            }
            weight = weight.wrapping_add(self.channels);
        }
        *sums = all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::float_path::FloatPath;

    /// Every function of a path, on numbers that tell.
    struct All([[f32; LANES]; 3]);

    impl WithFloats for All {
        type Output = [[f32; LANES]; 9];

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
            |results: [[f32; LANES]; 9]| results.map(|row| row.map(|x| if x.is_nan() { 1 } else { x.to_bits() }));
        let want = bits(FloatPath::Plain.run(All(numbers)));
        for path in FloatPath::all().into_iter().flatten() {
            // Products of small whole numbers are exact.
            assert_eq!(bits(path.run(All(numbers))), want, "{path:?}");
        }
    }
}
