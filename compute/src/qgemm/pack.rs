//! Weights as products read them, and rows of inputs with what products need to know of them.
//!
//! Invariant: packed weights are the stored ones plus 128 (or 8), so from 0 on; past the last channel and the last input
//! they count as 0 in any product, because the inputs there count as 0.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, ErrorKind, room};
use crate::simd::dot::{CHANNELS, Group};
use crate::simd::wide;

/// Weights of some channels, each for all inputs.
///
/// Tiles of `CHANNELS` channels follow each other, in each of them groups of inputs: four inputs of each channel in bytes,
/// or eight in half bytes, the first four in the low halves. Clones share one copy of the groups.
#[derive(Clone)]
pub struct Weights {
    groups: Arc<Vec<Group>>,
    channels: usize,
    inner: usize,
    bits: Bits,
}

/// Size of a weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bits {
    /// A byte.
    Eight,
    /// Half a byte.
    Four,
}

impl Bits {
    /// Inputs of a group.
    pub(super) const fn inputs(self) -> usize {
        match self {
            Bits::Eight => 4,
            Bits::Four => 8,
        }
    }

    /// Added to stored weights.
    pub(super) const fn offset(self) -> i32 {
        match self {
            Bits::Eight => 128,
            Bits::Four => 8,
        }
    }
}

impl Weights {
    /// Packs `channels` rows of `inner` weights each.
    pub fn eight_bits(weights: &[i8], [channels, inner]: [usize; 2]) -> Result<Weights, Error> {
        check("weights", weights.len(), [channels, inner])?;
        let groups = Weights::pack(Bits::Eight, [channels, inner], weights, inner, |weights, to| {
            to.iter_mut().zip(weights).for_each(|(to, &weight)| *to = weight as u8 ^ 0x80);
        })?;
        Ok(Weights { groups: Arc::new(groups), channels, inner, bits: Bits::Eight })
    }

    /// Packs `channels` rows of `inner` weights each, two a byte, the first in the low half; each is stored as itself plus
    /// 8. Rows begin with a byte.
    pub fn four_bits(weights: &[u8], [channels, inner]: [usize; 2]) -> Result<Weights, Error> {
        let row = inner.div_ceil(2);
        check("bytes of weights", weights.len(), [channels, row])?;
        let mut groups = Weights::pack(Bits::Four, [channels, inner], weights, row, |weights, to| {
            let at = |k: usize| weights.get(k / 2).map_or(0, |byte| byte >> (k % 2 * 4) & 15);
            to.iter_mut().enumerate().for_each(|(k, to)| *to = at(k) | at(k + 4) << 4);
        })?;
        clear_padding(&mut groups, inner);
        Ok(Weights { groups: Arc::new(groups), channels, inner, bits: Bits::Four })
    }

    /// The layout of packed weights, by name: another name where they would be packed in another order.
    pub const LAYOUT: &'static str = "tiles of 16 channels, 4 bytes each, from 0 on";

    /// Bytes that `channels` rows of `inner` weights take when they are packed; `None` if they cannot be counted.
    pub fn packed_len(bits: Bits, [channels, inner]: [usize; 2]) -> Option<usize> {
        let groups = channels.div_ceil(CHANNELS).checked_mul(inner.div_ceil(bits.inputs()))?;
        groups.checked_mul(size_of::<Group>())
    }

    /// Packed weights of bytes that `fill` writes, [`Weights::packed_len`] of them; any bytes are some weights. `None` if
    /// it says that there are none.
    pub fn of_packed(
        bits: Bits,
        [channels, inner]: [usize; 2],
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Result<Option<Weights>, Error> {
        let len = Weights::packed_len(bits, [channels, inner]);
        let count = len.ok_or_else(|| Error::new(ErrorKind::Geometry, "more weights than memory".to_owned()))?;
        let mut groups = zeroed(count / size_of::<Group>())?;
        let filled = fill(bytemuck::cast_slice_mut(&mut groups));
        Ok(filled.then(|| Weights { groups: Arc::new(groups), channels, inner, bits }))
    }

    /// The packed weights as bytes.
    pub fn packed(&self) -> &[u8] {
        bytemuck::cast_slice(&self.groups)
    }

    /// Packs rows of so many items with what packs the items of a channel's four bytes.
    fn pack<T>(
        bits: Bits,
        [channels, inner]: [usize; 2],
        rows: &[T],
        row: usize,
        four: impl Fn(&[T], &mut [u8]),
    ) -> Result<Vec<Group>, Error> {
        let depth = inner.div_ceil(bits.inputs());
        let mut groups = zeroed(channels.div_ceil(CHANNELS) * depth)?;
        // In both cases a channel's part of a group is four items.
        for (channel, row) in rows.chunks_exact(row.max(1)).enumerate() {
            let tile = &mut groups[channel / CHANNELS * depth..][..depth];
            for (group, items) in tile.iter_mut().zip(row.chunks(4)) {
                four(items, &mut group.0[channel % CHANNELS * 4..][..4]);
            }
        }
        Ok(groups)
    }

    /// Channels, and inputs of each.
    pub fn sizes(&self) -> [usize; 2] {
        [self.channels, self.inner]
    }

    /// Bytes that the packed weights take.
    pub fn bytes(&self) -> usize {
        size_of_val(&**self.groups)
    }

    pub(super) fn bits(&self) -> Bits {
        self.bits
    }

    /// The groups of a tile.
    #[inline(always)]
    pub(super) fn tile(&self, index: usize) -> &[Group] {
        let depth = self.inner.div_ceil(self.bits.inputs());
        &self.groups[index * depth..][..depth]
    }

    /// Sums of stored weights by channel, over so many inputs each, wrapped. Blocks end with groups, or there is one.
    pub(super) fn sums(&self, block: usize) -> Result<Vec<i32>, Error> {
        let (block, depth) = (block.max(1), self.inner.div_ceil(self.bits.inputs()));
        let (blocks, groups) = (self.inner.div_ceil(block), block.div_ceil(self.bits.inputs()));
        let mut sums = room(self.channels * blocks)?;
        sums.resize(self.channels * blocks, 0i32);
        for (tile, all) in self.groups.chunks_exact(depth.max(1)).enumerate() {
            let channels = CHANNELS.min(self.channels - tile * CHANNELS);
            for (index, groups) in all.chunks(groups).enumerate() {
                let count = block.min(self.inner - index * block) as i32;
                for channel in 0..channels {
                    let bytes = groups.iter().flat_map(|group| &group.0[channel * 4..][..4]);
                    let sum = match self.bits {
                        Bits::Eight => bytes.fold(0i32, |sum, &byte| sum.wrapping_add(i32::from(byte))),
                        Bits::Four => {
                            bytes.fold(0i32, |sum, &byte| sum.wrapping_add(i32::from(byte & 15) + i32::from(byte >> 4)))
                        }
                    };
                    let offsets = count.wrapping_mul(self.bits.offset());
                    sums[(tile * CHANNELS + channel) * blocks + index] = sum.wrapping_sub(offsets);
                }
            }
        }
        Ok(sums)
    }
}

/// Clears what follows the last of an odd number of half bytes.
fn clear_padding(groups: &mut [Group], inner: usize) {
    if inner.is_multiple_of(2) {
        return;
    }
    let (k, depth) = (inner % Bits::Four.inputs(), inner.div_ceil(Bits::Four.inputs()));
    for group in groups.chunks_exact_mut(depth).filter_map(|tile| tile.last_mut()) {
        for channel in group.0.as_chunks_mut::<4>().0 {
            channel[k % 4] &= if k < 4 { 0xf0 } else { 0x0f };
        }
    }
}

/// Groups of zeros.
fn zeroed(count: usize) -> Result<Vec<Group>, Error> {
    let mut groups = room(count)?;
    groups.resize(count, Group::zeroed());
    Ok(groups)
}

/// Refuses a list that is not so many rows of a length.
pub(super) fn check(what: &str, count: usize, [rows, row]: [usize; 2]) -> Result<(), Error> {
    match rows.checked_mul(row) == Some(count) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Geometry, format!("{count} {what} are not {rows} rows of {row}"))),
    }
}

/// Rows of inputs, and the sums of their blocks.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    bytes: &'a [i8],
    sums: &'a [i32],
    rows: usize,
    inner: usize,
    blocks: usize,
}

impl<'a> Inputs<'a> {
    /// Returns how many sums there are of rows cut into blocks of so many inputs; `None` is one block.
    pub fn sums_of([rows, inner]: [usize; 2], block: Option<usize>) -> usize {
        rows * blocks(inner, block)
    }

    /// Rows of `inner` inputs each, of which products with one block, or blocks of this length, may be computed. `sums` is
    /// what [`Inputs::sums_of`] says long at least, and is written.
    pub fn new(
        bytes: &'a [i8],
        [rows, inner]: [usize; 2],
        block: Option<usize>,
        sums: &'a mut [i32],
    ) -> Result<Self, Error> {
        check("inputs", bytes.len(), [rows, inner])?;
        let (blocks, block) = (blocks(inner, block), block.unwrap_or(inner).max(1));
        if sums.len() < rows * blocks {
            let message = format!("room for {} sums, and there are {rows} rows of {blocks}", sums.len());
            return Err(Error::new(ErrorKind::Geometry, message));
        }
        let sums = &mut sums[..rows * blocks];
        if inner == 0 {
            sums.fill(0);
        } else {
            wide(|| {
                for (bytes, sums) in bytes.chunks_exact(inner).zip(sums.chunks_exact_mut(blocks)) {
                    for (bytes, sum) in bytes.chunks(block).zip(sums) {
                        *sum = bytes.iter().fold(0i32, |sum, &x| sum.wrapping_add(i32::from(x)));
                    }
                }
            });
        }
        Ok(Inputs { bytes, sums, rows, inner, blocks })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Refuses inputs that do not go with weights, or are not cut into so many blocks.
    pub(super) fn check(&self, weights: &Weights, blocks: usize) -> Result<(), Error> {
        let [_, inner] = weights.sizes();
        if self.inner != inner || self.blocks != blocks {
            let message =
                format!("rows of {} inputs in {} blocks, and weights of {inner} in {blocks}", self.inner, self.blocks);
            return Err(Error::new(ErrorKind::Geometry, message));
        }
        Ok(())
    }

    /// Returns `R` rows from `first` on.
    #[inline(always)]
    pub(super) fn some_rows<const R: usize>(&self, first: usize) -> [&'a [i8]; R] {
        std::array::from_fn(|row| &self.bytes[(first + row) * self.inner..][..self.inner])
    }

    /// The sums of a row.
    #[inline(always)]
    pub(super) fn row_sums(&self, row: usize) -> &'a [i32] {
        &self.sums[row * self.blocks..][..self.blocks]
    }
}

fn blocks(inner: usize, block: Option<usize>) -> usize {
    block.map_or(1, |block| inner.div_ceil(block.max(1)).max(1))
}

/// Quantisation of a row: a real number is `scale * (byte - zero_point)`.
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RowScale {
    /// The byte that represents 0.
    pub zero_point: i32,
    /// The size of a quantum.
    pub scale: f32,
}
