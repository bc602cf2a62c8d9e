//! Loops over `f32` of `1 / (1 + exp(-a))`, of the product of that with `a`, of hyperbolic tangents, and of the product of `a`
//! with the normal distribution.

use edgepack_format::scalar::ScalarType;

use super::{Body, Lane, Params, Values};
use crate::simd::exponential::{Exponential, exponential, two_to};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, Vectors, WithFloats};

/// The loop of sigmoids.
pub(super) const SIGMOID: Body = Body { run: run::<Sigmoid>, result: ScalarType::FLOAT };

/// The loop of sigmoids, each times its operand.
pub(super) const SILU: Body = Body { run: run::<Silu>, result: ScalarType::FLOAT };

/// The loop of hyperbolic tangents.
pub(super) const TANH: Body = Body { run: run::<Tanh>, result: ScalarType::FLOAT };

/// The loop of `a * (1 + erf(a / sqrt(2))) / 2`.
pub(super) const GELU: Body = Body { run: run::<Gelu>, result: ScalarType::FLOAT };

/// The loop of the approximation of that by a hyperbolic tangent.
pub(super) const GELU_TANH: Body = Body { run: run::<GeluTanh>, result: ScalarType::FLOAT };

/// A function of single numbers; what there is of it must be inlined.
trait Function: Copy {
    /// Its values of some vectors.
    fn values<F: Floats, const COUNT: usize>(self, floats: F, x: [F::V; COUNT]) -> [F::V; COUNT];
}

/// A function whose values are computed one vector after another.
trait Single: Copy {
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V;
}

impl<S: Single> Function for S {
    #[inline(always)]
    fn values<F: Floats, const COUNT: usize>(self, floats: F, mut x: [F::V; COUNT]) -> [F::V; COUNT] {
        for x in &mut x {
            *x = self.value(floats, *x);
        }
        x
    }
}

#[derive(Clone, Copy, Default)]
struct Sigmoid;

#[derive(Clone, Copy, Default)]
struct Silu;

#[derive(Clone, Copy, Default)]
struct Tanh;

#[derive(Clone, Copy, Default)]
struct Gelu;

#[derive(Clone, Copy, Default)]
struct GeluTanh;

/// `scale * x`, or `negative * (exp(input_scale * x) - 1)` where that is not greater than zero.
#[derive(Clone, Copy)]
pub(super) struct Elu {
    negative: f32,
    scale: f32,
    input_scale: f32,
}

impl Elu {
    /// The function of `alpha`, `scale` and `input_scale`; `None` unless the last is positive, so that exponentials are at most 1.
    pub(super) fn of([alpha, scale, input_scale]: [f32; 3]) -> Option<Elu> {
        let fits = input_scale > 0.0 && input_scale.is_finite();
        fits.then_some(Elu { negative: alpha * scale, scale, input_scale })
    }

    /// Writes its values.
    pub(super) fn map(self, lanes: &[Lane<'_>], out: &mut [u8]) {
        map(self, lanes, out);
    }
}

/// Vectors whose values are computed together.
const TOGETHER: usize = 4;

fn run<N: Function + Default>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
    map(N::default(), lanes, out);
}

/// Writes the values of a function.
fn map(function: impl Function, lanes: &[Lane<'_>], out: &mut [u8]) {
    let out = bytemuck::cast_slice_mut(out);
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
        let ((some, others), (to_some, to_others)) = (whole.as_chunks::<TOGETHER>(), to.as_chunks_mut::<TOGETHER>());
        for (from, to) in some.iter().zip(to_some) {
            let mut x = [floats.splat(0.0); TOGETHER];
            for (x, from) in x.iter_mut().zip(from) {
                *x = floats.load(from);
            }
            for (value, to) in self.function.values(floats, x).iter().zip(to) {
                floats.store(*value, to);
            }
        }
        for (from, to) in others.iter().zip(to_others) {
            let [value] = self.function.values(floats, [floats.load(from)]);
            floats.store(value, to);
        }
        if !last.is_empty() {
            let [value] = self.function.values(floats, [floats.load_some(last, 0.0)]);
            floats.store_some(value, to_last);
        }
    }
}

impl Single for Sigmoid {
    /// `1 / (1 + exp(-x))`. Below -88.3, where it is less than any normal number, it is 0.
    #[inline(always)]
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V {
        let (one, exp) = (floats.splat(1.0), exponential(floats, floats.at_least(floats.splat(-88.7), x)));
        let near = floats.fma(exp.polynomial, exp.square, floats.fma(floats.splat(-1.0), exp.rest, one));
        floats.over(one, floats.fma(near, exp.power, one))
    }
}

impl Single for Silu {
    #[inline(always)]
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V {
        silu(floats, x)
    }
}

/// `x / (1 + exp(-x))` of each number of a vector.
#[inline(always)]
pub(crate) fn silu<F: Vectors>(floats: F, x: F::V) -> F::V {
    floats.fma(x, Sigmoid.value(floats, x), floats.splat(-0.0))
}

/// [`silu`] of numbers, in their place.
pub(crate) fn silu_in_place(numbers: &mut [f32]) {
    FloatPath::best().run(InPlace(numbers));
}

/// Numbers that [`silu`] replaces.
struct InPlace<'a>(&'a mut [f32]);

impl WithFloats for InPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let (whole, last) = self.0.as_chunks_mut::<LANES>();
        for numbers in whole {
            floats.store(silu(floats, floats.load(numbers)), numbers);
        }
        if !last.is_empty() {
            let value = silu(floats, floats.load_some(last, 0.0));
            floats.store_some(value, last);
        }
    }
}

impl Single for Elu {
    #[inline(always)]
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V {
        let (zero, one, minus_zero) = (floats.splat(0.0), floats.splat(1.0), floats.splat(-0.0));
        let below = floats.fma(x, floats.splat(-self.input_scale), minus_zero);
        let exp = exponential(floats, floats.at_least(zero, below));
        let less = floats.fma(near_to_one(floats, &exp), exp.power, floats.fma(one, exp.power, floats.splat(-1.0)));
        let above = floats.fma(floats.at_least(zero, x), floats.splat(self.scale), minus_zero);
        floats.fma(less, floats.splat(self.negative), above)
    }
}

/// `exp(-r) - 1` of the rest `r` of an exponential, exact near to 0, too.
#[inline(always)]
fn near_to_one<F: Vectors>(floats: F, exp: &Exponential<F::V>) -> F::V {
    floats.fma(exp.polynomial, exp.square, floats.fma(floats.splat(-1.0), exp.rest, floats.splat(-0.0)))
}

impl Single for Tanh {
    /// `(exp(2x) - 1) / (exp(2x) + 1)`, of which the former is exact near to 0, too.
    #[inline(always)]
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V {
        let one = floats.splat(1.0);
        // Farther from 0 all are 1 or -1.
        let bounded = floats.at_most(floats.splat(20.0), floats.at_least(floats.splat(-20.0), x));
        let doubled = floats.fma(bounded, floats.splat(-2.0), floats.splat(-0.0));
        let exp = exponential(floats, doubled);
        let less = floats.fma(near_to_one(floats, &exp), exp.power, floats.fma(one, exp.power, floats.splat(-1.0)));
        floats.over(less, floats.fma(one, less, floats.splat(2.0)))
    }
}

/// Coefficients of the logarithm to base 2 of the normal distribution below `-x`, from the last on. They are those of the least
/// greatest error of the product of the distribution with `x`, for `x` from 0 to 5.5; behind, the polynomial falls.
const NORMAL: [f32; 9] = [
    -1.456_355_3e-6,
    2.313_438e-5,
    -1.101_090_3e-4,
    -3.189_040_3e-4,
    7.300_831_4e-3,
    -5.266_256_3e-2,
    -4.591_514_5e-1,
    -1.151_112_2,
    -1.0,
];

impl Function for Gelu {
    /// `x` times the normal distribution below it: of positive numbers, 1 without the distribution below `-x`.
    #[inline(always)]
    fn values<F: Floats, const COUNT: usize>(self, floats: F, x: [F::V; COUNT]) -> [F::V; COUNT] {
        let (zero, one, minus_zero) = (floats.splat(0.0), floats.splat(1.0), floats.splat(-0.0));
        let (mut positive, mut negative, mut logarithms) = (x, x, [floats.splat(NORMAL[0]); COUNT]);
        for (positive, negative) in positive.iter_mut().zip(&mut negative) {
            (*positive, *negative) = (floats.at_least(zero, *positive), floats.at_most(zero, *negative));
        }
        let mut magnitudes = positive;
        for (magnitude, negative) in magnitudes.iter_mut().zip(negative) {
            *magnitude = floats.minus(*magnitude, negative);
        }
        for coefficient in &NORMAL[1..] {
            for (logarithm, magnitude) in logarithms.iter_mut().zip(magnitudes) {
                *logarithm = floats.fma(*logarithm, magnitude, floats.splat(*coefficient));
            }
        }
        let mut values = two_to(floats, logarithms);
        for ((value, positive), negative) in values.iter_mut().zip(positive).zip(negative) {
            let below = floats.fma(negative, *value, minus_zero);
            *value = floats.fma(positive, floats.minus(one, *value), below);
        }
        values
    }
}

impl Single for GeluTanh {
    /// `x * (1 + tanh(u)) / 2`, which is `x` times the sigmoid of `2 u`.
    #[inline(always)]
    fn value<F: Vectors>(self, floats: F, x: F::V) -> F::V {
        const SLOPE: f64 = 2.0 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
        let minus_zero = floats.splat(-0.0);
        let square = floats.fma(x, x, minus_zero);
        let slope = floats.fma(square, floats.splat((SLOPE * 0.044715) as f32), floats.splat(SLOPE as f32));
        let sigmoid = Sigmoid.value(floats, floats.fma(x, slope, minus_zero));
        floats.fma(x, sigmoid, minus_zero)
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
    fn exponential_units_are_near_to_the_exact_ones_on_every_path() {
        let mut x: Vec<f32> = (-9000..9000).map(|i| i as f32 * 0.0097).collect();
        x.extend((0..140).flat_map(|i| [2f32.powi(i - 130) * 1.37, -2f32.powi(i - 130) * 1.91]));
        x.extend([f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0, 88.7, -88.7]);
        for numbers in [[1.0, 1.0, 1.0], [1.673_263_2, 1.050_701, 1.0], [0.5, -2.0, 3.0]] {
            let [alpha, scale, input_scale] = numbers.map(f64::from);
            let function = Elu::of(numbers).unwrap();
            for path in FloatPath::all().into_iter().flatten() {
                let mut out = vec![f32::NAN; x.len()];
                path.run(Each { function, input: &x, out: &mut out });
                for (&x, &y) in x.iter().zip(&out) {
                    let want = match f64::from(x) {
                        x if x > 0.0 => x * scale,
                        x => (x * input_scale).exp_m1() * alpha * scale,
                    };
                    let near = f64::from(y) == want || (f64::from(y) - want).abs() <= 4e-7 * want.abs() + 1e-38;
                    assert!(near || want.abs() > f64::from(f32::MAX), "{path:?}: {numbers:?}, {x}: {y}, not {want}");
                }
                let mut nan = [0.0; 2];
                path.run(Each { function, input: &[f32::NAN, 1.0], out: &mut nan });
                assert!(nan[0].is_nan() && nan[1] == numbers[1], "{path:?}: {nan:?}");
            }
        }
        assert!([0.0, -1.0, f32::NAN, f32::INFINITY].iter().all(|&x| Elu::of([1.0, 1.0, x]).is_none()));
    }

    #[test]
    fn values_are_the_same_on_every_path_that_fuses_products() {
        fn same<N: Function>(function: N) {
            let x: Vec<f32> = (-9000..9000).map(|i| i as f32 * 0.0107).collect();
            let values = |path: FloatPath| {
                let mut out = vec![f32::NAN; x.len()];
                path.run(Each { function, input: &x, out: &mut out });
                out
            };
            for path in FloatPath::fused() {
                assert!(values(path) == values(FloatPath::best()), "{path:?}");
            }
        }
        same(Gelu);
        same(GeluTanh);
    }

    /// Values of a function of a path, and what they should be.
    fn near<N: Function>(function: N, exact: impl Fn(f64) -> f64, relative: f64) {
        let mut x: Vec<f32> = (-14000..14000).map(|i| i as f32 * 0.00107).collect();
        x.extend((0..140).flat_map(|i| [2f32.powi(i - 130) * 1.37, -2f32.powi(i - 130) * 1.91]));
        x.extend([f32::MAX, f32::MIN, 88.7, -88.7, 1e19, -1e19, 0.0, -0.0]);
        for path in FloatPath::all().into_iter().flatten() {
            let mut out = vec![f32::NAN; x.len()];
            path.run(Each { function, input: &x, out: &mut out });
            for (&x, &y) in x.iter().zip(&out) {
                let want = exact(f64::from(x));
                let error = (f64::from(y) - want).abs();
                assert!(error <= 1.5e-7 * f64::from(x.abs().max(1.0)), "{path:?}: {x}: {y}, not {want}");
                // Below -2 the digits that are right get fewer.
                assert!(x < -2.0 || error <= relative * want.abs() + 1e-44, "{path:?}: {x}: {y}, not {want}");
                assert!(x != 0.0 || y.to_bits() == x.to_bits(), "{path:?}: {x}: {y}");
            }
            let mut out = [0.0; 4];
            path.run(Each { function, input: &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN], out: &mut out });
            assert!(out[1] == f32::INFINITY && [0, 2, 3].iter().all(|at| out[*at].is_nan()), "{path:?}: {out:?}");
        }
    }

    #[test]
    fn products_with_the_normal_distribution_are_near_to_the_exact_ones_on_every_path() {
        near(Gelu, |x| 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2), 1.5e-6);
        let root = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
        near(GeluTanh, |x| x / (1.0 + (-2.0 * root * (x + 0.044715 * x * x * x)).exp()), 2e-6);
    }

    #[test]
    fn a_number_has_one_value_wherever_it_is() {
        let x: Vec<f32> = (0..137).map(|i| i as f32 * 0.1 - 5.0).collect();
        for table in [SIGMOID, SILU, TANH, GELU, GELU_TANH] {
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
