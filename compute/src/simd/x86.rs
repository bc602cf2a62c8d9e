//! Products of bytes with the instructions of x86-64.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions. None of them
//! saturates: bytes are multiplied into sums of 32 bits, or half bytes into sums of 16 bits.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::hint::black_box;

use super::dot::{self, CHANNELS, Dot, Eight, Group, ScaledBlocks, WithDot};
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
    /// A half of each byte of a group: the lower one, or the upper one.
    #[inline(always)]
    fn half(self, group: &Group, upper: bool) -> [__m256i; 2] {
        let mut bytes = two(self, group);
        for bytes in &mut bytes {
            let [low, high] = halves(self, *bytes);
            *bytes = if upper { high } else { low };
        }
        bytes
    }

    /// Products of four inputs with half bytes, as two sums a channel: each is within 2 · 15 · 128, and eight of them are
    /// within 16 bits.
    #[inline(always)]
    fn products(self, weights: [__m256i; 2], inputs: [i8; 4]) -> [__m256i; 2] {
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm256_set1_epi32(bytemuck::cast::<[i8; 4], i32>(inputs));
            [_mm256_maddubs_epi16(weights[0], inputs), _mm256_maddubs_epi16(weights[1], inputs)]
        }
    }

    /// Adds the two sums of each channel, times a factor.
    #[inline(always)]
    fn fold(self, sums: [__m256i; 2], words: [__m256i; 2], factor: i16) -> [__m256i; 2] {
        // SAFETY: the token exists.
        unsafe {
            let factor = _mm256_set1_epi16(factor);
            [
                _mm256_add_epi32(sums[0], _mm256_madd_epi16(words[0], factor)),
                _mm256_add_epi32(sums[1], _mm256_madd_epi16(words[1], factor)),
            ]
        }
    }

    /// Adds the products of rows of inputs with a tile of bytes.
    #[inline(always)]
    fn add_bytes_of_tile<const R: usize>(self, sums: &mut [[__m256i; 2]; R], tile: &[Group], inputs: [&[Eight]; R]) {
        let count = tile.len().min(2 * inputs[0].len());
        for start in (0..count).step_by(WORDS) {
            // SAFETY: the token exists.
            let (mut lower, mut upper) =
                unsafe { ([[_mm256_setzero_si256(); 2]; R], [[_mm256_setzero_si256(); 2]; R]) };
            for (index, group) in tile[start..count.min(start + WORDS)].iter().enumerate() {
                let (low, high) = (self.half(group, false), self.half(group, true));
                for (row, inputs) in inputs.iter().enumerate() {
                    let inputs = inputs.as_flattened()[start + index];
                    lower[row] = self.add_words(lower[row], self.products(low, inputs));
                    upper[row] = self.add_words(upper[row], self.products(high, inputs));
                }
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                *sums = self.fold(self.fold(*sums, lower[row], 1), upper[row], 16);
            }
        }
    }

    /// Adds the products of rows of inputs with a tile of half bytes.
    #[inline(always)]
    fn add_halves_of_tile<const R: usize>(self, sums: &mut [[__m256i; 2]; R], tile: &[Group], inputs: [&[Eight]; R]) {
        let count = inputs[0].len();
        for start in (0..count).step_by(WORDS / 2) {
            // SAFETY: the token exists.
            let mut words = unsafe { [[_mm256_setzero_si256(); 2]; R] };
            for (index, group) in tile[start..count.min(start + WORDS / 2)].iter().enumerate() {
                for upper in [false, true] {
                    let weights = self.half(group, upper);
                    for (words, inputs) in words.iter_mut().zip(inputs) {
                        let inputs = inputs[start + index][usize::from(upper)];
                        *words = self.add_words(*words, self.products(weights, inputs));
                    }
                }
            }
            for (sums, words) in sums.iter_mut().zip(words) {
                *sums = self.fold(*sums, words, 1);
            }
        }
    }

    #[inline(always)]
    fn add_words(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: the token exists.
        unsafe { [_mm256_add_epi16(a[0], b[0]), _mm256_add_epi16(a[1], b[1])] }
    }
}

/// Groups whose products with half bytes are summed in 16 bits, if each has one product a channel.
const WORDS: usize = 8;

// Inlined into a large function, these would not keep their sums in registers; calls are through pointers that nothing is known
// about, so that they are not inlined.
type AddTiles<D, const R: usize, const C: usize> =
    unsafe fn(D, &mut [[<D as Dot>::Sums; R]; C], [&[Group]; C], [&[Eight]; R]);

type AddBlocks<D, const R: usize, const C: usize> =
    unsafe fn(D, &mut [[<D as Dot>::Floats; C]; R], &ScaledBlocks<'_, R, C>);

/// Defines the loops of products as they are, but apart.
macro_rules! loops_apart {
    ($enable:literal) => {
        #[inline(always)]
        fn add_bytes<const R: usize, const C: usize>(
            self,
            sums: &mut [[Self::Sums; R]; C],
            tiles: [&[Group]; C],
            inputs: [&[Eight]; R],
        ) {
            #[target_feature(enable = $enable)]
            fn apart<D: Dot, const R: usize, const C: usize>(
                dot: D,
                sums: &mut [[D::Sums; R]; C],
                tiles: [&[Group]; C],
                inputs: [&[Eight]; R],
            ) {
                dot::add_bytes(dot, sums, tiles, inputs);
            }
            let add: AddTiles<Self, R, C> = apart;
            // SAFETY: the token exists.
            unsafe { black_box(add)(self, sums, tiles, inputs) }
        }

        #[inline(always)]
        fn add_halves<const R: usize, const C: usize>(
            self,
            sums: &mut [[Self::Sums; R]; C],
            tiles: [&[Group]; C],
            inputs: [&[Eight]; R],
        ) {
            #[target_feature(enable = $enable)]
            fn apart<D: Dot, const R: usize, const C: usize>(
                dot: D,
                sums: &mut [[D::Sums; R]; C],
                tiles: [&[Group]; C],
                inputs: [&[Eight]; R],
            ) {
                dot::add_halves(dot, sums, tiles, inputs);
            }
            let add: AddTiles<Self, R, C> = apart;
            // SAFETY: the token exists.
            unsafe { black_box(add)(self, sums, tiles, inputs) }
        }

        #[inline(always)]
        fn add_blocks<const R: usize, const C: usize>(
            self,
            floats: &mut [[Self::Floats; C]; R],
            blocks: &ScaledBlocks<'_, R, C>,
        ) {
            #[target_feature(enable = $enable)]
            fn apart<D: Dot, const R: usize, const C: usize>(
                dot: D,
                floats: &mut [[D::Floats; C]; R],
                blocks: &ScaledBlocks<'_, R, C>,
            ) {
                dot::add_blocks(dot, floats, blocks);
            }
            let add: AddBlocks<Self, R, C> = apart;
            // SAFETY: the token exists.
            unsafe { black_box(add)(self, floats, blocks) }
        }

        #[inline(always)]
        fn prefetch(self, line: *const Group) {
            prefetch(line);
        }
    };
}

/// [`Dot::prefetch`].
#[inline(always)]
fn prefetch(line: *const Group) {
    // SAFETY: every processor of this architecture has the instruction, and it reads nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
}

/// [`Dot::add_bytes`]: two rows at a time, whose sums of lower and of upper halves fit the registers.
#[target_feature(enable = "avx2,fma")]
fn add_bytes_avx2<const R: usize, const C: usize>(
    dot: Avx2,
    sums: &mut [[[__m256i; 2]; R]; C],
    tiles: [&[Group]; C],
    inputs: [&[Eight]; R],
) {
    for (sums, tile) in sums.iter_mut().zip(tiles) {
        let (pairs, rest) = sums.as_chunks_mut::<2>();
        let (inputs, last) = inputs.as_chunks::<2>();
        for (sums, inputs) in pairs.iter_mut().zip(inputs) {
            dot.add_bytes_of_tile(sums, tile, *inputs);
        }
        for (sums, inputs) in rest.as_chunks_mut::<1>().0.iter_mut().zip(last) {
            dot.add_bytes_of_tile(sums, tile, [inputs]);
        }
    }
}

/// [`Dot::add_halves`].
#[target_feature(enable = "avx2,fma")]
fn add_halves_avx2<const R: usize, const C: usize>(
    dot: Avx2,
    sums: &mut [[[__m256i; 2]; R]; C],
    tiles: [&[Group]; C],
    inputs: [&[Eight]; R],
) {
    for (sums, tile) in sums.iter_mut().zip(tiles) {
        dot.add_halves_of_tile(sums, tile, inputs);
    }
}

/// [`Dot::add_blocks`].
#[target_feature(enable = "avx2,fma")]
fn add_blocks_avx2<const R: usize, const C: usize>(
    dot: Avx2,
    floats: &mut [[[__m256; 2]; C]; R],
    blocks: &ScaledBlocks<'_, R, C>,
) {
    for block in 0..blocks.count() {
        blocks.prefetch(dot, block);
        let (tiles, inputs) = blocks.at(block);
        for (tile, (groups, scales)) in tiles.into_iter().zip(blocks.scales).enumerate() {
            let mut sums = dot.start_rows(blocks.starts(block));
            dot.add_halves_of_tile(&mut sums, groups, inputs);
            for (floats, sums) in floats.iter_mut().zip(sums) {
                floats[tile] = dot.add_scaled(floats[tile], sums, &scales[block]);
            }
        }
    }
}

/// Bytes are multiplied by halves, whose products fit 16 bits where those of whole bytes do not.
impl Dot for Avx2 {
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
        two(self, group)
    }

    #[inline(always)]
    fn halves(self, group: &Group) -> [Self::Weights; 2] {
        [self.half(group, false), self.half(group, true)]
    }

    #[inline(always)]
    fn add(self, sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        let [[a, b], [c, d]] = [halves(self, weights[0]), halves(self, weights[1])];
        let sums = self.fold(sums, self.products([a, c], inputs), 1);
        self.fold(sums, self.products([b, d], inputs), 16)
    }

    #[inline(always)]
    fn add_bytes<const R: usize, const C: usize>(
        self,
        sums: &mut [[Self::Sums; R]; C],
        tiles: [&[Group]; C],
        inputs: [&[Eight]; R],
    ) {
        let add: AddTiles<Self, R, C> = add_bytes_avx2;
        // SAFETY: the token exists.
        unsafe { black_box(add)(self, sums, tiles, inputs) }
    }

    #[inline(always)]
    fn add_halves<const R: usize, const C: usize>(
        self,
        sums: &mut [[Self::Sums; R]; C],
        tiles: [&[Group]; C],
        inputs: [&[Eight]; R],
    ) {
        let add: AddTiles<Self, R, C> = add_halves_avx2;
        // SAFETY: the token exists.
        unsafe { black_box(add)(self, sums, tiles, inputs) }
    }

    #[inline(always)]
    fn add_blocks<const R: usize, const C: usize>(
        self,
        floats: &mut [[Self::Floats; C]; R],
        blocks: &ScaledBlocks<'_, R, C>,
    ) {
        let add: AddBlocks<Self, R, C> = add_blocks_avx2;
        // SAFETY: the token exists.
        unsafe { black_box(add)(self, floats, blocks) }
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        store_sums(self, sums)
    }

    #[inline(always)]
    fn floats(self, start: [f32; CHANNELS]) -> Self::Floats {
        load_floats(self, start)
    }

    #[inline(always)]
    fn add_scaled(self, floats: Self::Floats, sums: Self::Sums, scales: &[u16; CHANNELS]) -> Self::Floats {
        add_scaled(self, floats, sums, scales)
    }

    #[inline(always)]
    fn to_array(self, floats: Self::Floats) -> [f32; CHANNELS] {
        store_floats(self, floats)
    }

    #[inline(always)]
    fn prefetch(self, line: *const Group) {
        prefetch(line);
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

    loops_apart!("avx2,fma,avxvnni");

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

    loops_apart!("avx512f,avx512vnni,fma");

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
