//! Random numbers: a generator, its distributions, and dropout.
//!
//! A generator counts up and mixes the bits; every computation has one of its own, so threads never share one.

use std::collections::hash_map::RandomState;
use std::f64::consts::TAU;
use std::hash::{BuildHasher, Hasher};

use edgepack_format::scalar::{Bool, ScalarType};

use crate::element::Scalar;
use crate::error::{Error, expect_elements};
use crate::number::{Cast, Compute, Number};

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Generator(u64);

/// A distribution of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distribution {
    /// The uniform distribution from 0 to 1, without 1.
    Uniform,
    /// The normal distribution around 0, of variance 1.
    Normal,
}

impl Generator {
    /// Returns a generator seeded with numbers the process draws for its hash maps: no two are alike.
    #[expect(clippy::new_without_default, reason = "a default would be the same every time")]
    pub fn new() -> Self {
        Generator(RandomState::new().build_hasher().finish())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to 1, without 1, with so many random bits.
    fn uniform(&mut self, bits: u32) -> f64 {
        (self.next() >> (64 - bits)) as f64 / (1u64 << bits) as f64
    }

    /// Returns a number of the normal distribution around 0, of variance 1.
    fn normal(&mut self) -> f64 {
        // Never the logarithm of 0.
        let radius = (-2.0 * (1.0 - self.uniform(53)).ln()).sqrt();
        radius * (TAU * self.uniform(53)).cos()
    }

    /// Fills a slice with numbers of a distribution.
    ///
    /// ```
    /// use edgepack_compute::generator::{Distribution, Generator};
    ///
    /// let mut numbers = [2.0f32; 9];
    /// Generator::new().fill(Distribution::Uniform, &mut numbers);
    /// assert!(numbers.iter().all(|x| (0.0..1.0).contains(x)));
    /// ```
    pub fn fill<T: Number>(&mut self, distribution: Distribution, out: &mut [T]) {
        for element in out {
            let number = match distribution {
                Distribution::Uniform => self.uniform(bits(T::SCALAR_TYPE)),
                Distribution::Normal => self.normal(),
            };
            *element = T::from_scalar(Scalar::Double(number));
        }
    }

    /// Replaces each element by 0 with probability `p`, and scales the others by `1 / (1 - p)`; the mask is true where they
    /// stay.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if an output is shorter than the input.
    pub fn dropout<T: Number>(&mut self, p: f64, input: &[T], out: &mut [T], mask: &mut [Bool]) -> Result<(), Error> {
        expect_elements("the output", out.len().min(mask.len()), input.len())?;
        let scale = T::Compute::from_scalar(Scalar::Double(1.0 / (1.0 - p)));
        for ((out, &x), mask) in out.iter_mut().zip(input).zip(mask) {
            let stays = self.uniform(53) >= p;
            *mask = Bool::from(stays);
            *out = if stays { x.to_compute().times(scale).cast() } else { T::default() };
        }
        Ok(())
    }
}

/// The bits of a fraction a floating type holds exactly.
fn bits(dtype: ScalarType) -> u32 {
    match dtype {
        ScalarType::HALF => 11,
        ScalarType::BFLOAT16 => 8,
        ScalarType::FLOAT => 24,
        _ => 53,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 20_000;

    fn moments(values: &[f64]) -> [f64; 2] {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        [mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64]
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let (mut generator, mut values) = (Generator(7), vec![0.0; COUNT]);
        generator.fill(Distribution::Uniform, &mut values);
        let [mean, variance] = moments(&values);
        assert!((mean - 0.5).abs() < 0.02 && (variance - 1.0 / 12.0).abs() < 0.01, "{mean} {variance}");
        generator.fill(Distribution::Normal, &mut values);
        let [mean, variance] = moments(&values);
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
    }

    #[test]
    fn elements_are_dropped_as_often_as_asked_and_the_others_scaled() {
        let (mut out, mut mask) = (vec![9f32; COUNT], vec![Bool::from(false); COUNT]);
        Generator(5).dropout(0.25, &[3.0; COUNT], &mut out, &mut mask).unwrap();
        assert!(out.iter().zip(&mask).all(|(&x, stays)| x == if stays.get() { 4.0 } else { 0.0 }));
        let share = mask.iter().filter(|stays| stays.get()).count() as f64 / COUNT as f64;
        assert!((share - 0.75).abs() < 0.02, "{share}");
        assert!(Generator(5).dropout(0.25, &[3.0f32; 2], &mut out[..1], &mut mask).is_err());
    }
}
