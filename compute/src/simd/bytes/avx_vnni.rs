//! Products of signed weights and bytes of inputs with VNNI in vectors of 32 bytes: four at a time.
//!
//! Invariant: as that of the longer vectors.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::hint::black_box;

use super::{Bytes, ColumnLine, DepthwiseScales, Lanes, WithBytes, store};
use crate::simd::apart::Apart;
use crate::simd::dot::{CHANNELS, Group};
use crate::simd::token::token;

token!(
    /// Vectors of 32 bytes, with sums of four products of bytes.
    AvxVnni, is_x86_feature_detected, WithBytes, "avx2,fma,avxvnni", "avx2" "fma" "avxvnni"
);

/// The halves of a group.
#[inline(always)]
fn halves(group: &Group) -> &[[u8; 32]] {
    group.0.as_chunks().0
}

impl Bytes for AvxVnni {
    type Sums = [__m256i; 2];
    type Weights = [__m256i; 2];
    type Input = i8;
    type Mask = __m256i;
    columns_of_taps!();
    bytes_as_they_are!();

    const TILES: usize = 1;
    const ROWS: usize = 6;

    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        let run: unsafe fn(Self, W) = apart_avx;
        // SAFETY: the token exists.
        unsafe { black_box(run)(self, with) }
    }

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe { [_mm256_setzero_si256(); 2] }
    }

    #[inline(always)]
    fn start(self, numbers: &[i32; CHANNELS]) -> Self::Sums {
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<[i32; CHANNELS], [__m256i; 2]>(*numbers) }
    }

    #[inline(always)]
    fn weights(self, group: &Group) -> Self::Weights {
        let halves = halves(group);
        // SAFETY: a half has 32 bytes, and the token exists.
        unsafe { [_mm256_loadu_si256(halves[0].as_ptr().cast()), _mm256_loadu_si256(halves[1].as_ptr().cast())] }
    }

    /// Signs to be flipped. The compiler knows nothing of them: it would read, flip and repeat four bytes in three instructions
    /// in place of one.
    #[inline(always)]
    fn mask(self) -> __m256i {
        // SAFETY: the token exists.
        black_box(unsafe { _mm256_set1_epi8(-128) })
    }

    #[inline(always)]
    fn add(self, mask: __m256i, sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm256_xor_si256(_mm256_set1_epi32(bytemuck::cast(inputs)), mask);
            [_mm256_dpbusd_avx_epi32(sums[0], inputs, weights[0]), _mm256_dpbusd_avx_epi32(sums[1], inputs, weights[1])]
        }
    }

    /// Signs are flipped.
    #[inline(always)]
    fn ready(byte: i8) -> i8 {
        byte ^ i8::MIN
    }

    #[inline(always)]
    fn add_ready(self, sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm256_set1_epi32(bytemuck::cast(inputs));
            [_mm256_dpbusd_avx_epi32(sums[0], inputs, weights[0]), _mm256_dpbusd_avx_epi32(sums[1], inputs, weights[1])]
        }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<[__m256i; 2], [i32; CHANNELS]>(sums) }
    }
}

/// [`Bytes::apart`].
#[target_feature(enable = "avx2,fma,avxvnni")]
fn apart_avx<W: Apart<AvxVnni>>(bytes: AvxVnni, with: W) {
    with.run(bytes);
}
