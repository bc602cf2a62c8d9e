//! Weights as convolutions of one channel each read them.
//!
//! Invariant: past the last tap, and where a lane has no channel, weights are 0.

use super::{Error, Windows, expect};
use crate::error::ErrorKind;
use crate::interleave::{Groups, UNIT};
use crate::simd::bytes::{BytesPath, DepthwiseLine, DepthwiseOrder, LANES, Lanes};
use crate::simd::dot::Group;
use crate::simd::{Loop, run_wide};

/// Groups of four taps that are computed together, at most; a plain loop takes more.
pub(super) const GROUPS: usize = DepthwiseLine::TAPS / UNIT;

/// Blocks of a line of few channels after which lanes have the same channels again, at most.
const PATTERNS: usize = 16;

/// Four taps of a block of channels.
pub(super) type Taps = [Lanes<i8>; UNIT];

/// The order of packed weights: the taps of a window in groups of four, and the channels in lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TapOrder {
    kernel: [usize; 2],
    channels: usize,
    /// Pixels that are computed together where all of them see the image.
    together: usize,
    /// Blocks of channels. Of a line of fewer channels than lanes, results from one block to the next, and blocks after which
    /// lanes have the same channels again.
    step: usize,
    blocks: usize,
    /// True if groups are the columns of windows, one after the other.
    by_column: bool,
}

impl TapOrder {
    /// The order for windows over images of so many channels.
    pub fn of(path: BytesPath, channels: usize, windows: &Windows) -> TapOrder {
        let (kernel, stride) = (windows.kernel, windows.stride[1]);
        let together = if stride == 1 { (LANES / channels.max(1)).max(1) } else { 1 };
        let repeated = channels >> channels.trailing_zeros().min(LANES.trailing_zeros());
        let (step, blocks) = match channels {
            LANES.. => (LANES, channels.div_ceil(LANES)),
            _ if stride == 1 && repeated <= PATTERNS => (LANES, repeated),
            _ => (together * channels, channels.min(1)),
        };
        // Those that `Line::run_columns` has loops for.
        let is_square = kernel == [3, 3] || kernel == [5, 5];
        let has_columns = is_square && windows.dilation[1] == 1 && (1..=2).contains(&stride);
        let shares_columns = !matches!(path.depthwise_order(), DepthwiseOrder::Pairs);
        let by_column = channels >= LANES && has_columns && shares_columns;
        TapOrder { kernel, channels, together, step, blocks, by_column }
    }

    /// Returns whether a plain loop computes all, which needs no groups.
    pub fn is_plain(&self) -> bool {
        self.taps().div_ceil(UNIT) > GROUPS
    }

    /// Returns whether groups are the columns of windows.
    pub fn by_column(&self) -> bool {
        self.by_column
    }

    /// Pixels that are computed together where all of them see the image.
    pub fn together(&self) -> usize {
        self.together
    }

    /// Results of a line of few channels from one block to the next, and blocks after which lanes have the same channels again;
    /// `None` if there are as many channels as lanes, or windows are further apart than pixels.
    pub fn flat(&self, windows: &Windows) -> Option<[usize; 2]> {
        (self.channels < LANES && windows.stride[1] == 1).then_some([self.step, self.blocks])
    }

    /// Blocks of channels, or of a line of few channels.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Groups of a block of channels.
    pub fn depth(&self) -> usize {
        let [height, width] = self.kernel;
        if self.by_column { width * height.div_ceil(UNIT) } else { self.taps().div_ceil(UNIT) }
    }

    fn taps(&self) -> usize {
        self.kernel[0].saturating_mul(self.kernel[1])
    }

    /// The tap in a place of a group, if there is one.
    fn tap(&self, group: usize, at: usize) -> Option<usize> {
        let [height, width] = self.kernel;
        if !self.by_column {
            return Some(group * UNIT + at).filter(|&tap| tap < self.taps());
        }
        let groups = height.div_ceil(UNIT);
        let (column, row) = (group / groups, group % groups * UNIT + at);
        (row < height).then_some(row * width + column)
    }

    /// Bytes of the groups of taps, of the weights and of the sums; `None` if they cannot be counted.
    fn lengths(&self) -> Option<[usize; 3]> {
        let groups = if self.is_plain() { 0 } else { self.blocks.checked_mul(self.depth())? };
        let whole = |bytes: usize| bytes.checked_next_multiple_of(size_of::<Group>());
        let weights = self.kernel[0].checked_mul(self.kernel[1])?.checked_mul(self.channels)?;
        let sums = self.channels.checked_mul(size_of::<i32>())?;
        Some([groups.checked_mul(size_of::<Taps>())?, whole(weights)?, whole(sums)?])
    }
}

/// Packed weights `[taps, channels]` of a convolution of one channel each, and the sums of the weights of each channel.
///
/// Groups of four taps, block by block of channels, are followed by the weights as they are, for the plain loop, and by the
/// sums, each from a new group of bytes on.
pub struct PackedTaps {
    groups: Groups,
    /// Groups of taps in all blocks; none if the plain loop takes all.
    taps: usize,
    order: TapOrder,
}

/// A way to see the channels of a block in lanes.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// The first channel, or the place of the first result in a line of few channels.
    pub first: usize,
    channels: usize,
    /// Lanes that have a channel, where channels are fewer than lanes: pixels next to each other repeat the channels.
    lanes: usize,
}

impl Block {
    /// The channel of a lane, of which some have none.
    pub fn channel(&self, lane: usize) -> Option<usize> {
        match self.channels {
            LANES.. => Some(self.first + lane),
            channels => (lane < self.lanes).then(|| (self.first + lane) % channels),
        }
    }
}

/// Blocks of channels, of which the last one begins early enough to be whole; or of a line of few channels.
pub(super) fn blocks(order: &TapOrder) -> impl Iterator<Item = Block> + use<> {
    let TapOrder { channels, step, .. } = *order;
    (0..order.blocks).map(move |block| {
        let first = if channels < LANES { block * step } else { (block * LANES).min(channels - LANES) };
        Block { first, channels, lanes: step.min(LANES) }
    })
}

impl PackedTaps {
    /// The layout of packed weights on this machine, by name: another name where they would be packed in another order.
    pub fn layout(channels: usize, windows: &Windows) -> String {
        let order = match BytesPath::best().depthwise_order() {
            DepthwiseOrder::Fours { .. } => "interleaved",
            DepthwiseOrder::Pairs => "in pairs",
            DepthwiseOrder::Taps => "one after the other",
        };
        let TapOrder { kernel: [height, width], step, blocks, by_column, .. } =
            TapOrder::of(BytesPath::best(), channels, windows);
        let columns = if by_column { "by columns" } else { "by rows" };
        format!(
            "4 taps of {height}x{width} {columns}, {LANES} lanes {order}, {blocks} blocks of {step}, then rows and sums"
        )
    }

    /// Bytes that packed weights for images of so many channels take; `None` if they cannot be counted.
    pub fn packed_len(channels: usize, windows: &Windows) -> Option<usize> {
        let [taps, weights, sums] = TapOrder::of(BytesPath::best(), channels, windows).lengths()?;
        taps.checked_add(weights)?.checked_add(sums)
    }

    /// Packs weights `[kh, kw, channels]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if there are more or fewer weights; [`ErrorKind::Memory`].
    pub fn new(weights: &[i8], channels: usize, windows: &Windows) -> Result<PackedTaps, Error> {
        Self::on(BytesPath::best(), weights, channels, windows)
    }

    pub(super) fn on(path: BytesPath, weights: &[i8], channels: usize, windows: &Windows) -> Result<PackedTaps, Error> {
        windows.check()?;
        expect("weights", weights.len(), windows.taps().saturating_mul(channels))?;
        let mut packed = PackedTaps::zeroed(path, channels, windows)?;
        let taps = packed.order;
        let (groups, plain, sums) = packed.parts();
        plain[..weights.len()].copy_from_slice(weights);
        run_wide(Add { weights, sums: &mut sums[..channels] });
        for (block, groups) in blocks(&taps).zip(groups.chunks_exact_mut(taps.depth().max(1))) {
            for (group, to) in groups.iter_mut().enumerate() {
                let mut four: Taps = [[0; LANES]; UNIT];
                for (at, lanes) in four.iter_mut().enumerate() {
                    let Some(tap) = taps.tap(group, at) else { continue };
                    let row = &weights[tap * channels..][..channels];
                    match row.get(block.first..).and_then(|row| row.first_chunk()) {
                        Some(row) => *lanes = *row,
                        None => (0..LANES)
                            .filter_map(|lane| Some((lane, block.channel(lane)?)))
                            .for_each(|(lane, channel)| lanes[lane] = row[channel]),
                    }
                }
                match path.depthwise_order() {
                    DepthwiseOrder::Fours { channel, .. } => {
                        for (place, to) in to.as_flattened_mut().as_chunks_mut::<UNIT>().0.iter_mut().enumerate() {
                            let lane = channel(place);
                            *to = [four[0][lane], four[1][lane], four[2][lane], four[3][lane]];
                        }
                    }
                    DepthwiseOrder::Pairs => {
                        for (pair, to) in four.as_chunks::<2>().0.iter().zip(to.as_chunks_mut::<2>().0) {
                            for (lane, to) in to.as_flattened_mut().as_chunks_mut().0.iter_mut().enumerate() {
                                *to = [pair[0][lane], pair[1][lane]];
                            }
                        }
                    }
                    DepthwiseOrder::Taps => *to = four,
                }
            }
        }
        Ok(packed)
    }

    /// Packed weights of bytes that `fill` writes, [`PackedTaps::packed_len`] of them; any bytes are some weights. `None` if
    /// it says that there are none.
    pub fn of_packed(
        channels: usize,
        windows: &Windows,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Result<Option<PackedTaps>, Error> {
        let mut packed = PackedTaps::zeroed(BytesPath::best(), channels, windows)?;
        let filled = fill(bytemuck::cast_slice_mut(packed.groups.all_mut()));
        Ok(filled.then_some(packed))
    }

    fn zeroed(path: BytesPath, channels: usize, windows: &Windows) -> Result<PackedTaps, Error> {
        let order = TapOrder::of(path, channels, windows);
        let lengths = order.lengths();
        let lengths = lengths.ok_or_else(|| Error::new(ErrorKind::Geometry, "weights that cannot be counted"))?;
        let bytes = lengths.into_iter().fold(0, usize::saturating_add);
        let groups = Groups::new(bytes / size_of::<Group>())?;
        Ok(PackedTaps { groups, taps: lengths[0] / size_of::<Taps>(), order })
    }

    /// The groups of taps, the weights and the sums, to write.
    fn parts(&mut self) -> (&mut [Taps], &mut [i8], &mut [i32]) {
        let [taps, channels] = self.sizes();
        let weights = (taps * channels).next_multiple_of(size_of::<Group>());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.groups.all_mut());
        let (groups, rest) = bytes.split_at_mut(self.taps * size_of::<Taps>());
        let (weights, sums) = rest.split_at_mut(weights);
        (bytemuck::cast_slice_mut(groups), bytemuck::cast_slice_mut(weights), bytemuck::cast_slice_mut(sums))
    }

    /// The packed weights as bytes.
    pub fn packed(&self) -> &[u8] {
        bytemuck::cast_slice(self.groups.all())
    }

    /// Taps, and channels.
    pub fn sizes(&self) -> [usize; 2] {
        [self.order.taps(), self.order.channels]
    }

    /// The order of taps and channels.
    #[inline(always)]
    pub(super) fn order(&self) -> &TapOrder {
        &self.order
    }

    /// Groups of four taps, block by block.
    #[inline(always)]
    pub(super) fn taps(&self) -> &[Taps] {
        bytemuck::cast_slice(&self.packed()[..self.taps * size_of::<Taps>()])
    }

    /// The weights as they are, `[taps, channels]`.
    #[inline(always)]
    pub(super) fn weights(&self) -> &[i8] {
        let [taps, channels] = self.sizes();
        bytemuck::cast_slice(&self.packed()[self.taps * size_of::<Taps>()..][..taps * channels])
    }

    /// The sums of the weights of each channel, wrapped.
    pub(super) fn sums(&self) -> &[i32] {
        let [taps, channels] = self.sizes();
        let start = self.taps * size_of::<Taps>() + (taps * channels).next_multiple_of(size_of::<Group>());
        bytemuck::cast_slice(&self.packed()[start..][..channels * size_of::<i32>()])
    }
}

/// Adds rows of weights to sums.
struct Add<'a> {
    weights: &'a [i8],
    sums: &'a mut [i32],
}

impl Loop for Add<'_> {
    #[inline(always)]
    fn run(self) {
        for row in self.weights.chunks_exact(self.sums.len().max(1)) {
            self.sums.iter_mut().zip(row).for_each(|(sum, &weight)| *sum = sum.wrapping_add(weight.into()));
        }
    }
}
