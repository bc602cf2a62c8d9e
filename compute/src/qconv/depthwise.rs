//! Convolutions of one channel each, with one or several output channels for each of them.
//!
//! Invariant: neighbouring channels are computed together, those of several pixels where one pixel has few (`flat`); pixels
//! too near to the end of the images for that are computed by a plain loop, which is the oracle of the other.

use std::sync::Arc;

use super::flat::{self, FlatBlock, FlatLine};
use super::taps::{GROUPS, PackedTaps, TapOrder, blocks};
use super::{Error, Requantise, Windows, expect};
use crate::error::{ErrorKind, room};
use crate::simd::apart::Apart;
use crate::simd::bytes::{
    Bytes, BytesPath, ColumnLine, DepthwiseLine, DepthwiseOrder, DepthwiseScales, LANES, Lanes, ResultRange, Tap,
    WithBytes, store,
};
use crate::threads::{Cost, for_each_piece_at};

/// Columns of windows that are at hand at a time, each of which is one or two groups of taps.
const COLUMNS: usize = 36;

/// Nanoseconds of a multiplication and an addition.
const MULTIPLICATION: f64 = 0.03;

/// Pixels of a piece of a line that is all of an image.
const PIECE: usize = 32;

/// A convolution of statically quantised images with weights `[kh, kw, channels]`, of each channel by itself.
pub struct Depthwise {
    packed: Arc<PackedTaps>,
    /// Blocks of channels, or of a line of few channels, unless the plain loop computes all.
    blocks: Vec<Block>,
    /// Starts and factors by channel, for the plain loop.
    starts: Vec<i32>,
    factors: Vec<f32>,
    windows: Windows,
    range: ResultRange,
    /// The input that represents 0.
    zero: i8,
    path: BytesPath,
}

/// Neighbouring channels: the first, and what makes results of their sums.
struct Block {
    first: usize,
    scales: DepthwiseScales,
}

impl Depthwise {
    /// A convolution with these weights, which were packed for these windows.
    pub fn new(
        packed: impl Into<Arc<PackedTaps>>,
        windows: Windows,
        bias: Option<&[i32]>,
        requantise: Requantise<'_>,
    ) -> Result<Self, Error> {
        Self::on(BytesPath::best(), packed.into(), windows, bias, requantise)
    }

    pub(super) fn on(
        path: BytesPath,
        packed: Arc<PackedTaps>,
        windows: Windows,
        bias: Option<&[i32]>,
        requantise: Requantise<'_>,
    ) -> Result<Self, Error> {
        let [_, channels] = packed.sizes();
        windows.check()?;
        requantise.check(channels)?;
        expect("biases", bias.map_or(channels, <[i32]>::len), channels)?;
        if *packed.order() != TapOrder::of(path, channels, &windows) {
            return Err(Error::new(ErrorKind::Geometry, "weights that were packed for other windows"));
        }
        let zero = i32::from(requantise.input_zero);
        let (mut starts, mut factors) = (room(channels)?, room(channels)?);
        for (channel, sum) in packed.sums().iter().enumerate() {
            starts.push(bias.map_or(0, |bias| bias[channel]).wrapping_sub(zero.wrapping_mul(*sum)));
            factors.push(requantise.factor(channel));
        }
        let (range, zero) = (requantise.range(), requantise.input_zero);
        let mut depthwise = Depthwise { packed, blocks: Vec::new(), starts, factors, windows, range, zero, path };
        if !depthwise.packed.order().is_plain() {
            depthwise.blocks = depthwise.tables()?;
        }
        Ok(depthwise)
    }

    /// Bytes that a convolution of so many channels takes besides its weights.
    pub fn bytes(channels: usize, windows: &Windows) -> usize {
        let blocks = TapOrder::of(BytesPath::best(), channels, windows).blocks().saturating_mul(size_of::<Block>());
        blocks.saturating_add(channels.saturating_mul(size_of::<i32>() + size_of::<f32>()))
    }

    fn channels(&self) -> usize {
        self.starts.len()
    }

    /// Pixels that are computed together where all of them see the image.
    fn together(&self) -> usize {
        self.packed.order().together()
    }

    /// Numbers that make results of the sums of each block, by lane as the path has them.
    fn tables(&self) -> Result<Vec<Block>, Error> {
        let (order, offset) = match self.path.depthwise_order() {
            DepthwiseOrder::Fours { channel, offset } => (Some(channel), offset),
            DepthwiseOrder::Taps | DepthwiseOrder::Pairs => (None, 0),
        };
        let mut all = room(self.packed.order().blocks())?;
        for block in blocks(self.packed.order()) {
            let mut scales = DepthwiseScales { starts: [0; LANES], factors: [0.0; LANES], range: self.range };
            for place in 0..LANES {
                let lane = order.map_or(place, |channel| channel(place));
                let Some(channel) = block.channel(lane) else { continue };
                let sum = self.packed.sums()[channel];
                scales.starts[place] = self.starts[channel].wrapping_sub(offset.wrapping_mul(sum));
                scales.factors[place] = self.factors[channel];
            }
            all.push(Block { first: block.first, scales });
        }
        Ok(all)
    }

    /// The blocks that together have every channel of some pixels.
    fn whole(&self) -> &[Block] {
        if self.channels() < LANES { &self.blocks[..1] } else { &self.blocks }
    }

    /// Computes images `[n, h, w, c]`.
    pub fn run(&self, images: &[i8], [n, h, w, c]: [usize; 4], out: &mut [i8]) -> Result<(), Error> {
        expect("channels", c, self.channels())?;
        expect("inputs", images.len(), n * h * w * c)?;
        let (windows, sizes) = self.along([h, w]);
        let counts = windows.counts(sizes);
        expect("results", out.len(), n * counts[0] * counts[1] * self.channels())?;
        if out.is_empty() {
            return Ok(());
        }
        let cost = Cost::nanoseconds(MULTIPLICATION * windows.taps() as f64);
        // Neighbouring windows have columns in common, so that lines are whole; a line that is all of an image is not.
        let unit = if counts[0] == 1 && !self.packed.order().by_column() { counts[1].min(PIECE) } else { counts[1] };
        for_each_piece_at(cost, out, unit * self.channels(), |start, out| {
            let first = start / self.channels();
            self.path.run(Lines { depthwise: self, windows: &windows, images, sizes, counts, first, out });
        });
        Ok(())
    }

    /// Windows and sizes of images: an image of one column is seen as one of one line, which many windows see alike.
    fn along(&self, [h, w]: [usize; 2]) -> (Windows, [usize; 2]) {
        let order = self.packed.order();
        // Several pixels are together only where windows are next to each other.
        let is_ordered = |turned: &Windows| match order.flat(&self.windows) {
            Some(_) => turned.stride[1] == 1,
            None => self.channels() >= LANES && !order.by_column(),
        };
        match self.windows.along_line([h, w]).filter(is_ordered) {
            Some(turned) => (turned, [1, h]),
            None => (self.windows, [h, w]),
        }
    }
}

/// Some output pixels: lines, or some of one.
struct Lines<'a> {
    depthwise: &'a Depthwise,
    windows: &'a Windows,
    images: &'a [i8],
    sizes: [usize; 2],
    counts: [usize; 2],
    /// The first pixel.
    first: usize,
    out: &'a mut [i8],
}

impl WithBytes for Lines<'_> {
    type Output = ();

    #[inline(always)]
    fn run<B: Bytes>(self, bytes: B) {
        let Lines { depthwise, windows, images, .. } = self;
        let ([oh, ow], channels) = (self.counts, depthwise.channels());
        let padding = [depthwise.zero; LANES];
        let line = Line { depthwise, windows, images, width: self.sizes[1], padding: &padding };
        let order = depthwise.packed.order();
        // Numbers that are not needed are not written.
        let (mut one, mut two);
        let columns: &mut [B::Column<'_>] = match order.depth() / windows.kernel[1] {
            _ if !order.by_column() => &mut [],
            1 => {
                one = [bytes.column([&padding; 4]); COLUMNS];
                &mut one
            }
            _ => {
                two = [bytes.column([&padding; 4]); 2 * COLUMNS];
                &mut two
            }
        };
        let mut starts = [None; 4 * GROUPS];
        let flat = order.flat(windows).filter(|_| !depthwise.blocks.is_empty());
        let mut room;
        let room: &mut [i8] = match flat {
            Some(_) => {
                room = [0; flat::ROOM];
                &mut room
            }
            None => &mut [],
        };
        let (mut pixel, mut left) = (self.first, self.out);
        while !left.is_empty() {
            let (image, y, x) = (pixel / ow / oh, pixel / ow % oh, pixel % ow);
            let pixels = (ow - x).min(left.len() / channels);
            let (out, rest) = left.split_at_mut(pixels * channels);
            (pixel, left) = (pixel + pixels, rest);
            // Where each tap would see the image if its window began with the line.
            for (tap, start) in starts.iter_mut().enumerate().take(windows.taps()) {
                let (ky, kx) = (tap / windows.kernel[1], tap % windows.kernel[1]);
                let place = windows.place(0, y, ky, self.sizes[0]);
                let row = |y: usize| (image * self.sizes[0] + y) * self.sizes[1];
                *start = place.map(|y| (row(y) + kx * windows.dilation[1]) * channels);
            }
            let flat = flat.and_then(|blocks| FlatLine::new(windows, channels, pixels, blocks));
            if let Some(flat) = flat {
                let weights = depthwise.packed.taps().chunks_exact(order.depth());
                let blocks = depthwise.blocks.iter().zip(weights);
                let blocks =
                    blocks.map(|(Block { first, scales }, weights)| FlatBlock { first: *first, weights, scales });
                flat.copy((images, line.width), padding[0], &starts, x, room);
                flat.run(bytes, blocks, room, out);
            } else if depthwise.blocks.is_empty() {
                line.plain([image, y], self.sizes[0], x..x + pixels, out);
            } else if order.by_column() {
                line.run_columns(bytes, &starts, columns, out);
            } else {
                line.run(bytes, &starts, [image, y], self.sizes[0], x, out);
            }
        }
    }
}

/// A line of output pixels of an image.
struct Line<'a> {
    depthwise: &'a Depthwise,
    windows: &'a Windows,
    images: &'a [i8],
    width: usize,
    padding: &'a Lanes<i8>,
}

impl Line<'_> {
    /// Computes pixels from a place on, several at a time where all their taps see the image.
    #[inline(always)]
    fn run<B: Bytes>(
        &self,
        bytes: B,
        starts: &[Option<usize>; 4 * GROUPS],
        [image, y]: [usize; 2],
        height: usize,
        from: usize,
        out: &mut [i8],
    ) {
        let Line { depthwise, windows, .. } = self;
        let channels = depthwise.channels();
        let (stride, padding) = (windows.stride[1], windows.padding[1][0]);
        let reach = (windows.kernel[1] - 1) * windows.dilation[1];
        let (count, together) = (from + out.len() / channels, self.depthwise.together());
        // From this window on not all taps see the line.
        let end = (self.width + padding).saturating_sub(reach).div_ceil(stride).min(count);
        let mut x = from;
        while x < count {
            // Whether all taps of the window see the line.
            let is_inside = |x: usize| x * stride >= padding && x < end;
            let begin = (x * stride * channels).wrapping_sub(padding * channels);
            if is_inside(x) {
                let to = &mut out[(x - from) * channels..(end - from) * channels];
                let windows = self.inside(bytes, starts, begin, to);
                x += windows * together;
                if windows > 0 {
                    continue;
                }
            }
            let pixels = if is_inside(x) && is_inside(x + together - 1) { together } else { 1 };
            let at = At { x, begin, is_inside: is_inside(x) };
            let to = &mut out[(x - from) * channels..][..pixels * channels];
            if !self.pixel(bytes, starts, at, to) {
                self.plain([image, y], height, x..x + pixels, to);
            }
            x += pixels;
        }
    }

    /// Computes pixels all of whose taps see the line, several at a time, as long as they are far enough from the end of the
    /// images; `begin` is the place of the first tap in a line. Returns how many times several there were.
    #[inline(always)]
    fn inside<B: Bytes>(&self, bytes: B, starts: &[Option<usize>; 4 * GROUPS], begin: usize, out: &mut [i8]) -> usize {
        let Line { depthwise: Depthwise { packed, .. }, windows, .. } = self;
        let (blocks, channels) = (self.depthwise.whole(), self.depthwise.channels());
        let taps = windows.taps();
        let out_step = self.depthwise.together() * channels;
        let step = windows.stride[1] * out_step;
        let last = blocks.last().map_or(0, |block| block.first);
        let Some(farthest) = starts[..taps].iter().flatten().max() else { return 0 };
        let Some(room) = self.images.len().checked_sub(farthest.wrapping_add(begin) + last + LANES) else { return 0 };
        let count = (out.len() / out_step).min(room / step + 1);
        for (block, weights) in blocks.iter().zip(packed.taps().chunks_exact(packed.order().depth())) {
            let mut seen = [Tap { seen: self.padding, step: 0 }; DepthwiseLine::TAPS];
            for (start, tap) in starts[..taps].iter().zip(&mut seen) {
                if let Some(start) = start {
                    *tap = Tap { seen: &self.images[start.wrapping_add(begin) + block.first..], step };
                }
            }
            let out_len = (out_step - block.first).min(LANES);
            let line = DepthwiseLine { taps: &seen[..taps], windows: count, weights, out_step, out_len };
            bytes.depthwise_line(&line, &block.scales, &mut out[block.first..]);
        }
        count
    }

    /// Computes pixels; returns whether they are far enough from the end of the images.
    #[inline(always)]
    fn pixel<B: Bytes>(&self, bytes: B, starts: &[Option<usize>; 4 * GROUPS], at: At, out: &mut [i8]) -> bool {
        let Line { depthwise: Depthwise { packed, .. }, windows, .. } = self;
        let taps = windows.taps();
        let depth = packed.order().depth();
        for (block, weights) in self.depthwise.whole().iter().zip(packed.taps().chunks_exact(depth)) {
            let mut seen = [[self.padding; 4]; GROUPS];
            for tap in 0..taps {
                let Some(start) = starts[tap] else { continue };
                if !at.is_inside && windows.place(1, at.x, tap % windows.kernel[1], self.width).is_none() {
                    continue;
                }
                let first = start.wrapping_add(at.begin).wrapping_add(block.first);
                match self.images.get(first..).and_then(|images| images.first_chunk()) {
                    Some(lanes) => seen[tap / 4][tap % 4] = lanes,
                    None => return false,
                }
            }
            let results = bytes.depthwise(&seen[..depth], taps, weights, &block.scales);
            store(&results, &mut out[block.first..]);
        }
        true
    }

    /// Computes pixels one number after the other.
    #[inline(always)]
    fn plain(&self, [image, y]: [usize; 2], height: usize, pixels: std::ops::Range<usize>, out: &mut [i8]) {
        let Line { depthwise: Depthwise { packed, starts, factors, range, zero, .. }, windows, .. } = self;
        let weights = packed.weights();
        let channels = starts.len();
        for (x, out) in pixels.zip(out.chunks_exact_mut(channels)) {
            for (channel, out) in out.iter_mut().enumerate() {
                // Taps that see no image see its zero.
                let mut sum = starts[channel];
                for ky in 0..windows.kernel[0] {
                    let line = windows.place(0, y, ky, height);
                    for kx in 0..windows.kernel[1] {
                        let place = line.zip(windows.place(1, x, kx, self.width));
                        let seen = place.map_or((*zero).into(), |(y, x)| {
                            let pixel = (image * height + y) * self.width + x;
                            self.images[pixel * channels + channel].into()
                        });
                        let weight = weights[(ky * windows.kernel[1] + kx) * channels + channel];
                        sum = sum.wrapping_add(i32::wrapping_mul(seen, weight.into()));
                    }
                }
                *out = range.result(sum, factors[channel]);
            }
        }
    }
}

/// Windows whose columns neighbours have in common: what was made of a column's bytes is there for each of them.
impl<'a> Line<'a> {
    #[inline(always)]
    fn run_columns<B: Bytes>(
        &self,
        bytes: B,
        starts: &[Option<usize>; 4 * GROUPS],
        columns: &mut [B::Column<'a>],
        out: &mut [i8],
    ) {
        match (self.windows.kernel[1], self.windows.stride[1]) {
            (3, 1) => self.columns::<B, 3, 1, 1>(bytes, starts, columns, out),
            (3, _) => self.columns::<B, 3, 1, 2>(bytes, starts, columns, out),
            (_, 1) => self.columns::<B, 5, 2, 1>(bytes, starts, columns, out),
            _ => self.columns::<B, 5, 2, 2>(bytes, starts, columns, out),
        }
    }

    /// Computes all pixels with windows of `W` columns of `D` groups of taps, `S` columns apart, block by block.
    #[inline(always)]
    fn columns<B: Bytes, const W: usize, const D: usize, const S: usize>(
        &self,
        bytes: B,
        starts: &[Option<usize>; 4 * GROUPS],
        columns: &mut [B::Column<'a>],
        out: &mut [i8],
    ) {
        let Depthwise { blocks, packed, .. } = self.depthwise;
        for (block, weights) in blocks.iter().zip(packed.taps().chunks_exact(W * D)) {
            let mut rows = [None; W];
            for (row, seen) in rows.iter_mut().enumerate() {
                // An image of no columns has windows nevertheless, and no place.
                *seen = starts[row * W].and_then(|start| self.images.get(start + block.first..));
            }
            let columns = columns.as_chunks_mut::<D>().0;
            bytes.apart(ColumnBlock::<B, W, D, S> { line: self, block, rows, weights, columns, out: &mut *out });
        }
    }
}

/// A block of channels of a line, by columns.
struct ColumnBlock<'l, 'a, B: Bytes, const W: usize, const D: usize, const S: usize> {
    line: &'l Line<'a>,
    block: &'l Block,
    /// The lines of the image under the rows of the windows, from the first channel on; none where there is padding.
    rows: [Option<&'a [i8]>; W],
    weights: &'l [[Lanes<i8>; 4]],
    columns: &'l mut [[B::Column<'a>; D]],
    out: &'l mut [i8],
}

impl<'a, B: Bytes, const W: usize, const D: usize, const S: usize> Apart<B> for ColumnBlock<'_, 'a, B, W, D, S> {
    #[inline(always)]
    fn run(self, bytes: B) {
        let ColumnBlock { line, block, rows, weights, columns, out } = self;
        let channels = line.depthwise.channels();
        let left = line.windows.padding[1][0];
        let padding = [bytes.column([line.padding; 4]); D];
        // Windows of as many columns as there are.
        let together = (COLUMNS - W) / S + 1;
        for (part, out) in out.chunks_mut(together * channels).enumerate() {
            // Columns of the line with its padding: those in front of the image, in it, and behind.
            let first = part * together * S;
            let count = (out.len() / channels - 1) * S + W;
            let begin = left.saturating_sub(first).min(count);
            let end = (left + line.width).saturating_sub(first).clamp(begin, count);
            let columns = &mut columns[..count];
            columns[..begin].fill(padding);
            columns[end..].fill(padding);
            let mut seen = [Tap { seen: line.padding, step: 0 }; W];
            for (seen, row) in seen.iter_mut().zip(rows).take(if begin < end { W } else { 0 }) {
                let Some(row) = row else { continue };
                *seen = Tap { seen: &row[(first + begin - left) * channels..], step: channels };
            }
            bytes.fill_columns(&seen, line.padding, &mut columns[begin..end]);
            let out_len = LANES.min(channels - block.first);
            let columns = ColumnLine { columns, weights, out_step: channels, out_len };
            bytes.depthwise_columns::<W, D, S>(&columns, &block.scales, &mut out[block.first..]);
        }
    }
}

/// A window: its pixel in the line, where it begins, and whether all its taps see the line.
#[derive(Clone, Copy)]
struct At {
    x: usize,
    begin: usize,
    is_inside: bool,
}
