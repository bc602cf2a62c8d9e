//! Tiles of an image: their numbers transformed in strips, and strips multiplied with a block of output channels.

use std::ops::Range;

use super::transform::{IN_ALL, POINTS, RESULTS, SIDE, results, tile};
use super::{Image, LAST_ROWS, STRIP, row_len, strip_len};
use crate::conv::direct;
use crate::epilogue::{Activate, WithActivation};
use crate::gemm::blocks::scaled;
use crate::gemm::tiles::{load, store};
use crate::simd::apart::{Apart, each_row};
use crate::simd::floats::{Floats, LANES, Line, Plain, WithFloats};
use crate::simd::products::{Ahead, add_products_of};
use crate::threads::Columns;

/// Transforms the numbers that some tiles meet: strip by strip, and in a strip a row of channels per point and tile.
pub(super) struct Transform<'a, 't> {
    pub(super) image: &'a Image<'a>,
    pub(super) tiles: Range<usize>,
    pub(super) to: &'t mut [f32],
}

impl WithFloats for Transform<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Transform { image, tiles, to } = self;
        let inputs = image.geometry.input.channels.0;
        let (row, vectors) = (row_len(inputs), inputs.div_ceil(LANES));
        for (index, number) in tiles.enumerate() {
            let met = image.met(number);
            let to = &mut to[index / STRIP * strip_len(inputs)..][..strip_len(inputs)];
            for first in (0..vectors).map(|vector| vector * LANES) {
                let mut numbers = [floats.splat(0.0); POINTS];
                for point in 0..POINTS {
                    let rest = &met[point][first..];
                    numbers[point] = match rest.first_chunk() {
                        Some(whole) => floats.load(whole),
                        None => floats.load_some(rest, 0.0),
                    };
                }
                let points = tile(floats, numbers);
                for point in 0..POINTS {
                    // A row has room for all vectors.
                    if let Some(to) = to[(point * STRIP + index % STRIP) * row + first..].first_chunk_mut() {
                        floats.store(points[point], to);
                    }
                }
            }
        }
    }
}

impl<'a> Image<'a> {
    /// The channels that each point of a tile meets: zeros in the padding.
    #[inline(always)]
    fn met(&self, tile: usize) -> [&'a [f32]; POINTS] {
        let (images, [_, down, right]) = (&self.geometry.input, &self.geometry.slides);
        let [top, left] = self.tiling.place(tile);
        let [top, left] = [down.start(top), right.start(left)];
        let distance = self.tiling.distance.map(|distance| distance as isize);
        let data = &self.operands.input[self.number * images.batch.1..];
        let mut met = [self.packed.zeros(); POINTS];
        for (point, met) in met.iter_mut().enumerate() {
            let [y, x] = [top + (point / SIDE) as isize * distance[0], left + (point % SIDE) as isize * distance[1]];
            // What is before the first is a great number, too.
            if (y as usize) < images.sizes[1] && (x as usize) < images.sizes[2] {
                let start = y as usize * images.strides[1] + x as usize * images.strides[2];
                *met = &data[start..][..images.channels.0];
            }
        }
        met
    }

    /// The pixels of the output that the results of a tile are, as far as there are such.
    #[inline(always)]
    fn pixels(&self, tile: usize) -> [Option<usize>; RESULTS * RESULTS] {
        let [_, height, width] = self.geometry.out.sizes;
        let ([top, left], [down, right]) = (self.tiling.place(tile), self.tiling.distance);
        let mut pixels = [None; RESULTS * RESULTS];
        for (result, pixel) in pixels.iter_mut().enumerate() {
            let [y, x] = [top + result / RESULTS * down, left + result % RESULTS * right];
            *pixel = (y < height && x < width).then_some(y * width + x);
        }
        pixels
    }

    /// Computes an element of the output by definition.
    fn element(&self, pixel: usize, channel: usize) -> f32 {
        let (operands, width) = (self.operands, self.geometry.out.sizes[2]);
        let place = [0, pixel / width, pixel % width];
        let (of, factor) = ([self.number, channel], self.packed.factor(channel));
        let weight = |tap: f32| scaled(tap, factor);
        let sum = direct::sum(self.geometry, [operands.input, operands.weight], weight, of, place);
        let mut element = [sum + operands.bias.map_or(0.0, |bias| bias[channel])];
        if let Some(addend) = self.addend {
            element[0] += addend[pixel * self.geometry.out.channels.0 + channel];
        }
        self.activation.apply(&mut element);
        element[0]
    }
}

/// Multiplies transformed tiles with a block of output channels, and writes the results.
pub(super) struct Products<'a, 'o, 'm> {
    pub(super) image: &'a Image<'a>,
    /// A group of channels, and a block of its output channels.
    pub(super) group: usize,
    pub(super) block: usize,
    pub(super) tiles: Range<usize>,
    /// The transformed tiles.
    pub(super) points: &'a [f32],
    /// The pixel that is row 0 of `out`, and the column of `out` that the block begins at.
    pub(super) from: usize,
    pub(super) column: usize,
    pub(super) out: &'m mut Columns<'o, f32>,
}

impl WithFloats for Products<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        match (F::ROWS, self.image.blocks.tiles(self.block)) {
            (2, _) => self.strips::<F, 2, 2, 1>(floats),
            (6, _) => self.strips::<F, LAST_ROWS, LAST_ROWS, 1>(floats),
            (_, 2) => self.strips::<F, STRIP, LAST_ROWS, 2>(floats),
            _ => self.strips::<F, STRIP, LAST_ROWS, 1>(floats),
        }
    }
}

impl Products<'_, '_, '_> {
    /// All strips, so many tiles at a time, or fewer at the end where that is enough.
    #[inline(always)]
    fn strips<F: Floats, const MOST: usize, const LAST: usize, const VECTORS: usize>(self, floats: F) {
        let Products { image, group, block, tiles, points, from, column, out } = self;
        let Image { blocks, packed, operands, .. } = image;
        let [inputs, channels] = image.geometry.group_channels();
        let columns = blocks.columns(block);
        let outputs = group * channels + columns.start..group * channels + columns.end;
        let bias = operands.bias.map_or(&[][..], |bias| &bias[outputs.clone()]);
        let (weights, _) = blocks.block(&packed.lines()[group * blocks.lines()..], block).as_chunks();
        let (mut tile, all) = (0, if block + 1 < blocks.count() { tiles.len().div_ceil(MOST) } else { 0 });
        let mut block = Block::<F, VECTORS> {
            image,
            weights,
            bias: load(floats, bias),
            inputs: group * inputs..(group + 1) * inputs,
            addend: image.addend.map(|addend| addend.get(outputs.start..).unwrap_or(&[])),
            from,
            places: column..column + columns.len(),
            sums: [[[Line::ZERO; VECTORS]; STRIP]; POINTS],
            is_finite: true,
        };
        let strips = tiles.clone().step_by(STRIP).zip(points.chunks_exact(strip_len(image.geometry.input.channels.0)));
        for (first, points) in strips {
            let end = tiles.end.min(first + STRIP);
            for row in (0..end - first).step_by(MOST) {
                let tiles = first + row..end.min(first + row + MOST);
                let (block, out, count) = (&mut block, &mut *out, tiles.len());
                let some = Tiles { block, points, row, first: tiles.start, count, out };
                let ahead = Ahead::of(weights, weights.len(), [tile, all]);
                if count <= LAST {
                    floats.apart(Rows::<F, LAST, VECTORS>(some, ahead));
                } else {
                    floats.apart(Rows::<F, MOST, VECTORS>(some, ahead));
                }
                tile += 1;
                if !block.is_finite {
                    for (_, tile) in (row..).zip(tiles).filter(|(row, _)| !block.is_finite_at(*row)) {
                        block.by_definition(tile, outputs.clone(), out);
                    }
                }
            }
        }
    }
}

/// A block of output channels, as vectors.
struct Block<'a, F: Floats, const VECTORS: usize> {
    image: &'a Image<'a>,
    weights: &'a [[Line; VECTORS]],
    bias: [F::V; VECTORS],
    /// Input channels of the group.
    inputs: Range<usize>,
    /// Numbers that are added to the results, from the first of these channels on.
    addend: Option<&'a [f32]>,
    /// The pixel that is row 0 of the output, and columns of the output.
    from: usize,
    places: Range<usize>,
    /// Products of each point and tile, summed over the input channels.
    sums: [[[Line; VECTORS]; STRIP]; POINTS],
    /// False if one of the last results was not finite.
    is_finite: bool,
}

impl<F: Floats, const VECTORS: usize> Block<'_, F, VECTORS> {
    /// Returns whether all results of the tile in a row are finite.
    #[cold]
    fn is_finite_at(&self, row: usize) -> bool {
        (0..VECTORS).all(|vector| {
            let sums: [[f32; LANES]; POINTS] = std::array::from_fn(|point| self.sums[point][row][vector].0);
            results(Plain, sums).as_flattened().iter().all(|x| x.is_finite())
        })
    }

    /// Computes the results of a tile by definition.
    #[cold]
    fn by_definition(&self, tile: usize, channels: Range<usize>, out: &mut Columns<'_, f32>) {
        for pixel in self.image.pixels(tile).into_iter().flatten() {
            let row = &mut out.row(pixel - self.from)[self.places.clone()];
            row.iter_mut().zip(channels.clone()).for_each(|(x, channel)| *x = self.image.element(pixel, channel));
        }
    }
}

/// Some tiles of a strip, and where their results go.
struct Tiles<'b, 'a, 'o, F: Floats, const VECTORS: usize> {
    block: &'b mut Block<'a, F, VECTORS>,
    /// The transformed strip, and which of its rows the first tile is.
    points: &'b [f32],
    row: usize,
    /// The first tile, and how many there are.
    first: usize,
    count: usize,
    out: &'b mut Columns<'o, f32>,
}

/// Up to `ROWS` tiles, from points to results in memory: a function of its own, so that sums stay in registers.
struct Rows<'b, 'a, 'o, F: Floats, const ROWS: usize, const VECTORS: usize>(Tiles<'b, 'a, 'o, F, VECTORS>, Ahead);

impl<F: Floats, const ROWS: usize, const VECTORS: usize> Apart<F> for Rows<'_, '_, '_, F, ROWS, VECTORS> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Rows(Tiles { block, points, row: first_row, first, count, out }, ahead) = self;
        let (row_len, inputs, count_of_inputs) =
            (row_len(block.image.geometry.input.channels.0), block.inputs.clone(), block.inputs.len());
        let zero = floats.splat(0.0);
        for point in 0..POINTS {
            let mut sums = [if point == IN_ALL { block.bias } else { [zero; VECTORS] }; ROWS];
            let numbers = &points[(point * STRIP + first_row) * row_len + inputs.start..];
            let weights = &block.weights[point * count_of_inputs..][..count_of_inputs];
            add_products_of(floats, (numbers, row_len), weights, ahead.at_row(point * count_of_inputs), &mut sums);
            let to = &mut block.sums[point];
            each_row!(row < ROWS => {
                for vector in 0..VECTORS {
                    floats.store(sums[row][vector], &mut to[row][vector].0);
                }
            });
        }
        block.image.activation.with(floats, Results { floats, block, first, count, out });
    }
}

/// Results of tiles that are written.
struct Results<'b, 'a, 'o, F: Floats, const VECTORS: usize> {
    floats: F,
    block: &'b mut Block<'a, F, VECTORS>,
    /// The first tile, and how many there are.
    first: usize,
    count: usize,
    out: &'b mut Columns<'o, f32>,
}

impl<F: Floats, const VECTORS: usize> WithActivation<F> for Results<'_, '_, '_, F, VECTORS> {
    #[inline(always)]
    fn run(self, function: impl Activate<F>) {
        let Results { floats, block, first, count, out } = self;
        let zero = floats.splat(0.0);
        let mut check = zero;
        for row in 0..count {
            let mut all = [[zero; RESULTS * RESULTS]; VECTORS];
            for (vector, all) in all.iter_mut().enumerate() {
                let mut sums = [zero; POINTS];
                for (point, sum) in sums.iter_mut().enumerate() {
                    *sum = floats.load(&block.sums[point][row][vector].0);
                }
                *all = results(floats, sums);
                for result in all {
                    check = floats.fma(*result, zero, check);
                }
            }
            let pixels = block.image.pixels(first + row);
            each_row!(result < RESULTS * RESULTS => {
                if let Some(pixel) = pixels[result] {
                    let mut vectors = [zero; VECTORS];
                    for (vector, all) in vectors.iter_mut().zip(all) {
                        *vector = all[result];
                    }
                    if let Some(addend) = block.addend {
                        let addend = &addend[pixel * block.image.geometry.out.channels.0..][..block.places.len()];
                        for (vector, addend) in vectors.iter_mut().zip(load::<F, VECTORS>(floats, addend)) {
                            *vector = floats.plus(*vector, addend);
                        }
                    }
                    store(floats, function.of_each(floats, vectors), &mut out.row(pixel - block.from)[block.places.clone()]);
                }
            });
        }
        // Nothing but zeros, unless a result times 0 is not 0.
        let mut numbers = [0.0; LANES];
        floats.store(check, &mut numbers);
        block.is_finite = numbers.iter().all(|x| !x.is_nan());
    }
}
