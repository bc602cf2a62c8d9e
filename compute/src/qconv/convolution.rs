//! Convolutions whose output channels see all channels of a group.

use std::sync::Arc;

use super::kernel::Piece;
use super::order::Order;
use super::pack::{Packed, TILES};
use super::patches::Patches;
use super::requantise::{Dynamic, DynamicImages, Epilogue, Static, by_tile};
use super::{DynamicScales, Error, Requantise, Windows, expect};
use crate::simd::bytes::BytesPath;
use crate::simd::dot::CHANNELS;
use crate::simd::matrices::ROWS;
use crate::threads::{self, Columns, Cost, WriteColumns, even, for_each_at, for_each_piece_at};

/// Pixels that a piece has a multiple of: as many as blocks of every size have.
const PIXELS: usize = 24;

/// Pixels of a block of many channels.
const STEP: usize = 6;

/// Nanoseconds of a multiplication and an addition of bytes, in vectors and in registers that hold matrices.
const MULTIPLICATION: f64 = 0.005;
const MATRIX_MULTIPLICATION: f64 = 0.001;
/// Nanoseconds of the conversion of a sum to a result.
const RESULT: f64 = 0.15;
/// Nanoseconds of a multiplication and an addition for few pixels, where weights come from memory.
const LOADED_MULTIPLICATION: f64 = 0.03;
/// Nanoseconds of a piece of channels, at least, where inputs are read from the image, and where every piece copies them.
const PIECE: f64 = 3_000.0;
const COPIED_PIECE: f64 = 10_000.0;
/// Pieces of pixels for each thread, if they are not too little for that.
const PIECES: usize = 8;
/// Inputs of a span, at least, for products in registers that hold matrices: of fewer, most of a matrix is empty.
const LEAST_SPAN: usize = 32;
/// Shares of time that differ by less are even.
const EVEN: f64 = 0.1;

/// Weights and what results are made with.
struct Product<E> {
    packed: Arc<Packed>,
    windows: Windows,
    epilogue: E,
    path: BytesPath,
}

/// A convolution of statically quantised images with weights `[outputs, kh, kw, inputs / groups]`.
pub struct Convolution(Product<Static>);

/// A convolution of images that are quantised one by one, with weights `[outputs, kh, kw, inputs / groups]`.
pub struct DynamicConvolution(Product<Dynamic>);

impl Convolution {
    /// A convolution with these weights, whose groups of channels are those of the windows.
    pub fn new(
        packed: impl Into<Arc<Packed>>,
        windows: Windows,
        bias: Option<&[i32]>,
        requantise: Requantise<'_>,
    ) -> Result<Self, Error> {
        Self::on(BytesPath::best(), packed.into(), windows, bias, requantise)
    }

    pub(super) fn on(
        path: BytesPath,
        packed: Arc<Packed>,
        windows: Windows,
        bias: Option<&[i32]>,
        requantise: Requantise<'_>,
    ) -> Result<Self, Error> {
        packed.check(path, &windows)?;
        let (order, outputs) = (&packed.order, packed.order.outputs);
        requantise.check(outputs)?;
        expect("biases", bias.map_or(outputs, <[i32]>::len), outputs)?;
        let zero = i32::from(requantise.input_zero) + path.offset();
        let mut starts = by_tile(order, |channel| bias.map_or(0, |bias| bias[channel]))?;
        for (starts, sums) in starts.iter_mut().zip(packed.sums()) {
            starts.iter_mut().zip(sums).for_each(|(start, sum)| *start = start.wrapping_sub(zero.wrapping_mul(*sum)));
        }
        let epilogue = Static {
            starts,
            factors: by_tile(order, |channel| requantise.factor(channel))?,
            range: requantise.range(),
            input_zero: requantise.input_zero,
        };
        Ok(Convolution(Product { packed, windows, epilogue, path }))
    }

    /// Bytes that a convolution with weights of these sizes takes besides them.
    pub fn bytes(sizes: [usize; 2], windows: &Windows) -> usize {
        tiles(sizes, windows).saturating_mul(2 * size_of::<[i32; CHANNELS]>())
    }

    /// Computes images `[n, h, w, c]`.
    pub fn run(&self, images: &[i8], sizes: [usize; 4], out: &mut [i8]) -> Result<(), Error> {
        self.0.run(&self.0.epilogue, images, sizes, out)
    }
}

impl DynamicConvolution {
    /// A convolution with these weights, whose groups of channels are those of the windows.
    pub fn new(packed: impl Into<Arc<Packed>>, windows: Windows, scales: DynamicScales<'_>) -> Result<Self, Error> {
        Self::on(BytesPath::best(), packed.into(), windows, scales)
    }

    pub(super) fn on(
        path: BytesPath,
        packed: Arc<Packed>,
        windows: Windows,
        scales: DynamicScales<'_>,
    ) -> Result<Self, Error> {
        packed.check(path, &windows)?;
        let (order, outputs) = (&packed.order, packed.order.outputs);
        expect("scales", scales.weights.len(), outputs)?;
        expect("biases", scales.bias.map_or(outputs, <[f32]>::len), outputs)?;
        let epilogue = Dynamic {
            scales: by_tile(order, |channel| scales.weights[channel])?,
            bias: by_tile(order, |channel| scales.bias.map_or(0.0, |bias| bias[channel]))?,
            limits: scales.limits,
            offset: path.offset(),
        };
        Ok(DynamicConvolution(Product { packed, windows, epilogue, path }))
    }

    /// Bytes that a convolution with weights of these sizes takes besides them.
    pub fn bytes(sizes: [usize; 2], windows: &Windows) -> usize {
        tiles(sizes, windows).saturating_mul(2 * size_of::<[f32; CHANNELS]>())
    }

    /// Computes images `[n, h, w, c]`, each with a scale and a zero point.
    pub fn run(&self, images: &[i8], sizes: [usize; 4], scales: &[[f32; 2]], out: &mut [f32]) -> Result<(), Error> {
        expect("scales of images", scales.len(), sizes[0])?;
        let epilogue = DynamicImages { packed: &self.0.packed, scales: &self.0.epilogue, images: scales };
        self.0.run(&epilogue, images, sizes, out)
    }
}

fn tiles(sizes: [usize; 2], windows: &Windows) -> usize {
    Order::of(sizes, windows).map_or(0, |order| order.groups.saturating_mul(order.tiles()))
}

/// Pixels of a piece, of so many that take so many nanoseconds each. Copies of inputs begin again with every piece.
fn pixels_of_piece(patches: &Patches<'_>, count: usize, pixel: f64, matrices: bool) -> usize {
    let (threads, line, is_copied) = (threads::current(), patches.counts[1].max(1), patches.is_copied());
    if threads == 1 {
        return if is_copied || matrices { count.max(1) } else { PIXELS };
    }
    let step = if matrices { ROWS } else { STEP };
    let least = if is_copied { COPIED_PIECE } else { PIECE };
    let most = ((count as f64 * pixel / least) as usize).clamp(threads, PIECES * threads);
    let time = |pixels: usize| pixels.next_multiple_of(step) + step;
    if is_copied && count >= line * most {
        return line * even(count.div_ceil(line), most, threads, |lines| time(lines * line));
    }
    even(count, most, threads, time)
}

impl<P> Product<P> {
    /// The inputs that windows see of images `[n, h, w, c]`. Images of one column are seen as lines, and so are all pixels if they are seen
    /// one by one.
    fn patches<'a>(&self, images: &'a [i8], [n, h, w, c]: [usize; 4]) -> Patches<'a> {
        let Product { packed, windows, .. } = self;
        if *windows == (Windows { groups: windows.groups, ..Windows::ONE }) && h > 0 && w > 0 {
            return Patches::new(images, [1, n * h * w, c], windows, packed.order);
        }
        match windows.along_line([h, w]) {
            Some(line) => Patches::new(images, [1, h, c], &line, packed.order.along_line(&line)),
            None => Patches::new(images, [h, w, c], windows, packed.order),
        }
    }

    /// Computes images on all threads, if that is worth it.
    fn run<E: Epilogue>(
        &self,
        epilogue: &E,
        images: &[i8],
        [n, h, w, c]: [usize; 4],
        out: &mut [E::Out],
    ) -> Result<(), Error> {
        let Product { packed, windows, path, .. } = self;
        let order = packed.order;
        let outputs = order.outputs;
        expect("inputs of a channel", windows.taps() * (c / windows.groups), order.inner)?;
        expect("channels past groups", c % windows.groups, 0)?;
        expect("inputs", images.len(), n * h * w * c)?;
        let counts = windows.counts([h, w]);
        let count = n * counts[0] * counts[1];
        expect("results", out.len(), count * outputs)?;
        if out.is_empty() {
            return Ok(());
        }
        let patches = self.patches(images, [n, h, w, c]);
        let per_image = counts[0] * counts[1];
        let tiles = order.tiles();
        let matrices = path.matrices().filter(|_| patches.order.span() >= LEAST_SPAN);
        let multiplication = match matrices {
            _ if count < 4 => LOADED_MULTIPLICATION,
            Some(_) => MATRIX_MULTIPLICATION,
            None => MULTIPLICATION,
        };
        let each = multiplication * (order.rows * order.columns * order.span()) as f64 + RESULT;
        let block = each * (count * TILES * CHANNELS) as f64;
        // Every piece of channels copies the inputs; it is worth handing over, so that there is one if all are not.
        let least = if patches.is_copied() { COPIED_PIECE } else { PIECE };
        let piece = TILES * ((least / block).ceil() as usize).max(1);
        let threads = threads::current();
        // How much of the time that all threads have is used, where pixels or channels are split.
        let used =
            |units: usize, each: usize| units as f64 / (units.div_ceil(each).div_ceil(threads) * each * threads) as f64;
        let (by_pixel, by_channel) = (used(count, STEP), used(tiles, piece));
        let many = count / (2 * PIXELS) >= tiles / TILES;
        let pixels = if (by_pixel - by_channel).abs() < EVEN { many } else { by_pixel > by_channel };
        let run = |pixels, tiles, out: Columns<'_, E::Out>| {
            path.run(Piece { packed, patches: &patches, epilogue, pixels, per_image, tiles, matrices, out });
        };
        if order.groups > 1 || pixels {
            let piece = pixels_of_piece(&patches, count, each * outputs as f64, matrices.is_some());
            for_each_piece_at(Cost::nanoseconds(each), out, piece * outputs, |start, out| {
                let first = start / outputs;
                run(first..first + out.len() / outputs, 0..tiles, Columns::all(out, outputs));
            });
        } else {
            let pieces = WriteColumns(out, outputs, piece * CHANNELS);
            for_each_at(Cost::nanoseconds(block * (piece / TILES) as f64), pieces, |index, out| {
                run(0..count, index * piece..((index + 1) * piece).min(tiles), out);
            });
        }
        Ok(())
    }
}
