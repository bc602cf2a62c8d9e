//! Products of bytes with the instructions of x86-64.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions. None of them
//! saturates: bytes are multiplied as such into sums of 32 bits, or as numbers of 16 bits.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::dot::{CHANNELS, Dot, Group, WithDot};
use super::token::token;

token!(
    /// Vectors of 32 bytes, and fused multiply-add.
    Avx2, is_x86_feature_detected, WithDot, "avx2,fma", "avx2" "fma"
);
token!(
    /// Vectors of 32 bytes, and fused multiply-add, with sums of four products of bytes.
    AvxVnni, is_x86_feature_detected, WithDot, "avx2,fma,avxvnni", "avx2" "fma" "avxvnni"
);
token!(
    /// Vectors of 64 bytes, with sums of four products of bytes.
    Avx512Vnni, is_x86_feature_detected, WithDot, "avx512f,avx512vnni,fma", "avx512f" "avx512vnni" "fma"
);

/// The halves of a group, as vectors.
#[inline(always)]
fn two(_: Avx2, group: &Group) -> [__m256i; 2] {
    let at = group.0.as_ptr();
    // SAFETY: a group has 64 bytes, and a token of these instructions exists.
    unsafe { [_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(32).cast())] }
}

/// The low and the high halves of bytes.
#[inline(always)]
fn halves(_: Avx2, bytes: __m256i) -> [__m256i; 2] {
    // SAFETY: a token of these instructions exists.
    unsafe {
        let low = _mm256_set1_epi8(15);
        [_mm256_and_si256(bytes, low), _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low)]
    }
}

/// Sums times scales onto floats: eight channels each.
#[inline(always)]
fn add_scaled(_: Avx2, floats: [__m256; 2], sums: [__m256i; 2], scales: &[u16; CHANNELS]) -> [__m256; 2] {
    let at = scales.as_ptr();
    // SAFETY: there are 16 scales of two bytes, and a token of these instructions exists.
    unsafe {
        let scales = [_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(8).cast())];
        let first = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(scales[0])));
        let second = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(scales[1])));
        [
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[0]), first, floats[0]),
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[1]), second, floats[1]),
        ]
    }
}

#[inline(always)]
fn load_floats(_: Avx2, from: [f32; CHANNELS]) -> [__m256; 2] {
    // SAFETY: there are 16 floats, and a token of these instructions exists.
    unsafe { [_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))] }
}

#[inline(always)]
fn store_floats(_: Avx2, floats: [__m256; 2]) -> [f32; CHANNELS] {
    let mut to = [0.0; CHANNELS];
    // SAFETY: there is room for 16 floats, and a token of these instructions exists.
    unsafe {
        _mm256_storeu_ps(to.as_mut_ptr(), floats[0]);
        _mm256_storeu_ps(to.as_mut_ptr().add(8), floats[1]);
    }
    to
}

#[inline(always)]
fn store_sums(_: Avx2, sums: [__m256i; 2]) -> [i32; CHANNELS] {
    let mut to = [0; CHANNELS];
    // SAFETY: there is room for 16 sums, and a token of these instructions exists.
    unsafe {
        _mm256_storeu_si256(to.as_mut_ptr().cast(), sums[0]);
        _mm256_storeu_si256(to.as_mut_ptr().add(8).cast(), sums[1]);
    }
    to
}

impl Avx2 {
    /// Bytes of eight channels each as 16-bit numbers, four channels a vector.
    #[inline(always)]
    fn words(self, first: __m256i, second: __m256i) -> [__m256i; 4] {
        // SAFETY: the token exists.
        unsafe {
            [
                _mm256_cvtepu8_epi16(_mm256_castsi256_si128(first)),
                _mm256_cvtepu8_epi16(_mm256_extracti128_si256::<1>(first)),
                _mm256_cvtepu8_epi16(_mm256_castsi256_si128(second)),
                _mm256_cvtepu8_epi16(_mm256_extracti128_si256::<1>(second)),
            ]
        }
    }

    /// Adds the two sums of each channel, of four channels a vector.
    #[inline(always)]
    fn fold(self, sums: [__m256i; 4]) -> [__m256i; 2] {
        // SAFETY: the token exists.
        unsafe {
            [
                _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(sums[0], sums[1])),
                _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(sums[2], sums[3])),
            ]
        }
    }
}

/// A channel has two sums: of its even pairs of inputs, and of its odd ones.
impl Dot for Avx2 {
    type Sums = [__m256i; 4];
    type Weights = [__m256i; 4];
    type Floats = [__m256; 2];

    const ROWS: usize = 2;
    const TILES: usize = 1;

    #[inline(always)]
    fn start(self, value: i32) -> Self::Sums {
        // SAFETY: the token exists.
        [unsafe { _mm256_set1_epi64x(i64::from(value as u32)) }; 4]
    }

    #[inline(always)]
    fn bytes(self, group: &Group) -> Self::Weights {
        let [first, second] = two(self, group);
        self.words(first, second)
    }

    #[inline(always)]
    fn halves(self, group: &Group) -> [Self::Weights; 2] {
        let [first, second] = two(self, group);
        let ([a, b], [c, d]) = (halves(self, first), halves(self, second));
        [self.words(a, c), self.words(b, d)]
    }

    #[inline(always)]
    fn add(self, sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        // SAFETY: the token exists.
        let inputs = unsafe {
            _mm256_broadcastq_epi64(_mm_cvtepi8_epi16(_mm_cvtsi32_si128(bytemuck::cast::<[i8; 4], i32>(inputs))))
        };
        // A product is at most 255 · 128, and two of them fit 32 bits.
        // SAFETY: the token exists.
        unsafe {
            [
                _mm256_add_epi32(sums[0], _mm256_madd_epi16(weights[0], inputs)),
                _mm256_add_epi32(sums[1], _mm256_madd_epi16(weights[1], inputs)),
                _mm256_add_epi32(sums[2], _mm256_madd_epi16(weights[2], inputs)),
                _mm256_add_epi32(sums[3], _mm256_madd_epi16(weights[3], inputs)),
            ]
        }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        store_sums(self, self.fold(sums))
    }

    #[inline(always)]
    fn floats(self, start: [f32; CHANNELS]) -> Self::Floats {
        load_floats(self, start)
    }

    #[inline(always)]
    fn add_scaled(self, floats: Self::Floats, sums: Self::Sums, scales: &[u16; CHANNELS]) -> Self::Floats {
        add_scaled(self, floats, self.fold(sums), scales)
    }

    #[inline(always)]
    fn to_array(self, floats: Self::Floats) -> [f32; CHANNELS] {
        store_floats(self, floats)
    }
}

impl AvxVnni {
    /// The instructions that these include.
    #[inline(always)]
    fn avx2(self) -> Avx2 {
        Avx2(())
    }
}

impl Dot for AvxVnni {
    type Sums = [__m256i; 2];
    type Weights = [__m256i; 2];
    type Floats = [__m256; 2];

    const ROWS: usize = 4;
    const TILES: usize = 1;

    #[inline(always)]
    fn start(self, value: i32) -> Self::Sums {
        // SAFETY: the token exists.
        [unsafe { _mm256_set1_epi32(value) }; 2]
    }

    #[inline(always)]
    fn bytes(self, group: &Group) -> Self::Weights {
        two(self.avx2(), group)
    }

    #[inline(always)]
    fn halves(self, group: &Group) -> [Self::Weights; 2] {
        let [first, second] = two(self.avx2(), group);
        let ([a, b], [c, d]) = (halves(self.avx2(), first), halves(self.avx2(), second));
        [[a, c], [b, d]]
    }

    #[inline(always)]
    fn add(self, sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm256_set1_epi32(bytemuck::cast::<[i8; 4], i32>(inputs));
            [_mm256_dpbusd_avx_epi32(sums[0], weights[0], inputs), _mm256_dpbusd_avx_epi32(sums[1], weights[1], inputs)]
        }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        store_sums(self.avx2(), sums)
    }

    #[inline(always)]
    fn floats(self, start: [f32; CHANNELS]) -> Self::Floats {
        load_floats(self.avx2(), start)
    }

    #[inline(always)]
    fn add_scaled(self, floats: Self::Floats, sums: Self::Sums, scales: &[u16; CHANNELS]) -> Self::Floats {
        add_scaled(self.avx2(), floats, sums, scales)
    }

    #[inline(always)]
    fn to_array(self, floats: Self::Floats) -> [f32; CHANNELS] {
        store_floats(self.avx2(), floats)
    }
}

impl Dot for Avx512Vnni {
    type Sums = __m512i;
    type Weights = __m512i;
    type Floats = __m512;

    const ROWS: usize = 4;
    const TILES: usize = 4;

    #[inline(always)]
    fn start(self, value: i32) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    fn bytes(self, group: &Group) -> Self::Weights {
        // SAFETY: a group has 64 bytes, and the token exists.
        unsafe { _mm512_loadu_si512(group.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn halves(self, group: &Group) -> [Self::Weights; 2] {
        // SAFETY: a group has 64 bytes, and the token exists.
        unsafe {
            let bytes = _mm512_loadu_si512(group.0.as_ptr().cast());
            let low = _mm512_set1_epi32(0x0f0f_0f0f);
            [_mm512_and_si512(bytes, low), _mm512_and_si512(_mm512_srli_epi32::<4>(bytes), low)]
        }
    }

    #[inline(always)]
    fn add(self, sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm512_set1_epi32(bytemuck::cast::<[i8; 4], i32>(inputs));
            _mm512_dpbusd_epi32(sums, weights, inputs)
        }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        let mut to = [0; CHANNELS];
        // SAFETY: there is room for 16 sums, and the token exists.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), sums) };
        to
    }

    #[inline(always)]
    fn floats(self, start: [f32; CHANNELS]) -> Self::Floats {
        // SAFETY: there are 16 floats, and the token exists.
        unsafe { _mm512_loadu_ps(start.as_ptr()) }
    }

    #[inline(always)]
    fn add_scaled(self, floats: Self::Floats, sums: Self::Sums, scales: &[u16; CHANNELS]) -> Self::Floats {
        // SAFETY: there are 16 scales of two bytes, and the token exists.
        unsafe {
            let scales = _mm512_cvtepu16_epi32(_mm256_loadu_si256(scales.as_ptr().cast()));
            let scales = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(scales));
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), scales, floats)
        }
    }

    #[inline(always)]
    fn to_array(self, floats: Self::Floats) -> [f32; CHANNELS] {
        let mut to = [0.0; CHANNELS];
        // SAFETY: there is room for 16 floats, and the token exists.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), floats) };
        to
    }
}
