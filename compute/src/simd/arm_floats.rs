//! Vectors of floats with the instructions of 64-bit Arm.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions.
#![allow(unsafe_code)]

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::floats::{Floats, LANES, Vectors, WithFloats};
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
}

impl Floats for NeonFloats {
    type Half = NeonFloats;
    const TILES: usize = 1;

    #[inline(always)]
    fn half(self) -> Option<NeonFloats> {
        None
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
}
