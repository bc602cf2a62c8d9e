//! Convolutions of quantised images, channels last, and products of quantised rows, which are convolutions of one tap.
//!
//! Invariant: sums are exact modulo 2³², floats are rounded where the formulas of [`Requantise`] and [`DynamicScales`] say
//! and nowhere else, so results are the same bits on every machine, in every path and for any number of threads.
//!
//! Weights are packed once. There is no matrix of patches: some lines of an image are copied with their padding, which is the
//! zero point, into a few kilobytes on the stack, and products read there what each window sees.

mod band;
mod block;
mod convolution;
mod depthwise;
mod flat;
mod greatest;
mod kernel;
mod matrices;
mod means;
mod narrow;
mod order;
mod pack;
mod patches;
mod phases;
mod requantise;
mod results;
mod taps;
#[cfg(test)]
mod tests;
mod transposed;

pub use convolution::{Convolution, DynamicConvolution};
pub use depthwise::Depthwise;
pub use greatest::greatest;
pub use means::means;
pub use narrow::NarrowConvolution;
pub use pack::Packed;
pub use requantise::{DynamicScales, Requantise};
pub use taps::PackedTaps;
pub use transposed::TransposedConvolution;

use crate::error::{Error, ErrorKind};
pub use crate::simd::bytes::requantised;

/// Windows over images `[n, h, w, c]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Windows {
    /// Height and width, as in all that follows.
    pub kernel: [usize; 2],
    /// Distance of windows.
    pub stride: [usize; 2],
    /// Distance of taps.
    pub dilation: [usize; 2],
    /// Padding of height and width, each in front and behind.
    pub padding: [[usize; 2]; 2],
    /// Groups of channels that are convolved apart.
    pub groups: usize,
}

impl Windows {
    /// One tap, which is what products have.
    pub const ONE: Windows =
        Windows { kernel: [1; 2], stride: [1; 2], dilation: [1; 2], padding: [[0; 2]; 2], groups: 1 };

    /// Returns the sizes of what is made of an image.
    pub fn counts(&self, sizes: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|side| {
            let padded = sizes[side] + self.padding[side][0] + self.padding[side][1];
            let reach = (self.kernel[side] - 1) * self.dilation[side] + 1;
            padded.saturating_sub(reach) / self.stride[side] + 1
        })
    }

    /// Returns the place in the image that a tap of a window looks at, if there is one.
    #[inline(always)]
    pub fn place(&self, side: usize, window: usize, tap: usize, size: usize) -> Option<usize> {
        let place = (window * self.stride[side] + tap * self.dilation[side]).checked_sub(self.padding[side][0])?;
        (place < size).then_some(place)
    }

    /// Returns the places in the image that taps of a window look at.
    #[inline(always)]
    fn seen(&self, side: usize, window: usize, size: usize) -> std::iter::StepBy<std::ops::Range<usize>> {
        let (start, padding, dilation) = (window * self.stride[side], self.padding[side][0], self.dilation[side]);
        let skipped = padding.saturating_sub(start).div_ceil(dilation);
        let end = (start + self.kernel[side] * dilation).saturating_sub(padding).min(size);
        ((start + skipped * dilation).saturating_sub(padding)..end).step_by(dilation)
    }

    /// Returns the place in the image that is nearest to what a tap of a window looks at.
    #[inline(always)]
    pub fn nearest(&self, side: usize, window: usize, tap: usize, size: usize) -> usize {
        let place = (window * self.stride[side] + tap * self.dilation[side]).saturating_sub(self.padding[side][0]);
        place.min(size.saturating_sub(1))
    }

    /// Returns the sizes of what a transposed convolution makes of an image, with so many rows and columns more.
    pub fn spread(&self, sizes: [usize; 2], more: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|side| {
            let reach = (self.kernel[side] - 1) * self.dilation[side] + 1;
            let whole = sizes[side].saturating_sub(1) * self.stride[side] + more[side] + reach;
            whole.saturating_sub(self.padding[side][0] + self.padding[side][1])
        })
    }

    /// Windows over images whose lines are columns, and the other way round.
    pub fn turned(&self) -> Windows {
        let turn = |[down, right]: [usize; 2]| [right, down];
        let Windows { kernel, stride, dilation, padding: [rows, columns], groups } = *self;
        let [kernel, stride, dilation] = [kernel, stride, dilation].map(turn);
        Windows { kernel, stride, dilation, padding: [columns, rows], groups }
    }

    /// The windows that see an image of one column as one of one line, which many windows see alike; `None` if it has more, or
    /// windows see padding beside it. Weights stay as they are: taps keep their order.
    fn along_line(&self, [_, w]: [usize; 2]) -> Option<Windows> {
        let is_column = w == 1 && self.kernel[1] == 1 && self.padding[1] == [0; 2];
        is_column.then(|| self.turned())
    }

    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Refuses what cannot be computed with.
    fn check(&self) -> Result<(), Error> {
        let counts = [self.kernel, self.stride, self.dilation].concat();
        match counts.contains(&0) || self.groups == 0 {
            true => Err(Error::new(ErrorKind::Geometry, format!("{self:?}"))),
            false => Ok(()),
        }
    }
}

/// Refuses a list of another length.
fn expect(what: &str, have: usize, need: usize) -> Result<(), Error> {
    match have == need {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Geometry, format!("{have} {what} instead of {need}"))),
    }
}
