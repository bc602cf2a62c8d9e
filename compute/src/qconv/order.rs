//! The order in which products read the inputs under a window, which is that of the weights of a channel.
//!
//! Inputs come in spans, each of them next to each other in an image: a row of taps over all channels, or one tap over the
//! channels of a group. A span is filled up to a multiple of four with inputs of weight 0. Groups of at most half
//! as many channels as a tile has are computed several at once: their channels see the inputs of all of them, with weights of 0
//! for those of others.

use std::borrow::Cow;

use super::{Error, ErrorKind, Windows, expect};
use crate::error::room;
use crate::interleave::UNIT;
use crate::simd::dot::CHANNELS;

/// Spans of inputs, and groups of channels that see the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Order {
    /// All channels.
    pub outputs: usize,
    /// Channels that see the same inputs, and how many times there are so many; the last time there may be fewer.
    pub each: usize,
    pub groups: usize,
    /// Rows of spans under a window, and spans of a row.
    pub rows: usize,
    pub columns: usize,
    /// Inputs of a span.
    pub len: usize,
    /// Groups of the windows that are computed at once.
    together: usize,
    /// Inputs under a window that a channel has weights for.
    pub inner: usize,
}

impl Order {
    /// The order for so many outputs, each with so many weights.
    pub fn of([outputs, inner]: [usize; 2], windows: &Windows) -> Result<Order, Error> {
        windows.check()?;
        let taps = windows.kernel[0].checked_mul(windows.kernel[1]).filter(|taps| inner.is_multiple_of(*taps));
        let taps = taps.ok_or_else(|| Error::new(ErrorKind::Geometry, format!("{inner} weights for {windows:?}")))?;
        expect("channels past groups", outputs % windows.groups, 0)?;
        let (each, inputs) = (outputs / windows.groups, inner / taps);
        let together = (CHANNELS / each.max(1)).clamp(1, windows.groups);
        let [rows, columns] = windows.kernel;
        let (columns, len) = match windows.groups == 1 && windows.dilation[1] == 1 {
            true => (1, Some(columns * inputs)),
            false => (columns, inputs.checked_mul(together)),
        };
        let len = len.ok_or_else(|| Error::new(ErrorKind::Geometry, "weights beyond all memory"))?;
        let groups = windows.groups.div_ceil(together);
        Ok(Order { outputs, each: each * together, groups, rows, columns, len, together, inner })
    }

    /// Inputs of a span with those that fill it up.
    pub fn span(&self) -> usize {
        self.len.next_multiple_of(UNIT)
    }

    /// Groups of four inputs that a channel has weights for; `None` if they cannot be counted.
    pub fn depth(&self) -> Option<usize> {
        self.rows.checked_mul(self.columns)?.checked_mul(self.len.div_ceil(UNIT))
    }

    /// The order in which windows that see a column as a line read the weights for that column.
    pub fn along_line(&self, windows: &Windows) -> Order {
        let Order { rows, len, groups, .. } = *self;
        match groups == 1 && windows.dilation[1] == 1 && len == self.span() {
            true => Order { rows: 1, len: rows * len, ..*self },
            false => Order { rows: 1, columns: rows, ..*self },
        }
    }

    /// Tiles of a group of channels.
    pub fn tiles(&self) -> usize {
        self.each.div_ceil(CHANNELS)
    }

    /// True if the last group of channels is as large as the others.
    pub fn is_even(&self) -> bool {
        self.each * self.groups == self.outputs
    }

    /// Weights `[outputs, inner]` in this order.
    pub fn arranged<'w>(&self, weights: &'w [i8]) -> Result<Cow<'w, [i8]>, Error> {
        let Order { outputs, rows, columns, together, inner, .. } = *self;
        if together == 1 && self.len == self.span() || weights.is_empty() {
            return Ok(Cow::Borrowed(weights));
        }
        let (spans, span, len) = (rows * columns, self.span(), self.len / together);
        let count = spans.checked_mul(span).and_then(|row| row.checked_mul(outputs));
        let count = count.ok_or_else(|| Error::new(ErrorKind::Geometry, "weights beyond all memory"))?;
        let mut arranged = room(count)?;
        arranged.resize(count, 0);
        let of_group = self.each / together;
        for (channel, row) in weights.chunks_exact(inner).enumerate() {
            let first = channel / of_group % together * len;
            let to = arranged[channel * spans * span..][..spans * span].chunks_exact_mut(span);
            to.zip(row.chunks_exact(len)).for_each(|(to, from)| to[first..first + len].copy_from_slice(from));
        }
        Ok(Cow::Owned(arranged))
    }
}
