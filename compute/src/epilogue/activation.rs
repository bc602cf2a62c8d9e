//! The activation that loops do to results while they are in registers.
//!
//! Invariant: it gives to the bit what the loop of [`pointwise`](crate::pointwise) that represents it gives with the same
//! instructions.

use crate::pointwise::{hard_swish, silu, silu_in_place};
use crate::simd::floats::Vectors;

/// An activation of results before they are written, if there is one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Activation {
    /// None.
    None,
    /// Results that are at least a number.
    Least(f32),
    /// Results within bounds, neither of which is NaN; the greatest also where the least is greater.
    Clamp {
        /// Lower bound.
        least: f32,
        /// Upper bound.
        greatest: f32,
    },
    /// `x`, or `slope * x` where it is negative; the slope is greater than 0 and at most 1.
    LeakyRelu {
        /// The factor of negative numbers.
        slope: f32,
    },
    /// `x * min(max(x + 3, 0), 6) / 6`.
    HardSwish,
    /// `x / (1 + exp(-x))`.
    Silu,
}

impl Activation {
    /// Results within bounds.
    pub(crate) fn clamp(least: f32, greatest: f32) -> Activation {
        match greatest {
            f32::INFINITY => Activation::Least(least),
            _ => Activation::Clamp { least, greatest },
        }
    }

    /// Does something with it as a function of vectors.
    #[inline(always)]
    pub(crate) fn with<F: Vectors, W: WithActivation<F>>(self, floats: F, with: W) {
        match self {
            Activation::None => with.run(Same),
            Activation::Least(least) => with.run(AtLeast(floats.splat(least))),
            Activation::Clamp { least, greatest } => with.run(Within(floats.splat(least), floats.splat(greatest))),
            Activation::LeakyRelu { slope } => {
                with.run(LeakyRelu { slope: floats.splat(slope), minus_zero: floats.splat(-0.0) });
            }
            Activation::HardSwish => with.run(HardSwish {
                one: floats.splat(1.0),
                three: floats.splat(3.0),
                six: floats.splat(6.0),
                zero: floats.splat(0.0),
                minus_zero: floats.splat(-0.0),
            }),
            Activation::Silu => with.run(Silu),
        }
    }

    /// Does it to numbers; NaN stays.
    #[inline(always)]
    pub(crate) fn apply(self, results: &mut [f32]) {
        match self {
            Activation::None => {}
            Activation::Least(least) => results.iter_mut().for_each(|x| *x = if *x < least { least } else { *x }),
            Activation::Clamp { least, greatest } => {
                for x in results {
                    let raised = if *x < least { least } else { *x };
                    *x = if raised > greatest { greatest } else { raised };
                }
            }
            Activation::LeakyRelu { slope } => {
                results.iter_mut().for_each(|x| *x = if *x <= 0.0 { *x * slope } else { *x });
            }
            Activation::HardSwish => results.iter_mut().for_each(|x| *x = hard_swish(*x)),
            Activation::Silu => silu_in_place(results),
        }
    }
}

/// A function of vectors; NaN stays.
pub(crate) trait Activate<F: Vectors>: Copy {
    /// Its value of each number.
    fn of(self, floats: F, x: F::V) -> F::V;

    /// Its values of some vectors.
    #[inline(always)]
    fn of_each<const COUNT: usize>(self, floats: F, mut x: [F::V; COUNT]) -> [F::V; COUNT] {
        for x in &mut x {
            *x = self.of(floats, *x);
        }
        x
    }
}

/// Something that is done with a function; `run` must be inlined.
pub(crate) trait WithActivation<F: Vectors> {
    fn run(self, function: impl Activate<F>);
}

/// No activation.
#[derive(Clone, Copy)]
struct Same;

impl<F: Vectors> Activate<F> for Same {
    #[inline(always)]
    fn of(self, _: F, x: F::V) -> F::V {
        x
    }
}

/// A lower bound.
#[derive(Clone, Copy)]
struct AtLeast<V>(V);

impl<F: Vectors> Activate<F> for AtLeast<F::V> {
    #[inline(always)]
    fn of(self, floats: F, x: F::V) -> F::V {
        floats.at_least(self.0, x)
    }
}

/// A lower and an upper bound.
#[derive(Clone, Copy)]
struct Within<V>(V, V);

impl<F: Vectors> Activate<F> for Within<F::V> {
    #[inline(always)]
    fn of(self, floats: F, x: F::V) -> F::V {
        floats.at_most(self.1, floats.at_least(self.0, x))
    }
}

/// [`Activation::LeakyRelu`] and its constants: with such a slope, a product is greater than its number where that is negative.
#[derive(Clone, Copy)]
struct LeakyRelu<V> {
    slope: V,
    /// Added to a product, it leaves the sign of 0.
    minus_zero: V,
}

impl<F: Vectors> Activate<F> for LeakyRelu<F::V> {
    #[inline(always)]
    fn of(self, floats: F, x: F::V) -> F::V {
        floats.at_least(floats.fma(x, self.slope, self.minus_zero), x)
    }
}

/// [`Activation::HardSwish`] and its constants.
#[derive(Clone, Copy)]
struct HardSwish<V> {
    one: V,
    three: V,
    six: V,
    zero: V,
    /// Added to a product, it leaves the sign of 0.
    minus_zero: V,
}

impl<F: Vectors> Activate<F> for HardSwish<F::V> {
    #[inline(always)]
    fn of(self, floats: F, x: F::V) -> F::V {
        let factor = floats.at_most(self.six, floats.at_least(self.zero, floats.fma(self.one, x, self.three)));
        floats.over(floats.fma(x, factor, self.minus_zero), self.six)
    }
}

/// [`Activation::Silu`].
#[derive(Clone, Copy)]
struct Silu;

impl<F: Vectors> Activate<F> for Silu {
    #[inline(always)]
    fn of(self, floats: F, x: F::V) -> F::V {
        silu(floats, x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::float_path::FloatPath;
    use crate::simd::floats::{Floats, LANES, WithFloats};

    struct Applied(Activation, [f32; LANES]);

    /// A function of numbers in their place.
    struct InPlace<'a, F>(F, &'a mut [f32; LANES]);

    impl<F: Floats> WithActivation<F> for InPlace<'_, F> {
        #[inline(always)]
        fn run(self, function: impl Activate<F>) {
            let InPlace(floats, numbers) = self;
            floats.store(function.of(floats, floats.load(numbers)), numbers);
        }
    }

    impl WithFloats for Applied {
        type Output = [f32; LANES];

        #[inline(always)]
        fn run<F: Floats>(mut self, floats: F) -> [f32; LANES] {
            self.0.with(floats, InPlace(floats, &mut self.1));
            self.1
        }
    }

    #[test]
    fn vectors_and_numbers_get_the_same() {
        let mut numbers: Vec<f32> = (-80..80).map(|i| i as f32 * 0.0625 + 0.01).collect();
        numbers.extend([
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            0.0,
            -0.0,
            -3.0,
            3.0,
            6.0,
            1e-42,
            3e38,
            -3e38,
            1e-7,
        ]);
        numbers.resize(numbers.len().next_multiple_of(LANES), 0.0);
        let all = [
            Activation::None,
            Activation::clamp(0.0, f32::INFINITY),
            Activation::clamp(-1.0, 2.5),
            Activation::LeakyRelu { slope: 0.1 },
            Activation::LeakyRelu { slope: 1.0 },
            Activation::LeakyRelu { slope: 1e-40 },
            Activation::HardSwish,
            Activation::Silu,
        ];
        for (activation, path) in
            all.into_iter().flat_map(|of| FloatPath::all().into_iter().flatten().map(move |path| (of, path)))
        {
            for numbers in numbers.as_chunks::<LANES>().0 {
                let (have, mut want) = (path.run(Applied(activation, *numbers)), *numbers);
                activation.apply(&mut want);
                // A path of its own rounds products before it adds them.
                let rounds = activation == Activation::Silu && path == FloatPath::Plain;
                let same = |(a, b): (&f32, &f32)| {
                    let near = rounds && (a - b).abs() <= 4.0 * f32::EPSILON * b.abs();
                    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || near
                };
                assert!(
                    have.iter().zip(&want).all(same),
                    "{activation:?} {path:?} {numbers:?}: {have:?}, not {want:?}"
                );
            }
        }
    }
}
