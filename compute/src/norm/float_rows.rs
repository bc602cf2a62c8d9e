//! Normalisation of rows of `f32` in the vectors of the machine.

use super::{RowOperands, RowResults, Rows, inverse_deviation, normalise};
use crate::simd::floats::{Floats, LANES, WithFloats};
use crate::simd::sums::sum;

/// The most rows of which each step is done before the next: it waits for nothing that another row's does.
const TOGETHER: usize = 8;
/// Elements of rows that are enough to do something else while steps wait.
const ENOUGH: usize = 2048;

/// The rows of a width to be normalised together.
pub(super) fn together(width: usize) -> usize {
    (ENOUGH / width.max(1)).clamp(1, TOGETHER)
}

/// Rows that are normalised together: [`together`] at most.
pub(super) struct FloatRows<'a, 'o> {
    pub rows: Rows,
    /// Number of the first row among all.
    pub first: usize,
    pub operands: RowOperands<'a, f32>,
    pub results: RowResults<'o, f32>,
}

impl WithFloats for FloatRows<'_, '_> {
    type Output = ();

    /// Takes statistics that do not depend on the rows around, nor on the vectors of the machine but for the rounding of products.
    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let FloatRows { rows, first, operands, results } = self;
        let count = rows.width as f64;
        let lines = operands.input.chunks_exact(rows.width);
        let mut means = [0.0; TOGETHER];
        for (row, mean) in lines.clone().zip(&mut means) {
            *mean = sum(floats, row, 0.0, |sum, x| floats.plus(sum, x)) / count;
        }
        let mut scales = means;
        for (row, scale) in lines.clone().zip(&mut scales) {
            let center = *scale as f32;
            let mean = floats.splat(center);
            let squares = sum(floats, row, center, |sum, x| {
                let distance = floats.minus(x, mean);
                floats.fma(distance, distance, sum)
            });
            *scale = inverse_deviation(squares / count, operands.eps);
        }
        let saved = results.means.iter_mut().zip(results.scales);
        let outs = results.out.chunks_exact_mut(rows.width).zip(saved);
        for ((index, (row, (out, saved))), (mean, scale)) in
            lines.zip(outs).enumerate().zip(means.into_iter().zip(scales))
        {
            let (mean, scale) = (mean as f32, scale as f32);
            (*saved.0, *saved.1) = (mean, scale);
            let [weight, bias] = rows.factors_of(first + index, [operands.weight, operands.bias]);
            if rows.span > 1 {
                normalise(row, out, rows.span, mean, scale, weight, bias);
            } else {
                let lists = [row, weight.unwrap_or(&[]), bias.unwrap_or(&[])];
                match (weight, bias) {
                    (Some(_), Some(_)) => scaled::<F, true, true>(floats, lists, out, mean, scale),
                    (Some(_), None) => scaled::<F, true, false>(floats, lists, out, mean, scale),
                    (None, Some(_)) => scaled::<F, false, true>(floats, lists, out, mean, scale),
                    (None, None) => scaled::<F, false, false>(floats, lists, out, mean, scale),
                }
            }
        }
    }
}

/// Writes a row, whose mean is taken off, multiplied by its scale and by the weights, with the offsets added, where there are
/// such lists.
#[inline(always)]
fn scaled<F: Floats, const WEIGHT: bool, const BIAS: bool>(
    floats: F,
    [row, weight, bias]: [&[f32]; 3],
    out: &mut [f32],
    mean: f32,
    scale: f32,
) {
    let (mean, scale) = (floats.splat(mean), floats.splat(scale));
    let (one, nothing) = (floats.splat(1.0), floats.splat(-0.0));
    let of =
        |x: F::V, weight: F::V, bias: F::V| floats.fma(floats.fma(floats.minus(x, mean), scale, nothing), weight, bias);
    let ((whole, last), (to, to_last)) = (row.as_chunks::<LANES>(), out.as_chunks_mut::<LANES>());
    let ((weights, last_weights), (offsets, last_offsets)) = (weight.as_chunks::<LANES>(), bias.as_chunks::<LANES>());
    for (at, (x, to)) in whole.iter().zip(to).enumerate() {
        let weight = if WEIGHT { floats.load(&weights[at]) } else { one };
        let bias = if BIAS { floats.load(&offsets[at]) } else { nothing };
        floats.store(of(floats.load(x), weight, bias), to);
    }
    if !last.is_empty() {
        let (weight, bias) = (floats.load_some(last_weights, 1.0), floats.load_some(last_offsets, -0.0));
        floats.store_some(of(floats.load_some(last, 0.0), weight, bias), to_last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::norm::normalise_rows;
    use crate::random::Random;
    use crate::simd::float_path::FloatPath;
    use crate::threads::Threads;

    const WIDTHS: [usize; 12] = [1, 2, 15, 16, 17, 49, 64, 100, 256, 768, 1023, 2500];

    /// Rows far from 0, with weights and offsets, some of which are left out.
    struct Case {
        rows: Rows,
        x: Vec<f32>,
        weight: Option<Vec<f32>>,
        bias: Option<Vec<f32>>,
    }

    impl Case {
        fn new(width: usize, count: usize, lists: [bool; 2]) -> Case {
            let mut random = Random::new(width as u64);
            let x = random.floats(width * count).iter().map(|x| x * 3.0 + 1.5).collect();
            let [weight, bias] = lists.map(|there| there.then(|| random.floats(width * 2)));
            Case { rows: Rows { width, span: 1, factors: width, period: 2 }, x, weight, bias }
        }

        /// The rows from a number on, normalised, their means and their scales.
        fn run(&self, path: FloatPath, first: usize, x: &[f32]) -> [Vec<f32>; 3] {
            let count = x.len() / self.rows.width;
            let [mut out, mut means, mut scales] = [x.len(), count, count].map(|len| vec![f32::NAN; len]);
            let operands =
                RowOperands { input: x, weight: self.weight.as_deref(), bias: self.bias.as_deref(), eps: 1e-5 };
            let results = RowResults { out: &mut out, means: &mut means, scales: &mut scales };
            path.run(FloatRows { rows: self.rows, first, operands, results });
            [out, means, scales]
        }
    }

    #[test]
    fn rows_of_every_width_are_near_to_the_exact_ones_on_every_path() {
        for path in FloatPath::all().into_iter().flatten() {
            for width in WIDTHS {
                for lists in [[true, true], [true, false], [false, true], [false, false]] {
                    let case = Case::new(width, together(width), lists);
                    let [out, means, scales] = case.run(path, 1, &case.x);
                    for (row, (x, y)) in case.x.chunks(width).zip(out.chunks(width)).enumerate() {
                        let count = width as f64;
                        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
                        let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
                        let scale = 1.0 / (variance + 1e-5).sqrt();
                        assert!(
                            (f64::from(means[row]) - mean).abs() < 2e-6,
                            "{path:?}, {width}: {}, {mean}",
                            means[row]
                        );
                        assert!((f64::from(scales[row]) / scale - 1.0).abs() < 1e-6, "{path:?}, {width}: {scale}");
                        for (i, (x, y)) in x.iter().zip(y).enumerate() {
                            let place = (row + 1) % 2 * width + i;
                            let of = |list: &Option<Vec<f32>>, none| {
                                list.as_ref().map_or(none, |list| f64::from(list[place]))
                            };
                            let want = (f64::from(*x) - mean) * scale * of(&case.weight, 1.0) + of(&case.bias, 0.0);
                            // A mean is rounded, and a row of one number has a scale of more than 300.
                            let near = (f64::from(*y) - want).abs() <= 3e-6 + 3e-7 * scale;
                            assert!(near, "{path:?}, {width}: {y}, not {want}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_is_the_same_alone_and_in_company() {
        for path in FloatPath::all().into_iter().flatten() {
            for width in WIDTHS {
                let case = Case::new(width, together(width), [true, true]);
                let all = case.run(path, 0, &case.x);
                for (row, x) in case.x.chunks(width).enumerate() {
                    let [out, mean, scale] = case.run(path, row, x);
                    assert_eq!(out, all[0][row * width..][..width], "{path:?}, {width}");
                    assert_eq!([mean[0], scale[0]], [all[1][row], all[2][row]], "{path:?}, {width}");
                }
            }
        }
    }

    #[test]
    fn rows_are_the_same_on_every_path_that_fuses_products() {
        for width in WIDTHS {
            let case = Case::new(width, together(width), [true, true]);
            let want = case.run(FloatPath::best(), 0, &case.x);
            for path in FloatPath::fused() {
                assert_eq!(case.run(path, 0, &case.x), want, "{path:?}, {width}");
            }
        }
    }

    #[test]
    fn what_is_no_number_makes_its_own_row_nan() {
        for path in FloatPath::all().into_iter().flatten() {
            for width in [16, 49, 256] {
                let mut case = Case::new(width, 5, [true, true]);
                let [clean, ..] = case.run(path, 0, &case.x);
                for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    for place in [0, width - 1] {
                        let mut x = case.x.clone();
                        x[2 * width + place] = wrong;
                        let [out, ..] = case.run(path, 0, &x);
                        for (row, (y, clean)) in out.chunks(width).zip(clean.chunks(width)).enumerate() {
                            let right = if row == 2 { y.iter().all(|y| y.is_nan()) } else { y == clean };
                            assert!(right, "{path:?}, row {row} of {width} with {wrong}: {y:?}");
                        }
                    }
                }
                case.x.fill(7.0);
                let [out, ..] = case.run(path, 0, &case.x);
                let bias = case.bias.as_deref().unwrap_or_default();
                assert!(out.iter().zip(bias.iter().cycle()).all(|(y, bias)| y == bias), "{path:?}, {width}: {out:?}");
            }
        }
    }

    #[test]
    fn rows_do_not_depend_on_threads() {
        let case = Case::new(197, 1003, [true, true]);
        let mut first = None;
        for threads in 1..4 {
            let [mut out, mut means, mut scales] = [case.x.len(), 1003, 1003].map(|len| vec![f32::NAN; len]);
            let operands =
                RowOperands { input: &case.x, weight: case.weight.as_deref(), bias: case.bias.as_deref(), eps: 1e-5 };
            let results = RowResults { out: &mut out, means: &mut means, scales: &mut scales };
            Threads::new(threads).unwrap().run(|| normalise_rows(case.rows, operands, results)).unwrap();
            let all = [out, means, scales];
            assert!(first.get_or_insert_with(|| all.clone()) == &all, "{threads} threads");
        }
    }
}
