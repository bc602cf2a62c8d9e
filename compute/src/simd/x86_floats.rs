//! Vectors of floats with the instructions of x86-64.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::hint::black_box;

use super::apart::Apart;
use super::floats::{Floats, HALF, LANES, Line, MANTISSA, Vectors, WithFloats};
use super::token::token;

token!(
    /// Vectors of eight floats, and fused multiply-add.
    Avx2Floats, is_x86_feature_detected, WithFloats, "avx2,fma", "avx2" "fma"
);

/// [`Vectors::apart`].
#[target_feature(enable = "avx2,fma")]
fn apart_avx2<F, W: Apart<F>>(floats: F, with: W) {
    with.run(floats);
}

impl Vectors for Avx2Floats {
    type V = [__m256; 2];

    const ASKS: bool = true;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        // SAFETY: the token exists.
        [unsafe { _mm256_set1_ps(x) }; 2]
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        // SAFETY: there are 16 floats, and the token exists.
        unsafe { [_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))] }
    }

    #[inline(always)]
    fn store(self, v: Self::V, to: &mut [f32; LANES]) {
        // SAFETY: there is room for 16 floats, and the token exists.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), v[0]);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), v[1]);
        }
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
    }

    #[inline(always)]
    fn over(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe { [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn at_least(self, least: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the token exists. The instruction gives its second operand where one is NaN.
        unsafe { [_mm256_max_ps(least[0], x[0]), _mm256_max_ps(least[1], x[1])] }
    }

    #[inline(always)]
    fn at_most(self, greatest: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the token exists. The instruction gives its second operand where one is NaN.
        unsafe { [_mm256_min_ps(greatest[0], x[0]), _mm256_min_ps(greatest[1], x[1])] }
    }

    #[inline(always)]
    fn power(self, bits: Self::V) -> Self::V {
        let mut powers = bits;
        for (power, bits) in powers.iter_mut().zip(bits) {
            *power = HalfAvx2(self).power(bits);
        }
        powers
    }

    #[inline(always)]
    fn load_some(self, from: &[f32], rest: f32) -> Self::V {
        // There may be no memory where nothing is read, and the instruction takes long to find that out.
        if from.is_empty() {
            return self.splat(rest);
        }
        let mut numbers = self.splat(rest);
        for (half, numbers) in numbers.iter_mut().enumerate() {
            // SAFETY: only numbers that are there are read, and the token exists.
            unsafe {
                let lanes = lanes_below(from.len(), half);
                let loaded = _mm256_maskload_ps(from.as_ptr().wrapping_add(HALF * half), lanes);
                *numbers = _mm256_blendv_ps(*numbers, loaded, _mm256_castsi256_ps(lanes));
            }
        }
        numbers
    }

    #[inline(always)]
    fn store_some(self, v: Self::V, to: &mut [f32]) {
        for (half, v) in v.into_iter().enumerate() {
            // SAFETY: only numbers that there is room for are written, and the token exists.
            unsafe {
                let lanes = lanes_below(to.len(), half);
                _mm256_maskstore_ps(to.as_mut_ptr().wrapping_add(HALF * half), lanes, v);
            }
        }
    }

    #[inline(always)]
    fn prefetch_far(self, line: *const Line) {
        // SAFETY: the token exists. Fetching is a hint: no address faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) }
    }

    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        let run: unsafe fn(Self, W) = apart_avx2;
        // What the compiler is told about inlining it does not keep to where instructions are the same, so the call is through a
        // pointer that nothing is known about.
        // SAFETY: the token exists.
        unsafe { black_box(run)(self, with) }
    }
}

impl Floats for Avx2Floats {
    type Half = HalfAvx2;
    const HALVES: bool = true;
    const ROWS: usize = 6;
    const TILES: usize = 1;

    #[inline(always)]
    fn half(self) -> HalfAvx2 {
        HalfAvx2(self)
    }

    #[inline(always)]
    fn plus(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn minus(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token exists.
        unsafe { [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn greater(self, greatest: Self::V, x: Self::V) -> Self::V {
        let mut result = x;
        for half in 0..2 {
            // SAFETY: the token exists.
            unsafe {
                // The instruction gives its second operand where one is NaN.
                let greater = _mm256_max_ps(x[half], greatest[half]);
                let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(x[half], x[half]);
                result[half] = _mm256_blendv_ps(greater, x[half], nan);
            }
        }
        result
    }

    #[inline(always)]
    fn total(self, v: Self::V) -> f32 {
        // SAFETY: the token exists.
        unsafe { total(_mm256_add_ps(v[0], v[1])) }
    }

    #[inline(always)]
    fn peak(self, v: Self::V) -> f32 {
        // SAFETY: the token exists.
        unsafe { peak(_mm256_max_ps(v[0], v[1])) }
    }

    #[inline(always)]
    fn picked(self, a: Self::V, b: Self::V, lanes: &[u32; LANES]) -> Self::V {
        let mut picked = a;
        for (half, picked) in picked.iter_mut().enumerate() {
            // SAFETY: there are eight numbers from each half on, and the token exists. The first instruction takes numbers of lanes
            // modulo 8, and those that choose look at the highest bit of a lane alone.
            unsafe {
                let lanes = _mm256_loadu_si256(lanes.as_ptr().add(HALF * half).cast());
                let upper = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(lanes));
                let second = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(lanes));
                let of = |v: Self::V| {
                    let (low, high) = (_mm256_permutevar8x32_ps(v[0], lanes), _mm256_permutevar8x32_ps(v[1], lanes));
                    _mm256_blendv_ps(low, high, upper)
                };
                *picked = _mm256_blendv_ps(of(a), of(b), second);
            }
        }
        picked
    }

    #[inline(always)]
    fn spread<const GROUP: usize>(self, v: Self::V, place: usize) -> Self::V {
        let lanes = const { first_of_groups::<GROUP>() };
        // SAFETY: there are more than eight numbers, and the token exists. The instruction takes numbers of lanes modulo 8.
        unsafe {
            let lanes = _mm256_add_epi32(_mm256_loadu_si256(lanes.as_ptr().cast()), _mm256_set1_epi32(place as i32));
            [_mm256_permutevar8x32_ps(v[0], lanes), _mm256_permutevar8x32_ps(v[1], lanes)]
        }
    }

    #[inline(always)]
    fn transposed(self, rows: [Self::V; LANES]) -> [Self::V; LANES] {
        let mut columns = rows;
        for (down, right) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut square = [rows[0][0]; 8];
            for row in 0..8 {
                square[row] = rows[8 * down + row][right];
            }
            // SAFETY: the token exists.
            let square = unsafe { transposed(square) };
            for column in 0..8 {
                columns[8 * right + column][down] = square[column];
            }
        }
        columns
    }
}

/// The first half of vectors.
#[derive(Clone, Copy)]
pub(crate) struct HalfAvx2(Avx2Floats);

impl Vectors for HalfAvx2 {
    type V = __m256;

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        // SAFETY: the token exists.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> __m256 {
        // SAFETY: there are more than eight floats, and the token exists.
        unsafe { _mm256_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, v: __m256, to: &mut [f32; LANES]) {
        // SAFETY: there is room for more than eight floats, and the token exists.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the token exists.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn over(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token exists.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    fn at_least(self, least: __m256, x: __m256) -> __m256 {
        // SAFETY: the token exists. The instruction gives its second operand where one is NaN.
        unsafe { _mm256_max_ps(least, x) }
    }

    #[inline(always)]
    fn at_most(self, greatest: __m256, x: __m256) -> __m256 {
        // SAFETY: the token exists. The instruction gives its second operand where one is NaN.
        unsafe { _mm256_min_ps(greatest, x) }
    }

    #[inline(always)]
    fn power(self, bits: __m256) -> __m256 {
        // SAFETY: the token exists.
        unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<{ MANTISSA as i32 }>(_mm256_castps_si256(bits))) }
    }

    #[inline(always)]
    fn load_some(self, from: &[f32], rest: f32) -> __m256 {
        // SAFETY: only numbers that are there are read, and the token exists.
        unsafe {
            let lanes = lanes_below(from.len(), 0);
            let loaded = _mm256_maskload_ps(from.as_ptr(), lanes);
            _mm256_blendv_ps(self.splat(rest), loaded, _mm256_castsi256_ps(lanes))
        }
    }

    #[inline(always)]
    fn store_some(self, v: __m256, to: &mut [f32]) {
        // SAFETY: only numbers that there is room for are written, and the token exists.
        unsafe { _mm256_maskstore_ps(to.as_mut_ptr(), lanes_below(to.len(), 0), v) }
    }

    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        let run: unsafe fn(Self, W) = apart_avx2;
        // What the compiler is told about inlining it does not keep to where instructions are the same, so the call is through a
        // pointer that nothing is known about.
        // SAFETY: the token exists.
        unsafe { black_box(run)(self, with) }
    }
}

/// Rows of a square of eight as its columns: pairs of numbers, of pairs, then halves of vectors change places.
///
/// # Safety
///
/// The machine has AVX.
#[inline(always)]
unsafe fn transposed(rows: [__m256; 8]) -> [__m256; 8] {
    let mut columns = rows;
    // SAFETY: by the caller.
    unsafe {
        let mut quarters = rows;
        for first in [0, 4] {
            let (a, b) = (
                _mm256_unpacklo_ps(rows[first], rows[first + 1]),
                _mm256_unpacklo_ps(rows[first + 2], rows[first + 3]),
            );
            let (c, d) = (
                _mm256_unpackhi_ps(rows[first], rows[first + 1]),
                _mm256_unpackhi_ps(rows[first + 2], rows[first + 3]),
            );
            let (a, b) = (_mm256_castps_pd(a), _mm256_castps_pd(b));
            let (c, d) = (_mm256_castps_pd(c), _mm256_castps_pd(d));
            quarters[first] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
            quarters[first + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
            quarters[first + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(c, d));
            quarters[first + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(c, d));
        }
        for column in 0..4 {
            columns[column] = _mm256_permute2f128_ps::<0x20>(quarters[column], quarters[column + 4]);
            columns[column + 4] = _mm256_permute2f128_ps::<0x31>(quarters[column], quarters[column + 4]);
        }
    }
    columns
}

/// The first lane of the group of each lane.
pub(super) const fn first_of_groups<const GROUP: usize>() -> [i32; LANES] {
    assert!(GROUP.is_power_of_two() && GROUP <= HALF, "a group that crosses the halves of a vector");
    let (mut lanes, mut lane) = ([0; LANES], 0);
    while lane < LANES {
        lanes[lane] = (lane / GROUP * GROUP) as i32;
        lane += 1;
    }
    lanes
}

/// The sum of eight lanes: of those four apart, then two and one.
///
/// # Safety
///
/// The machine has AVX.
#[inline(always)]
pub(super) unsafe fn total(v: __m256) -> f32 {
    // SAFETY: by the caller.
    unsafe {
        let fours = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let twos = _mm_add_ps(fours, _mm_movehl_ps(fours, fours));
        _mm_cvtss_f32(_mm_add_ss(twos, _mm_shuffle_ps::<1>(twos, twos)))
    }
}

/// The greatest of eight lanes, and any number or NaN where one is NaN.
///
/// # Safety
///
/// The machine has AVX.
#[inline(always)]
pub(super) unsafe fn peak(v: __m256) -> f32 {
    // SAFETY: by the caller.
    unsafe {
        let fours = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let twos = _mm_max_ps(fours, _mm_movehl_ps(fours, fours));
        _mm_cvtss_f32(_mm_max_ss(twos, _mm_shuffle_ps::<1>(twos, twos)))
    }
}

/// All bits of the lanes of one half of a vector that are below a number, fewer than [`LANES`].
///
/// # Safety
///
/// The machine has AVX2.
#[inline(always)]
unsafe fn lanes_below(count: usize, half: usize) -> __m256i {
    const { assert!(HALF == 8) };
    assert!(count < LANES, "{count} lanes of a vector");
    // SAFETY: by the caller.
    unsafe {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32 - (HALF * half) as i32), lanes)
    }
}
