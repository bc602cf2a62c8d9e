//! Weights as convolutions of one channel each read them.
//!
//! Invariant: past the last tap, and where a lane has no channel, weights are 0.

use super::{Error, expect};
use crate::error::ErrorKind;
use crate::interleave::{Groups, UNIT};
use crate::simd::bytes::{BytesPath, LANES, Lanes};
use crate::simd::dot::Group;
use crate::simd::{Loop, run_wide};

/// Groups of four taps that are computed together, at most; a plain loop takes more.
pub(super) const GROUPS: usize = 16;

/// Four taps of a block of channels.
pub(super) type Taps = [Lanes<i8>; UNIT];

/// Packed weights `[taps, outputs]` of a convolution of one channel each, and the sums of the weights of each channel.
///
/// Groups of four taps, block by block of channels, are followed by the weights as they are, for the plain loop, and by the
/// sums, each from a new group of bytes on.
pub struct PackedTaps {
    groups: Groups,
    /// Groups of taps in all blocks; none if the plain loop takes all.
    taps: usize,
    sizes: [usize; 2],
    /// Lanes that have a channel, where channels are fewer than lanes: pixels next to each other repeat the channels.
    repeated: usize,
}

/// A way to see the channels of a block in lanes.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// The first channel.
    pub first: usize,
    outputs: usize,
    repeated: usize,
}

impl Block {
    /// The channel of a lane, of which some have none.
    pub fn channel(&self, lane: usize) -> Option<usize> {
        match self.outputs {
            LANES.. => Some(self.first + lane),
            outputs => (lane < self.repeated).then(|| lane % outputs),
        }
    }
}

/// Blocks of channels. The last one begins early enough to be whole, if it can be.
pub(super) fn blocks(outputs: usize, repeated: usize) -> impl Iterator<Item = Block> {
    let first = (0..outputs).step_by(LANES).map(move |first| first.min(outputs.saturating_sub(LANES)));
    first.map(move |first| Block { first, outputs, repeated })
}

/// Pixels that are computed together where all of them see the image.
pub(super) fn together(outputs: usize, stride: usize) -> usize {
    if stride == 1 { (LANES / outputs.max(1)).max(1) } else { 1 }
}

/// Bytes of the groups of taps, of the weights and of the sums; `None` if they cannot be counted.
fn lengths([taps, outputs]: [usize; 2], plain: bool) -> Option<[usize; 3]> {
    let groups = if plain { 0 } else { outputs.div_ceil(LANES).checked_mul(taps.div_ceil(UNIT))? };
    let whole = |bytes: usize| bytes.checked_next_multiple_of(size_of::<Group>());
    let sums = whole(outputs.checked_mul(size_of::<i32>())?)?;
    Some([groups.checked_mul(size_of::<Taps>())?, whole(taps.checked_mul(outputs)?)?, sums])
}

fn is_plain([taps, outputs]: [usize; 2], inputs: usize) -> bool {
    inputs != outputs || taps.div_ceil(UNIT) > GROUPS
}

impl PackedTaps {
    /// The layout of packed weights on this machine for windows of this stride, by name: another name where they would be
    /// packed in another order.
    pub fn layout(inputs: usize, stride: usize) -> String {
        let order = match BytesPath::best().depthwise_order() {
            Some(_) => "interleaved",
            None => "one after the other",
        };
        format!("4 taps of {LANES} lanes {order}, of {inputs} inputs, {} at a time, then rows and sums", stride.min(2))
    }

    /// Bytes that packed weights `[taps, outputs]` for so many inputs take; `None` if they cannot be counted.
    pub fn packed_len(sizes: [usize; 2], inputs: usize) -> Option<usize> {
        let [taps, weights, sums] = lengths(sizes, is_plain(sizes, inputs))?;
        taps.checked_add(weights)?.checked_add(sums)
    }

    /// Packs weights `[taps, outputs]` for so many inputs and windows at this horizontal stride.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if there are more or fewer weights; [`ErrorKind::Memory`].
    pub fn new(weights: &[i8], sizes: [usize; 2], inputs: usize, stride: usize) -> Result<PackedTaps, Error> {
        Self::on(BytesPath::best(), weights, sizes, inputs, stride)
    }

    pub(super) fn on(
        path: BytesPath,
        weights: &[i8],
        sizes: [usize; 2],
        inputs: usize,
        stride: usize,
    ) -> Result<PackedTaps, Error> {
        let [taps, outputs] = sizes;
        expect("weights", weights.len(), taps.saturating_mul(outputs))?;
        let mut packed = PackedTaps::zeroed(sizes, inputs, stride)?;
        let repeated = packed.repeated;
        let (groups, plain, sums) = packed.parts();
        plain[..weights.len()].copy_from_slice(weights);
        run_wide(Add { weights, sums: &mut sums[..outputs] });
        let order = path.depthwise_order().map(|(order, _)| order);
        let depth = taps.div_ceil(UNIT).max(1);
        for (block, groups) in blocks(outputs, repeated).zip(groups.chunks_exact_mut(depth)) {
            for (group, to) in groups.iter_mut().enumerate() {
                let mut four: Taps = [[0; LANES]; UNIT];
                for (tap, lanes) in (group * UNIT..taps).zip(&mut four) {
                    let row = &weights[tap * outputs..][..outputs];
                    match row.get(block.first..).and_then(|row| row.first_chunk()) {
                        Some(row) => *lanes = *row,
                        None => (0..LANES)
                            .filter_map(|lane| Some((lane, block.channel(lane)?)))
                            .for_each(|(lane, channel)| lanes[lane] = row[channel]),
                    }
                }
                match order {
                    Some(order) => {
                        for (lanes, to) in order.iter().zip(to.as_flattened_mut().as_chunks_mut::<UNIT>().0) {
                            *to = [four[0][*lanes], four[1][*lanes], four[2][*lanes], four[3][*lanes]];
                        }
                    }
                    None => *to = four,
                }
            }
        }
        Ok(packed)
    }

    /// Packed weights of bytes that `fill` writes, [`PackedTaps::packed_len`] of them; any bytes are some weights. `None` if
    /// it says that there are none.
    pub fn of_packed(
        sizes: [usize; 2],
        inputs: usize,
        stride: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Result<Option<PackedTaps>, Error> {
        let mut packed = PackedTaps::zeroed(sizes, inputs, stride)?;
        let filled = fill(bytemuck::cast_slice_mut(packed.groups.all_mut()));
        Ok(filled.then_some(packed))
    }

    fn zeroed(sizes: [usize; 2], inputs: usize, stride: usize) -> Result<PackedTaps, Error> {
        let lengths = lengths(sizes, is_plain(sizes, inputs));
        let lengths = lengths.ok_or_else(|| Error::new(ErrorKind::Geometry, "weights that cannot be counted"))?;
        let bytes = lengths.into_iter().fold(0, usize::saturating_add);
        let groups = Groups::zeroed(bytes / size_of::<Group>())?;
        let repeated = together(sizes[1], stride) * sizes[1];
        Ok(PackedTaps { groups, taps: lengths[0] / size_of::<Taps>(), sizes, repeated })
    }

    /// The groups of taps, the weights and the sums, to write.
    fn parts(&mut self) -> (&mut [Taps], &mut [i8], &mut [i32]) {
        let [taps, outputs] = self.sizes;
        let weights = (taps * outputs).next_multiple_of(size_of::<Group>());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.groups.all_mut());
        let (groups, rest) = bytes.split_at_mut(self.taps * size_of::<Taps>());
        let (weights, sums) = rest.split_at_mut(weights);
        (bytemuck::cast_slice_mut(groups), bytemuck::cast_slice_mut(weights), bytemuck::cast_slice_mut(sums))
    }

    /// The packed weights as bytes.
    pub fn packed(&self) -> &[u8] {
        bytemuck::cast_slice(self.groups.all())
    }

    /// Taps, and outputs.
    pub fn sizes(&self) -> [usize; 2] {
        self.sizes
    }

    /// Lanes that have a channel, where channels are fewer than lanes.
    pub(super) fn repeated(&self) -> usize {
        self.repeated
    }

    /// Groups of four taps, block by block.
    #[inline(always)]
    pub(super) fn taps(&self) -> &[Taps] {
        bytemuck::cast_slice(&self.packed()[..self.taps * size_of::<Taps>()])
    }

    /// The weights as they are, `[taps, outputs]`.
    #[inline(always)]
    pub(super) fn weights(&self) -> &[i8] {
        let [taps, outputs] = self.sizes;
        bytemuck::cast_slice(&self.packed()[self.taps * size_of::<Taps>()..][..taps * outputs])
    }

    /// The sums of the weights of each channel, wrapped.
    pub(super) fn sums(&self) -> &[i32] {
        let [taps, outputs] = self.sizes;
        let start = self.taps * size_of::<Taps>() + (taps * outputs).next_multiple_of(size_of::<Group>());
        bytemuck::cast_slice(&self.packed()[start..][..outputs * size_of::<i32>()])
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
