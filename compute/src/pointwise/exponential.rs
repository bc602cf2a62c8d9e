//! Loops over `f32` of `1 / (1 + exp(-a))`, of the product of that with `a`, and of hyperbolic tangents.

use edgepack_format::scalar::ScalarType;

use super::{Body, Lane, Params, Values};
use crate::simd::exponential::exponential;
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, Vectors, WithFloats};

/// The loop of sigmoids.
pub(super) const SIGMOID: Body = Body { run: run::<Sigmoid>, result: ScalarType::FLOAT };

/// The loop of sigmoids, each times its operand.
pub(super) const SILU: Body = Body { run: run::<Silu>, result: ScalarType::FLOAT };

/// The loop of hyperbolic tangents.
pub(super) const TANH: Body = Body { run: run::<Tanh>, result: ScalarType::FLOAT };

/// A function of single numbers; `value` must be inlined.
trait Function: Copy + Default {
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V;
}

#[derive(Clone, Copy, Default)]
struct Sigmoid;

#[derive(Clone, Copy, Default)]
struct Silu;

#[derive(Clone, Copy, Default)]
struct Tanh;

fn run<N: Function>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
    let (function, out) = (N::default(), bytemuck::cast_slice_mut(out));
    match lanes[0].values::<f32>() {
        Values::Each(input) => FloatPath::best().run(Each { function, input, out }),
        Values::One(x) => {
            let mut value = [0.0];
            FloatPath::best().run(Each { function, input: &[x], out: &mut value });
            out.fill(value[0]);
        }
    }
}

/// Numbers, and room for what a function makes of them.
struct Each<'a, N> {
    function: N,
    input: &'a [f32],
    out: &'a mut [f32],
}

impl<N: Function> WithFloats for Each<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let ((whole, last), (to, to_last)) = (self.input.as_chunks::<LANES>(), self.out.as_chunks_mut::<LANES>());
        for (from, to) in whole.iter().zip(to) {
            floats.store(self.function.value(floats, floats.load(from)), to);
        }
        if !last.is_empty() {
            floats.store_some(self.function.value(floats, floats.load_some(last, 0.0)), to_last);
        }
    }
}

impl Function for Sigmoid {
    /// `1 / (1 + exp(-x))`. Below -88.3, where it is less than any normal number, it is 0.
    #[inline(always)]
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V {
        let (one, exp) = (floats.splat(1.0), exponential(floats, floats.at_least(floats.splat(-88.7), x)));
        let near = floats.fma(exp.polynomial, exp.square, floats.fma(floats.splat(-1.0), exp.rest, one));
        floats.over(one, floats.fma(near, exp.power, one))
    }
}

impl Function for Silu {
    #[inline(always)]
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V {
        floats.fma(x, Sigmoid.value(floats, x), floats.splat(-0.0))
    }
}

impl Function for Tanh {
    /// `(exp(2x) - 1) / (exp(2x) + 1)`, of which the former is exact near to 0, too.
    #[inline(always)]
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V {
        let one = floats.splat(1.0);
        // Farther from 0 all are 1 or -1.
        let bounded = floats.at_most(floats.splat(20.0), floats.at_least(floats.splat(-20.0), x));
        let doubled = floats.fma(bounded, floats.splat(-2.0), floats.splat(-0.0));
        let exp = exponential(floats, doubled);
        let negative = floats.fma(floats.splat(-1.0), exp.rest, floats.splat(-0.0));
        let near = floats.fma(exp.polynomial, exp.square, negative);
        let less = floats.fma(near, exp.power, floats.fma(one, exp.power, floats.splat(-1.0)));
        floats.over(less, floats.fma(one, less, floats.splat(2.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigmoids_are_near_to_the_exact_ones_on_every_path() {
        let mut x: Vec<f32> = (-9000..9000).map(|i| i as f32 * 0.0097).collect();
        x.extend([f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0, 1e-30, -1e-30, 88.7, -88.7, -88.3]);
        for path in FloatPath::all().into_iter().flatten() {
            let mut out = vec![f32::NAN; x.len()];
            path.run(Each { function: Sigmoid, input: &x, out: &mut out });
            for (&x, &y) in x.iter().zip(&out) {
                let want = 1.0 / (1.0 + (-f64::from(x)).exp());
                let near = (f64::from(y) - want).abs() <= 3e-7 * want + 1e-38;
                assert!(near, "{path:?}: sigmoid({x}) is {want}, not {y}");
            }
            let mut product = vec![f32::NAN; x.len()];
            path.run(Each { function: Silu, input: &x, out: &mut product });
            for ((x, sigmoid), y) in x.iter().zip(&out).zip(&product) {
                let want = x * sigmoid;
                assert!(y.to_bits() == want.to_bits() || y.is_nan() && want.is_nan(), "{path:?}: {x}: {y}");
            }
            let mut nan = [0.0; 3];
            path.run(Each { function: Silu, input: &[f32::NAN, 1.0, f32::NAN], out: &mut nan });
            assert!(nan[0].is_nan() && nan[1] == 0.731_058_6 && nan[2].is_nan(), "{path:?}: {nan:?}");
        }
    }

    #[test]
    fn hyperbolic_tangents_are_near_to_the_exact_ones_on_every_path() {
        let mut x: Vec<f32> = (-9000..9000).map(|i| i as f32 * 0.0013).collect();
        x.extend((0..140).flat_map(|i| [2f32.powi(i - 130) * 1.37, -2f32.powi(i - 130) * 1.91]));
        x.extend([f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0, 1e-30, 40.1, -40.1, 88.7, -88.7]);
        for path in FloatPath::all().into_iter().flatten() {
            let mut out = vec![f32::NAN; x.len()];
            path.run(Each { function: Tanh, input: &x, out: &mut out });
            for (&x, &y) in x.iter().zip(&out) {
                let want = f64::from(x).tanh();
                let near = (f64::from(y) - want).abs() <= 4e-7 * want.abs() + 1e-38 && y.abs() <= 1.0;
                assert!(near, "{path:?}: tanh({x}) is {want}, not {y}");
            }
            let mut nan = [0.0; 3];
            path.run(Each { function: Tanh, input: &[f32::NAN, 1.0, f32::NAN], out: &mut nan });
            assert!(nan[0].is_nan() && (nan[1] - 0.761_594_2).abs() < 1e-6 && nan[2].is_nan(), "{path:?}: {nan:?}");
        }
    }

    #[test]
    fn a_number_has_one_value_wherever_it_is() {
        let x: Vec<f32> = (0..37).map(|i| i as f32 * 0.37 - 5.0).collect();
        for table in [SIGMOID, SILU, TANH] {
            let params = Params([crate::element::Scalar::Int(0); 3]);
            let run = |x: &[f32], constant: bool, len: usize| {
                let mut out = vec![f32::NAN; len];
                let lane = Lane { bytes: bytemuck::cast_slice(x), constant };
                (table.run)(&params, &[lane], bytemuck::cast_slice_mut(&mut out));
                out
            };
            let all = run(&x, false, x.len());
            for (x, y) in x.iter().zip(&all) {
                assert_eq!(run(&[*x], true, 5), [*y; 5]);
                assert_eq!(run(&[*x], false, 1), [*y]);
            }
        }
    }
}
