//! Convolution of channels-last images as products: rows of the left side are the pixels that the taps of a window
//! meet, read where they are stored, and the right side is the weight, packed by block of output channels.
//!
//! Invariant: an output element is one sum over taps and the input channels of its group, in that order, started with the
//! bias, whatever block, tile or thread it is in.

use super::blocked::{BlockedWeight, Channels, Image, blocks_of, finish};
use super::few_channels::{self, Patches};
use super::geometry::{Geometry, Operands};
use crate::epilogue::{Activation, Epilogue};
use crate::functions::gcd;
use crate::gemm::single::LOADED;
use crate::simd::apart::Apart;
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, HALF, LANES, Line, Vectors, WithFloats};
use crate::simd::products::{Ahead, add_products, add_products_of};
use crate::spatial::Slide;
use crate::threads::{self, Columns, Cost, WriteAll, WriteColumns, even, for_each, for_each_at};

/// A multiplication and an addition here.
const MULTIPLICATION: Cost = Cost::nanoseconds(0.014);

/// Parts that a thread gets, at most.
const PARTS: usize = 16;

/// Pixels of a tile, about, and the pixels that take as long as reading the weights of a part.
const TILE: usize = 12;
const READ: usize = 8;

/// Share of the time of all threads that is used where blocks of channels are shared among them, at least.
const EVEN: f64 = 0.9;

/// Pixels of a piece of a row that meet the same taps of a transposed convolution, at least: a tile.
const PHASE: usize = 6;

/// Bytes that stay in a second level of cache next to others.
const CACHE: usize = 1 << 18;

/// Computes all images: pixels of the input have their channels next to each other and rows of pixels no gaps, and so have
/// those of the output, and the numbers that are added to it before the operations. The weight is the packed one.
pub(super) fn convolve(
    geometry: &Geometry,
    operands: &Operands<'_, f32>,
    addend: Option<&[f32]>,
    packed: &BlockedWeight,
    epilogue: Option<&Epilogue>,
    out: &mut [f32],
) {
    let Geometry { input: images, out: to, .. } = geometry;
    let (area, channels, blocks) = (to.area(), to.channels.0, blocks_of(geometry));
    let activation = epilogue.map_or(Activation::None, Epilogue::activation);
    let work = geometry.work() / to.batch.0.max(1);
    let weights = geometry.weight.area() * geometry.group_channels()[0] * channels;
    // Of few pixels the weight is all that takes time.
    let parallel = MULTIPLICATION.pays(work) || LOADED.pays(weights);
    let threads = if parallel { threads::current() } else { 1 };
    let per_pixel = (images.channels.0 + channels) * size_of::<f32>();
    let cost = Cost::nanoseconds(MULTIPLICATION.as_nanoseconds() * (work / area.max(1)) as f64);
    // Parts whose pixels stay in the cache while all blocks are computed: whole tiles, of any kind of block, or so that threads
    // end together.
    let unit = if blocks.width() == 2 * LANES { 60 } else { 24 };
    let near = (CACHE / per_pixel.max(1)).min(area).max(1).next_multiple_of(unit);
    let most = (area / cost.units()).clamp(threads, PARTS * threads);
    let time = |pixels: usize| (pixels + pixels.div_ceil(TILE) + READ) * (1 + usize::from(pixels > near));
    let pixels = if threads > 1 { even(area, most, threads, time) } else { near };
    // Whatever is transposed is computed by rows, or by pieces of a row that is all of an image.
    let row = if to.sizes[1] == 1 { geometry.slides[2].stride.saturating_mul(PHASE) } else { to.sizes[2] };
    let pixels = if geometry.transposed { pixels.next_multiple_of(row.clamp(1, area.max(1))) } else { pixels };
    let width = blocks.width();
    let path = FloatPath::best();
    // Every part of the pixels reads the weight, and every part of the channels the image: the smaller is read often.
    let image = images.area() * images.channels.0 * size_of::<f32>();
    let reads_weight = blocks.bytes() <= CACHE.max(image) && area.div_ceil(pixels) >= threads;
    let copies = few_channels::pays(geometry);
    let ends_together = blocks.balance(threads) >= EVEN || area < threads * LANES;
    let by_channels =
        !copies && parallel && geometry.groups == 1 && !reads_weight && blocks.count() >= threads && ends_together;
    let is_pointwise = geometry.is_pointwise();
    for n in 0..to.batch.0 {
        let data = &operands.input[n * images.batch.1..];
        let (bias, addend) = (operands.bias.unwrap_or(&[]), addend.map(|addend| &addend[n * to.batch.1..]));
        let image = Image { geometry, is_pointwise, data, bias, addend, packed, blocks, activation };
        let out = &mut out[n * to.batch.1..][..area * channels];
        // A large weight is read once if threads share the channels.
        if by_channels {
            for_each(true, WriteColumns(out, channels, width), |block, mut columns| {
                path.run(Part { image: &image, group: 0, block, pixels: [0, area], offset: 0, out: &mut columns });
                if let Some(epilogue) = epilogue.filter(|epilogue| epilogue.has_more()) {
                    finish(epilogue, &mut columns, area);
                }
            });
            continue;
        }
        for_each_at(
            Cost::nanoseconds(cost.as_nanoseconds() * pixels as f64),
            WriteAll(out, pixels * channels),
            |part, out| {
                let range = [part * pixels, out.len() / channels];
                let mut columns = Columns::all(out, channels);
                if copies {
                    path.run(Patches { image: &image, pixels: range, out: &mut columns });
                } else {
                    for (group, block) in (0..geometry.groups).flat_map(|g| (0..blocks.count()).map(move |b| (g, b))) {
                        let offset = group * blocks.columns + block * width;
                        path.run(Part { image: &image, group, block, pixels: range, offset, out: &mut columns });
                    }
                }
                if let Some(epilogue) = epilogue {
                    epilogue.finish(out);
                }
            },
        );
    }
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
        let blocks = self.image.blocks;
        if const { F::HALVES } && blocks.columns(self.block).len() <= HALF {
            return self.rows::<F::Half, 12, 6, 1>(floats.half());
        }
        match (F::ROWS, blocks.tiles(self.block)) {
            (2, _) => self.rows::<F, 2, 2, 1>(floats),
            (6, _) => self.rows::<F, 6, 3, 1>(floats),
            (_, 4) => self.rows::<F, 6, 5, 4>(floats),
            (_, 3) => self.rows::<F, 8, 6, 3>(floats),
            (_, 2) => self.rows::<F, 10, 7, 2>(floats),
            _ => self.rows::<F, 12, 6, 1>(floats),
        }
    }
}

impl Part<'_, '_> {
    /// Tiles of so many pixels and vectors, or of fewer pixels where that is enough.
    #[inline(always)]
    fn rows<F: Vectors, const ROWS: usize, const LESS: usize, const TILES: usize>(self, floats: F) {
        let (image, geometry) = (self.image, self.image.geometry);
        let channels = Channels::new(floats, image, [self.group, self.block], self.offset, self.pixels[0]);
        let first = self.group * geometry.group_channels()[0];
        let [from, pixels] = self.pixels;
        let width = geometry.out.sizes[2].max(1);
        // Pixels of a tile are at this distance, and a row begins with as many pixels that are not neighbours.
        let (row_len, step) = match geometry.transposed {
            true => (pixels.min(width), geometry.slides[2].stride),
            false => (pixels, 1),
        };
        let rows = pixels.checked_div(row_len).unwrap_or(0);
        // Of the weights of transposed ones a tile reads some.
        let is_last = self.block + 1 == image.blocks.count() || geometry.transposed;
        let tiles = if is_last { 0 } else { pixels.div_ceil(ROWS) };
        for (row, phase) in (0..rows).flat_map(|row| (0..step.min(row_len)).map(move |phase| (row, phase))) {
            let (start_pixel, count_here) = (row * row_len + phase, (row_len - phase).div_ceil(step));
            let mut met = [Met::default(); 2];
            if geometry.transposed {
                let [_, down, right] = &geometry.slides;
                met = [(down, (from + start_pixel) / width), (right, (from + start_pixel) % width)].map(Met::at);
            }
            let mut done = 0;
            while done < count_here {
                // As even as they can be: of few rows weights are read slower than registers take them.
                let left = count_here - done;
                let (count, to) = (left.div_ceil(left.div_ceil(ROWS)), start_pixel + done * step);
                let ahead = Ahead::of(channels.weights, channels.weights.len(), [done.div_ceil(ROWS), tiles]);
                let (channels, out) = (&channels, &mut *self.out);
                let tile = Pixels { image, channels, first, from, to, step, met, count, out };
                match count {
                    1 => floats.apart(Tile::<F, 1, TILES>(tile, ahead)),
                    _ if count <= LESS => floats.apart(Tile::<F, LESS, TILES>(tile, ahead)),
                    _ => floats.apart(Tile::<F, ROWS, TILES>(tile, ahead)),
                }
                // The next pixels of the row of a transposed one meet the next ones of the input.
                met[1].place += count as isize;
                done += count;
            }
        }
    }
}

/// A block of output channels at some pixels.
struct Pixels<'a, 'o, F: Vectors, const TILES: usize> {
    image: &'a Image<'a>,
    channels: &'a Channels<'a, F, TILES>,
    /// First input channel of the group.
    first: usize,
    /// The pixel that is row 0 of the output.
    from: usize,
    /// Row of the first pixel, rows from one to the next, and number of pixels.
    to: usize,
    step: usize,
    /// Of a transposed convolution: what the first pixel meets, down and right.
    met: [Met; 2],
    count: usize,
    out: &'a mut Columns<'o, f32>,
}

/// Up to `ROWS` pixels, from inputs to results in memory: a function of its own, so that sums stay in registers.
struct Tile<'a, 'o, F: Vectors, const ROWS: usize, const TILES: usize>(Pixels<'a, 'o, F, TILES>, Ahead);

impl<F: Vectors, const ROWS: usize, const TILES: usize> Apart<F> for Tile<'_, '_, F, ROWS, TILES> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Tile(Pixels { image, channels, first, from, to, step, met, count, out }, ahead) = self;
        let mut sums = channels.start::<ROWS>();
        if image.geometry.transposed {
            image.add_transposed(floats, first, (met, count), channels.weights, &mut sums);
        } else {
            image.add(floats, first, [from + to, count], (channels.weights, ahead), &mut sums);
        }
        channels.write(floats, &mut sums, [to, step, count], out);
    }
}

impl Image<'_> {
    /// Adds to the sums of some pixels, and of the last of them in the place of those that there are fewer.
    #[inline(always)]
    fn add<F: Vectors, const ROWS: usize, const TILES: usize>(
        &self,
        floats: F,
        group: usize,
        [first, count]: [usize; 2],
        (weights, ahead): (&[[Line; TILES]], Ahead),
        sums: &mut [[F::V; TILES]; ROWS],
    ) {
        let Image { geometry, data, packed, .. } = self;
        let Geometry { input: images, slides, out: to, .. } = geometry;
        let [channels, _] = geometry.group_channels();
        if self.is_pointwise && count == ROWS {
            let stride = images.channels.0;
            return add_products_of(floats, (&data[first * stride + group..], stride), weights, ahead, sums);
        }
        let Slide { kernel: width, stride, dilation, input, .. } = slides[2];
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
        // Pixels of one line are equally far from each other, and so are those that a tap meets.
        let in_line = count == ROWS && first % to.sizes[2] + ROWS <= to.sizes[2];
        let reach = (ROWS - 1) * stride + if together { width } else { 1 };
        for ky in 0..slides[1].kernel {
            let down = (ky * slides[1].dilation) as isize;
            for kx in 0..runs {
                let right = (kx * dilation) as isize;
                let first = (ky * width + kx) * channels;
                let (weights, ahead) = (&weights[first..][..len], ahead.at_row(first));
                let [y, x] = [places[0][0] + down, places[0][1] + right];
                let is_met = (y as usize) < slides[1].input && x >= 0 && x as usize + reach <= input;
                if in_line && is_met {
                    let pixels = &data[y as usize * images.strides[1] + x as usize * images.strides[2] + group..];
                    add_products_of(floats, (pixels, stride * images.strides[2]), weights, ahead, sums);
                    continue;
                }
                let mut rows = [&packed.zeros()[..len]; ROWS];
                for (row, [y, x]) in rows.iter_mut().zip(places) {
                    let [y, x] = [y + down, x + right];
                    // What is before the first is a great number, too.
                    if (y as usize) < slides[1].input && (x as usize) < input {
                        *row = &data[y as usize * images.strides[1] + x as usize * images.strides[2] + group..][..len];
                    }
                }
                add_products(floats, rows, weights, ahead, sums);
            }
        }
    }

    /// Adds to the sums of some pixels of a row of the output, which are as far from each other as those of the input are
    /// strided, so that all meet the same taps.
    #[inline(always)]
    fn add_transposed<F: Vectors, const ROWS: usize, const TILES: usize>(
        &self,
        floats: F,
        group: usize,
        ([down, right], count): ([Met; 2], usize),
        weights: &[[Line; TILES]],
        sums: &mut [[F::V; TILES]; ROWS],
    ) {
        let Image { geometry: Geometry { input: images, weight: kernel, .. }, data, packed, .. } = self;
        let [_, height, width] = kernel.sizes;
        let channels = self.geometry.group_channels()[0];
        for (ky, line) in down.taps(height) {
            // A place before the first is a great number, too.
            if line as usize >= images.sizes[1] {
                continue;
            }
            let line = &data[line as usize * images.strides[1]..];
            for (kx, start) in right.taps(width) {
                let weights = &weights[(ky * width + kx) * channels..][..channels];
                let ahead = Ahead::near(weights);
                if count == ROWS && start >= 0 && start as usize + ROWS <= images.sizes[2] {
                    let pixels = &line[start as usize * images.strides[2] + group..];
                    add_products_of(floats, (pixels, images.strides[2]), weights, ahead, sums);
                    continue;
                }
                let mut rows = [&packed.zeros()[..channels]; ROWS];
                for (row, place) in rows.iter_mut().enumerate() {
                    let at = start.wrapping_add(row.min(count - 1) as isize) as usize;
                    if at < images.sizes[2] {
                        *place = &line[at * images.strides[2] + group..][..channels];
                    }
                }
                add_products(floats, rows, weights, ahead, sums);
            }
        }
    }
}

/// Taps of a transposed convolution that meet an element of its output, along one dimension: those whose distance from the
/// element is a multiple of the stride.
#[derive(Clone, Copy, Default)]
struct Met {
    /// The first tap, and taps from one to the next.
    first: usize,
    step: usize,
    /// The place of the input that the first tap meets, and how far before it the next one is; negative ones are before the first.
    place: isize,
    back: isize,
}

impl Met {
    fn at((slide, at): (&Slide, usize)) -> Met {
        let common = gcd(slide.stride as i64, slide.dilation as i64) as usize;
        let (step, back) = (slide.stride / common, (slide.dilation / common) as isize);
        let distance = |tap: usize| (at + slide.padding) as isize - (tap * slide.dilation) as isize;
        let stride = slide.stride as isize;
        let first = (0..step.min(slide.kernel)).find(|tap| distance(*tap).rem_euclid(stride) == 0);
        let first = first.unwrap_or(slide.kernel);
        Met { first, step, place: distance(first).div_euclid(stride), back }
    }

    /// The taps of so many, and the places that they meet.
    #[inline(always)]
    fn taps(self, kernel: usize) -> impl Iterator<Item = (usize, isize)> {
        let Met { first, step, place, back } = self;
        (first..kernel).step_by(step).enumerate().map(move |(index, tap)| (tap, place - index as isize * back))
    }
}

#[cfg(test)]
mod tests {
    use crate::conv::algorithm::Algorithm;
    use crate::conv::geometry::Geometry;
    use crate::conv::tests::agrees;
    use crate::random::Random;
    use crate::spatial::{Images, Slide};

    /// Strides and dilations that have a divisor or not, and rows that threads share.
    #[test]
    fn transposed_images_agree_with_the_definition() {
        let mut random = Random::new(71);
        for round in 0..60 {
            let [stride, dilation, kernel] = [1 + random.below(8), 1 + round % 4, 1 + random.below(16)];
            let slide = |input, extra, padding| {
                let slide = Slide { input, kernel, stride, padding, dilation };
                Slide { input: slide.transposed_size(extra).unwrap(), ..slide }
            };
            let (width, height) = (kernel + random.below(40), if round % 2 == 0 { 1 } else { 2 + kernel });
            let extra = random.below(stride.max(dilation));
            let mut slides = [Slide::POINT, Slide::POINT, slide(width, extra, random.below(kernel))];
            if height > 1 {
                slides[1] = slide(height, 0, random.below(kernel));
            }
            let (groups, inputs, outputs) = (1 + round % 3, 1 + random.below(20), 2 + random.below(40));
            let geometry = Geometry {
                input: Images::channels_last(2, groups * inputs, [1, height, width]),
                weight: Images::channels_first(groups * inputs, outputs, slides.map(|slide| slide.kernel)),
                out: Images::channels_last(2, groups * outputs, slides.map(|slide| slide.input)),
                slides,
                groups,
                transposed: true,
            };
            if geometry.work() >= 1 << 9 && geometry.input.channels.0 > 1 {
                assert_eq!(Algorithm::of(&geometry), Algorithm::Pixels, "{geometry:?}");
            }
            agrees(&mut random, geometry);
        }
    }
}
