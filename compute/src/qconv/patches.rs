//! Inputs of images under windows: where memory has them as products take them, and gathered pixel by pixel.

use super::Windows;
use super::order::Order;
use crate::simd::bytes::Bytes;

/// An output pixel: its image and place.
#[derive(Clone, Copy)]
pub(super) struct Pixel {
    pub image: usize,
    pub y: usize,
    pub x: usize,
}

/// Images under windows.
pub(super) struct Patches<'a> {
    pub images: &'a [i8],
    /// Height, width and channels.
    pub sizes: [usize; 3],
    pub windows: Windows,
    pub order: Order,
    /// Lines and columns of output pixels.
    pub counts: [usize; 2],
    /// True if there is one tap, which always sees the image.
    is_pointwise: bool,
}

impl<'a> Patches<'a> {
    /// Images `[h, w, c]`.
    pub fn new(images: &'a [i8], [h, w, c]: [usize; 3], windows: &Windows, order: Order) -> Self {
        let counts = windows.counts([h, w]);
        // An image of no size has windows nevertheless.
        let is_pointwise = windows.taps() == 1 && windows.padding == [[0; 2]; 2] && h > 0 && w > 0;
        Patches { images, sizes: [h, w, c], windows: *windows, order, counts, is_pointwise }
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

    /// True if inputs are copied on every path; false if memory has them as products of some paths take them.
    pub fn is_copied(&self) -> bool {
        !self.is_pointwise || self.order.len != self.order.span() || !self.order.is_even()
    }

    /// The inputs under a window where memory has them as products take them; then those of no pixel have to be copied.
    #[inline(always)]
    pub fn seen<B: Bytes>(&self, pixel: Pixel, group: usize) -> Option<&'a [[B::Input; 4]]> {
        if self.is_copied() {
            return None;
        }
        B::as_inputs(&self.images[self.only_tap(pixel) + group * self.order.len..][..self.order.len])
    }

    /// The inputs of a group of channels from a pixel on, by its number, and how many there are from one pixel to the next, where
    /// windows see a pixel each, one after the other, and memory has what products take.
    #[inline(always)]
    pub fn dense(&self, first: usize, group: usize) -> Option<(&'a [i8], usize)> {
        let (channels, of_one) = (self.sizes[2], self.windows.stride == [1; 2]);
        let is_dense = of_one && !self.is_copied() && channels.is_multiple_of(4);
        is_dense.then(|| (&self.images[first * channels + group * self.order.len..], channels))
    }

    /// The same in groups of four, where memory has them as [`Patches::seen`] gives them.
    #[inline(always)]
    pub fn line<B: Bytes>(&self, first: usize, group: usize) -> Option<(&'a [[B::Input; 4]], usize)> {
        let (from, step) = self.dense(first, group)?;
        Some((B::as_inputs(from)?, step / 4))
    }

    /// The first input of the only tap.
    #[inline(always)]
    fn only_tap(&self, pixel: Pixel) -> usize {
        let ([h, w, c], stride) = (self.sizes, self.windows.stride);
        let line = pixel.image * h + pixel.y * stride[0];
        (line * w + pixel.x * stride[1]) * c
    }

    /// Gathers inputs of a pixel from `start` on, as many as `to` takes, whole groups of four; padding is `zero`.
    #[inline(always)]
    pub fn gather<B: Bytes>(&self, pixel: Pixel, group: usize, start: usize, zero: i8, to: &mut [B::Input]) {
        let ([h, w, c], windows, order) = (self.sizes, &self.windows, &self.order);
        let (span, padding) = (order.span(), B::input(zero));
        let mut at = 0;
        while at < to.len() {
            let (index, skipped) = ((start + at) / span, (start + at) % span);
            let count = (span - skipped).min(to.len() - at);
            let (to, real) = (&mut to[at..at + count], count.min(order.len.saturating_sub(skipped)));
            at += count;
            let Some(y) = windows.place(0, pixel.y, index / order.columns, h) else {
                to.fill(padding);
                continue;
            };
            // Places in the line of the image, of which some may be before it, or behind.
            let tap = pixel.x * windows.stride[1] + index % order.columns * windows.dilation[1];
            let from = tap * c + group * order.len + skipped;
            let before = windows.padding[1][0] * c;
            let left = before.saturating_sub(from).min(real);
            let right = (from + real).saturating_sub(before + w * c).min(real);
            let end = (real - right).max(left);
            to[..left].fill(padding);
            to[end..].fill(padding);
            if left < end {
                let from = &self.images[(pixel.image * h + y) * w * c + from + left - before..][..end - left];
                to[left..end].iter_mut().zip(from).for_each(|(to, from)| *to = B::input(*from));
            }
        }
    }
}
