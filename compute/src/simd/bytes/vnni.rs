//! Products of signed weights and bytes of inputs with VNNI: four at a time.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions. None of them
//! saturates where it could change a result.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::hint::black_box;

use super::{
    Bytes, DepthwiseLine, DepthwiseScales, FloatScales, LANES, Lanes, RowScales, TileScales, WithBytes, add_products,
    depthwise_windows,
};
use crate::simd::dot::{CHANNELS, Group};
use crate::simd::token::token;

token!(
    /// Vectors of 32 bytes, with sums of four products of bytes.
    AvxVnni, is_x86_feature_detected, WithBytes, "avx2,fma,avxvnni", "avx2" "fma" "avxvnni"
);
token!(
    /// Vectors of 64 bytes, with sums of four products of bytes.
    Avx512Vnni, is_x86_feature_detected, WithBytes,
    "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni",
    "avx2" "fma" "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vnni"
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
    fn apart<W: WithBytes>(self, with: W) -> W::Output {
        self.run(with)
    }

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe { [_mm256_setzero_si256(); 2] }
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

    #[inline(always)]
    fn accumulate<const C: usize, const R: usize>(
        self,
        sums: &mut [[Self::Sums; C]; R],
        rows: [&[[i8; 4]]; R],
        panel: &[[Group; C]],
    ) {
        let accumulate: Accumulate<Self, C, R> = accumulate_avx;
        // SAFETY: the token exists.
        unsafe { black_box(accumulate)(self, sums, rows, panel) }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<[__m256i; 2], [i32; CHANNELS]>(sums) }
    }
}

impl Bytes for Avx512Vnni {
    type Sums = __m512i;
    type Weights = __m512i;
    type Input = i8;
    type Mask = __m512i;
    type Column<'a> = [__m512i; 4];
    bytes_as_they_are!();

    const TILES: usize = 4;
    const ROWS: usize = 12;

    #[inline(always)]
    fn apart<W: WithBytes>(self, with: W) -> W::Output {
        self.run(with)
    }

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn weights(self, group: &Group) -> Self::Weights {
        // SAFETY: a group has 64 bytes, and the token exists.
        unsafe { _mm512_loadu_si512(group.0.as_ptr().cast()) }
    }

    /// Signs to be flipped, as those of shorter vectors.
    #[inline(always)]
    fn mask(self) -> __m512i {
        // SAFETY: the token exists.
        black_box(unsafe { _mm512_set1_epi8(-128) })
    }

    #[inline(always)]
    fn add(self, mask: __m512i, sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm512_xor_si512(_mm512_set1_epi32(bytemuck::cast(inputs)), mask);
            _mm512_dpbusd_epi32(sums, inputs, weights)
        }
    }

    #[inline(always)]
    fn accumulate<const C: usize, const R: usize>(
        self,
        sums: &mut [[Self::Sums; C]; R],
        rows: [&[[i8; 4]]; R],
        panel: &[[Group; C]],
    ) {
        let accumulate: Accumulate<Self, C, R> = accumulate_avx512;
        // SAFETY: the token exists.
        unsafe { black_box(accumulate)(self, sums, rows, panel) }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<__m512i, [i32; CHANNELS]>(sums) }
    }

    #[inline(always)]
    fn requantise_rows<const C: usize, const R: usize>(
        self,
        sums: &[[__m512i; C]; R],
        scales: &TileScales<'_, C>,
    ) -> [[[i8; CHANNELS]; C]; R] {
        let requantise: Requantise<C, R> = requantise_avx512;
        // SAFETY: the token exists.
        unsafe { black_box(requantise)(self, sums, scales) }
    }

    #[inline(always)]
    fn scale_rows<const C: usize, const R: usize>(
        self,
        sums: &[[__m512i; C]; R],
        scales: &FloatScales<'_, C>,
        rows: &[RowScales; R],
    ) -> [[[f32; CHANNELS]; C]; R] {
        let scale: ScaleRows<C, R> = scale_rows_avx512;
        // SAFETY: the token exists.
        unsafe { black_box(scale)(self, sums, scales, rows) }
    }

    #[inline(always)]
    fn requantise<const C: usize>(self, sums: &[__m512i; C], scales: &TileScales<'_, C>) -> [[i8; CHANNELS]; C] {
        let mut words = *sums;
        for (tile, words) in words.iter_mut().enumerate() {
            *words = self.rounded(*words, &scales.starts[tile], &scales.factors[tile], scales.limits);
        }
        let mut results = [[0; CHANNELS]; C];
        let (fours, rest) = words.as_chunks::<4>();
        let (of_fours, of_rest) = results.as_chunks_mut::<4>();
        for (results, words) in of_fours.iter_mut().zip(fours) {
            let packed = self.packed(*words, scales.zero);
            // SAFETY: the token exists; vectors and numbers are the same bytes.
            unsafe {
                // Packing leaves four channels of each vector next to each other.
                let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
                let packed = _mm512_permutexvar_epi32(order, packed);
                *results = std::mem::transmute::<__m512i, [[i8; CHANNELS]; 4]>(packed);
            }
        }
        for (results, words) in of_rest.iter_mut().zip(rest) {
            // SAFETY: the token exists; vectors and numbers are the same bytes.
            *results = unsafe {
                let words = _mm512_add_epi32(*words, _mm512_set1_epi32(scales.zero));
                std::mem::transmute::<__m128i, [i8; CHANNELS]>(_mm512_cvtepi32_epi8(words))
            };
        }
        results
    }

    /// Bytes of four taps are interleaved into groups of four for each channel, which leaves channels in another order
    /// than they were; packing results to bytes restores it.
    #[inline(always)]
    fn depthwise(
        self,
        taps: &[[&Lanes<i8>; 4]],
        _count: usize,
        weights: &[[Lanes<i8>; 4]],
        scales: &DepthwiseScales,
    ) -> Lanes<i8> {
        let mut sums = [self.zero(); 4];
        for (taps, weights) in taps.iter().zip(weights) {
            self.add_column(&mut sums, &self.column(*taps), weights);
        }
        self.finished(sums, scales)
    }

    #[inline(always)]
    fn depthwise_line(self, line: &DepthwiseLine<'_>, scales: &DepthwiseScales, out: &mut [i8]) {
        let depthwise: Depthwise = depthwise_avx512;
        // SAFETY: the token exists.
        unsafe { black_box(depthwise)(self, line, scales, out) }
    }

    #[inline(always)]
    fn column<'a>(self, taps: [&'a Lanes<i8>; 4]) -> Self::Column<'a> {
        self.interleaved([self.flipped(taps[0]), self.flipped(taps[1]), self.flipped(taps[2]), self.flipped(taps[3])])
    }

    #[inline(always)]
    fn depthwise_columns(
        self,
        columns: &[Self::Column<'_>],
        weights: &[[Lanes<i8>; 4]],
        scales: &DepthwiseScales,
    ) -> Lanes<i8> {
        let mut sums = [self.zero(); 4];
        for (column, weights) in columns.iter().zip(weights) {
            self.add_column(&mut sums, column, weights);
        }
        self.finished(sums, scales)
    }
}

// Inlined into a large function, these would not keep their numbers in registers; calls are through pointers that nothing is
// known about, so that they are not inlined.
type Accumulate<B, const C: usize, const R: usize> =
    unsafe fn(B, &mut [[<B as Bytes>::Sums; C]; R], [&[[i8; 4]]; R], &[[Group; C]]);
type Requantise<const C: usize, const R: usize> =
    unsafe fn(Avx512Vnni, &[[__m512i; C]; R], &TileScales<'_, C>) -> [[[i8; CHANNELS]; C]; R];
type ScaleRows<const C: usize, const R: usize> =
    unsafe fn(Avx512Vnni, &[[__m512i; C]; R], &FloatScales<'_, C>, &[RowScales; R]) -> [[[f32; CHANNELS]; C]; R];
type Depthwise = unsafe fn(Avx512Vnni, &DepthwiseLine<'_>, &DepthwiseScales, &mut [i8]);

/// [`Bytes::accumulate`].
#[target_feature(enable = "avx2,fma,avxvnni")]
fn accumulate_avx<const C: usize, const R: usize>(
    bytes: AvxVnni,
    sums: &mut [[[__m256i; 2]; C]; R],
    rows: [&[[i8; 4]]; R],
    panel: &[[Group; C]],
) {
    add_products(bytes, sums, rows, panel);
}

/// [`Bytes::accumulate`].
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn accumulate_avx512<const C: usize, const R: usize>(
    bytes: Avx512Vnni,
    sums: &mut [[__m512i; C]; R],
    rows: [&[[i8; 4]]; R],
    panel: &[[Group; C]],
) {
    add_products(bytes, sums, rows, panel);
}

/// [`Bytes::requantise_rows`].
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn requantise_avx512<const C: usize, const R: usize>(
    bytes: Avx512Vnni,
    sums: &[[__m512i; C]; R],
    scales: &TileScales<'_, C>,
) -> [[[i8; CHANNELS]; C]; R] {
    let mut results = [[[0; CHANNELS]; C]; R];
    for (results, sums) in results.iter_mut().zip(sums) {
        *results = bytes.requantise(sums, scales);
    }
    results
}

/// [`Bytes::scale_rows`].
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn scale_rows_avx512<const C: usize, const R: usize>(
    bytes: Avx512Vnni,
    sums: &[[__m512i; C]; R],
    scales: &FloatScales<'_, C>,
    rows: &[RowScales; R],
) -> [[[f32; CHANNELS]; C]; R] {
    let mut results = [[[0.0; CHANNELS]; C]; R];
    for ((results, sums), row) in results.iter_mut().zip(sums).zip(rows) {
        for (tile, results) in results.iter_mut().enumerate() {
            *results = bytes.scaled(sums[tile], scales, tile, row);
        }
    }
    results
}

/// [`Bytes::depthwise_line`].
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn depthwise_avx512(bytes: Avx512Vnni, line: &DepthwiseLine<'_>, scales: &DepthwiseScales, out: &mut [i8]) {
    depthwise_windows(bytes, line, scales, out);
}

impl Avx512Vnni {
    #[inline(always)]
    fn load(self, bytes: &Lanes<i8>) -> __m512i {
        // SAFETY: there are 64 bytes, and the token exists.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn flipped(self, bytes: &Lanes<i8>) -> __m512i {
        // SAFETY: the token exists.
        unsafe { _mm512_xor_si512(self.load(bytes), _mm512_set1_epi8(-128)) }
    }

    /// Bytes of four lists as one group of four for each channel.
    #[inline(always)]
    fn interleaved(self, [a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        // SAFETY: the token exists.
        unsafe {
            let (ab_low, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
            let (cd_low, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
            [
                _mm512_unpacklo_epi16(ab_low, cd_low),
                _mm512_unpackhi_epi16(ab_low, cd_low),
                _mm512_unpacklo_epi16(ab_high, cd_high),
                _mm512_unpackhi_epi16(ab_high, cd_high),
            ]
        }
    }

    /// Adds the products of four interleaved taps.
    #[inline(always)]
    fn add_column(self, sums: &mut [__m512i; 4], column: &[__m512i; 4], weights: &[Lanes<i8>; 4]) {
        for part in 0..4 {
            // SAFETY: the token exists.
            sums[part] = unsafe { _mm512_dpbusd_epi32(sums[part], column[part], self.load(&weights[part])) };
        }
    }

    /// Results of sums before the zero point is added. Rounding is to the nearest even number; limits come second, so that
    /// there is always a number.
    #[inline(always)]
    fn rounded(
        self,
        sums: __m512i,
        starts: &[i32; CHANNELS],
        factors: &[f32; CHANNELS],
        [low, high]: [f32; 2],
    ) -> __m512i {
        // SAFETY: there are 16 of each, and the token exists.
        unsafe {
            let sums = _mm512_add_epi32(sums, _mm512_loadu_si512(starts.as_ptr().cast()));
            let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_loadu_ps(factors.as_ptr()));
            let limited = _mm512_min_ps(_mm512_max_ps(scaled, _mm512_set1_ps(low)), _mm512_set1_ps(high));
            _mm512_cvt_roundps_epi32::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(limited)
        }
    }

    /// Floats of the sums of a tile.
    #[inline(always)]
    fn scaled<const C: usize>(
        self,
        sums: __m512i,
        scales: &FloatScales<'_, C>,
        tile: usize,
        row: &RowScales,
    ) -> [f32; CHANNELS] {
        let [low, high] = scales.limits;
        // SAFETY: there are 16 of each, and the token exists; vectors and numbers are the same bytes.
        unsafe {
            let weights = _mm512_loadu_si512(scales.weights[tile].as_ptr().cast());
            let sums = _mm512_sub_epi32(sums, _mm512_mullo_epi32(weights, _mm512_set1_epi32(row.zero)));
            let y = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(row.scale));
            let (factors, bias) = (scales.factors[tile].as_ptr(), scales.bias[tile].as_ptr());
            let y = _mm512_fmadd_ps(y, _mm512_loadu_ps(factors), _mm512_loadu_ps(bias));
            let y = _mm512_min_ps(_mm512_max_ps(y, _mm512_set1_ps(low)), _mm512_set1_ps(high));
            std::mem::transmute::<__m512, [f32; CHANNELS]>(y)
        }
    }

    /// Numbers as bytes, with the zero point added: of each vector in turn, four and four next to each other. They are
    /// within 16 bits, and with the zero point within eight.
    #[inline(always)]
    fn packed(self, words: [__m512i; 4], zero: i32) -> __m512i {
        // SAFETY: the token exists.
        unsafe {
            let zero = _mm512_set1_epi16(zero as i16);
            let low = _mm512_add_epi16(_mm512_packs_epi32(words[0], words[1]), zero);
            let high = _mm512_add_epi16(_mm512_packs_epi32(words[2], words[3]), zero);
            _mm512_packs_epi16(low, high)
        }
    }

    /// Results of sums whose channels are in the order that [`Self::interleaved`] leaves, as those of the scales are.
    #[inline(always)]
    fn finished(self, sums: [__m512i; 4], scales: &DepthwiseScales) -> Lanes<i8> {
        let (starts, factors) = (scales.starts.as_chunks::<CHANNELS>().0, scales.factors.as_chunks::<CHANNELS>().0);
        let mut words = sums;
        for (part, words) in words.iter_mut().enumerate() {
            *words = self.rounded(*words, &starts[part], &factors[part], scales.limits);
        }
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<__m512i, [i8; LANES]>(self.packed(words, scales.zero)) }
    }
}

/// The channel in a place after four lists of [`LANES`] bytes were interleaved.
pub(crate) fn interleaved_channel(place: usize) -> usize {
    // Vector 0 has channels 0 to 3 of each lane of 16 channels, vector 1 those from 4 on, and so on.
    let (vector, lane, channel) = (place / 16, place % 16 / 4, place % 4);
    lane * 16 + vector * 4 + channel
}
