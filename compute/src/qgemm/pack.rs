//! Weights as products read them, and rows of inputs with what products need to know of them.
//!
//! Invariant: packed weights are the stored ones plus 128 (or 8), so from 0 on; past the last channel and the last input
//! they count as 0 in any product, because the inputs there count as 0.

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, ErrorKind};
use crate::interleave::{Block, GROUP, Groups, Sums, UNIT, interleave};
use crate::simd::dot::{CHANNELS, Group};
use crate::simd::{run_wide, wide};
use crate::threads::{Cost, WriteAll, for_each_at};

/// Weights of some channels, each for all inputs, with what products need besides: sums, and scales of blocks.
///
/// Tiles of `CHANNELS` channels follow each other, in each of them groups of inputs: four inputs of each channel in bytes,
/// or eight in half bytes, the first four in the low halves. Behind them, a group for each tile has the sums of its
/// channels: of the weights, or if there are blocks, of those of each block times its scale, in `f32`. The scales of blocks
/// follow, by tile, then by block.
pub struct Weights {
    groups: Groups,
    shape: Shape,
}

/// Sizes of packed weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shape {
    channels: usize,
    inner: usize,
    bits: Bits,
    /// Inputs of a block, if blocks have scales.
    block: Option<usize>,
}

/// Weights in blocks of so many inputs, a multiple of 8 that the inputs are one of, and their scales: the upper halves of
/// `f32` (bfloat16), block by block of each channel.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    /// Inputs of a block.
    pub inputs: usize,
    /// A scale for each block.
    pub scales: &'a [u16],
}

/// Size of a weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bits {
    /// One byte, -128 to 127.
    Eight,
    /// Half a byte, -8 to 7; a byte has two weights.
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

impl Shape {
    fn tiles(&self) -> usize {
        self.channels.div_ceil(CHANNELS)
    }

    /// Groups of a tile.
    fn depth(&self) -> usize {
        self.inner.div_ceil(self.bits.inputs())
    }

    /// Blocks of a channel that have scales.
    fn blocks(&self) -> usize {
        self.block.map_or(0, |block| self.inner / block)
    }

    /// Groups of weights, of sums and of scales; `None` if they cannot be counted.
    fn counts(&self) -> Option<[usize; 3]> {
        let tiles = self.tiles();
        let scales = tiles.checked_mul(self.blocks())?.checked_mul(size_of::<[u16; CHANNELS]>())?;
        Some([tiles.checked_mul(self.depth())?, tiles, scales.div_ceil(size_of::<Group>())])
    }

    fn expect_blocks(&self) -> Result<(), Error> {
        let inner = self.inner;
        match self.block {
            Some(block) if block == 0 || !block.is_multiple_of(8) || !inner.is_multiple_of(block) => {
                let message = format!("{inner} inputs in blocks of {block}: blocks are multiples of 8, and all alike");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
            _ => Ok(()),
        }
    }
}

impl Weights {
    /// Packs `channels` rows of `inner` weights each, on all threads if that is worth it.
    pub fn eight_bits(weights: &[i8], [channels, inner]: [usize; 2]) -> Result<Weights, Error> {
        check("weights", weights.len(), [channels, inner])?;
        let shape = Shape { channels, inner, bits: Bits::Eight, block: None };
        let (bytes, sign) = (bytemuck::cast_slice(weights), 0x8080_8080);
        Weights::zeroed(shape)?.packed_from(bytes, inner, |unit| unit ^ sign, |byte| i32::from(byte as i8))
    }

    /// Packs `channels` rows of `inner` weights each, two a byte, the first in the low half, on all threads if that is worth
    /// it; each is stored as itself plus 8. Rows begin with a byte.
    pub fn four_bits(weights: &[u8], sizes: [usize; 2]) -> Result<Weights, Error> {
        Weights::four_bits_of(weights, sizes, None)
    }

    /// Packs rows as [`Weights::four_bits`] does, and scales of their blocks.
    pub fn four_bits_in_blocks(weights: &[u8], sizes: [usize; 2], blocks: Blocks<'_>) -> Result<Weights, Error> {
        let Blocks { inputs, scales } = blocks;
        let mut packed = Weights::four_bits_of(weights, sizes, Some(inputs))?;
        check("scales", scales.len(), [sizes[0], packed.shape.blocks()])?;
        super::check_scales(scales.iter().map(|&scale| real(scale)))?;
        packed.scale(weights, blocks);
        Ok(packed)
    }

    fn four_bits_of(weights: &[u8], [channels, inner]: [usize; 2], block: Option<usize>) -> Result<Weights, Error> {
        let row = inner.div_ceil(2);
        check("bytes of weights", weights.len(), [channels, row])?;
        let shape = Shape { channels, inner, bits: Bits::Four, block };
        let mut packed = Weights::zeroed(shape)?.packed_from(weights, row, halves, halves_of)?;
        packed.clear_padding();
        Ok(packed)
    }

    /// The layout of packed weights, by name: another name where they would be packed in another order.
    pub const LAYOUT: &'static str = "tiles of 16 channels, 4 bytes each, from 0 on, then sums, then scales of blocks";

    /// Bytes that `channels` rows of `inner` weights, and scales of their blocks of so many inputs, take when they are
    /// packed; `None` if they cannot be counted, or there are no such blocks.
    pub fn packed_len(bits: Bits, [channels, inner]: [usize; 2], block: Option<usize>) -> Option<usize> {
        let shape = Shape { channels, inner, bits, block };
        shape.expect_blocks().ok()?;
        let [weights, sums, scales] = shape.counts()?;
        weights.checked_add(sums)?.checked_add(scales)?.checked_mul(size_of::<Group>())
    }

    /// Packed weights of bytes that `fill` writes, [`Weights::packed_len`] of them; any bytes are some weights. `None` if
    /// it says that there are none.
    pub fn of_packed(
        bits: Bits,
        [channels, inner]: [usize; 2],
        block: Option<usize>,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Result<Option<Weights>, Error> {
        let mut packed = Weights::zeroed(Shape { channels, inner, bits, block })?;
        let filled = fill(bytemuck::cast_slice_mut(packed.groups.all_mut()));
        Ok(filled.then_some(packed))
    }

    /// The packed weights as bytes.
    pub fn packed(&self) -> &[u8] {
        bytemuck::cast_slice(self.groups.all())
    }

    fn zeroed(shape: Shape) -> Result<Weights, Error> {
        shape.expect_blocks()?;
        let counts = shape.counts().ok_or_else(|| Error::new(ErrorKind::Geometry, "more weights than memory"))?;
        let count = counts.into_iter().fold(0, usize::saturating_add);
        Ok(Weights { groups: Groups::new(count)?, shape })
    }

    /// The weights, the sums and the scales of blocks, to write.
    fn parts(&mut self) -> (&mut [Group], &mut [Group], &mut [[u16; CHANNELS]]) {
        let (tiles, depth) = (self.shape.tiles(), self.shape.depth());
        let (weights, rest) = self.groups.all_mut().split_at_mut(tiles * depth);
        let (sums, scales) = rest.split_at_mut(tiles);
        (weights, sums, bytemuck::cast_slice_mut(scales))
    }

    /// Packs rows of so many bytes, four at a time as `convert` says, with the sum of each row by what `number` says of a
    /// byte.
    fn packed_from(
        mut self,
        rows: &[u8],
        row: usize,
        convert: impl Fn(u32) -> u32 + Copy + Sync + Send,
        number: impl Fn(u8) -> i32 + Copy + Sync + Send,
    ) -> Result<Weights, Error> {
        let Shape { channels, bits, .. } = self.shape;
        let depth = self.shape.depth();
        // A byte past the last half byte is counted, and has to be nothing.
        let is_odd = bits == Bits::Four && !self.shape.inner.is_multiple_of(2);
        let (groups, sums, _) = self.parts();
        if depth == 0 || channels == 0 {
            return Ok(self);
        }
        let cost = Cost::nanoseconds(GROUP.as_nanoseconds() * depth as f64);
        for_each_at(
            cost,
            (WriteAll(groups, depth), WriteAll(sums, 1)),
            |index, (to, sums): (&mut [Group], &mut [Group])| {
                let first = index * CHANNELS;
                let rows = &rows[first * row..channels.min(first + CHANNELS) * row];
                interleave(Block { rows, row, to, tiles: 1, convert });
                for sums in sums {
                    let sums: &mut [i32] = bytemuck::cast_slice_mut(&mut sums.0);
                    run_wide(Sums { rows, row, sums: &mut *sums, number });
                    if is_odd {
                        // Of the last byte only the low half is a weight.
                        for (row, sum) in rows.chunks_exact(row).zip(sums) {
                            let past = row.last().map_or(0, |byte| i32::from(byte >> 4) - Bits::Four.offset());
                            *sum = sum.wrapping_sub(past);
                        }
                    }
                }
            },
        );
        Ok(self)
    }

    /// Writes the scales of blocks, and `Σ f32(Σ w) · scale` in the place of the sums.
    fn scale(&mut self, rows: &[u8], blocks: Blocks<'_>) {
        let Shape { channels, inner, .. } = self.shape;
        let (count, row, block) = (self.shape.blocks(), inner / 2, blocks.inputs / 2);
        let tiles = self.shape.tiles();
        let (_, sums, scales) = self.parts();
        if count == 0 {
            return;
        }
        let cost = Cost::nanoseconds(GROUP.as_nanoseconds() * (inner / Bits::Four.inputs()) as f64);
        let pieces = (WriteAll(&mut scales[..tiles * count], count), WriteAll(sums, 1));
        for_each_at(cost, pieces, |index, (to, sums): (&mut [[u16; CHANNELS]], &mut [Group])| {
            let first = index * CHANNELS;
            for sums in sums {
                let sums: &mut [f32] = bytemuck::cast_slice_mut(&mut sums.0);
                sums.fill(0.0);
                for (channel, sum) in (first..channels).zip(sums) {
                    let scales = &blocks.scales[channel * count..][..count];
                    let row = &rows[channel * row..][..row];
                    for (to, scale) in to.iter_mut().zip(scales) {
                        to[channel - first] = *scale;
                    }
                    for (bytes, scale) in row.chunks_exact(block).zip(scales) {
                        *sum += sum_of_halves(bytes) as f32 * real(*scale);
                    }
                }
            }
        });
    }

    /// Clears what follows the last of an odd number of half bytes.
    fn clear_padding(&mut self) {
        let (inner, depth) = (self.shape.inner, self.shape.depth());
        if inner.is_multiple_of(2) {
            return;
        }
        let k = inner % Bits::Four.inputs();
        let (groups, ..) = self.parts();
        for group in groups.chunks_exact_mut(depth).filter_map(|tile| tile.last_mut()) {
            for channel in group.0.as_chunks_mut::<UNIT>().0 {
                channel[k % UNIT] &= if k < UNIT { 0xf0 } else { 0x0f };
            }
        }
    }

    /// Channels, and inputs of each.
    pub fn sizes(&self) -> [usize; 2] {
        [self.shape.channels, self.shape.inner]
    }

    /// Inputs of a block, if blocks have scales.
    pub fn block(&self) -> Option<usize> {
        self.shape.block
    }

    /// Bytes that the packed weights take.
    pub fn bytes(&self) -> usize {
        self.packed().len()
    }

    pub(super) fn bits(&self) -> Bits {
        self.shape.bits
    }

    /// The groups of a tile.
    #[inline(always)]
    pub(super) fn tile(&self, index: usize) -> &[Group] {
        let depth = self.shape.depth();
        &self.groups.all()[index * depth..][..depth]
    }

    /// The groups of each of `C` tiles from `first` on.
    #[inline(always)]
    pub(super) fn tiles<const C: usize>(&self, first: usize) -> [&[Group]; C] {
        let mut tiles: [&[Group]; C] = [&[]; C];
        for (index, tile) in tiles.iter_mut().enumerate() {
            *tile = self.tile(first + index);
        }
        tiles
    }

    /// The sums of stored weights of the channels of a tile, wrapped; if there are blocks, in `f32` by their scales.
    #[inline(always)]
    pub(super) fn sums<T: Pod>(&self, tile: usize) -> [T; CHANNELS] {
        bytemuck::cast(self.groups.all()[self.shape.tiles() * self.shape.depth() + tile].0)
    }

    /// The scales of blocks of a tile.
    #[inline(always)]
    pub(super) fn scales(&self, tile: usize) -> &[[u16; CHANNELS]] {
        let (tiles, count) = (self.shape.tiles(), self.shape.blocks());
        let scales: &[[u16; CHANNELS]] = bytemuck::cast_slice(&self.groups.all()[tiles * (self.shape.depth() + 1)..]);
        &scales[tile * count..][..count]
    }
}

/// Four bytes of half bytes, in order, as four low halves and then four high ones.
#[inline(always)]
fn halves(unit: u32) -> u32 {
    let spread = |four: u32| {
        let two = (four | four << 8) & 0x00ff_00ff;
        (two | two << 4) & 0x0f0f_0f0f
    };
    spread(unit & 0xffff) | spread(unit >> 16) << 4
}

/// The sum of the two weights in a byte.
#[inline(always)]
fn halves_of(byte: u8) -> i32 {
    i32::from(byte & 15) + i32::from(byte >> 4) - 2 * Bits::Four.offset()
}

/// The sum of the weights in the bytes of a block, a multiple of four.
fn sum_of_halves(bytes: &[u8]) -> i32 {
    const HALVES: u32 = 0x0f0f_0f0f;
    let units = bytes.as_chunks::<UNIT>().0;
    let sum = units.iter().fold(0i32, |sum, unit| {
        let unit = u32::from_le_bytes(*unit);
        let pairs = (unit & HALVES) + (unit >> 4 & HALVES);
        // Each byte is 30 at most, and the four together end up in the highest one.
        sum.wrapping_add((pairs.wrapping_mul(0x0101_0101) >> 24) as i32)
    });
    sum.wrapping_sub((bytes.len() as i32).wrapping_mul(2 * Bits::Four.offset()))
}

/// The `f32` whose upper half this is.
pub(super) fn real(scale: u16) -> f32 {
    f32::from_bits(u32::from(scale) << 16)
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
        let mut rows: [&[i8]; R] = [&[]; R];
        for (index, row) in rows.iter_mut().enumerate() {
            *row = &self.bytes[(first + index) * self.inner..][..self.inner];
        }
        rows
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
