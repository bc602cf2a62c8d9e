//! The limits of this machine, measured: multiplications with additions, and bytes copied.
//!
//! Comparing a loop with them shows how far it is from the limits of the machine; nothing computes with them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, Line, WithFloats, add_products};

/// The most that one thread does in a second.
#[derive(Clone, Copy, Debug)]
pub struct Peak {
    /// Multiplications of `f32`, each with an addition.
    pub multiply_adds: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

/// Times that are taken; the best one counts.
const ROUNDS: usize = 24;

impl Peak {
    /// Measures for some milliseconds.
    pub fn measure() -> Peak {
        let from = vec![1u8; COPIED];
        let mut to = vec![0u8; COPIED];
        let copy = best(|| black_box(&mut to).copy_from_slice(black_box(&from)));
        let path = FloatPath::best();
        let mut products = 0;
        let product = best(|| products = path.run(Products));
        Peak { multiply_adds: products as f64 / product.as_secs_f64(), bytes: (2 * COPIED) as f64 / copy.as_secs_f64() }
    }
}

/// Bytes that are copied: what values between operators take.
const COPIED: usize = 1 << 21;

fn best(mut f: impl FnMut()) -> Duration {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        f();
        start.elapsed()
    });
    times.min().unwrap_or_default().max(Duration::from_nanos(1))
}

/// Products of what stays in the first level of cache; returns how many.
struct Products;

impl WithFloats for Products {
    type Output = usize;

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) -> usize {
        const ROWS: usize = 6;
        const DEPTH: usize = 64;
        const TIMES: usize = 200;
        let row = [1.0f32; DEPTH];
        let rows: [&[f32]; ROWS] = [&row; ROWS];
        macro_rules! multiply {
            ($tiles:literal) => {{
                let weights = [[Line::ZERO; $tiles]; DEPTH];
                let mut sums = [[floats.splat(0.0); $tiles]; ROWS];
                for _ in 0..TIMES {
                    add_products(floats, black_box(rows), black_box(&weights), &mut sums);
                }
                let mut out = [0.0; crate::simd::floats::LANES];
                sums.into_iter().flatten().for_each(|sum| floats.store(sum, black_box(&mut out)));
                TIMES * DEPTH * ROWS * $tiles * crate::simd::floats::LANES
            }};
        }
        if F::TILES == 1 { multiply!(1) } else { multiply!(4) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_some_machine() {
        let Peak { multiply_adds, bytes } = Peak::measure();
        assert!(multiply_adds > 1e5 && multiply_adds < 1e13, "{multiply_adds}");
        assert!(bytes > 1e6 && bytes < 1e14, "{bytes}");
    }
}
