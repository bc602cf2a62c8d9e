//! Products of signed weights and bytes of inputs with the instructions of x86-64.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions. None of them
//! saturates where it could change a result.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{Bytes, DepthwiseScales, LANES, Lanes, TileScales, WithBytes};
use crate::simd::dot::{CHANNELS, Group};
use crate::simd::token::token;

token!(
    /// Vectors of 32 bytes.
    Avx2, is_x86_feature_detected, WithBytes, "avx2,fma", "avx2" "fma"
);
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

/// A channel has two sums: of its even pairs of inputs, and of its odd ones.
impl Bytes for Avx2 {
    type Sums = [__m256i; 4];
    type Weights = [__m256i; 4];
    columns_of_taps!();

    const TILES: usize = 1;
    const ROWS: usize = 6;
    const FLIP: u8 = 0;

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe { [_mm256_setzero_si256(); 4] }
    }

    #[inline(always)]
    fn weights(self, group: &Group) -> Self::Weights {
        let ([a, b], [c, d]) = (self.half(group, 0), self.half(group, 2));
        [a, b, c, d]
    }

    #[inline(always)]
    fn add(self, sums: Self::Sums, weights: Self::Weights, inputs: [u8; 4]) -> Self::Sums {
        // Two products of bytes fit 32 bits.
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm256_broadcastq_epi64(_mm_cvtepi8_epi16(_mm_cvtsi32_si128(i32::from_ne_bytes(inputs))));
            [
                _mm256_add_epi32(sums[0], _mm256_madd_epi16(weights[0], inputs)),
                _mm256_add_epi32(sums[1], _mm256_madd_epi16(weights[1], inputs)),
                _mm256_add_epi32(sums[2], _mm256_madd_epi16(weights[2], inputs)),
                _mm256_add_epi32(sums[3], _mm256_madd_epi16(weights[3], inputs)),
            ]
        }
    }

    #[inline(always)]
    fn accumulate<const C: usize, const R: usize, const LEN: usize>(
        self,
        sums: &mut [[Self::Sums; C]; R],
        rows: &[[[u8; 4]; LEN]; R],
        panel: &[[Group; C]],
    ) {
        // The place of widened inputs is zeroed in every call.
        match panel.len() {
            ..=8 => self.accumulate_by::<C, R, LEN, 8>(sums, rows, panel),
            _ => self.accumulate_by::<C, R, LEN, 32>(sums, rows, panel),
        }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<[__m256i; 2], [i32; CHANNELS]>(self.in_order(sums)) }
    }

    #[inline(always)]
    fn requantise<const C: usize>(self, sums: &[Self::Sums; C], scales: &TileScales<'_, C>) -> [[i8; CHANNELS]; C] {
        let mut results = [[0; CHANNELS]; C];
        for tile in 0..C {
            let [first, second] = self.in_order(sums[tile]);
            let (starts, factors) = (scales.starts[tile].as_ptr(), scales.factors[tile].as_ptr());
            // SAFETY: there are 16 starts and factors, and the token exists.
            let words = unsafe {
                [
                    self.rounded(first, starts, factors, scales.limits),
                    self.rounded(second, starts.add(8), factors.add(8), scales.limits),
                ]
            };
            results[tile] = self.packed(words, scales.zero);
        }
        results
    }

    #[inline(always)]
    fn depthwise(self, taps: &[[&Lanes<i8>; 4]], weights: &[[Lanes<i8>; 4]], scales: &DepthwiseScales) -> Lanes<i8> {
        let mut results = [[0; CHANNELS]; LANES / CHANNELS];
        for (part, results) in results.iter_mut().enumerate() {
            let first = part * CHANNELS;
            // SAFETY: the token exists.
            let mut sums = unsafe { [_mm256_setzero_si256(); 2] };
            for (taps, weights) in taps.iter().zip(weights) {
                for pair in [0, 2] {
                    let taps = self.pairs([taps[pair], taps[pair + 1]], first);
                    let weights = self.pairs([&weights[pair], &weights[pair + 1]], first);
                    for (sums, (taps, weights)) in sums.iter_mut().zip(taps.into_iter().zip(weights)) {
                        // Two products of bytes fit 32 bits.
                        // SAFETY: the token exists.
                        *sums = unsafe { _mm256_add_epi32(*sums, _mm256_madd_epi16(taps, weights)) };
                    }
                }
            }
            let (starts, factors) = (scales.starts[first..].as_ptr(), scales.factors[first..].as_ptr());
            // SAFETY: there are 16 starts and factors from the first of a part on, and the token exists.
            let words = unsafe {
                // Pairs leave the channels from 4 on of each half behind those of both halves.
                let halves = [
                    _mm256_permute2x128_si256::<0x20>(sums[0], sums[1]),
                    _mm256_permute2x128_si256::<0x31>(sums[0], sums[1]),
                ];
                [
                    self.rounded(halves[0], starts, factors, scales.limits),
                    self.rounded(halves[1], starts.add(8), factors.add(8), scales.limits),
                ]
            };
            *results = self.packed(words, scales.zero);
        }
        bytemuck::cast(results)
    }
}

impl Avx2 {
    /// Bytes of two taps as pairs of numbers of 16 bits, of sixteen channels: the first and third four, and the others.
    #[inline(always)]
    fn pairs(self, taps: [&Lanes<i8>; 2], first: usize) -> [__m256i; 2] {
        let (a, b) = (taps[0][first..][..CHANNELS].as_ptr(), taps[1][first..][..CHANNELS].as_ptr());
        // SAFETY: there are 16 bytes behind each, and the token exists.
        unsafe {
            let a = _mm256_cvtepi8_epi16(_mm_loadu_si128(a.cast()));
            let b = _mm256_cvtepi8_epi16(_mm_loadu_si128(b.cast()));
            [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
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

    /// The sum of each channel, in order.
    #[inline(always)]
    fn in_order(self, sums: [__m256i; 4]) -> [__m256i; 2] {
        // SAFETY: the token exists.
        unsafe {
            [
                _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(sums[0], sums[1])),
                _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(sums[2], sums[3])),
            ]
        }
    }

    /// Results of sums before the zero point is added. Rounding is to the nearest even number; limits come second, so that
    /// there is always a number.
    ///
    /// # Safety
    ///
    /// There are eight starts and factors.
    #[inline(always)]
    unsafe fn rounded(self, sums: __m256i, starts: *const i32, factors: *const f32, [low, high]: [f32; 2]) -> __m256i {
        // SAFETY: by the caller, and the token exists.
        unsafe {
            let sums = _mm256_add_epi32(sums, _mm256_loadu_si256(starts.cast()));
            let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_loadu_ps(factors));
            let limited = _mm256_min_ps(_mm256_max_ps(scaled, _mm256_set1_ps(low)), _mm256_set1_ps(high));
            _mm256_cvtps_epi32(_mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(limited))
        }
    }

    /// Inputs become numbers of 16 bits once for all tiles, `FOURS` fours at a time, rather than four by four in registers. Half a
    /// tile comes at a time, so that the sums of six rows stay in registers, and weights are widened once for all of them.
    #[inline(always)]
    fn accumulate_by<const C: usize, const R: usize, const LEN: usize, const FOURS: usize>(
        self,
        sums: &mut [[[__m256i; 4]; C]; R],
        rows: &[[[u8; 4]; LEN]; R],
        panel: &[[Group; C]],
    ) {
        let mut words = [[[0i16; 4]; FOURS]; R];
        for (part, panel) in panel[..panel.len().min(LEN)].chunks(FOURS).enumerate() {
            for (words, row) in words.iter_mut().zip(rows) {
                let row = &row[part * FOURS..][..panel.len()];
                for (word, input) in words.as_flattened_mut().iter_mut().zip(row.as_flattened()) {
                    *word = i16::from(*input as i8);
                }
            }
            for tile in 0..C {
                for half in [0, 2] {
                    let mut all = [[sums[0][tile][half]; 2]; R];
                    for (all, sums) in all.iter_mut().zip(sums.iter()) {
                        *all = [sums[tile][half], sums[tile][half + 1]];
                    }
                    for (index, groups) in panel.iter().enumerate() {
                        let weights = self.half(&groups[tile], half);
                        for (all, words) in all.iter_mut().zip(&words) {
                            *all = self.add_words(*all, weights, words[index]);
                        }
                    }
                    for (all, sums) in all.iter().zip(sums.iter_mut()) {
                        [sums[tile][half], sums[tile][half + 1]] = *all;
                    }
                }
            }
        }
    }

    /// Adds the products of four inputs with the weights of half a tile, wrapping.
    #[inline(always)]
    fn add_words(self, sums: [__m256i; 2], weights: [__m256i; 2], inputs: [i16; 4]) -> [__m256i; 2] {
        // Two products of bytes fit 32 bits.
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm256_set1_epi64x(bytemuck::cast::<[i16; 4], i64>(inputs));
            [
                _mm256_add_epi32(sums[0], _mm256_madd_epi16(weights[0], inputs)),
                _mm256_add_epi32(sums[1], _mm256_madd_epi16(weights[1], inputs)),
            ]
        }
    }

    /// Two vectors of weights of a group, from the first of half a tile on, as numbers of 16 bits.
    #[inline(always)]
    fn half(self, group: &Group, first: usize) -> [__m256i; 2] {
        let at = group.0[16 * first..][..32].as_ptr();
        // SAFETY: there are 32 bytes, and the token exists.
        unsafe {
            [_mm256_cvtepi8_epi16(_mm_loadu_si128(at.cast())), _mm256_cvtepi8_epi16(_mm_loadu_si128(at.add(16).cast()))]
        }
    }
}

impl Bytes for AvxVnni {
    type Sums = [__m256i; 2];
    type Weights = [__m256i; 2];
    columns_of_taps!();

    const TILES: usize = 1;
    const ROWS: usize = 6;
    const FLIP: u8 = 0x80;

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

    #[inline(always)]
    fn add(self, sums: Self::Sums, weights: Self::Weights, inputs: [u8; 4]) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm256_set1_epi32(i32::from_ne_bytes(inputs));
            [_mm256_dpbusd_avx_epi32(sums[0], inputs, weights[0]), _mm256_dpbusd_avx_epi32(sums[1], inputs, weights[1])]
        }
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
    type Column<'a> = [__m512i; 4];

    const TILES: usize = 4;
    const ROWS: usize = 12;
    const FLIP: u8 = 0x80;

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

    #[inline(always)]
    fn add(self, sums: Self::Sums, weights: Self::Weights, inputs: [u8; 4]) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe { _mm512_dpbusd_epi32(sums, _mm512_set1_epi32(i32::from_ne_bytes(inputs)), weights) }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<__m512i, [i32; CHANNELS]>(sums) }
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
    fn depthwise(self, taps: &[[&Lanes<i8>; 4]], weights: &[[Lanes<i8>; 4]], scales: &DepthwiseScales) -> Lanes<i8> {
        let mut sums = [self.zero(); 4];
        for (taps, weights) in taps.iter().zip(weights) {
            self.add_column(&mut sums, &self.column(*taps), weights);
        }
        self.finished(sums, scales)
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

/// The channel in each place after four lists of [`LANES`] bytes were interleaved.
pub(crate) fn interleaved_order() -> Lanes<usize> {
    // Vector 0 has channels 0 to 3 of each lane of 16 channels, vector 1 those from 4 on, and so on.
    std::array::from_fn(|place| {
        let (vector, lane, channel) = (place / 16, place % 16 / 4, place % 4);
        lane * 16 + vector * 4 + channel
    })
}
