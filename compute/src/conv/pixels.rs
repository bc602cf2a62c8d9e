//! Convolution of channels-last images as products: rows of the left side are the pixels that the taps of a window
//! meet, read where they are stored, and the right side is the weight, packed by block of output channels.
//!
//! Invariant: an output element is one sum over taps and the input channels of its group, in that order, started with the
//! bias, whatever block, tile or thread it is in.

use super::geometry::Geometry;
use crate::epilogue::{Clamp, Epilogue};
use crate::error::{Error, room};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, Line, WithFloats, add_products};
use crate::spatial::Slide;
use crate::threads::{self, Columns, Cost, WriteAll, WriteColumns, for_each};

/// A multiplication and an addition here.
const MULTIPLICATION: Cost = Cost::nanoseconds(0.014);

/// Bytes that stay in a second level of cache next to others.
const CACHE: usize = 1 << 18;

/// A weight as blocks of output channels, for every group: in a block all channels of a tap and an input channel together.
#[derive(Default)]
pub(super) struct PackedWeight {
    lines: Vec<Line>,
    /// Zeros that a window meets in the padding.
    zeros: Vec<f32>,
}

/// Sizes of a packed weight.
#[derive(Clone, Copy)]
struct Sizes {
    /// Products of an output element.
    depth: usize,
    /// Output channels of a group, and vectors of them.
    channels: usize,
    vectors: usize,
    /// Vectors of a block; the last may have fewer.
    tiles: usize,
}

impl Sizes {
    fn of(geometry: &Geometry) -> Sizes {
        let [inputs, channels] = geometry.group_channels();
        let most = FloatPath::best().tiles();
        let vectors = channels.div_ceil(LANES);
        let tiles = vectors.div_ceil(vectors.div_ceil(most).max(1)).max(1);
        Sizes { depth: geometry.weight.area() * inputs, channels, vectors, tiles }
    }

    /// Lines of all blocks of a group.
    fn lines(&self) -> usize {
        self.vectors.saturating_mul(self.depth)
    }

    fn blocks(&self) -> usize {
        self.vectors.div_ceil(self.tiles)
    }
}

/// Elements of a row of taps.
fn row_len(geometry: &Geometry) -> usize {
    geometry.group_channels()[0].saturating_mul(geometry.weight.sizes[2])
}

impl PackedWeight {
    /// Returns whether nothing is packed.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>() + self.zeros.capacity() * size_of::<f32>()
    }

    /// Returns how many bytes that of a geometry takes.
    pub(super) fn bytes_of(geometry: &Geometry) -> usize {
        let lines = Sizes::of(geometry).lines().saturating_mul(geometry.groups);
        lines.saturating_mul(size_of::<Line>()).saturating_add(row_len(geometry).saturating_mul(size_of::<f32>()))
    }

    /// Packs a weight, in the memory there is if that is enough.
    pub(super) fn pack(&mut self, geometry: &Geometry, weight: &[f32]) -> Result<(), Error> {
        let (sizes, kernel) = (Sizes::of(geometry), &geometry.weight);
        let [inputs, _] = geometry.group_channels();
        let (count, zeros) = (sizes.lines() * geometry.groups, row_len(geometry));
        if self.lines.capacity() < count {
            self.lines = room(count)?;
        }
        if self.zeros.capacity() < zeros {
            self.zeros = room(zeros)?;
        }
        self.lines.clear();
        self.lines.resize(count, Line::ZERO);
        self.zeros.resize(zeros, 0.0);
        for (group, lines) in self.lines.chunks_exact_mut(sizes.lines().max(1)).enumerate() {
            for (block, lines) in lines.chunks_mut(sizes.tiles * sizes.depth).enumerate() {
                let tiles = lines.len() / sizes.depth;
                for (k, lines) in lines.chunks_exact_mut(tiles).enumerate() {
                    let (tap, input) = (k / inputs, k % inputs);
                    let (y, x) = (tap / kernel.sizes[2], tap % kernel.sizes[2]);
                    let start = y * kernel.strides[1] + x * kernel.strides[2];
                    let first = block * sizes.tiles * LANES;
                    let places = lines.iter_mut().flat_map(|line| &mut line.0);
                    for (place, channel) in places.zip(first..sizes.channels) {
                        // The weight is by output channel and input of the group; transposed, it is by input and then
                        // output channel of the group.
                        let [outer, inner] = match geometry.transposed {
                            true => [group * inputs + input, channel],
                            false => [group * sizes.channels + channel, input],
                        };
                        *place = weight[start + outer * kernel.batch.1 + inner * kernel.channels.1];
                    }
                }
            }
        }
        Ok(())
    }
}

/// Computes all images: pixels of the input have their channels next to each other and rows of pixels no gaps, and so have
/// those of the output.
pub(super) fn convolve(
    geometry: &Geometry,
    [input, bias]: [&[f32]; 2],
    packed: &PackedWeight,
    epilogue: Option<&Epilogue>,
    out: &mut [f32],
) {
    let Geometry { input: images, out: to, .. } = geometry;
    let (area, channels, sizes) = (to.area(), to.channels.0, Sizes::of(geometry));
    let clamp = epilogue.map_or(Clamp::NONE, Epilogue::first_clamp);
    let parallel = MULTIPLICATION.pays(geometry.work() / to.batch.0.max(1));
    let threads = if parallel { threads::current() } else { 1 };
    let [per_pixel, weight] =
        [images.channels.0 + channels, sizes.lines() * LANES].map(|count| count * size_of::<f32>());
    // Parts whose pixels stay in the cache while all blocks are computed, and enough of them.
    let parts = if parallel { 4 * threads } else { 1 };
    let pixels = (CACHE / per_pixel.max(1)).min(area.div_ceil(parts)).max(1).next_multiple_of(24);
    // Whatever is transposed is computed by rows.
    let pixels = if geometry.transposed { pixels.next_multiple_of(to.sizes[2].max(1)) } else { pixels };
    let width = sizes.tiles * LANES;
    let path = FloatPath::best();
    let reads_often = weight > 4 * CACHE || area.div_ceil(pixels) < threads;
    let by_channels = parallel && geometry.groups == 1 && reads_often && sizes.blocks() >= 2 * threads;
    for n in 0..to.batch.0 {
        let image = Image { geometry, data: &input[n * images.batch.1..], bias, packed, sizes, clamp };
        let out = &mut out[n * to.batch.1..][..area * channels];
        // A large weight is read once if threads share the channels.
        if by_channels {
            for_each(true, WriteColumns(out, channels, width), |block, mut columns| {
                let first = block * width;
                path.run(Part { image: &image, group: 0, block, pixels: [0, area], offset: 0, out: &mut columns });
                let count = width.min(channels - first);
                for row in (0..area).filter(|_| epilogue.is_some()) {
                    epilogue.into_iter().for_each(|epilogue| epilogue.finish(&mut columns.row(row)[..count]));
                }
            });
            continue;
        }
        for_each(parallel, WriteAll(out, pixels * channels), |part, out| {
            let range = [part * pixels, out.len() / channels];
            let mut columns = Columns::all(out, channels);
            for (group, block) in (0..geometry.groups).flat_map(|g| (0..sizes.blocks()).map(move |b| (g, b))) {
                let offset = group * sizes.channels + block * width;
                path.run(Part { image: &image, group, block, pixels: range, offset, out: &mut columns });
            }
            if let Some(epilogue) = epilogue {
                epilogue.finish(out);
            }
        });
    }
}

/// An image and what it is convolved with.
struct Image<'a> {
    geometry: &'a Geometry,
    data: &'a [f32],
    bias: &'a [f32],
    packed: &'a PackedWeight,
    sizes: Sizes,
    clamp: Clamp,
}

/// A block of output channels of some pixels.
struct Part<'a, 'o> {
    image: &'a Image<'a>,
    group: usize,
    block: usize,
    /// The first pixel, and how many there are. They are the rows of `out`.
    pixels: [usize; 2],
    /// The column of `out` that the block begins at.
    offset: usize,
    out: &'a mut Columns<'o, f32>,
}

impl WithFloats for Part<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let sizes = &self.image.sizes;
        let tiles = sizes.tiles.min(sizes.vectors - self.block * sizes.tiles);
        if F::TILES == 1 {
            return self.rows::<F, 6, 1>(floats);
        }
        match tiles {
            4 => self.rows::<F, 6, 4>(floats),
            3 => self.rows::<F, 8, 3>(floats),
            2 => self.rows::<F, 10, 2>(floats),
            _ => self.rows::<F, 12, 1>(floats),
        }
    }
}

impl Part<'_, '_> {
    /// Tiles of so many pixels and vectors.
    #[inline(always)]
    fn rows<F: Floats, const ROWS: usize, const TILES: usize>(self, floats: F) {
        let Image { sizes, packed, bias, geometry, clamp, .. } = self.image;
        let lines = &packed.lines[self.group * sizes.lines() + self.block * sizes.tiles * sizes.depth..];
        let (weights, _) = lines[..TILES * sizes.depth].as_chunks::<TILES>();
        let (first, width) = (self.block * sizes.tiles * LANES, TILES * LANES);
        let count = width.min(sizes.channels - first);
        let mut start = [Line::ZERO; TILES];
        if let Some(bias) = bias.get(self.group * sizes.channels + first..).filter(|bias| !bias.is_empty()) {
            start.iter_mut().flat_map(|line| &mut line.0).zip(&bias[..count]).for_each(|(to, x)| *to = *x);
        }
        let start = start.map(|line| floats.load(&line.0));
        let bounds = clamp.bounds().map(|bound| floats.splat(bound));
        let group = self.group * geometry.group_channels()[0];
        let [from, pixels] = self.pixels;
        // Pixels of a tile are at this distance, and a row begins with as many pixels that are not neighbours.
        let (rows, step) = match geometry.transposed {
            true => (pixels / geometry.out.sizes[2].max(1), geometry.slides[2].stride),
            false => (1, 1),
        };
        let row_len = pixels / rows.max(1);
        for (row, phase) in (0..rows).flat_map(|row| (0..step.min(row_len)).map(move |phase| (row, phase))) {
            let (start_pixel, count_here) = (row * row_len + phase, (row_len - phase).div_ceil(step));
            let mut done = 0;
            while done < count_here {
                let (here, to) = (ROWS.min(count_here - done), start_pixel + done * step);
                if here == 1 {
                    let sums = self.image.sums::<F, 1, TILES>(floats, group, [from + to, 1], weights, start);
                    store(floats, sums[0], bounds, &mut self.out.row(to)[self.offset..][..count]);
                } else {
                    let sums = self.image.sums::<F, ROWS, TILES>(floats, group, [from + to, here], weights, start);
                    for (pixel, sums) in sums.into_iter().enumerate().take(here) {
                        store(floats, sums, bounds, &mut self.out.row(to + pixel * step)[self.offset..][..count]);
                    }
                }
                done += here;
            }
        }
    }
}

/// Writes a row of sums within bounds.
#[inline(always)]
fn store<F: Floats, const TILES: usize>(floats: F, sums: [F::V; TILES], [least, greatest]: [F::V; 2], out: &mut [f32]) {
    let (whole, rest) = out.as_chunks_mut::<LANES>();
    for (tile, sums) in sums.into_iter().enumerate() {
        let sums = floats.at_most(greatest, floats.at_least(least, sums));
        if let Some(out) = whole.get_mut(tile) {
            floats.store(sums, out);
        } else if tile == whole.len() {
            let mut last = [0.0; LANES];
            floats.store(sums, &mut last);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

impl Image<'_> {
    /// The sums of some pixels, and of the last of them in the place of those that there are fewer.
    #[inline(always)]
    fn sums<F: Floats, const ROWS: usize, const TILES: usize>(
        &self,
        floats: F,
        group: usize,
        [first, count]: [usize; 2],
        weights: &[[Line; TILES]],
        start: [F::V; TILES],
    ) -> [[F::V; TILES]; ROWS] {
        let Image { geometry, data, packed, .. } = self;
        let Geometry { input: images, slides, out: to, .. } = geometry;
        let [channels, _] = geometry.group_channels();
        let mut sums = [start; ROWS];
        if geometry.is_pointwise() {
            let stride = images.channels.0;
            let rows = std::array::from_fn(|row| &data[(first + row.min(count - 1)) * stride + group..][..channels]);
            add_products(floats, rows, weights, &mut sums);
            return sums;
        }
        if geometry.transposed {
            self.add_transposed(floats, group, [first, count], weights, &mut sums);
            return sums;
        }
        let Slide { kernel: width, dilation, input, .. } = slides[2];
        let (mut y, mut x) = (first / to.sizes[2], first % to.sizes[2]);
        let mut places = [[0isize; 2]; ROWS];
        for (row, place) in places.iter_mut().enumerate() {
            *place = [(&slides[1], y), (&slides[2], x)].map(|(slide, at)| slide.start(at));
            if row + 1 < count {
                x += 1;
                (y, x) = if x == to.sizes[2] { (y + 1, 0) } else { (y, x) };
            }
        }
        // Taps next to each other meet pixels next to each other.
        let inside = places.iter().all(|&[_, x]| x >= 0 && x as usize + width <= input);
        let together = inside && dilation == 1 && geometry.groups == 1;
        let (runs, len) = if together { (1, width * channels) } else { (width, channels) };
        for ky in 0..slides[1].kernel {
            let down = (ky * slides[1].dilation) as isize;
            for kx in 0..runs {
                let right = (kx * dilation) as isize;
                let rows: [&[f32]; ROWS] = std::array::from_fn(|row| {
                    let [y, x] = [places[row][0] + down, places[row][1] + right];
                    // What is before the first is a great number, too.
                    if (y as usize) < slides[1].input && (x as usize) < input {
                        let at = y as usize * images.strides[1] + x as usize * images.strides[2] + group;
                        &data[at..][..len]
                    } else {
                        &packed.zeros[..len]
                    }
                });
                let weights = &weights[(ky * width + kx) * channels..][..len];
                add_products(floats, rows, weights, &mut sums);
            }
        }
        sums
    }

    /// Adds to the sums of some pixels of a row of the output, which are as far from each other as those of the input are
    /// strided, so that all meet the same taps.
    #[inline(always)]
    fn add_transposed<F: Floats, const ROWS: usize, const TILES: usize>(
        &self,
        floats: F,
        group: usize,
        [first, count]: [usize; 2],
        weights: &[[Line; TILES]],
        sums: &mut [[F::V; TILES]; ROWS],
    ) {
        let Image { geometry, data, packed, .. } = self;
        let Geometry { input: images, slides: [_, down, right], out: to, .. } = geometry;
        let [channels, _] = geometry.group_channels();
        let [y, x] = [first / to.sizes[2], first % to.sizes[2]];
        // The place of the input that puts a tap at an element, if one does; negative ones are before the first.
        let place = |slide: &Slide, at: usize, tap: usize| {
            let distance = (at + slide.padding) as isize - (tap * slide.dilation) as isize;
            let stride = slide.stride as isize;
            (distance.rem_euclid(stride) == 0).then(|| distance.div_euclid(stride))
        };
        for ky in 0..down.kernel {
            let Some(line) = place(down, y, ky).filter(|&line| (line as usize) < images.sizes[1]) else { continue };
            let line = &data[line as usize * images.strides[1]..];
            for kx in 0..right.kernel {
                let Some(start) = place(right, x, kx) else { continue };
                let rows: [&[f32]; ROWS] = std::array::from_fn(|row| {
                    let at = start.wrapping_add(row.min(count - 1) as isize) as usize;
                    let inside = at < images.sizes[2];
                    if inside { &line[at * images.strides[2] + group..][..channels] } else { &packed.zeros[..channels] }
                });
                let weights = &weights[(ky * right.kernel + kx) * channels..][..channels];
                add_products(floats, rows, weights, sums);
            }
        }
    }
}
