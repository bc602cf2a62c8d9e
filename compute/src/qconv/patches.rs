//! Patches of images under windows, gathered pixel by pixel.

use super::Windows;
use crate::simd::bytes::{Bytes, LANES};

/// Inputs that copying may write behind what it copies.
pub(super) const SLACK: usize = LANES;

/// An output pixel: its image and place.
#[derive(Clone, Copy)]
pub(super) struct Pixel {
    pub image: usize,
    y: usize,
    x: usize,
}

/// Images under windows.
pub(super) struct Patches<'a> {
    images: &'a [i8],
    sizes: [usize; 3],
    windows: Windows,
    counts: [usize; 2],
    /// Channels of a group.
    inputs: usize,
    /// Bytes of a patch that are together in an image, and how many such spans a row of taps has.
    span: usize,
    spans: usize,
    /// True if there is one tap, which always sees the image.
    is_pointwise: bool,
    /// True if a line of taps is shorter than a vector.
    is_short: bool,
}

impl<'a> Patches<'a> {
    /// Images `[h, w, c]`.
    pub fn new(images: &'a [i8], [h, w, c]: [usize; 3], windows: &Windows) -> Self {
        let inputs = c / windows.groups;
        let is_dense = windows.groups == 1 && windows.dilation[1] == 1;
        let (span, spans) = if is_dense { (windows.kernel[1] * c, 1) } else { (inputs, windows.kernel[1]) };
        let span = span.max(1);
        let counts = windows.counts([h, w]);
        // An image of no size has windows nevertheless.
        let is_pointwise = windows.taps() == 1 && windows.padding == [[0; 2]; 2] && h > 0 && w > 0;
        let is_short = is_dense && span <= SLACK;
        Patches { images, sizes: [h, w, c], windows: *windows, counts, inputs, span, spans, is_pointwise, is_short }
    }

    /// An output pixel by its number.
    pub fn pixel(&self, index: usize) -> Pixel {
        let [oh, ow] = self.counts;
        Pixel { image: index / (oh * ow), y: index / ow % oh, x: index % ow }
    }

    /// Moves on to the next pixel.
    #[inline(always)]
    pub fn advance(&self, pixel: &mut Pixel) {
        pixel.x += 1;
        if pixel.x == self.counts[1] {
            (pixel.x, pixel.y) = (0, pixel.y + 1);
        }
        if pixel.y == self.counts[0] {
            (pixel.y, pixel.image) = (0, pixel.image + 1);
        }
    }

    /// True if patches are gathered on every path; false if memory has them as products of some paths take them.
    pub fn is_gathered(&self) -> bool {
        !self.is_pointwise || !self.inputs.is_multiple_of(4)
    }

    /// The inputs of a patch where memory has them as products take them; then that of no pixel has to be gathered.
    #[inline(always)]
    pub fn seen<B: Bytes>(&self, pixel: Pixel, group: usize) -> Option<&'a [[B::Input; 4]]> {
        if self.is_gathered() {
            return None;
        }
        self.of_group::<B>(&self.images[self.only_tap(pixel)..], group)
    }

    /// The inputs of a group among those of a pixel, as products take them.
    #[inline(always)]
    pub fn of_group<B: Bytes>(&self, pixel: &'a [i8], group: usize) -> Option<&'a [[B::Input; 4]]> {
        B::as_inputs(&pixel[group * self.inputs..][..self.inputs])
    }

    /// The inputs that pixels from a number on see through one tap, one pixel's behind the other's, if their windows are one
    /// pixel apart.
    #[inline(always)]
    pub fn in_line(&self, first: usize) -> Option<std::slice::ChunksExact<'a, i8>> {
        let channels = self.sizes[2];
        let is_dense = self.is_pointwise && self.windows.stride == [1; 2] && channels > 0;
        is_dense.then(|| self.images[first * channels..].chunks_exact(channels))
    }

    /// The first input of the only tap.
    #[inline(always)]
    fn only_tap(&self, pixel: Pixel) -> usize {
        let ([h, w, c], stride) = (self.sizes, self.windows.stride);
        let line = pixel.image * h + pixel.y * stride[0];
        (line * w + pixel.x * stride[1]) * c
    }

    /// Gathers `len` inputs of a patch from `start` on, behind which there is room for [`SLACK`] more; padding is `zero`.
    #[inline(always)]
    pub fn gather<B: Bytes>(
        &self,
        bytes: B,
        pixel: Pixel,
        group: usize,
        [start, len]: [usize; 2],
        zero: i8,
        to: &mut [B::Input],
    ) {
        let ([h, w, c], windows) = (self.sizes, &self.windows);
        if self.is_pointwise {
            let from = self.only_tap(pixel) + group * self.inputs + start;
            return copy(bytes, &self.images[from..], to, len);
        }
        let padding = B::input(zero);
        if self.is_short && len == windows.kernel[0] * self.span && self.gather_lines(bytes, pixel, padding, to) {
            return;
        }
        let (mut index, mut at) = (if start == 0 { 0 } else { start / self.span }, 0);
        let mut skipped = start - index * self.span;
        while at < len {
            let (ky, kx) = if self.spans == 1 { (index, 0) } else { (index / self.spans, index % self.spans) };
            let count = (self.span - skipped).min(len - at);
            let Some(to) = to.get_mut(at..at + count + SLACK) else { return };
            match windows.place(0, pixel.y, ky, h) {
                None => to[..count].fill(padding),
                Some(y) => {
                    // Places in the line of the image, of which some may be before it, or behind.
                    let tap = pixel.x * windows.stride[1] + kx * windows.dilation[1];
                    let from = tap * c + group * self.inputs + skipped;
                    let before = windows.padding[1][0] * c;
                    let left = before.saturating_sub(from).min(count);
                    let right = (from + count).saturating_sub(before + w * c).min(count);
                    if left > 0 {
                        to[..left].fill(padding);
                    }
                    if left + right < count {
                        let from = &self.images[(pixel.image * h + y) * w * c + from + left - before..];
                        copy(bytes, from, &mut to[left..], count - left - right);
                    }
                    if right > 0 {
                        to[count - right..count].fill(padding);
                    }
                }
            }
            (index, skipped, at) = (index + 1, 0, at + count);
        }
    }
}

impl Patches<'_> {
    /// Gathers a patch by lines of taps, a vector each; `false` if a line leaves that of the image, or is too near to the end
    /// of the images.
    #[inline(always)]
    fn gather_lines<B: Bytes>(&self, bytes: B, pixel: Pixel, padding: B::Input, to: &mut [B::Input]) -> bool {
        let ([h, w, c], windows) = (self.sizes, &self.windows);
        let Some(x) = (pixel.x * windows.stride[1]).checked_sub(windows.padding[1][0]) else { return false };
        if x + windows.kernel[1] > w {
            return false;
        }
        for ky in 0..windows.kernel[0] {
            let Some(to) = to[ky * self.span..].first_chunk_mut::<SLACK>() else { return false };
            let Some(y) = windows.place(0, pixel.y, ky, h) else {
                *to = [padding; SLACK];
                continue;
            };
            let from = ((pixel.image * h + y) * w + x) * c;
            let Some(from) = self.images[from..].first_chunk::<SLACK>() else { return false };
            bytes.inputs(from, to);
        }
        true
    }
}

/// Copies inputs, whole vectors of them where there are some: `to` has room for one more.
#[inline(always)]
fn copy<B: Bytes>(bytes: B, from: &[i8], to: &mut [B::Input], len: usize) {
    let vectors = len.div_ceil(SLACK);
    if let (Some(from), Some(to)) = (from.get(..vectors * SLACK), to.get_mut(..vectors * SLACK)) {
        let lanes = from.as_chunks::<SLACK>().0.iter().zip(to.as_chunks_mut::<SLACK>().0);
        lanes.for_each(|(from, to)| bytes.inputs(from, to));
    } else {
        to.iter_mut().zip(&from[..len]).for_each(|(to, from)| *to = B::input(*from));
    }
}
