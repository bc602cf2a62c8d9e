//! Numbers in vectors of 64 bytes as bytes, and where they go.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::vnni::{Avx512Vnni, Narrow};
use crate::threads::Columns;

impl Avx512Vnni {
    /// Numbers of a tile as bytes, with the zero point added, from the least on.
    #[inline(always)]
    pub(super) fn narrowed(self, words: __m512i, narrow: &Narrow) -> __m128i {
        // SAFETY: the token exists.
        unsafe {
            let halves = _mm256_adds_epi16(_mm512_cvtsepi32_epi16(words), _mm512_castsi512_si256(narrow.zero));
            _mm_max_epi8(_mm256_cvtsepi16_epi8(halves), _mm512_castsi512_si128(narrow.least))
        }
    }

    /// Numbers as bytes, with the zero point added, from the least on: of each vector in turn, four and four next to each other.
    #[inline(always)]
    pub(super) fn interleaved_bytes(self, words: [__m512i; 4], narrow: &Narrow) -> __m512i {
        // SAFETY: the token exists.
        unsafe {
            let first = _mm512_adds_epi16(_mm512_packs_epi32(words[0], words[1]), narrow.zero);
            let last = _mm512_adds_epi16(_mm512_packs_epi32(words[2], words[3]), narrow.zero);
            _mm512_max_epi8(_mm512_packs_epi16(first, last), narrow.least)
        }
    }

    /// Numbers of tiles as bytes, with the zero point added, from the least on.
    #[inline(always)]
    pub(super) fn packed(self, words: [__m512i; 4], narrow: &Narrow) -> __m512i {
        // SAFETY: the token exists.
        unsafe {
            // Packing leaves four channels of each vector next to each other.
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_permutexvar_epi32(order, self.interleaved_bytes(words, narrow))
        }
    }

    // Results are written from where they are: read again after they were written in other pieces, they are waited for.

    /// Writes results of a tile, as many as there is room for.
    #[inline(always)]
    pub(super) fn put_one(self, results: __m128i, to: &mut [i8]) {
        let first = first(to.len()) as __mmask16;
        // SAFETY: as many bytes are written as there are, at most 16, and the token exists.
        unsafe { _mm_mask_storeu_epi8(to.as_mut_ptr(), first, results) }
    }

    /// Results of two tiles next to each other.
    #[inline(always)]
    pub(super) fn joined(self, a: __m128i, b: __m128i) -> __m256i {
        // SAFETY: the token exists.
        unsafe { _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b) }
    }

    /// Writes results of four tiles to `N` rows, as many to each as there is room for.
    #[inline(always)]
    pub(super) fn put_rows<const N: usize>(self, results: __m512i, to: &mut Columns<'_, i8>) {
        // SAFETY: the token exists.
        let [low, high] = unsafe { [_mm512_castsi512_si256(results), _mm512_extracti64x4_epi64::<1>(results)] };
        match N {
            2 => {
                self.put_two(low, to.row(0));
                self.put_two(high, to.row(1));
            }
            // SAFETY: the token exists.
            4 => unsafe {
                self.put_one(_mm256_castsi256_si128(low), to.row(0));
                self.put_one(_mm256_extracti128_si256::<1>(low), to.row(1));
                self.put_one(_mm256_castsi256_si128(high), to.row(2));
                self.put_one(_mm256_extracti128_si256::<1>(high), to.row(3));
            },
            _ => unreachable!("{N} rows of two tiles or one"),
        }
    }

    /// Writes results of two tiles, as many as there is room for.
    #[inline(always)]
    pub(super) fn put_two(self, both: __m256i, to: &mut [i8]) {
        let first = first(to.len()) as __mmask32;
        // SAFETY: as many bytes are written as there are, at most 32, and the token exists.
        unsafe { _mm256_mask_storeu_epi8(to.as_mut_ptr(), first, both) }
    }

    /// Writes results of four tiles, as many as there is room for.
    #[inline(always)]
    pub(super) fn put_four(self, results: __m512i, to: &mut [i8]) {
        // SAFETY: as many bytes are written as there are, at most 64, and the token exists.
        unsafe { _mm512_mask_storeu_epi8(to.as_mut_ptr(), first(to.len()), results) }
    }
}

/// The mask of the first bytes, all of them from 64 on.
#[inline(always)]
fn first(count: usize) -> __mmask64 {
    u64::MAX.checked_shr(64 - count.min(64) as u32).unwrap_or(0)
}
