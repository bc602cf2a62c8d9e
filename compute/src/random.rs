//! Deterministic numbers for tests.

use crate::element::PodElement;

use crate::number::Cast;

/// Returns how far a sum of `f32` may be from the exact one, as a part of the sum of what its terms amount to, if no
/// term goes through more than so many roundings: whatever the order.
pub fn rounding(count: usize) -> f64 {
    let all = count as f64 * f64::from(f32::EPSILON) / 2.0;
    all / (1.0 - all)
}

/// A linear congruential generator.
pub struct Random(u64);

impl Random {
    /// Returns a generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Returns a number from 0 to `end`, without `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// Returns a number from -1 to 1.
    pub fn float(&mut self) -> f32 {
        self.below(20_001) as f32 / 10_000.0 - 1.0
    }

    /// Returns `count` numbers from -1 to 1.
    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }

    /// Small whole numbers, exact in every element type.
    pub fn values<T: PodElement>(&mut self, count: usize) -> Vec<T>
    where
        i64: Cast<T>,
    {
        (0..count).map(|_| (self.below(7) as i64).cast()).collect()
    }
}
