//! Weights in blocks of output channels, and images that are convolved with them.
//!
//! Invariant: a block has, for every tap and input channel of a group in turn, all of its output channels.

use std::ops::Range;

use super::geometry::Geometry;
use crate::epilogue::{Activate, Activation, Epilogue, WithActivation};
use crate::error::{Error, room};
use crate::gemm::blocks::{Blocks, fill, fill_at, scaled};
use crate::gemm::tiles::{load, store};
use crate::simd::apart::each_row;
use crate::simd::floats::{LANES, Line, Vectors};
use crate::simd::wide;
use crate::threads::Columns;
use crate::zeroed::Zeroed;

/// A weight as blocks of output channels, for every group: in a block all channels of a tap and an input channel together.
#[derive(Default)]
pub(super) struct BlockedWeight {
    lines: Zeroed<Line>,
    /// Zeros that a window meets in the padding.
    zeros: Vec<f32>,
}

/// The blocks of the output channels of a group.
pub(super) fn blocks_of(geometry: &Geometry) -> Blocks {
    let [inputs, channels] = geometry.group_channels();
    Blocks::new(geometry.weight.area() * inputs, channels)
}

/// Elements of a row of taps.
fn row_len(geometry: &Geometry) -> usize {
    geometry.group_channels()[0].saturating_mul(geometry.weight.sizes[2])
}

impl BlockedWeight {
    /// The lines of all blocks.
    pub(super) fn lines(&self) -> &[Line] {
        self.lines.all()
    }

    /// Zeros, as many as a row of taps meets.
    pub(super) fn zeros(&self) -> &[f32] {
        &self.zeros
    }

    /// Returns how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.lines.byte_len() + self.zeros.capacity() * size_of::<f32>()
    }

    /// Returns how many bytes that of a geometry takes.
    pub(super) fn bytes_of(geometry: &Geometry) -> usize {
        let row = row_len(geometry).saturating_mul(size_of::<f32>());
        blocks_of(geometry).bytes().saturating_mul(geometry.groups).saturating_add(row)
    }

    /// Packs a weight, each output channel times its factor if there are factors, in the memory there is if that is enough.
    pub(super) fn pack(&mut self, geometry: &Geometry, weight: &[f32], factors: Option<&[f64]>) -> Result<(), Error> {
        let (blocks, kernel) = (blocks_of(geometry), &geometry.weight);
        let [inputs, channels] = geometry.group_channels();
        let zeros = row_len(geometry);
        if self.zeros.capacity() < zeros {
            self.zeros = room(zeros)?;
        }
        self.zeros.resize(zeros, 0.0);
        let lines = std::mem::take(&mut self.lines);
        self.lines = blocks.pack(lines, geometry.groups, |group, rows, columns, lines| {
            // The weight is by output channel and input of the group; transposed, it is by input and then output channel of
            // the group. Each tap is a matrix.
            let (first, [row, column]) = match geometry.transposed {
                true => (group * inputs * kernel.batch.1, [kernel.batch.1, kernel.channels.1]),
                false => (group * channels * kernel.batch.1, [kernel.channels.1, kernel.batch.1]),
            };
            let (area, tiles) = (kernel.area(), columns.len().div_ceil(LANES).max(1));
            let factors = factors.map(|factors| &factors[group * channels..][columns.clone()]);
            if row == area && kernel.strides[2] == 1 && kernel.is_linear() {
                // The taps of an input are next to each other, and those of all inputs: one matrix.
                let place = |row: usize| row % area * inputs + row / area;
                fill_at(&weight[first..], [1, column], rows, columns, lines, place, factors);
            } else {
                for (tap, lines) in lines.chunks_exact_mut((inputs * tiles).max(1)).enumerate() {
                    let (y, x) = (tap / kernel.sizes[2], tap % kernel.sizes[2]);
                    let start = first + y * kernel.strides[1] + x * kernel.strides[2];
                    fill(&weight[start..], [row, column], 0..inputs, columns.clone(), lines);
                }
                if let Some(factors) = factors {
                    multiply(lines, factors);
                }
            }
        })?;
        Ok(())
    }
}

/// Multiplies the channels of each row of lines by their factors.
pub(super) fn multiply(lines: &mut [Line], factors: &[f64]) {
    wide(|| {
        for row in lines.chunks_exact_mut(factors.len().div_ceil(LANES).max(1)) {
            for (line, factors) in row.iter_mut().zip(factors.chunks(LANES)) {
                line.0.iter_mut().zip(factors).for_each(|(x, factor)| *x = scaled(*x, *factor));
            }
        }
    });
}

/// Elements that are finished together.
const TOGETHER: usize = 1 << 11;

/// Finishes a block of output channels of some pixels: a few channels of one are too little to call an operation for.
pub(super) fn finish(epilogue: &Epilogue, columns: &mut Columns<'_, f32>, pixels: usize) {
    let (mut together, count) = ([0.0; TOGETHER], columns.columns());
    let most = (TOGETHER / count.max(1)).max(1);
    for first in (0..pixels).step_by(most) {
        let here = first..pixels.min(first + most);
        for (pixel, to) in here.clone().zip(together.chunks_exact_mut(count)) {
            to.copy_from_slice(columns.row(pixel));
        }
        epilogue.finish(&mut together[..here.len() * count]);
        for (pixel, from) in here.zip(together.chunks_exact(count)) {
            columns.row(pixel).copy_from_slice(from);
        }
    }
}

/// An image and what it is convolved with.
pub(super) struct Image<'a> {
    pub(super) geometry: &'a Geometry,
    /// True if every output pixel reads the one input pixel at its own place.
    pub(super) is_pointwise: bool,
    pub(super) data: &'a [f32],
    pub(super) bias: &'a [f32],
    /// Numbers that are added to the results, in the order of the output.
    pub(super) addend: Option<&'a [f32]>,
    pub(super) packed: &'a BlockedWeight,
    pub(super) blocks: Blocks,
    pub(super) activation: Activation,
}

/// A block of output channels, as vectors.
pub(super) struct Channels<'a, F: Vectors, const TILES: usize> {
    pub(super) weights: &'a [[Line; TILES]],
    /// Numbers that sums begin with.
    start: [F::V; TILES],
    activation: Activation,
    /// Columns of the output.
    columns: Range<usize>,
    /// Numbers that are added to the results, from the first pixel and channel on, and how many a pixel has.
    addend: Option<&'a [f32]>,
    pixel: usize,
}

impl<'a, F: Vectors, const TILES: usize> Channels<'a, F, TILES> {
    /// The block of a group whose columns of the output begin at `offset`, and its rows with pixel `from`.
    #[inline(always)]
    pub(super) fn new(floats: F, image: &'a Image<'a>, [group, block]: [usize; 2], offset: usize, from: usize) -> Self {
        let Image { blocks, packed, bias, activation, .. } = image;
        let (weights, _) = blocks.block(&packed.lines()[group * blocks.lines()..], block).as_chunks::<TILES>();
        let columns = blocks.columns(block);
        let count = columns.len();
        let pixel = image.geometry.out.channels.0;
        // Of no pixels there are no numbers.
        let first = from * pixel + group * blocks.columns + columns.start;
        let addend = image.addend.map(|addend| addend.get(first..).unwrap_or(&[]));
        let bias = bias.get(group * blocks.columns..).and_then(|bias| bias.get(columns)).unwrap_or(&[]);
        let columns = offset..offset + count;
        Channels { weights, start: load(floats, bias), activation: *activation, columns, addend, pixel }
    }

    /// Numbers that the sums of so many pixels begin with.
    #[inline(always)]
    pub(super) fn start<const ROWS: usize>(&self) -> [[F::V; TILES]; ROWS] {
        [self.start; ROWS]
    }

    /// Writes results of the first `count` pixels: rows of the output from `first` on, `step` apart.
    #[inline(always)]
    pub(super) fn write<const ROWS: usize>(
        &self,
        floats: F,
        sums: &mut [[F::V; TILES]; ROWS],
        [first, step, count]: [usize; 3],
        out: &mut Columns<'_, f32>,
    ) {
        let columns = self.columns.clone();
        if let Some(addend) = self.addend {
            let one = floats.splat(1.0);
            each_row!(row < ROWS => {
                if row < count {
                    let addend = &addend[(first + row * step) * self.pixel..][..columns.len()];
                    let addend = load::<F, TILES>(floats, addend);
                    for tile in 0..TILES {
                        sums[row][tile] = floats.fma(one, sums[row][tile], addend[tile]);
                    }
                }
            });
        }
        self.activation.with(floats, Write { floats, sums, first, step, count, columns, out });
    }
}

/// Results that are written.
struct Write<'a, 'o, F: Vectors, const ROWS: usize, const TILES: usize> {
    floats: F,
    sums: &'a [[F::V; TILES]; ROWS],
    /// Row of the first pixel, rows from one to the next, and number of pixels.
    first: usize,
    step: usize,
    count: usize,
    columns: Range<usize>,
    out: &'a mut Columns<'o, f32>,
}

impl<F: Vectors, const ROWS: usize, const TILES: usize> WithActivation<F> for Write<'_, '_, F, ROWS, TILES> {
    #[inline(always)]
    fn run(self, function: impl Activate<F>) {
        let Write { floats, sums, first, step, count, columns, out } = self;
        each_row!(row < ROWS => {
            if row < count {
                let results = function.of_each(floats, sums[row]);
                store(floats, results, &mut out.row(first + row * step)[columns.clone()]);
            }
        });
    }
}
