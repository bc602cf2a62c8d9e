//! Vectors of sixteen floats with the instructions of x86-64.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::hint::black_box;

use super::apart::Apart;
use super::floats::{Floats, LANES, Line, MANTISSA, Vectors, WithFloats};
use super::token::token;
use super::x86_floats::{first_of_groups, peak, total};

token!(
    /// Vectors of sixteen floats.
    Avx512Floats, is_x86_feature_detected, WithFloats, "avx512f,avx2,fma", "avx512f" "avx2" "fma"
);

/// [`Vectors::apart`].
#[target_feature(enable = "avx512f,avx2,fma")]
fn apart_avx512<F, W: Apart<F>>(floats: F, with: W) {
    with.run(floats);
}

/// A bit for each lane below a number, fewer than [`LANES`].
#[inline(always)]
fn first_lanes(count: usize) -> __mmask16 {
    assert!(count < LANES, "{count} lanes of a vector");
    (1 << count) - 1
}

impl Vectors for Avx512Floats {
    type V = __m512;

    const ASKS: bool = true;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        // SAFETY: the token exists.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        // SAFETY: there are 16 floats, and the token exists.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, v: Self::V, to: &mut [f32; LANES]) {
        // SAFETY: there is room for 16 floats, and the token exists.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn over(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn at_least(self, least: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the token exists. The instruction gives its second operand where one is NaN.
        unsafe { _mm512_max_ps(least, x) }
    }

    #[inline(always)]
    fn at_most(self, greatest: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the token exists. The instruction gives its second operand where one is NaN.
        unsafe { _mm512_min_ps(greatest, x) }
    }

    #[inline(always)]
    fn power(self, bits: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<MANTISSA>(_mm512_castps_si512(bits))) }
    }

    #[inline(always)]
    fn prefetch(self, line: *const Line) {
        // SAFETY: the token exists. Fetching is a hint: no address faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
    }

    #[inline(always)]
    fn prefetch_far(self, line: *const Line) {
        // SAFETY: the token exists. Fetching is a hint: no address faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) }
    }

    #[inline(always)]
    fn load_some(self, from: &[f32], rest: f32) -> Self::V {
        // There may be no memory where nothing is read, and the instruction takes long to find that out.
        if from.is_empty() {
            return self.splat(rest);
        }
        // SAFETY: only numbers that are there are read, and the token exists.
        unsafe { _mm512_mask_loadu_ps(_mm512_set1_ps(rest), first_lanes(from.len()), from.as_ptr()) }
    }

    #[inline(always)]
    fn store_some(self, v: Self::V, to: &mut [f32]) {
        // SAFETY: only numbers that there is room for are written, and the token exists.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first_lanes(to.len()), v) }
    }

    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        let run: unsafe fn(Self, W) = apart_avx512;
        // What the compiler is told about inlining it does not keep to where instructions are the same, so the call is through a
        // pointer that nothing is known about.
        // SAFETY: the token exists.
        unsafe { black_box(run)(self, with) }
    }
}

impl Floats for Avx512Floats {
    type Half = Avx512Floats;
    const HALVES: bool = false;
    const ROWS: usize = 12;
    const TILES: usize = 4;

    #[inline(always)]
    fn half(self) -> Avx512Floats {
        self
    }

    #[inline(always)]
    fn plus(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn minus(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn greater(self, greatest: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe {
            // The instruction gives its second operand where one is NaN.
            let greater = _mm512_max_ps(x, greatest);
            _mm512_mask_mov_ps(greater, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), x)
        }
    }

    #[inline(always)]
    fn total(self, v: Self::V) -> f32 {
        // SAFETY: the token exists.
        unsafe {
            let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v)));
            total(_mm256_add_ps(_mm512_castps512_ps256(v), upper))
        }
    }

    #[inline(always)]
    fn totals(self, vectors: [Self::V; LANES]) -> Self::V {
        let mut lanes = self.transposed(vectors);
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                lanes[lane] = self.plus(lanes[lane], lanes[lane + half]);
            }
        }
        lanes[0]
    }

    #[inline(always)]
    fn peak(self, v: Self::V) -> f32 {
        // SAFETY: the token exists.
        unsafe {
            let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v)));
            peak(_mm256_max_ps(_mm512_castps512_ps256(v), upper))
        }
    }

    #[inline(always)]
    fn moved(self, a: Self::V, b: Self::V, by: usize) -> Self::V {
        const LANE: [i32; LANES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        assert!(by <= LANES, "{by} lanes of a vector");
        // SAFETY: there are 16 numbers, and the token exists. The instruction takes lanes of `b` as those behind `a`.
        unsafe {
            let lanes = _mm512_add_epi32(_mm512_loadu_epi32(LANE.as_ptr()), _mm512_set1_epi32(by as i32));
            _mm512_permutex2var_ps(a, lanes, b)
        }
    }

    #[inline(always)]
    fn picked(self, a: Self::V, b: Self::V, lanes: &[u32; LANES]) -> Self::V {
        // SAFETY: there are 16 numbers, and the token exists. The instruction takes numbers of lanes modulo 32.
        unsafe { _mm512_permutex2var_ps(a, _mm512_loadu_epi32(lanes.as_ptr().cast()), b) }
    }

    #[inline(always)]
    fn spread<const GROUP: usize>(self, v: Self::V, place: usize) -> Self::V {
        let lanes = const { first_of_groups::<GROUP>() };
        // SAFETY: there are 16 numbers, and the token exists. The instruction takes numbers of lanes modulo 16.
        unsafe {
            let lanes = _mm512_add_epi32(_mm512_loadu_epi32(lanes.as_ptr()), _mm512_set1_epi32(place as i32));
            _mm512_permutexvar_ps(lanes, v)
        }
    }

    #[inline(always)]
    fn transposed(self, rows: [Self::V; LANES]) -> [Self::V; LANES] {
        let mut columns = rows;
        // SAFETY: the token exists.
        unsafe {
            // Quarters of vectors: of rows `4 i` to `4 i + 3`, the columns `4 lane + j`.
            let mut quarters = rows;
            for first in [0, 4, 8, 12] {
                let (a, b) = (
                    _mm512_unpacklo_ps(rows[first], rows[first + 1]),
                    _mm512_unpacklo_ps(rows[first + 2], rows[first + 3]),
                );
                let (c, d) = (
                    _mm512_unpackhi_ps(rows[first], rows[first + 1]),
                    _mm512_unpackhi_ps(rows[first + 2], rows[first + 3]),
                );
                let (a, b) = (_mm512_castps_pd(a), _mm512_castps_pd(b));
                let (c, d) = (_mm512_castps_pd(c), _mm512_castps_pd(d));
                quarters[first] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
                quarters[first + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
                quarters[first + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
                quarters[first + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
            }
            const EVEN: i32 = 0x88;
            const ODD: i32 = 0xDD;
            for j in 0..4 {
                let upper_even = _mm512_shuffle_f32x4::<EVEN>(quarters[j], quarters[4 + j]);
                let upper_odd = _mm512_shuffle_f32x4::<ODD>(quarters[j], quarters[4 + j]);
                let lower_even = _mm512_shuffle_f32x4::<EVEN>(quarters[8 + j], quarters[12 + j]);
                let lower_odd = _mm512_shuffle_f32x4::<ODD>(quarters[8 + j], quarters[12 + j]);
                columns[j] = _mm512_shuffle_f32x4::<EVEN>(upper_even, lower_even);
                columns[4 + j] = _mm512_shuffle_f32x4::<EVEN>(upper_odd, lower_odd);
                columns[8 + j] = _mm512_shuffle_f32x4::<ODD>(upper_even, lower_even);
                columns[12 + j] = _mm512_shuffle_f32x4::<ODD>(upper_odd, lower_odd);
            }
        }
        columns
    }
}
