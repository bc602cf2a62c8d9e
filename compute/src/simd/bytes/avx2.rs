//! Products of signed weights and bytes of inputs with AVX2: as numbers of 16 bits, two at a time.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions. None of them
//! saturates where it could change a result.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::hint::black_box;

use super::{
    Bytes, ColumnLine, DepthwiseLine, DepthwiseScales, FloatScales, LANES, Lanes, RowScales, TileScales, WithBytes,
    store, store_tiles,
};
use crate::simd::apart::Apart;
use crate::simd::dot::{CHANNELS, Group};
use crate::simd::token::token;

token!(
    /// Vectors of 32 bytes.
    Avx2, is_x86_feature_detected, WithBytes, "avx2,fma", "avx2" "fma"
);

/// Tiles of neighbouring channels that are computed together.
const PARTS: usize = LANES / CHANNELS;

/// Groups have the first two weights of each channel, then the other two: products of two fit 32 bits.
impl Bytes for Avx2 {
    type Sums = [__m256i; 2];
    type Weights = [__m256i; 4];
    type Input = i16;
    type Mask = ();
    columns_of_taps!();

    const TILES: usize = 1;
    const ROWS: usize = 6;

    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        let run: unsafe fn(Self, W) = apart_avx2;
        // SAFETY: the token exists.
        unsafe { black_box(run)(self, with) }
    }

    #[inline(always)]
    fn input(byte: i8) -> i16 {
        byte.into()
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
        let ([a, b], [c, d]) = (self.pair(group, 0), self.pair(group, 1));
        [a, b, c, d]
    }

    #[inline(always)]
    fn mask(self) {}

    #[inline(always)]
    fn add(self, (): (), sums: Self::Sums, [a, b, c, d]: Self::Weights, inputs: [i16; 4]) -> Self::Sums {
        let [first, second] = bytemuck::cast::<[i16; 4], [[i16; 2]; 2]>(inputs);
        self.add_pair(self.add_pair(sums, [a, b], first), [c, d], second)
    }

    /// Weights of two inputs come at a time, so that the sums of six rows stay in registers.
    #[inline(always)]
    fn accumulate<const C: usize, const R: usize, const READY: bool>(
        self,
        sums: &mut [[Self::Sums; C]; R],
        rows: [&[[i16; 4]]; R],
        panel: &[[Group; C]],
    ) {
        let mut pairs: [&[[i16; 2]]; R] = [&[]; R];
        for (pairs, row) in pairs.iter_mut().zip(rows) {
            *pairs = &row.as_flattened().as_chunks().0[..2 * panel.len()];
        }
        for tile in 0..C {
            let mut all = [sums[0][tile]; R];
            for (all, sums) in all.iter_mut().zip(sums.iter()) {
                *all = sums[tile];
            }
            for (index, groups) in panel.iter().enumerate() {
                for pair in 0..2 {
                    let weights = self.pair(&groups[tile], pair);
                    for (all, pairs) in all.iter_mut().zip(pairs) {
                        *all = self.add_pair(*all, weights, pairs[2 * index + pair]);
                    }
                }
            }
            for (all, sums) in all.iter().zip(sums.iter_mut()) {
                sums[tile] = *all;
            }
        }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<[__m256i; 2], [i32; CHANNELS]>(sums) }
    }

    #[inline(always)]
    fn requantise<const C: usize>(self, sums: &[Self::Sums; C], scales: &TileScales<'_, C>, to: &mut [i8]) {
        let mut results = [[0; CHANNELS]; C];
        for tile in 0..C {
            let words = self.rounded(sums[tile], &scales.factors[tile], scales.range.limits);
            results[tile] = self.packed(words, scales.range.zero);
        }
        store_tiles(&results, to);
    }

    #[inline(always)]
    fn scale<const C: usize>(
        self,
        sums: &[Self::Sums; C],
        scales: &FloatScales<'_, C>,
        row: &RowScales,
    ) -> [[f32; CHANNELS]; C] {
        let mut results = [[0.0; CHANNELS]; C];
        for (tile, results) in results.iter_mut().enumerate() {
            *results = self.scaled(sums[tile], scales, tile, row);
        }
        results
    }

    #[inline(always)]
    fn depthwise(
        self,
        taps: &[[&Lanes<i8>; 4]],
        count: usize,
        weights: &[[Lanes<i8>; 4]],
        scales: &DepthwiseScales,
    ) -> Lanes<i8> {
        let weights = weights.as_flattened().as_chunks::<2>().0;
        let mut sums = self.starts(scales);
        for (taps, weights) in taps.as_flattened().as_chunks().0.iter().zip(weights).take(count.div_ceil(2)) {
            self.add_taps(&mut sums, *taps, weights);
        }
        self.finished(sums, scales)
    }

    #[inline(always)]
    fn depthwise_line(self, line: &DepthwiseLine<'_>, scales: &DepthwiseScales, out: &mut [i8]) {
        let depthwise: Depthwise = depthwise_avx2;
        // SAFETY: the token exists.
        unsafe { black_box(depthwise)(self, line, scales, out) }
    }
}

impl Avx2 {
    /// Adds the products of two taps.
    #[inline(always)]
    fn add_taps(self, sums: &mut [[__m256i; 2]; PARTS], [a, b]: [&Lanes<i8>; 2], weights: &[Lanes<i8>; 2]) {
        let (a, b) = (a.as_chunks().0, b.as_chunks().0);
        let weights: &[[u8; 32]; PARTS] = bytemuck::cast_ref(weights);
        for part in 0..PARTS {
            let (seen, weights) = (self.pairs(&a[part], &b[part]), self.widened(&weights[part]));
            sums[part] = self.add_products(sums[part], weights, seen);
        }
    }

    /// Sums that neighbouring channels begin with.
    #[inline(always)]
    fn starts(self, scales: &DepthwiseScales) -> [[__m256i; 2]; PARTS] {
        let mut sums = [self.zero(); PARTS];
        for (sums, starts) in sums.iter_mut().zip(scales.starts.as_chunks().0) {
            *sums = self.start(starts);
        }
        sums
    }

    /// Results of the sums of neighbouring channels.
    #[inline(always)]
    fn finished(self, sums: [[__m256i; 2]; PARTS], scales: &DepthwiseScales) -> Lanes<i8> {
        let mut words = sums;
        for (words, factors) in words.iter_mut().zip(scales.factors.as_chunks().0) {
            *words = self.rounded(*words, factors, scales.range.limits);
        }
        let [a, b, c, d] = words;
        let zero = scales.range.zero;
        bytemuck::cast([self.packed_tiles([a, b], zero), self.packed_tiles([c, d], zero)])
    }

    /// Bytes of two taps of sixteen channels as pairs of numbers of 16 bits, eight channels each.
    #[inline(always)]
    fn pairs(self, a: &[i8; CHANNELS], b: &[i8; CHANNELS]) -> [__m256i; 2] {
        // SAFETY: there are 16 bytes behind each, and the token exists.
        unsafe {
            let (a, b) = (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast()));
            [_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)), _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b))]
        }
    }

    /// Numbers of two tiles as [`Self::packed`] has them: as one vector.
    #[inline(always)]
    fn packed_tiles(self, [a, b]: [[__m256i; 2]; 2], zero: i32) -> [i8; 2 * CHANNELS] {
        // SAFETY: the token exists; vectors and numbers are the same bytes.
        unsafe {
            let zero = _mm256_set1_epi16(zero as i16);
            let a = _mm256_add_epi16(_mm256_packs_epi32(a[0], a[1]), zero);
            let b = _mm256_add_epi16(_mm256_packs_epi32(b[0], b[1]), zero);
            // Packing works in halves of vectors.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let packed = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), order);
            std::mem::transmute::<__m256i, [i8; 2 * CHANNELS]>(packed)
        }
    }

    /// Numbers as bytes, with the zero point added. They are within 16 bits, and with the zero point within eight.
    #[inline(always)]
    fn packed(self, words: [__m256i; 2], zero: i32) -> [i8; CHANNELS] {
        // SAFETY: the token exists; vectors and numbers are the same bytes.
        unsafe {
            // Packing works in halves of vectors.
            let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(words[0], words[1]));
            let packed = _mm256_add_epi16(packed, _mm256_set1_epi16(zero as i16));
            let halves = [_mm256_castsi256_si128(packed), _mm256_extracti128_si256::<1>(packed)];
            std::mem::transmute::<__m128i, [i8; CHANNELS]>(_mm_packs_epi16(halves[0], halves[1]))
        }
    }

    /// Results of sums before the zero point is added. Rounding is to the nearest even number; limits come second, so that
    /// there is always a number.
    #[inline(always)]
    fn rounded(self, sums: [__m256i; 2], factors: &[f32; CHANNELS], [low, high]: [f32; 2]) -> [__m256i; 2] {
        let mut words = sums;
        for (half, words) in words.iter_mut().enumerate() {
            // SAFETY: there are eight factors in each half, and the token exists.
            *words = unsafe {
                let factors = _mm256_loadu_ps(factors.as_ptr().add(8 * half));
                let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(*words), factors);
                let limited = _mm256_min_ps(_mm256_max_ps(scaled, _mm256_set1_ps(low)), _mm256_set1_ps(high));
                _mm256_cvtps_epi32(limited)
            };
        }
        words
    }

    /// Floats of the sums of a tile.
    #[inline(always)]
    fn scaled<const C: usize>(
        self,
        sums: [__m256i; 2],
        scales: &FloatScales<'_, C>,
        tile: usize,
        row: &RowScales,
    ) -> [f32; CHANNELS] {
        let (weights, [low, high]) = (&scales.weights[tile], scales.limits);
        let (factors, bias) = (&scales.factors[tile], &scales.bias[tile]);
        let mut results = [0.0; CHANNELS];
        for (half, sums) in sums.into_iter().enumerate() {
            // SAFETY: there are eight numbers in each half, and the token exists.
            unsafe {
                let weights = _mm256_loadu_si256(weights.as_ptr().add(8 * half).cast());
                let sums = _mm256_sub_epi32(sums, _mm256_mullo_epi32(weights, _mm256_set1_epi32(row.zero)));
                let y = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(row.scale));
                let factors = _mm256_loadu_ps(factors.as_ptr().add(8 * half));
                let y = _mm256_fmadd_ps(y, factors, _mm256_loadu_ps(bias.as_ptr().add(8 * half)));
                let y = _mm256_min_ps(_mm256_max_ps(y, _mm256_set1_ps(low)), _mm256_set1_ps(high));
                _mm256_storeu_ps(results.as_mut_ptr().add(8 * half), y);
            }
        }
        results
    }

    /// Adds the products of two inputs with their weights, wrapping.
    #[inline(always)]
    fn add_pair(self, sums: [__m256i; 2], weights: [__m256i; 2], inputs: [i16; 2]) -> [__m256i; 2] {
        // SAFETY: the token exists.
        let inputs = unsafe { _mm256_set1_epi32(bytemuck::cast::<[i16; 2], i32>(inputs)) };
        self.add_products(sums, weights, [inputs; 2])
    }

    /// Adds the products of pairs of numbers, wrapping.
    #[inline(always)]
    fn add_products(self, sums: [__m256i; 2], weights: [__m256i; 2], inputs: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: the token exists.
        unsafe {
            [
                _mm256_add_epi32(sums[0], _mm256_madd_epi16(weights[0], inputs[0])),
                _mm256_add_epi32(sums[1], _mm256_madd_epi16(weights[1], inputs[1])),
            ]
        }
    }

    /// Two weights of each channel as numbers of 16 bits.
    #[inline(always)]
    fn pair(self, group: &Group, pair: usize) -> [__m256i; 2] {
        self.widened(&group.0.as_chunks().0[pair])
    }

    /// Bytes as signed numbers of 16 bits.
    #[inline(always)]
    fn widened(self, bytes: &[u8; 32]) -> [__m256i; 2] {
        let at = bytes.as_ptr();
        // SAFETY: there are 32 bytes, and the token exists.
        unsafe {
            [_mm256_cvtepi8_epi16(_mm_loadu_si128(at.cast())), _mm256_cvtepi8_epi16(_mm_loadu_si128(at.add(16).cast()))]
        }
    }
}

// Inlined into a large function, these would not keep their numbers in registers; calls are through pointers that nothing is
// known about, so that they are not inlined.
type Depthwise = unsafe fn(Avx2, &DepthwiseLine<'_>, &DepthwiseScales, &mut [i8]);

/// [`Bytes::depthwise_line`], by pairs of taps: weights have two of each channel.
#[target_feature(enable = "avx2,fma")]
fn depthwise_avx2(bytes: Avx2, line: &DepthwiseLine<'_>, scales: &DepthwiseScales, out: &mut [i8]) {
    let DepthwiseLine { taps, windows, weights, out_step, out_len } = *line;
    let weights = weights.as_flattened().as_chunks::<2>().0;
    for window in 0..windows {
        let mut sums = bytes.starts(scales);
        for (taps, weights) in taps.chunks(2).zip(weights) {
            // Behind an odd number of taps there is a weight of 0.
            let lanes = [taps[0].lanes(window), taps[taps.len() - 1].lanes(window)];
            bytes.add_taps(&mut sums, lanes, weights);
        }
        store(&bytes.finished(sums, scales), &mut out[window * out_step..][..out_len]);
    }
}

/// [`Bytes::apart`].
#[target_feature(enable = "avx2,fma")]
fn apart_avx2<W: Apart<Avx2>>(bytes: Avx2, with: W) {
    with.run(bytes);
}
