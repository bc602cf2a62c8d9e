//! Lines of an image with their padding, in the form that products take inputs in: every window over them sees spans of inputs
//! that are next to each other, whether there is an image or not.

use super::patches::{Patches, Pixel};
use crate::interleave::UNIT;
use crate::simd::apart::Apart;
use crate::simd::bytes::{Bytes, Offsets};

/// A shape of bands.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Lines and columns of output pixels that see no more than a band; several lines are whole ones.
    pub lines: usize,
    pub columns: usize,
    /// Inputs from a line to the next.
    pub pitch: usize,
}

/// Columns of a band that has not all of a line, at least: as many as there are rows of a block.
const LEAST: usize = 12;

impl Shape {
    /// The largest shape that needs at most so many inputs.
    pub fn of(patches: &Patches<'_>, room: usize) -> Option<Shape> {
        let (windows, order, [oh, ow]) = (&patches.windows, &patches.order, patches.counts);
        let reach = [0, 1].map(|side| (windows.kernel[side] - 1).checked_mul(windows.dilation[side])?.checked_add(1));
        let [Some(down), Some(right)] = reach else { return None };
        // The last group of channels reads on behind its own inputs, and so does a span that is filled up.
        let behind = order.span() - order.len + if order.is_even() { 0 } else { order.len };
        let room = room.checked_sub(behind)?;
        let pitch = |columns: usize| {
            let width = (columns - 1).checked_mul(windows.stride[1])?.checked_add(right)?;
            width.checked_mul(patches.sizes[2])
        };
        if let Some(pitch) = pitch(ow).filter(|&pitch| pitch > 0 && room / pitch >= down) {
            let lines = ((room / pitch - down) / windows.stride[0] + 1).min(oh);
            return Some(Shape { lines, columns: ow, pitch });
        }
        let width = (room / down).checked_div(patches.sizes[2])?;
        let columns = (width.checked_sub(right)? / windows.stride[1] + 1).min(ow);
        (columns >= LEAST).then_some(Shape { lines: 1, columns, pitch: pitch(columns)? })
    }

    /// The place of the first input of a span under the first window, and with it that under any other.
    #[inline(always)]
    pub fn place(&self, patches: &Patches<'_>, [y, x]: [usize; 2]) -> usize {
        y * self.pitch + x * patches.sizes[2]
    }

    /// Inputs from the first under a window up to the end of the last span.
    #[inline(always)]
    pub fn reach(&self, patches: &Patches<'_>) -> usize {
        let (order, [down, right]) = (&patches.order, patches.windows.dilation);
        self.place(patches, [(order.rows - 1) * down, (order.columns - 1) * right]) + order.span()
    }

    /// Places of the groups of four inputs under a window, if there are few.
    pub fn offsets(&self, patches: &Patches<'_>) -> Option<Offsets> {
        let (order, [down, right]) = (&patches.order, patches.windows.dilation);
        let mut offsets = Offsets::default();
        for (y, x) in (0..order.rows).flat_map(|y| (0..order.columns).map(move |x| (y, x))) {
            let from = self.place(patches, [y * down, x * right]);
            for place in (from..from + order.span()).step_by(UNIT) {
                offsets.push(place)?;
            }
        }
        Some(offsets)
    }

    /// Inputs from what a window sees to what those below and beside it see. Taken where there are several windows, so that
    /// they are within the image.
    #[inline(always)]
    pub fn steps(&self, patches: &Patches<'_>) -> [usize; 2] {
        let [down, right] = patches.windows.stride;
        [self.pitch.saturating_mul(down), patches.sizes[2].saturating_mul(right)]
    }
}

/// Output pixels that see no more than a band.
#[derive(Clone, Copy)]
pub(super) struct Seeing {
    pub first: Pixel,
    /// Lines and columns; the last line may have fewer.
    pub lines: usize,
    pub columns: usize,
    /// Number of pixels.
    pub count: usize,
}

impl Seeing {
    /// Those from a pixel on, of which there are so many before the last.
    #[inline(always)]
    pub fn of(patches: &Patches<'_>, shape: Shape, first: Pixel, left: usize) -> Seeing {
        let [oh, ow] = patches.counts;
        // Several lines are whole ones.
        let (lines, columns) = match first.x == 0 && shape.columns == ow {
            true => (shape.lines.min(oh - first.y).min(left.div_ceil(ow)), ow),
            false => (1, shape.columns.min(ow - first.x)),
        };
        Seeing { first, lines, columns, count: (lines * columns).min(left) }
    }
}

/// Lines to be filled with what windows see.
pub(super) struct Fill<'a, B: Bytes> {
    pub patches: &'a Patches<'a>,
    pub shape: Shape,
    pub seeing: Seeing,
    pub padding: i8,
    pub to: &'a mut [B::Input],
}

impl<B: Bytes> Apart<B> for Fill<'_, B> {
    #[inline(always)]
    fn run(self, _: B) {
        let Fill { patches, shape, seeing, padding, to } = self;
        let Seeing { first, lines, columns, .. } = seeing;
        let ([h, w, c], windows) = (patches.sizes, &patches.windows);
        let seen = |count: usize, side: usize| {
            (count - 1) * windows.stride[side] + (windows.kernel[side] - 1) * windows.dilation[side] + 1
        };
        let (height, width) = (seen(lines, 0), seen(columns, 1));
        // Places in a line of the image with its padding.
        let [top, left] = [0, 1].map(|side| windows.padding[side][0]);
        let (y, x) = (first.y * windows.stride[0], first.x * windows.stride[1]);
        let begin = left.saturating_sub(x).min(width);
        let end = (left + w).saturating_sub(x).clamp(begin, width);
        let padding = B::ready(padding);
        for (line, to) in (y..y + height).zip(to.chunks_exact_mut(shape.pitch)) {
            let to = &mut to[..width * c];
            let Some(line) = line.checked_sub(top).filter(|&line| line < h) else {
                to.fill(padding);
                continue;
            };
            let (before, rest) = to.split_at_mut(begin * c);
            let (inside, behind) = rest.split_at_mut((end - begin) * c);
            before.fill(padding);
            behind.fill(padding);
            if !inside.is_empty() {
                let from = ((first.image * h + line) * w + x + begin - left) * c;
                let from = &patches.images[from..][..inside.len()];
                inside.iter_mut().zip(from).for_each(|(to, from)| *to = B::ready(*from));
            }
        }
    }
}
