//! The limits of this machine, measured: multiplications with additions, and bytes copied.
//!
//! Comparing a loop with them shows how far it is from the limits of the machine; nothing computes with them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::simd::bytes::{Bytes, BytesPath, WithBytes};
use crate::simd::dot::{CHANNELS, Dot, Group, WithDot};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, Line, WithFloats};
use crate::simd::matrices::{Inputs, Matrices, Places, ROWS, Sums};
use crate::simd::path::Path;
use crate::simd::products::{Ahead, add_products};

/// The most that one thread does in a second.
#[derive(Clone, Copy, Debug)]
pub struct Peak {
    /// Multiplications of `f32`, each with an addition.
    pub multiply_adds: f64,
    /// Multiplications of bytes, each with an addition.
    pub byte_multiply_adds: f64,
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
        // Rows of weights and blocks of pixels have loops of their own, and so have matrices; any may be the fastest.
        let (path, of_pixels) = (Path::best(), BytesPath::best());
        let mut counts = [0; 3];
        let times = [
            best(|| counts[0] = path.run(ByteProducts)),
            best(|| counts[1] = of_pixels.run(PixelProducts)),
            best(|| counts[2] = of_pixels.matrices().map_or(0, matrix_products)),
        ];
        let rates = [0, 1, 2].map(|kind| counts[kind] as f64 / times[kind].as_secs_f64());
        Peak {
            multiply_adds: products as f64 / product.as_secs_f64(),
            byte_multiply_adds: rates[0].max(rates[1]).max(rates[2]),
            bytes: (2 * COPIED) as f64 / copy.as_secs_f64(),
        }
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
                    add_products(floats, black_box(rows), black_box(&weights), Ahead::near(&weights), &mut sums);
                }
                let mut out = [0.0; crate::simd::floats::LANES];
                sums.into_iter().flatten().for_each(|sum| floats.store(sum, black_box(&mut out)));
                TIMES * DEPTH * ROWS * $tiles * crate::simd::floats::LANES
            }};
        }
        if const { F::TILES == 1 } { multiply!(1) } else { multiply!(4) }
    }
}

/// Products of bytes that stay in the first level of cache; returns how many.
struct ByteProducts;

impl WithDot for ByteProducts {
    type Output = usize;

    #[inline(always)]
    fn run<D: Dot>(self, dot: D) -> usize {
        const EIGHTS: usize = 16;
        const TIMES: usize = 200;
        let row = [[[1i8; 4]; 2]; EIGHTS];
        let weights = [Group([1; 4 * CHANNELS]); 2 * EIGHTS];
        macro_rules! multiply {
            ($rows:literal, $tiles:literal) => {{
                let mut sums = [dot.start_rows([0; $rows]); $tiles];
                for _ in 0..TIMES {
                    dot.add_bytes(&mut sums, black_box([&weights[..]; $tiles]), black_box([&row[..]; $rows]));
                }
                for sums in sums {
                    for sums in dot.settle(sums) {
                        black_box(dot.sums(sums));
                    }
                }
                TIMES * EIGHTS * 8 * $rows * $tiles * CHANNELS
            }};
        }
        if const { D::TILES >= 4 } { multiply!(4, 4) } else { multiply!(4, 1) }
    }
}

/// Products of bytes of pixels that stay in the first level of cache; returns how many.
struct PixelProducts;

impl WithBytes for PixelProducts {
    type Output = usize;

    #[inline(always)]
    fn run<B: Bytes>(self, bytes: B) -> usize {
        const ROWS: usize = 6;
        const DEPTH: usize = 64;
        const TIMES: usize = 100;
        let row = [[B::input(1); 4]; DEPTH];
        let rows: [&[[B::Input; 4]]; ROWS] = [&row; ROWS];
        macro_rules! multiply {
            ($tiles:literal) => {{
                let panel = [[Group([1; 4 * CHANNELS]); $tiles]; DEPTH];
                let mut sums = [[bytes.zero(); $tiles]; ROWS];
                for _ in 0..TIMES {
                    bytes.accumulate::<_, _, true>(&mut sums, black_box(rows), black_box(&panel));
                }
                for sums in sums.into_iter().flatten() {
                    black_box(bytes.sums(sums));
                }
                TIMES * DEPTH * 4 * ROWS * $tiles * CHANNELS
            }};
        }
        if const { B::TILES >= 4 } { multiply!(4) } else { multiply!(1) }
    }
}

/// Products of matrices that stay in the first level of cache; returns how many.
fn matrix_products(matrices: Matrices) -> usize {
    const DEPTH: usize = 64;
    const TIMES: usize = 100;
    const TILES: usize = 4;
    let row = [1; 4 * DEPTH];
    let inputs = Inputs { bytes: &row, signed: true, places: Places::Steps(0, 0) };
    let panel = [[Group([1; 4 * CHANNELS]); TILES]; DEPTH];
    let mut shaped = matrices.shaped(row.len());
    shaped.start(&[[0; CHANNELS]; TILES]);
    for _ in 0..TIMES {
        shaped.add::<TILES>(black_box(&inputs), 0, black_box(&panel));
    }
    let mut sums = Sums([[[0; CHANNELS]; TILES]; ROWS]);
    shaped.sums(&mut sums);
    black_box(&sums);
    TIMES * DEPTH * 4 * ROWS * TILES * CHANNELS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_some_machine() {
        let Peak { multiply_adds, byte_multiply_adds, bytes } = Peak::measure();
        assert!(multiply_adds > 1e5 && multiply_adds < 1e13, "{multiply_adds}");
        assert!(byte_multiply_adds > 1e5 && byte_multiply_adds < 1e14, "{byte_multiply_adds}");
        assert!(bytes > 1e6 && bytes < 1e14, "{bytes}");
    }
}
