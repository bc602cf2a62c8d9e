//! Lines of fewer channels than there are lanes, as rows of numbers that are computed block by block, whichever pixels and
//! channels they belong to.
//!
//! Invariant: the lines under the windows are copied with their padding, so that every tap of every block sees some number.

use arrayvec::ArrayVec;

use super::Windows;
use super::taps::Taps;
use crate::simd::bytes::{Bytes, DepthwiseLine, DepthwiseScales, LANES, Tap};

/// Bytes for the lines that windows see.
pub(super) const ROOM: usize = 24 << 10;

/// A block of a line: the place of its first result, its weights, and what makes results of its sums.
pub(super) struct FlatBlock<'a> {
    pub first: usize,
    pub weights: &'a [Taps],
    pub scales: &'a DepthwiseScales,
}

/// A line of results.
pub(super) struct FlatLine<'a> {
    windows: &'a Windows,
    channels: usize,
    /// Pixels of the line with its padding, and bytes from one of its rows to the next.
    width: usize,
    pitch: usize,
    /// Results from one block to the next, and blocks after which lanes have the same channels again.
    step: usize,
    patterns: usize,
}

impl<'a> FlatLine<'a> {
    /// So many pixels; `None` if there is no room for what they see.
    pub fn new(windows: &'a Windows, channels: usize, pixels: usize, [step, patterns]: [usize; 2]) -> Option<Self> {
        let reach = (windows.kernel[1] - 1).checked_mul(windows.dilation[1])?;
        let width = pixels.checked_add(reach)?;
        let pitch = width.checked_mul(channels)?.checked_add(LANES)?;
        let fits = pitch.checked_mul(windows.kernel[0])? <= ROOM;
        fits.then_some(FlatLine { windows, channels, width, pitch, step, patterns })
    }

    /// Copies what windows from a pixel on see of images of some width; `starts` has the place of the first pixel of each row.
    #[inline(always)]
    pub fn copy(
        &self,
        (images, image_width): (&[i8], usize),
        padding: i8,
        starts: &[Option<usize>],
        from: usize,
        room: &mut [i8],
    ) {
        let FlatLine { windows, channels, width, pitch, .. } = *self;
        let left = windows.padding[1][0];
        // Pixels of the image among those of the line.
        let begin = left.saturating_sub(from).min(width);
        let end = (left + image_width).saturating_sub(from).clamp(begin, width);
        let starts = starts.iter().step_by(windows.kernel[1]);
        for (start, to) in starts.zip(room.chunks_exact_mut(pitch)).take(windows.kernel[0]) {
            let Some(start) = start.filter(|_| begin < end) else {
                to.fill(padding);
                continue;
            };
            let image = &images[start + (from + begin - left) * channels..][..(end - begin) * channels];
            to[..begin * channels].fill(padding);
            to[begin * channels..end * channels].copy_from_slice(image);
            to[end * channels..].fill(padding);
        }
    }

    /// Computes the line of what was copied; there are as many blocks as differ.
    #[inline(always)]
    pub fn run<'b, B: Bytes>(
        &self,
        bytes: B,
        blocks: impl Iterator<Item = FlatBlock<'b>>,
        room: &[i8],
        out: &mut [i8],
    ) {
        let FlatLine { windows, channels, pitch, step, patterns, .. } = *self;
        let place = |row: usize, column: usize| row * pitch + column * windows.dilation[1] * channels;
        let [rows, columns] = windows.kernel;
        // Whole blocks, and what is left.
        let (whole, rest) = (out.len() / step, out.len() % step);
        for (pattern, FlatBlock { first, weights, scales }) in blocks.enumerate() {
            let lines = [
                (first, whole.saturating_sub(pattern).div_ceil(patterns), step),
                (whole * step, usize::from(rest > 0 && whole % patterns == pattern), rest),
            ];
            for (first, windows, out_len) in lines.into_iter().filter(|&(_, windows, _)| windows > 0) {
                let mut taps = ArrayVec::<Tap<'_>, { DepthwiseLine::TAPS }>::new();
                for row in 0..rows {
                    let seen = (0..columns).map(|column| &room[place(row, column) + first..]);
                    taps.extend(seen.map(|seen| Tap { seen, step: step * patterns }));
                }
                let line = DepthwiseLine { taps: &taps, windows, weights, out_step: step * patterns, out_len };
                bytes.depthwise_line(&line, scales, &mut out[first..]);
            }
        }
    }
}
