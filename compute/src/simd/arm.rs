//! Products of bytes with the instructions of 64-bit Arm.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions. None of them
//! saturates: products of two bytes fit 16 bits, and are added in 32. Instructions that the library of the language does
//! not offer yet are written out, each in a function of its own.
#![allow(unsafe_code)]

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use super::dot::{CHANNELS, Dot, Eight, Group, WithDot};
use super::token::token;

token!(
    /// Vectors of 16 bytes.
    Neon, is_aarch64_feature_detected, WithDot, "neon", "neon"
);
token!(
    /// Vectors of 16 bytes, with sums of four products of bytes.
    DotProduct, is_aarch64_feature_detected, WithDot, "neon,dotprod", "neon" "dotprod"
);
token!(
    /// Vectors of 16 bytes, with products of two rows of eight bytes and two columns of eight bytes.
    MatrixProduct, is_aarch64_feature_detected, WithDot, "neon,i8mm", "neon" "i8mm"
);

/// Four products of signed bytes onto each sum.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(mut sums: int32x4_t, weights: uint8x16_t, inputs: uint8x16_t) -> int32x4_t {
    // SAFETY: this reads and writes these registers alone, and the function has the instruction.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {weights:v}.16b, {inputs:v}.16b",
            sums = inout(vreg) sums, weights = in(vreg) weights, inputs = in(vreg) inputs,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// Four products of unsigned and signed bytes onto each sum.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn usdot(mut sums: int32x4_t, weights: uint8x16_t, inputs: uint8x16_t) -> int32x4_t {
    // SAFETY: this reads and writes these registers alone, and the function has the instruction.
    unsafe {
        asm!(
            "usdot {sums:v}.4s, {weights:v}.16b, {inputs:v}.16b",
            sums = inout(vreg) sums, weights = in(vreg) weights, inputs = in(vreg) inputs,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// Eight products of unsigned and signed bytes onto each sum: of the first channel and both rows, then of the second.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn usmmla(mut sums: int32x4_t, weights: uint8x16_t, inputs: uint8x16_t) -> int32x4_t {
    // SAFETY: this reads and writes these registers alone, and the function has the instruction.
    unsafe {
        asm!(
            "usmmla {sums:v}.4s, {weights:v}.16b, {inputs:v}.16b",
            sums = inout(vreg) sums, weights = in(vreg) weights, inputs = in(vreg) inputs,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// Sums of four channels a vector.
type Four = [int32x4_t; 4];
/// Bytes of four channels a vector.
type Bytes = [uint8x16_t; 4];

impl Neon {
    /// Returns vectors that hold `value` for every channel.
    #[inline(always)]
    fn four(self, value: i32) -> Four {
        // SAFETY: the token exists.
        [unsafe { vdupq_n_s32(value) }; 4]
    }

    #[inline(always)]
    fn load(self, group: &Group) -> Bytes {
        let at = group.0.as_ptr();
        // SAFETY: a group has 64 bytes, and the token exists.
        unsafe { [vld1q_u8(at), vld1q_u8(at.add(16)), vld1q_u8(at.add(32)), vld1q_u8(at.add(48))] }
    }

    /// Stored weights of numbers from 0 on.
    #[inline(always)]
    fn signed(self, mut bytes: Bytes) -> Bytes {
        for bytes in &mut bytes {
            // SAFETY: the token exists.
            *bytes = unsafe { veorq_u8(*bytes, vdupq_n_u8(0x80)) };
        }
        bytes
    }

    /// The low and the high halves of bytes.
    #[inline(always)]
    fn split(self, bytes: Bytes) -> [Bytes; 2] {
        let (mut low, mut high) = (bytes, bytes);
        for (low, high) in low.iter_mut().zip(&mut high) {
            // SAFETY: the token exists.
            unsafe {
                *low = vandq_u8(*low, vdupq_n_u8(15));
                *high = vshrq_n_u8::<4>(*high);
            }
        }
        [low, high]
    }

    /// Returns a vector that holds the four inputs once for every channel of it.
    #[inline(always)]
    fn inputs(self, inputs: [i8; 4]) -> uint8x16_t {
        // SAFETY: the token exists.
        unsafe { vreinterpretq_u8_u32(vdupq_n_u32(bytemuck::cast(inputs))) }
    }

    #[inline(always)]
    fn store_sums(self, sums: Four) -> [i32; CHANNELS] {
        let mut to = [0; CHANNELS];
        for (to, sums) in to.as_chunks_mut::<4>().0.iter_mut().zip(sums) {
            // SAFETY: there is room for four sums, and the token exists.
            unsafe { vst1q_s32(to.as_mut_ptr(), sums) };
        }
        to
    }

    #[inline(always)]
    fn load_floats(self, from: [f32; CHANNELS]) -> [float32x4_t; 4] {
        let at = from.as_ptr();
        // SAFETY: there are 16 floats, and the token exists.
        unsafe { [vld1q_f32(at), vld1q_f32(at.add(4)), vld1q_f32(at.add(8)), vld1q_f32(at.add(12))] }
    }

    #[inline(always)]
    fn store_floats(self, floats: [float32x4_t; 4]) -> [f32; CHANNELS] {
        let mut to = [0.0; CHANNELS];
        for (to, floats) in to.as_chunks_mut::<4>().0.iter_mut().zip(floats) {
            // SAFETY: there is room for four floats, and the token exists.
            unsafe { vst1q_f32(to.as_mut_ptr(), floats) };
        }
        to
    }

    /// Sums times scales onto floats.
    #[inline(always)]
    fn scaled(self, mut floats: [float32x4_t; 4], sums: Four, scales: &[u16; CHANNELS]) -> [float32x4_t; 4] {
        for ((floats, sums), scales) in floats.iter_mut().zip(sums).zip(scales.as_chunks::<4>().0) {
            // SAFETY: there are four scales of two bytes, and the token exists.
            unsafe {
                let scales = vreinterpretq_f32_u32(vshlq_n_u32::<16>(vmovl_u16(vld1_u16(scales.as_ptr()))));
                *floats = vfmaq_f32(*floats, vcvtq_f32_s32(sums), scales);
            }
        }
        floats
    }
}

/// A channel has two sums: of its even pairs of inputs, and of its odd ones; two channels a vector.
impl Dot for Neon {
    type Sums = [int32x4_t; 8];
    type Weights = Bytes;
    type Floats = [float32x4_t; 4];

    const ROWS: usize = 2;
    const TILES: usize = 1;
    const OFFSET: i32 = 0;

    #[inline(always)]
    fn start(self, value: i32) -> Self::Sums {
        // SAFETY: the token exists.
        [unsafe { vreinterpretq_s32_u64(vdupq_n_u64(u64::from(value as u32))) }; 8]
    }

    #[inline(always)]
    fn bytes(self, group: &Group) -> Bytes {
        self.signed(self.load(group))
    }

    #[inline(always)]
    fn halves(self, group: &Group) -> [Bytes; 2] {
        self.split(self.load(group))
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, weights: Bytes, inputs: [i8; 4]) -> Self::Sums {
        // A product is at most 128 · 128.
        for ([first, second], weights) in sums.as_chunks_mut::<2>().0.iter_mut().zip(weights) {
            // SAFETY: the token exists.
            unsafe {
                let (weights, inputs) = (vreinterpretq_s8_u8(weights), vreinterpretq_s8_u8(self.inputs(inputs)));
                *first = vpadalq_s16(*first, vmull_s8(vget_low_s8(weights), vget_low_s8(inputs)));
                *second = vpadalq_s16(*second, vmull_high_s8(weights, inputs));
            }
        }
        sums
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        self.store_sums(self.fold(sums))
    }

    #[inline(always)]
    fn floats(self, start: [f32; CHANNELS]) -> Self::Floats {
        self.load_floats(start)
    }

    #[inline(always)]
    fn add_scaled(self, floats: Self::Floats, sums: Self::Sums, scales: &[u16; CHANNELS]) -> Self::Floats {
        self.scaled(floats, self.fold(sums), scales)
    }

    #[inline(always)]
    fn to_array(self, floats: Self::Floats) -> [f32; CHANNELS] {
        self.store_floats(floats)
    }
}

impl Neon {
    /// Adds the two sums of each channel.
    #[inline(always)]
    fn fold(self, sums: [int32x4_t; 8]) -> Four {
        let mut folded = self.four(0);
        for (folded, [first, second]) in folded.iter_mut().zip(sums.as_chunks::<2>().0) {
            // SAFETY: the token exists.
            *folded = unsafe { vpaddq_s32(*first, *second) };
        }
        folded
    }
}

impl DotProduct {
    /// The instructions that these include.
    #[inline(always)]
    fn neon(self) -> Neon {
        Neon(())
    }
}

impl Dot for DotProduct {
    type Sums = Four;
    type Weights = Bytes;
    type Floats = [float32x4_t; 4];

    const ROWS: usize = 4;
    const TILES: usize = 1;
    const OFFSET: i32 = 0;

    #[inline(always)]
    fn start(self, value: i32) -> Four {
        self.neon().four(value)
    }

    #[inline(always)]
    fn bytes(self, group: &Group) -> Bytes {
        self.neon().signed(self.neon().load(group))
    }

    #[inline(always)]
    fn halves(self, group: &Group) -> [Bytes; 2] {
        self.neon().split(self.neon().load(group))
    }

    #[inline(always)]
    fn add(self, mut sums: Four, weights: Bytes, inputs: [i8; 4]) -> Four {
        let inputs = self.neon().inputs(inputs);
        for (sums, weights) in sums.iter_mut().zip(weights) {
            // SAFETY: the token exists.
            *sums = unsafe { sdot(*sums, weights, inputs) };
        }
        sums
    }

    #[inline(always)]
    fn sums(self, sums: Four) -> [i32; CHANNELS] {
        self.neon().store_sums(sums)
    }

    #[inline(always)]
    fn floats(self, start: [f32; CHANNELS]) -> Self::Floats {
        self.neon().load_floats(start)
    }

    #[inline(always)]
    fn add_scaled(self, floats: Self::Floats, sums: Four, scales: &[u16; CHANNELS]) -> Self::Floats {
        self.neon().scaled(floats, sums, scales)
    }

    #[inline(always)]
    fn to_array(self, floats: Self::Floats) -> [f32; CHANNELS] {
        self.neon().store_floats(floats)
    }
}

impl MatrixProduct {
    /// The instructions that these include.
    #[inline(always)]
    fn neon(self) -> Neon {
        Neon(())
    }
}

/// Two rows have their sums in common vectors until they are settled: a vector has those of two channels, each of both
/// rows. The first row's vectors have the first eight channels, the second row's the others. A last odd row has its
/// sums for itself.
impl Dot for MatrixProduct {
    type Sums = Four;
    type Weights = Bytes;
    type Floats = [float32x4_t; 4];

    const ROWS: usize = 4;
    const TILES: usize = 1;

    #[inline(always)]
    fn start(self, value: i32) -> Four {
        self.neon().four(value)
    }

    #[inline(always)]
    fn bytes(self, group: &Group) -> Bytes {
        self.neon().load(group)
    }

    #[inline(always)]
    fn halves(self, group: &Group) -> [Bytes; 2] {
        self.neon().split(self.neon().load(group))
    }

    #[inline(always)]
    fn add(self, mut sums: Four, weights: Bytes, inputs: [i8; 4]) -> Four {
        let inputs = self.neon().inputs(inputs);
        for (sums, weights) in sums.iter_mut().zip(weights) {
            // SAFETY: the token exists.
            *sums = unsafe { usdot(*sums, weights, inputs) };
        }
        sums
    }

    #[inline(always)]
    fn start_rows<const R: usize>(self, starts: [i32; R]) -> [Four; R] {
        let mut sums = [self.start(0); R];
        let (pairs, last) = sums.as_chunks_mut::<2>();
        let (starts, last_start) = starts.as_chunks::<2>();
        for (pair, [first, second]) in pairs.iter_mut().zip(starts) {
            // SAFETY: the token exists.
            *pair = [[unsafe { vzip1q_s32(vdupq_n_s32(*first), vdupq_n_s32(*second)) }; 4]; 2];
        }
        for (sums, start) in last.iter_mut().zip(last_start) {
            *sums = self.start(*start);
        }
        sums
    }

    #[inline(always)]
    fn add_rows<const R: usize>(self, sums: &mut [Four; R], weights: [Bytes; 2], inputs: [&Eight; R]) {
        let (pairs, last) = sums.as_chunks_mut::<2>();
        let (inputs, last_inputs) = inputs.as_chunks::<2>();
        for (pair, inputs) in pairs.iter_mut().zip(inputs) {
            let inputs: [u8; 16] = bytemuck::cast([*inputs[0], *inputs[1]]);
            for (channels, (low, high)) in weights[0].into_iter().zip(weights[1]).enumerate() {
                let [first, second] = &mut pair[channels / 2].as_chunks_mut::<2>().0[channels % 2];
                // SAFETY: there are 16 inputs, and the token exists.
                unsafe {
                    let inputs = vld1q_u8(inputs.as_ptr());
                    let (low, high) = (vreinterpretq_u32_u8(low), vreinterpretq_u32_u8(high));
                    *first = usmmla(*first, vreinterpretq_u8_u32(vzip1q_u32(low, high)), inputs);
                    *second = usmmla(*second, vreinterpretq_u8_u32(vzip2q_u32(low, high)), inputs);
                }
            }
        }
        for (sums, inputs) in last.iter_mut().zip(last_inputs) {
            *sums = self.add(*sums, weights[0], inputs[0]);
            *sums = self.add(*sums, weights[1], inputs[1]);
        }
    }

    #[inline(always)]
    fn settle<const R: usize>(self, mut sums: [Four; R]) -> [Four; R] {
        for pair in sums.as_chunks_mut::<2>().0 {
            let shared: [int32x4_t; 8] =
                [pair[0][0], pair[0][1], pair[0][2], pair[0][3], pair[1][0], pair[1][1], pair[1][2], pair[1][3]];
            for (four, [first, second]) in shared.as_chunks::<2>().0.iter().enumerate() {
                // SAFETY: the token exists.
                unsafe {
                    pair[0][four] = vuzp1q_s32(*first, *second);
                    pair[1][four] = vuzp2q_s32(*first, *second);
                }
            }
        }
        sums
    }

    #[inline(always)]
    fn sums(self, sums: Four) -> [i32; CHANNELS] {
        self.neon().store_sums(sums)
    }

    #[inline(always)]
    fn floats(self, start: [f32; CHANNELS]) -> Self::Floats {
        self.neon().load_floats(start)
    }

    #[inline(always)]
    fn add_scaled(self, floats: Self::Floats, sums: Four, scales: &[u16; CHANNELS]) -> Self::Floats {
        self.neon().scaled(floats, sums, scales)
    }

    #[inline(always)]
    fn to_array(self, floats: Self::Floats) -> [f32; CHANNELS] {
        self.neon().store_floats(floats)
    }
}
