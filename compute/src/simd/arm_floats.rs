//! Vectors of floats with the instructions of 64-bit Arm.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions.
#![allow(unsafe_code)]

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::floats::{Floats, LANES, MANTISSA, Vectors, WithFloats};
use super::token::token;

token!(
    /// Vectors of four floats, and fused multiply-add.
    NeonFloats, is_aarch64_feature_detected, WithFloats, "neon", "neon"
);

impl Vectors for NeonFloats {
    type V = [float32x4_t; 4];

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        // SAFETY: the token exists.
        [unsafe { vdupq_n_f32(x) }; 4]
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        // SAFETY: there are 16 floats, and the token exists.
        std::array::from_fn(|part| unsafe { vld1q_f32(from.as_ptr().add(4 * part)) })
    }

    #[inline(always)]
    fn store(self, v: Self::V, to: &mut [f32; LANES]) {
        for (part, v) in v.into_iter().enumerate() {
            // SAFETY: there is room for 16 floats, and the token exists.
            unsafe { vst1q_f32(to.as_mut_ptr().add(4 * part), v) };
        }
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the token exists.
        std::array::from_fn(|part| unsafe { vfmaq_f32(c[part], a[part], b[part]) })
    }

    #[inline(always)]
    fn over(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token exists.
        std::array::from_fn(|part| unsafe { vdivq_f32(a[part], b[part]) })
    }

    #[inline(always)]
    fn at_least(self, least: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the token exists.
        std::array::from_fn(|part| unsafe { vbslq_f32(vcgtq_f32(least[part], x[part]), least[part], x[part]) })
    }

    #[inline(always)]
    fn at_most(self, greatest: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the token exists.
        std::array::from_fn(|part| unsafe { vbslq_f32(vcltq_f32(greatest[part], x[part]), greatest[part], x[part]) })
    }

    #[inline(always)]
    fn power(self, bits: Self::V) -> Self::V {
        let mut powers = bits;
        for (power, bits) in powers.iter_mut().zip(bits) {
            // SAFETY: the token exists.
            *power = unsafe { vreinterpretq_f32_u32(vshlq_n_u32::<{ MANTISSA as i32 }>(vreinterpretq_u32_f32(bits))) };
        }
        powers
    }
}

impl Floats for NeonFloats {
    type Half = NeonFloats;
    const HALVES: bool = false;
    const ROWS: usize = 6;
    const TILES: usize = 1;

    #[inline(always)]
    fn half(self) -> NeonFloats {
        self
    }

    #[inline(always)]
    fn plus(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token exists.
        std::array::from_fn(|part| unsafe { vaddq_f32(a[part], b[part]) })
    }

    #[inline(always)]
    fn minus(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token exists.
        std::array::from_fn(|part| unsafe { vsubq_f32(a[part], b[part]) })
    }

    #[inline(always)]
    fn greater(self, greatest: Self::V, x: Self::V) -> Self::V {
        std::array::from_fn(|part| {
            // SAFETY: the token exists.
            unsafe {
                let less = vcltq_f32(greatest[part], x[part]);
                let number = vceqq_f32(x[part], x[part]);
                vbslq_f32(vorrq_u32(less, vmvnq_u32(number)), x[part], greatest[part])
            }
        })
    }

    #[inline(always)]
    fn total(self, v: Self::V) -> f32 {
        // SAFETY: the token exists.
        unsafe {
            let fours = vaddq_f32(vaddq_f32(v[0], v[2]), vaddq_f32(v[1], v[3]));
            let twos = vadd_f32(vget_low_f32(fours), vget_high_f32(fours));
            vget_lane_f32::<0>(twos) + vget_lane_f32::<1>(twos)
        }
    }

    #[inline(always)]
    fn peak(self, v: Self::V) -> f32 {
        // SAFETY: the token exists.
        unsafe { vmaxvq_f32(vmaxq_f32(vmaxq_f32(v[0], v[2]), vmaxq_f32(v[1], v[3]))) }
    }

    #[inline(always)]
    fn spread<const GROUP: usize>(self, v: Self::V, place: usize) -> Self::V {
        const BYTES: usize = size_of::<f32>();
        let of_place = ((place % GROUP) * BYTES) as u8;
        let mut spread = v;
        for (part, spread) in spread.iter_mut().enumerate() {
            let mut bytes = [0; 4 * BYTES];
            for (byte, from) in bytes.iter_mut().enumerate() {
                let lane = (part % 2 * 4 + byte / BYTES) / GROUP * GROUP;
                *from = (lane * BYTES + byte % BYTES) as u8;
            }
            // SAFETY: there are 16 numbers of bytes, and the token exists.
            unsafe {
                let bytes = vaddq_u8(vld1q_u8(bytes.as_ptr()), vdupq_n_u8(of_place));
                let half = [v[part / 2 * 2], v[part / 2 * 2 + 1]];
                let half = uint8x16x2_t(vreinterpretq_u8_f32(half[0]), vreinterpretq_u8_f32(half[1]));
                *spread = vreinterpretq_f32_u8(vqtbl2q_u8(half, bytes));
            }
        }
        spread
    }
}
