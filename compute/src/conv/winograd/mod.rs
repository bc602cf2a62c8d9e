//! Convolution of channels-last images with windows of 3 by 3 as fewer products: Winograd's, of tiles of 2 by 2 results.
//!
//! A tile meets 4 by 4 numbers of a channel. They and the taps are transformed, so that 16 products take the place of 36; the
//! transforms are sums. Tiles are transformed in strips, multiplied with a block of output channels, point by point, and
//! their results are written at once.
//!
//! Invariants: an output element is computed in the same order whatever strip, block or thread it is in. Where a result is
//! not finite, transforms may have added infinities of both signs, or overflowed before the sum does, so the results of that
//! tile in that block are computed by definition.

mod tiles;
mod transform;
mod weight;

use std::ops::{Range, RangeInclusive};

use super::blocked::finish;
use super::geometry::{Geometry, Operands};
use crate::epilogue::{Activation, Epilogue};
use crate::error::{Error, ErrorKind};
use crate::gemm::blocks::Blocks;
use crate::simd::float_path::FloatPath;
use crate::simd::floats::LANES;
use crate::spatial::Slide;
use crate::threads::{self, Columns, Cost, Write, WriteAll, WriteColumns, even, for_each};

use tiles::{Products, Transform};
use transform::{POINTS, RESULTS, TAPS};
pub(super) use weight::TransformedWeight;
use weight::blocks_of;

/// Tiles that are transformed and multiplied together: rows of a product.
const STRIP: usize = 12;
/// Rows of the products of the last tiles come in so many.
const LAST_ROWS: usize = STRIP / 2;

/// Elements of scratch memory that the transformed tiles of a thread have, if strips are not larger.
const SCRATCH: usize = 1 << 16;
/// The least strips that they have room for.
const STRIPS: usize = 4;
/// Input channels of a group: with fewer, transforms take longer than the products that they save; with more, strips are too
/// large for a cache.
const CHANNELS: RangeInclusive<usize> = 5..=1 << 10;
/// The most pixels of an image: numbers of products do not overflow.
const MOST_PIXELS: usize = usize::MAX >> 8;

/// A product here, with its share of the transforms.
const PRODUCT: Cost = Cost::nanoseconds(0.02);
/// Parts of a thread where results are shared by rows.
const PARTS: usize = 4;
/// Bytes of a weight that every part may read.
const CACHE: usize = 1 << 19;
/// Share of the time of all threads that is used where they share blocks of channels, at least.
const EVEN: f64 = 0.9;

/// Returns whether this is faster than a product for every tap, of a convolution whose pixels are read where they are.
pub(super) fn pays(geometry: &Geometry) -> bool {
    let Geometry { input, weight, out, slides: [_, down, right], transposed, .. } = geometry;
    let windows = [(down, out.sizes[1]), (right, out.sizes[2])];
    let fits = |(slide, places): &(&Slide, usize)| {
        [slide.kernel, slide.stride] == [3, 1] && (1..=*places).contains(&slide.dilation)
    };
    let [inputs, channels] = geometry.group_channels();
    let in_range = CHANNELS.contains(&inputs) && input.channels.0 <= *CHANNELS.end() && out.area() <= MOST_PIXELS;
    if *transposed || weight.area() != TAPS || !windows.iter().all(fits) || !in_range {
        return false;
    }
    // Time of the definition and of this, in products of all channels: of the pixels, or reading the weight, which is as long
    // as so many products of a pixel are.
    const READ: usize = 16;
    let (inputs, vectors) = (inputs as f64, channels.next_multiple_of(LANES) as f64);
    let tiles = Tiling::of(geometry).count().next_multiple_of(LAST_ROWS);
    let definition = TAPS * out.area().max(READ);
    let products = POINTS * tiles.max(READ);
    // Reading, adding up and writing the numbers of a tile: the fewer channels, the more of a product's time.
    let transforms = tiles as f64 * 140.0 * (1.0 / vectors + 1.0 / inputs);
    (products as f64 + transforms) * 1.1 < definition as f64
}

/// Elements of scratch memory on as many threads as there are here.
pub(super) fn scratch(geometry: &Geometry) -> usize {
    let each = strip_len(geometry.input.channels.0);
    // No more than there are tiles, in as many parts as there may be.
    let strips = (SCRATCH / each).max(STRIPS).min(Tiling::of(geometry).count().div_ceil(STRIP) + PARTS);
    threads::current() * strips * each
}

/// Elements from a transformed tile to the next at the same point: rows of a product in which no line is as far from those of
/// other rows as caches confuse.
fn row_len(inputs: usize) -> usize {
    inputs.next_multiple_of(LANES) + LANES
}

/// Elements of a transformed strip.
fn strip_len(inputs: usize) -> usize {
    POINTS * STRIP * row_len(inputs)
}

/// Tiles of the results of an image. The results of a tile are as far from each other as taps are; tiles that begin in a
/// line of the output are next to each other, and so are those of all lines between the results of a tile.
#[derive(Clone, Copy)]
struct Tiling {
    /// Distance of taps, down and to the right.
    distance: [usize; 2],
    /// Times that the lines between the results of a tile, and those of them, go into the image.
    bands: usize,
    /// Tiles that begin in a line.
    width: usize,
}

impl Tiling {
    fn of(geometry: &Geometry) -> Tiling {
        let Geometry { out, slides: [_, down, right], .. } = geometry;
        let [_, height, width] = out.sizes;
        Tiling {
            distance: [down.dilation, right.dilation],
            bands: height.div_ceil(RESULTS * down.dilation),
            width: width.div_ceil(RESULTS * right.dilation) * right.dilation,
        }
    }

    /// Tiles of a band.
    fn band(&self) -> usize {
        self.distance[0] * self.width
    }

    fn count(&self) -> usize {
        self.bands * self.band()
    }

    /// Line and column of the first result of a tile.
    fn place(&self, tile: usize) -> [usize; 2] {
        let [down, right] = self.distance;
        let (line, column) = (tile / self.width, tile % self.width);
        [line / down * down * RESULTS + line % down, column / right * right * RESULTS + column % right]
    }
}

/// An image and what it is convolved with.
struct Image<'a> {
    geometry: &'a Geometry,
    tiling: Tiling,
    /// Number of the image among those of the input.
    number: usize,
    operands: &'a Operands<'a, f32>,
    /// Numbers that are added to the results of the image, in the order of the output.
    addend: Option<&'a [f32]>,
    packed: &'a TransformedWeight,
    blocks: Blocks,
    activation: Activation,
}

/// Computes all images: pixels of the input have their channels next to each other, and those of the output, and of the
/// numbers that are added to it before the operations, no gaps. The scratch memory has room for a strip.
pub(super) fn convolve(
    geometry: &Geometry,
    operands: &Operands<'_, f32>,
    addend: Option<&[f32]>,
    packed: &TransformedWeight,
    epilogue: Option<&Epilogue>,
    scratch: &mut [f32],
    out: &mut [f32],
) -> Result<(), Error> {
    let (to, tiling, blocks) = (&geometry.out, Tiling::of(geometry), blocks_of(geometry));
    let (each, channels) = (strip_len(geometry.input.channels.0), to.channels.0);
    let activation = epilogue.map_or(Activation::None, Epilogue::activation);
    let parallel = PRODUCT.pays(geometry.work() / to.batch.0.max(1) / RESULTS);
    let threads = if parallel { threads::current() } else { 1 };
    let strips = scratch.len() / each;
    if strips == 0 {
        return Err(Error::new(ErrorKind::Unsupported, "too little scratch memory for transformed tiles"));
    }
    let by_channels = (2..=strips).contains(&threads)
        && geometry.groups == 1
        && blocks.bytes() > CACHE
        && blocks.balance(threads) >= EVEN;
    for number in 0..to.batch.0 {
        let addend = addend.map(|addend| &addend[number * to.batch.1..]);
        let image = Image { geometry, tiling, number, operands, addend, packed, blocks, activation };
        let out = &mut out[number * to.batch.1..][..to.area() * channels];
        if by_channels {
            image.by_channels(epilogue, threads, scratch, out);
            continue;
        }
        // Parts of whole bands, each with strips of its own.
        let most = if threads > 1 { (threads * PARTS).min(strips) } else { 1 };
        let bands = even(tiling.bands, most, threads, |bands| (bands * tiling.band()).next_multiple_of(LAST_ROWS));
        let parts = tiling.bands.div_ceil(bands).max(1);
        let part = bands * tiling.distance[0] * RESULTS * to.sizes[2] * channels;
        let pieces = (WriteAll(out, part), Write(scratch, strips / parts * each));
        for_each(threads > 1, pieces, |index, (out, scratch)| {
            let first = index * bands;
            let tiles = first * tiling.band()..tiling.bands.min(first + bands) * tiling.band();
            image.part(tiles, scratch, &mut Columns::all(out, channels));
            if let Some(epilogue) = epilogue {
                epilogue.finish(out);
            }
        });
    }
    Ok(())
}

impl Image<'_> {
    /// Some whole bands in all blocks of channels; `out` begins with their first pixel.
    fn part(&self, tiles: Range<usize>, scratch: &mut [f32], out: &mut Columns<'_, f32>) {
        let (blocks, groups) = (self.blocks, self.geometry.groups);
        let from = self.tiling.place(tiles.start)[0] * self.geometry.out.sizes[2];
        self.tiles(tiles, scratch, |path, tiles, points| {
            for (group, block) in (0..groups).flat_map(|group| (0..blocks.count()).map(move |block| (group, block))) {
                let (tiles, column) = (tiles.clone(), group * blocks.columns + blocks.columns(block).start);
                path.run(Products { image: self, group, block, tiles, points, from, column, out });
            }
        });
    }

    /// The whole image in one group, in a part for each thread that has some of the channels: the weight is read once. Each
    /// transforms all tiles, which is done sooner than it has those of others.
    fn by_channels(&self, epilogue: Option<&Epilogue>, threads: usize, scratch: &mut [f32], out: &mut [f32]) {
        let (blocks, count, to) = (self.blocks, self.tiling.count(), &self.geometry.out);
        let each = strip_len(self.geometry.input.channels.0);
        let (strips, some) = (scratch.len() / each / threads, blocks.count().div_ceil(threads));
        let pieces = (WriteColumns(out, to.channels.0, some * blocks.width()), Write(scratch, strips * each));
        for_each(true, pieces, |part, (mut columns, scratch)| {
            let all = part * some..blocks.count().min((part + 1) * some);
            self.tiles(0..count, scratch, |path, tiles, points| {
                for block in all.clone() {
                    let (tiles, column, out) = (tiles.clone(), (block - all.start) * blocks.width(), &mut columns);
                    path.run(Products { image: self, group: 0, block, tiles, points, from: 0, column, out });
                }
            });
            if let Some(epilogue) = epilogue.filter(|epilogue| epilogue.has_more()) {
                finish(epilogue, &mut columns, to.area());
            }
        });
    }

    /// Transforms some tiles, as many at a time as the scratch memory has room for, and hands them to `then`.
    fn tiles(&self, tiles: Range<usize>, scratch: &mut [f32], mut then: impl FnMut(FloatPath, Range<usize>, &[f32])) {
        let path = FloatPath::best();
        let at_once = scratch.len() / strip_len(self.geometry.input.channels.0) * STRIP;
        for first in tiles.clone().step_by(at_once.max(1)) {
            let tiles = first..tiles.end.min(first + at_once);
            path.run(Transform { image: self, tiles: tiles.clone(), to: scratch });
            then(path, tiles, scratch);
        }
    }
}

#[cfg(test)]
mod tests;
