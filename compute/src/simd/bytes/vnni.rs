//! Products of signed weights and bytes of inputs with VNNI: four at a time.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions. None of them
//! saturates where it could change a result.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::hint::black_box;

use super::{
    Bytes, ColumnLine, DepthwiseLine, DepthwiseScales, FloatScales, LANES, Lanes, Offsets, ResultRange, RowScales, Tap,
    TileScales, WithBytes, depthwise_windows,
};
use crate::simd::apart::{Apart, each_row};
use crate::simd::dot::{CHANNELS, Group};
use crate::simd::token::token;
use crate::threads::Columns;

token!(
    /// Vectors of 64 bytes, with sums of four products of bytes.
    Avx512Vnni, is_x86_feature_detected, WithBytes,
    "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni",
    "avx2" "fma" "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vnni"
);

impl Bytes for Avx512Vnni {
    type Sums = __m512i;
    type Weights = __m512i;
    type Input = i8;
    type Mask = __m512i;
    type Column<'a> = [__m512i; 4];
    bytes_as_they_are!();

    const TILES: usize = 4;
    const ROWS: usize = 8;
    const MATRICES: bool = true;
    const ONE_BY_ONE: bool = true;

    #[inline(always)]
    fn apart<W: Apart<Self>>(self, with: W) {
        let run: unsafe fn(Self, W) = apart_avx512;
        // SAFETY: the token exists.
        unsafe { black_box(run)(self, with) }
    }

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn start(self, numbers: &[i32; CHANNELS]) -> Self::Sums {
        // SAFETY: there are 16 numbers, and the token exists.
        unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
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

    /// Signs are flipped.
    #[inline(always)]
    fn ready(byte: i8) -> i8 {
        byte ^ i8::MIN
    }

    #[inline(always)]
    fn add_ready(self, sums: Self::Sums, weights: Self::Weights, inputs: [i8; 4]) -> Self::Sums {
        // SAFETY: the token exists.
        unsafe {
            let inputs = _mm512_set1_epi32(bytemuck::cast(inputs));
            _mm512_dpbusd_epi32(sums, inputs, weights)
        }
    }

    #[inline(always)]
    fn accumulate_at<const C: usize, const R: usize>(
        self,
        sums: &mut [[__m512i; C]; R],
        windows: [&[i8]; R],
        offsets: &Offsets,
        panel: &[[Group; C]],
    ) {
        assert!(windows.iter().all(|window| window.len() >= offsets.reach()), "windows that reach as far");
        let mut all = *sums;
        for (groups, place) in panel.iter().zip(offsets.places()) {
            let mut weights = [self.zero(); C];
            for (weights, group) in weights.iter_mut().zip(groups) {
                *weights = self.weights(group);
            }
            for (sums, window) in all.iter_mut().zip(windows) {
                // SAFETY: four inputs from each place on are within the reach, and that is within the window.
                let inputs = unsafe { window.as_ptr().add(*place as usize).cast::<[i8; 4]>().read() };
                for (sums, weights) in sums.iter_mut().zip(&weights) {
                    *sums = self.add_ready(*sums, *weights, inputs);
                }
            }
        }
        *sums = all;
    }

    #[inline(always)]
    fn sums(self, sums: Self::Sums) -> [i32; CHANNELS] {
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<__m512i, [i32; CHANNELS]>(sums) }
    }

    #[inline(always)]
    fn scale<const C: usize>(
        self,
        sums: &[__m512i; C],
        scales: &FloatScales<'_, C>,
        row: &RowScales,
    ) -> [[f32; CHANNELS]; C] {
        let mut results = [[0.0; CHANNELS]; C];
        for (tile, results) in results.iter_mut().enumerate() {
            *results = self.scaled(sums[tile], scales, tile, row);
        }
        results
    }

    #[inline(always)]
    fn requantise<const C: usize>(self, sums: &[__m512i; C], scales: &TileScales<'_, C>, to: &mut [i8]) {
        let (factors, narrow) = (scales.factors, &self.narrow(scales.range));
        let mut words = *sums;
        for (tile, words) in words.iter_mut().enumerate() {
            *words = self.rounded(*words, &factors[tile], narrow);
        }
        match words[..] {
            [a] => self.put_one(self.narrowed(a, narrow), to),
            [a, b] => self.put_two(self.joined(self.narrowed(a, narrow), self.narrowed(b, narrow)), to),
            [a, b, c] => self.put_four(self.packed([a, b, c, c], narrow), to),
            [a, b, c, d] => self.put_four(self.packed([a, b, c, d], narrow), to),
            _ => unreachable!("{C} tiles, of which there are up to four"),
        }
    }

    #[inline(always)]
    fn requantise_rows<const C: usize, const N: usize>(
        self,
        sums: [&[__m512i; C]; N],
        scales: &TileScales<'_, C>,
        to: &mut Columns<'_, i8>,
    ) {
        if N == 1 || C * N != 4 {
            each_row!(row < N => {
                self.requantise(sums[row], scales, to.row(row));
            });
            return;
        }
        let (factors, narrow) = (scales.factors, &self.narrow(scales.range));
        let mut words = [self.zero(); 4];
        each_row!(word < 4 => {
            words[word] = self.rounded(sums[word / C][word % C], &factors[word % C], narrow);
        });
        self.put_rows::<N>(self.packed(words, narrow), to);
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
        let mut sums = self.starts(scales);
        for (taps, weights) in taps.iter().zip(weights) {
            self.add_column(&mut sums, &self.column(*taps), weights);
        }
        let results = self.finished(sums, &scales.factors, &self.narrow(scales.range));
        // SAFETY: vectors and numbers are the same bytes.
        unsafe { std::mem::transmute::<__m512i, [i8; LANES]>(results) }
    }

    #[inline(always)]
    fn depthwise_line(self, line: &DepthwiseLine<'_>, scales: &DepthwiseScales, out: &mut [i8]) {
        let is_moving = line.taps.iter().all(|tap| tap.step == line.taps[0].step);
        let depthwise: Depthwise = match line.weights.len() {
            3 if is_moving => moving_avx512::<3>,
            _ if is_moving => moving_avx512::<0>,
            _ => depthwise_avx512,
        };
        // SAFETY: the token exists.
        unsafe { black_box(depthwise)(self, line, scales, out) }
    }

    #[inline(always)]
    fn column<'a>(self, taps: [&'a Lanes<i8>; 4]) -> Self::Column<'a> {
        self.interleaved([self.flipped(taps[0]), self.flipped(taps[1]), self.flipped(taps[2]), self.flipped(taps[3])])
    }

    #[inline(always)]
    fn fill_columns<'a, const D: usize>(
        self,
        rows: &[Tap<'a>],
        padding: &'a Lanes<i8>,
        columns: &mut [[Self::Column<'a>; D]],
    ) {
        let Some(last) = columns.len().checked_sub(1) else { return };
        let sees_all = |tap: &Tap<'_>| last.saturating_mul(tap.step).saturating_add(LANES) <= tap.seen.len();
        assert!(rows.len() <= 4 * D && rows.iter().all(sees_all), "rows that have every column");
        let mut taps = [[self.flipped(padding); 4]; D];
        for (column, to) in columns.iter_mut().enumerate() {
            for (row, tap) in rows.iter().enumerate() {
                // SAFETY: the row has as many bytes as its last column reaches, which is no nearer than this one.
                let seen = unsafe { &*tap.seen.as_ptr().add(column.wrapping_mul(tap.step)).cast() };
                taps[row / 4][row % 4] = self.flipped(seen);
            }
            for (to, taps) in to.iter_mut().zip(&taps) {
                *to = self.interleaved(*taps);
            }
        }
    }

    #[inline(always)]
    fn depthwise_columns<const W: usize, const D: usize, const S: usize>(
        self,
        line: &ColumnLine<'_, [[__m512i; 4]; D]>,
        scales: &DepthwiseScales,
        out: &mut [i8],
    ) {
        let (run, narrow): (ColumnWindows<D>, _) = (windows_avx512::<W, D, S>, self.narrow(scales.range));
        let ColumnLine { columns, weights, out_step, out_len } = *line;
        // The weights of few columns stay in registers, all of them.
        if let Ok(weights) = <&[[Lanes<i8>; 4]; 3]>::try_from(weights) {
            let mut kept = [[self.zero(); 4]; 3];
            for (kept, weights) in kept.iter_mut().zip(weights) {
                kept.iter_mut().zip(weights).for_each(|(kept, weights)| *kept = self.load(weights));
            }
            for (columns, out) in line.windows::<W, S>().zip(out.chunks_mut(out_step)) {
                let mut sums = self.starts(scales);
                for (column, kept) in columns.as_flattened().iter().zip(&kept) {
                    for part in 0..4 {
                        // SAFETY: the token exists.
                        sums[part] = unsafe { _mm512_dpbusd_epi32(sums[part], column[part], kept[part]) };
                    }
                }
                self.put_four(self.finished(sums, &scales.factors, &narrow), &mut out[..out_len]);
            }
            return;
        }
        let count = columns.len().checked_sub(W).map_or(0, |more| more / S + 1).min(out.len().div_ceil(out_step));
        let mut window = 0;
        while window + WINDOWS <= count {
            let mut sums = [[self.zero(); 4]; WINDOWS];
            // SAFETY: the token exists.
            unsafe { black_box(run)(self, &columns[window * S..], weights, &scales.starts, &mut sums) };
            each_row!(of < WINDOWS => {
                let out = &mut out[(window + of) * out_step..][..out_len];
                self.put_four(self.finished(sums[of], &scales.factors, &narrow), out);
            });
            window += WINDOWS;
        }
        for (columns, out) in line.windows::<W, S>().zip(out.chunks_mut(out_step)).skip(window) {
            let mut sums = self.starts(scales);
            for (column, weights) in columns.as_flattened().iter().zip(weights) {
                self.add_column(&mut sums, column, weights);
            }
            self.put_four(self.finished(sums, &scales.factors, &narrow), &mut out[..out_len]);
        }
    }
}

/// Windows of columns whose sums are computed together.
const WINDOWS: usize = 4;

// Inlined into a large function, these would not keep their numbers in registers; calls are through pointers that nothing is
// known about, so that they are not inlined.
type Depthwise = unsafe fn(Avx512Vnni, &DepthwiseLine<'_>, &DepthwiseScales, &mut [i8]);
type ColumnWindows<const D: usize> =
    unsafe fn(Avx512Vnni, &[[[__m512i; 4]; D]], &[[Lanes<i8>; 4]], &Lanes<i32>, &mut [[__m512i; 4]; WINDOWS]);

/// [`Bytes::apart`].
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn apart_avx512<W: Apart<Avx512Vnni>>(bytes: Avx512Vnni, with: W) {
    with.run(bytes);
}

/// [`Bytes::depthwise_line`].
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn depthwise_avx512(bytes: Avx512Vnni, line: &DepthwiseLine<'_>, scales: &DepthwiseScales, out: &mut [i8]) {
    depthwise_windows(bytes, line, scales, out);
}

/// [`Bytes::depthwise_line`] where every tap sees other bytes from window to window, with `D` groups of taps, whose weights stay in
/// registers, or with any number of them if it is 0.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn moving_avx512<const D: usize>(
    bytes: Avx512Vnni,
    line: &DepthwiseLine<'_>,
    scales: &DepthwiseScales,
    out: &mut [i8],
) {
    let DepthwiseLine { taps, windows, weights, out_step, out_len } = *line;
    let step = taps[0].step;
    let mut kept = [[bytes.zero(); 4]; D];
    for (kept, weights) in kept.iter_mut().zip(weights) {
        for (kept, weights) in kept.iter_mut().zip(weights) {
            *kept = bytes.load(weights);
        }
    }
    // Taps past the last have weights of 0.
    let mut seen = [taps[0].seen; DepthwiseLine::TAPS];
    seen.iter_mut().zip(taps).for_each(|(seen, tap)| *seen = tap.seen);
    let reach = windows.saturating_sub(1).saturating_mul(step).saturating_add(LANES);
    let depth = if D > 0 { D } else { weights.len() };
    let groups = &seen.as_chunks::<4>().0[..depth];
    assert!(groups.as_flattened().iter().all(|seen| seen.len() >= reach), "a window that does not see the image");
    let narrow = bytes.narrow(scales.range);
    for window in 0..windows {
        let mut sums = bytes.starts(scales);
        for (group, seen) in groups.iter().enumerate() {
            let mut four = [bytes.zero(); 4];
            for (four, seen) in four.iter_mut().zip(seen) {
                // SAFETY: there are as many bytes as the last window reaches.
                *four = bytes.flipped(unsafe { &*seen.as_ptr().add(window * step).cast() });
            }
            let column = bytes.interleaved(four);
            if D == 0 {
                bytes.add_column(&mut sums, &column, &weights[group]);
                continue;
            }
            for part in 0..4 {
                sums[part] = _mm512_dpbusd_epi32(sums[part], column[part], kept[group][part]);
            }
        }
        bytes.put_four(bytes.finished(sums, &scales.factors, &narrow), &mut out[window * out_step..][..out_len]);
    }
}

/// Sums of some neighbouring windows: one vector of each column after the other, whose weights stay in registers and which is read
/// once for all windows that see it.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn windows_avx512<const W: usize, const D: usize, const S: usize>(
    bytes: Avx512Vnni,
    columns: &[[[__m512i; 4]; D]],
    weights: &[[Lanes<i8>; 4]],
    starts: &Lanes<i32>,
    sums: &mut [[__m512i; 4]; WINDOWS],
) {
    let columns = &columns[..(WINDOWS - 1) * S + W];
    let weights: &[[[Lanes<i8>; 4]; D]] = &weights.as_chunks().0[..W];
    for (part, starts) in starts.as_chunks().0.iter().enumerate() {
        let mut kept = [[bytes.zero(); D]; W];
        for (kept, weights) in kept.as_flattened_mut().iter_mut().zip(weights.as_flattened()) {
            *kept = bytes.load(&weights[part]);
        }
        let mut own = [bytes.start(starts); WINDOWS];
        each_row!(column < (WINDOWS - 1) * S + W => {
            for group in 0..D {
                let seen = columns[column][group][part];
                each_row!(of < WINDOWS => {
                    if column >= of * S && column < of * S + W {
                        own[of] = _mm512_dpbusd_epi32(own[of], seen, kept[column - of * S][group]);
                    }
                });
            }
        });
        each_row!(of < WINDOWS => {
            sums[of][part] = own[of];
        });
    }
}

/// A [`ResultRange`] in every lane of vectors, which loops make before they begin.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    /// The upper limit before the zero point is added.
    pub(super) high: __m512,
    /// The zero point, as numbers of 16 bits.
    pub(super) zero: __m512i,
    /// The least result, as bytes.
    pub(super) least: __m512i,
}

impl Avx512Vnni {
    /// The range in vectors.
    #[inline(always)]
    pub(super) fn narrow(self, range: ResultRange) -> Narrow {
        // SAFETY: the token exists.
        unsafe {
            Narrow {
                high: _mm512_set1_ps(range.limits[1]),
                zero: _mm512_set1_epi16(range.zero as i16),
                least: _mm512_set1_epi8(range.least as i8),
            }
        }
    }

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

    /// Results of sums before the zero point is added, up to the greatest: rounded to the nearest even number. What is too small,
    /// or no number, is far below the least.
    #[inline(always)]
    fn rounded(self, sums: __m512i, factors: &[f32; CHANNELS], narrow: &Narrow) -> __m512i {
        // SAFETY: there are 16 factors, and the token exists.
        unsafe {
            let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_loadu_ps(factors.as_ptr()));
            // The second is what is left if one is no number.
            let limited = _mm512_min_ps(narrow.high, scaled);
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

    /// Sums that neighbouring channels begin with.
    #[inline(always)]
    fn starts(self, scales: &DepthwiseScales) -> [__m512i; 4] {
        let mut sums = [self.zero(); 4];
        for (sums, starts) in sums.iter_mut().zip(scales.starts.as_chunks().0) {
            *sums = self.start(starts);
        }
        sums
    }

    /// Results of sums whose channels are in the order that [`Self::interleaved`] leaves, as those of the scales are.
    #[inline(always)]
    fn finished(self, sums: [__m512i; 4], factors: &Lanes<f32>, narrow: &Narrow) -> __m512i {
        let mut words = sums;
        for (words, factors) in words.iter_mut().zip(factors.as_chunks().0) {
            *words = self.rounded(*words, factors, narrow);
        }
        self.interleaved_bytes(words, narrow)
    }
}

/// The channel in a place after four lists of [`LANES`] bytes were interleaved.
pub(crate) fn interleaved_channel(place: usize) -> usize {
    // Vector 0 has channels 0 to 3 of each lane of 16 channels, vector 1 those from 4 on, and so on.
    let (vector, lane, channel) = (place / 16, place % 16 / 4, place % 4);
    lane * 16 + vector * 4 + channel
}
