//! Softmax of columns of `f32`, and its logarithm: neighbouring columns in the vectors of the machine, row after row.

use crate::simd::exponential::exp_of_negative;
use crate::simd::floats::{Floats, LANES, WithFloats, read, write};

/// Columns that are computed together: of as many the greatest elements and the sums stay in the nearest cache.
const STRIP: usize = 256;
/// Vectors of columns of which each step is done before the next.
const TOGETHER: usize = 4;

/// Columns of `size` elements that are `inner` elements apart, next to each other.
pub(super) struct Columns<'a, const LOG: bool> {
    pub size: usize,
    pub inner: usize,
    pub input: &'a [f32],
    pub out: &'a mut [f32],
}

impl<const LOG: bool> WithFloats for Columns<'_, LOG> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Columns { size, inner, input, out } = self;
        for first in (0..inner).step_by(STRIP) {
            let width = STRIP.min(inner - first);
            let rows = (0..size).map(|row| row * inner + first..row * inner + first + width);
            let mut strip =
                Strip { greatest: [[f32::NEG_INFINITY; LANES]; STRIP / LANES], sums: [[0.0; LANES]; STRIP / LANES] };
            for row in rows.clone() {
                strip.meet(floats, &input[row]);
            }
            for row in rows.clone() {
                strip.add::<F, LOG>(floats, &input[row.clone()], &mut out[row]);
            }
            strip.finish_sums::<LOG>(width);
            for row in rows {
                strip.write::<F, LOG>(floats, &input[row.clone()], &mut out[row]);
            }
        }
    }
}

/// Facts about the columns of a strip.
struct Strip {
    greatest: [[f32; LANES]; STRIP / LANES],
    /// The sums of the exponentials; at last what exponentials are multiplied with, or the logarithms.
    sums: [[f32; LANES]; STRIP / LANES],
}

impl Strip {
    /// Finds the greatest so far. Where it is NaN, or an infinity of the wrong sign, so is the sum.
    #[inline(always)]
    fn meet<F: Floats>(&mut self, floats: F, row: &[f32]) {
        for (greatest, x) in self.greatest.iter_mut().zip(row.chunks(LANES)) {
            let x = read(floats, x, 0.0);
            floats.store(floats.at_least(floats.load(greatest), x), greatest);
        }
    }

    /// Adds the exponentials of a row to the sums, and writes them if they are what is asked for.
    #[inline(always)]
    fn add<F: Floats, const LOG: bool>(&mut self, floats: F, row: &[f32], out: &mut [f32]) {
        let (rows, outs) = (row.chunks(TOGETHER * LANES), out.chunks_mut(TOGETHER * LANES));
        let greatest = self.greatest.as_chunks::<TOGETHER>().0.iter().zip(self.sums.as_chunks_mut::<TOGETHER>().0);
        for ((row, out), (greatest, sums)) in rows.zip(outs).zip(greatest) {
            let mut x = [floats.splat(0.0); TOGETHER];
            for ((x, row), greatest) in x.iter_mut().zip(row.chunks(LANES)).zip(greatest) {
                *x = floats.minus(floats.load(greatest), read(floats, row, 0.0));
            }
            let exponentials = exp_of_negative(floats, x);
            for ((x, sum), out) in exponentials.iter().zip(sums).zip(out.chunks_mut(LANES)) {
                floats.store(floats.plus(floats.load(sum), *x), sum);
                if !LOG {
                    write(floats, *x, out);
                }
            }
        }
    }

    /// Makes of the sums what rows are finished with.
    #[inline(always)]
    fn finish_sums<const LOG: bool>(&mut self, width: usize) {
        let sums = &mut self.sums.as_flattened_mut()[..width];
        sums.iter_mut().for_each(|sum| *sum = if LOG { sum.ln() } else { 1.0 / *sum });
    }

    /// Writes a row.
    #[inline(always)]
    fn write<F: Floats, const LOG: bool>(&self, floats: F, row: &[f32], out: &mut [f32]) {
        let columns = self.greatest.iter().zip(&self.sums);
        for ((row, out), (greatest, last)) in row.chunks(LANES).zip(out.chunks_mut(LANES)).zip(columns) {
            let result = if LOG {
                floats.minus(floats.minus(read(floats, row, 0.0), floats.load(greatest)), floats.load(last))
            } else {
                floats.fma(read(floats, out, 0.0), floats.load(last), floats.splat(0.0))
            };
            write(floats, result, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::simd::float_path::FloatPath;

    fn columns<const LOG: bool>(path: FloatPath, [size, inner]: [usize; 2], input: &[f32]) -> Vec<f32> {
        let mut out = vec![f32::NAN; input.len()];
        path.run(Columns::<LOG> { size, inner, input, out: &mut out });
        out
    }

    const SIZES: [[usize; 2]; 12] = [
        [1, 2],
        [3, 2],
        [21, 5],
        [7, 15],
        [7, 16],
        [2, 17],
        [9, 64],
        [5, 65],
        [40, 255],
        [3, 256],
        [19, 300],
        [2, 1000],
    ];

    fn numbers(count: usize) -> Vec<f32> {
        Random::new(count as u64 + 5).floats(count).iter().map(|x| x * 12.0).collect()
    }

    #[test]
    fn columns_of_every_size_are_near_to_the_exact_ones_on_every_path() {
        for path in FloatPath::all().into_iter().flatten() {
            for [size, inner] in SIZES {
                let x = numbers(size * inner);
                let (plain, log) =
                    (columns::<false>(path, [size, inner], &x), columns::<true>(path, [size, inner], &x));
                for column in 0..inner {
                    let places = (0..size).map(|row| row * inner + column);
                    let greatest = places.clone().map(|at| x[at]).fold(f32::NEG_INFINITY, f32::max);
                    let exp = |at: usize| (f64::from(x[at]) - f64::from(greatest)).exp();
                    let sum: f64 = places.clone().map(exp).sum();
                    for at in places {
                        let want = exp(at) / sum;
                        let near = (f64::from(plain[at]) - want).abs() <= 1e-6 * want + 6e-8 / sum;
                        assert!(near, "{path:?}, {size} x {inner}: {}, not {want}", plain[at]);
                        let want = f64::from(x[at]) - f64::from(greatest) - sum.ln();
                        let near = (f64::from(log[at]) - want).abs() <= 1e-6 * want.abs() + 1e-6;
                        assert!(near, "{path:?}, {size} x {inner}: {}, not {want}", log[at]);
                    }
                }
            }
        }
    }

    #[test]
    fn columns_are_the_same_on_every_path_that_fuses_products() {
        for sizes in SIZES {
            let x = numbers(sizes[0] * sizes[1]);
            let want = columns::<false>(FloatPath::best(), sizes, &x);
            for path in FloatPath::fused() {
                assert_eq!(columns::<false>(path, sizes, &x), want, "{path:?}, {sizes:?}");
            }
        }
    }

    #[test]
    fn what_is_no_number_makes_its_own_column_nan() {
        let (size, inner) = (5, 70);
        for path in FloatPath::all().into_iter().flatten() {
            for wrong in [f32::NAN, -f32::NAN, f32::INFINITY] {
                for row in 0..size {
                    let mut x = numbers(size * inner);
                    let clean = columns::<false>(path, [size, inner], &x);
                    x[row * inner + 3] = wrong;
                    x[row * inner + 69] = wrong;
                    (0..size).for_each(|row| x[row * inner + 20] = f32::NEG_INFINITY);
                    let log = columns::<true>(path, [size, inner], &x);
                    for (at, y) in columns::<false>(path, [size, inner], &x).into_iter().enumerate() {
                        let is_wrong = matches!(at % inner, 3 | 20 | 69);
                        assert!(
                            if is_wrong { y.is_nan() && log[at].is_nan() } else { y == clean[at] },
                            "{path:?}, {at}: {y}"
                        );
                    }
                }
            }
        }
    }
}
