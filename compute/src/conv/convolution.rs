//! Convolution of `f32`: which algorithm computes it, and the layouts of a weight that it retains.

use std::sync::Arc;

use super::geometry::{Geometry, Operands};
use super::im2col::Patches;
use super::pixels::{self, PackedWeight};
use super::{depthwise, direct, transposed};
use crate::epilogue::Epilogue;
use crate::error::{Error, ErrorKind, room};
use crate::gemm::{Bias, Fast, Gemm, Mat, Terms, multiply_blocks};
use crate::spatial::Images;
use crate::threads::for_each_piece;

/// Below this many multiplications the definition is faster than any preparation.
const SMALL: usize = 1 << 12;

/// Returns how many elements of scratch memory [`Convolution::run`] needs for images of up to so many pixels and a weight of
/// so many taps for each of the input channels of a group: the image with its channels innermost where the
/// output is stored like that and the input is not (`reordered`), or the products of a transposed convolution.
pub fn scratch(pixels: usize, taps: usize, group_channels: usize, transposed: bool, reordered: bool) -> usize {
    let image = if reordered { pixels.saturating_mul(group_channels) } else { 0 };
    if transposed { image.max(transposed::scratch(pixels, taps)) } else { image }
}

/// A convolution of `f32` that runs often, and what it retains from run to run: layouts of the weight.
///
/// ```
/// use edgepack_compute::conv::{Convolution, Geometry, Operands};
/// use edgepack_compute::spatial::{Images, Slide};
///
/// // A window of three pixels over a row of four, padded by one.
/// let slide = Slide { input: 4, kernel: 3, padding: 1, ..Slide::POINT };
/// let geometry = Geometry {
///     input: Images::channels_first(1, 1, [1, 1, 4]),
///     weight: Images::channels_first(1, 1, [1, 1, 3]),
///     out: Images::channels_first(1, 1, [1, 1, 4]),
///     slides: [Slide::POINT, Slide::POINT, slide],
///     groups: 1,
///     transposed: false,
/// };
/// let operands = Operands { input: &[1.0, 2.0, 3.0, 4.0], weight: &[1.0, 0.0, 1.0], bias: Some(&[0.5]) };
/// let mut out = [0.0; 4];
/// Convolution::new(false, None).run(&geometry, &operands, &mut [], &mut out).unwrap();
/// assert_eq!(out, [2.5, 4.5, 6.5, 3.5]);
/// ```
pub struct Convolution {
    /// Done to the results.
    epilogue: Option<Arc<Epilogue>>,
    weight_is_constant: bool,
    /// The weight in blocks of output channels.
    packed: PackedWeight,
    /// The weight of a depthwise convolution by tap and channel, and a zero per channel.
    weight_by_tap: Vec<f32>,
}

impl Convolution {
    /// Retains nothing yet. A constant weight is the same in every run and may be retained in other layouts. The operations
    /// take FLOAT and give it.
    pub fn new(weight_is_constant: bool, epilogue: Option<Arc<Epilogue>>) -> Self {
        Convolution { epilogue, weight_is_constant, packed: PackedWeight::default(), weight_by_tap: Vec::new() }
    }

    /// Returns how many bytes are retained now.
    pub fn retained_bytes(&self) -> usize {
        self.packed.bytes() + self.weight_by_tap.capacity() * size_of::<f32>()
    }

    /// Returns how many bytes the next run of this geometry retains besides those it has, at most. They are allocated
    /// by code that cannot say that there is no memory, so a caller that has limits asks before.
    pub fn bytes_to_retain(&self, geometry: &Geometry) -> usize {
        let kernel = &geometry.weight;
        match Algorithm::of(geometry) {
            Algorithm::DepthwiseNhwc if self.weight_by_tap.is_empty() => {
                (kernel.area() + 1).saturating_mul(kernel.batch.0).saturating_mul(size_of::<f32>())
            }
            Algorithm::Pixels if self.packed.is_empty() => PackedWeight::bytes_of(geometry),
            _ => 0,
        }
    }

    /// Computes the whole output. The scratch memory has as many elements as [`scratch`] says for this geometry or a larger
    /// one. Refuses an image that needs more, and reports memory that is not there.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than the geometry says.
    pub fn run(
        &mut self,
        geometry: &Geometry,
        operands: &Operands<'_, f32>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), Error> {
        let epilogue = self.epilogue.clone();
        let finish = |out: &mut [f32]| epilogue.iter().for_each(|epilogue| epilogue.in_place(out));
        match Algorithm::of(geometry) {
            Algorithm::Direct => {
                direct::convolve(geometry, operands, out);
                finish(out);
            }
            Algorithm::DepthwiseNchw => depthwise::nchw(geometry, operands, epilogue.as_deref(), out),
            Algorithm::DepthwiseNhwc => {
                self.repack(geometry, operands.weight)?;
                let operands = Operands { weight: &self.weight_by_tap, ..*operands };
                depthwise::nhwc(geometry, &operands, epilogue.as_deref(), out);
            }
            Algorithm::ScatterTransposed => {
                transposed::convolve(geometry, operands, scratch, out)?;
                finish(out);
            }
            Algorithm::Im2colNchw => im2col_nchw(geometry, operands, out, finish)?,
            Algorithm::Pixels => {
                if !self.weight_is_constant || self.packed.is_empty() {
                    self.packed.pack(geometry, operands.weight)?;
                }
                let (geometry, input) = reordered(geometry, operands.input, scratch)?;
                let input = [input, operands.bias.unwrap_or(&[])];
                pixels::convolve(&geometry, input, &self.packed, epilogue.as_deref(), out);
            }
        }
        Ok(())
    }

    /// Lays the weight of a depthwise convolution out by tap and channel.
    fn repack(&mut self, geometry: &Geometry, weight: &[f32]) -> Result<(), Error> {
        let kernel = &geometry.weight;
        let outs = kernel.batch.0;
        if self.weight_is_constant && !self.weight_by_tap.is_empty() {
            return Ok(());
        }
        let count = (kernel.area() + 1) * outs;
        if self.weight_by_tap.capacity() < count {
            self.weight_by_tap = room(count)?;
        }
        self.weight_by_tap.clear();
        self.weight_by_tap.resize(count, 0.0);
        let mut places = self.weight_by_tap.iter_mut();
        for (y, x) in (0..kernel.sizes[1]).flat_map(|y| (0..kernel.sizes[2]).map(move |x| (y, x))) {
            let start = y * kernel.strides[1] + x * kernel.strides[2];
            for (out, place) in (0..outs).zip(&mut places) {
                *place = weight[start + out * kernel.batch.1];
            }
        }
        Ok(())
    }
}

/// The weight of each group times the patches of the group's channels.
fn im2col_nchw(
    geometry: &Geometry,
    operands: &Operands<'_, f32>,
    out: &mut [f32],
    finish: impl Fn(&mut [f32]),
) -> Result<(), Error> {
    let Geometry { input: images, weight: kernel, out: to, groups, .. } = *geometry;
    let [channels, out_channels] = geometry.group_channels();
    let (taps, area) = (channels * kernel.area(), to.area());
    for (n, group) in (0..to.batch.0).flat_map(|n| (0..groups).map(move |group| (n, group))) {
        let weight = &operands.weight[group * out_channels * kernel.batch.1..];
        let stride = if kernel.area() == 1 { kernel.channels.1 } else { 1 };
        let lhs = Mat::new(weight, [out_channels, taps], [kernel.batch.1, stride])?;
        let bias = match operands.bias {
            Some(bias) => Bias::Column(&bias[group * out_channels..][..out_channels]),
            None => Bias::None,
        };
        let terms = Terms { bias, ..Terms::default() };
        let data = &operands.input[n * images.batch.1 + group * channels * images.channels.1..];
        let first = n * to.batch.1 + group * out_channels * to.channels.1;
        let out = &mut out[first..][..out_channels * area];
        if geometry.is_pointwise() {
            let rhs = Mat::new(data, [channels, area], [images.channels.1, images.strides[2]])?;
            Fast::multiply(out, lhs, rhs.into(), terms)?;
        } else {
            multiply_blocks(out, lhs, &Patches::new(geometry, data), false, terms);
        }
        finish(out);
    }
    Ok(())
}

/// The images with the channels of a pixel next to each other: those that there are, or a copy in scratch memory.
fn reordered<'a>(
    geometry: &Geometry,
    input: &'a [f32],
    scratch: &'a mut [f32],
) -> Result<(Geometry, &'a [f32]), Error> {
    let images = &geometry.input;
    let last = Images::channels_last(images.batch.0, images.channels.0, images.sizes);
    let dense = images.sizes[1] == 1 || images.strides[1] == last.strides[1];
    let geometry = Geometry { input: last, ..*geometry };
    if (images.channels.1 == 1 || images.channels.0 == 1) && images.strides[2] == images.channels.0 && dense {
        // One image may be stored anywhere.
        let batch = if images.batch.0 == 1 { last.batch } else { images.batch };
        return Ok((Geometry { input: Images { batch, ..last }, ..geometry }, input));
    }
    let (area, channels, width) = (last.area(), last.channels.0, last.sizes[2]);
    let scratch = scratch
        .get_mut(..last.batch.0 * area * channels)
        .ok_or_else(|| Error::new(ErrorKind::Unsupported, "the image is larger than at load"))?;
    for_each_piece(scratch, channels * width, |start, pixels| {
        for (line, pixels) in pixels.chunks_exact_mut(channels * width).enumerate() {
            let line = start / (channels * width) + line;
            let (n, y) = (line / last.sizes[1], line % last.sizes[1]);
            for channel in 0..channels {
                let from = n * images.batch.1 + y * images.strides[1] + channel * images.channels.1;
                let values = input[from..].iter().step_by(images.strides[2].max(1));
                pixels[channel..].iter_mut().step_by(channels).zip(values).for_each(|(to, x)| *to = *x);
            }
        }
    });
    Ok((geometry, scratch))
}

/// The algorithm that computes a convolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Algorithm {
    /// By definition.
    Direct,
    /// Every channel by itself, row by row.
    DepthwiseNchw,
    /// Every channel by itself, the channels of a pixel next to each other.
    DepthwiseNhwc,
    /// `weight * patches`, the patches gathered while they are packed.
    Im2colNchw,
    /// Pixels that taps meet, read where they are stored, times blocks of the weight.
    Pixels,
    /// Transposed, as products that are added up.
    ScatterTransposed,
}

impl Algorithm {
    pub(super) fn of(geometry: &Geometry) -> Algorithm {
        let Geometry { input, out, weight, groups, transposed, .. } = *geometry;
        let too_long = input.channels.0 * input.area() >= i32::MAX as usize / 4;
        // One layer is an image, unless there are layers of padding around it.
        let layers = geometry.slides[0].kernel > 1 || geometry.slides[0].padding > 0 || input.sizes[0] > 1;
        let dense = |images: &Images| images.sizes[1] == 1 || images.strides[1] == images.sizes[2] * images.strides[2];
        let in_place = input.channels.1 == 1 && input.strides[2] == input.channels.0 && dense(&input);
        let pixels = out.is_channels_last() && (groups == 1 || in_place);
        if transposed && (!pixels || layers || too_long || geometry.work() < SMALL) {
            let weight_dense = weight.strides[2] == 1 && weight.is_linear() && weight.channels.1 == weight.area();
            let fits = weight_dense && input.is_linear() && geometry.work() >= SMALL;
            return if fits { Algorithm::ScatterTransposed } else { Algorithm::Direct };
        }
        if layers || geometry.work() < SMALL || too_long {
            return Algorithm::Direct;
        }
        let weight_dense = weight.strides[2] == 1 && dense(&weight) && weight.channels.1 == weight.area();
        let depthwise = weight.channels.0 == 1 && groups > 1;
        if out.is_channels_last() {
            let by_pixel = input.channels.1 == 1;
            return match depthwise && !transposed {
                true if by_pixel && out.channels.0 == groups => Algorithm::DepthwiseNhwc,
                _ if pixels => Algorithm::Pixels,
                _ => Algorithm::Direct,
            };
        }
        let rows = (out.strides[2] == 1 || out.sizes[2] == 1) && dense(&out) && out.channels.1 == out.area();
        match (rows, depthwise) {
            (true, true) if input.strides[2] == 1 => Algorithm::DepthwiseNchw,
            (true, false) if dense(&input) && (weight_dense || weight.area() == 1) => Algorithm::Im2colNchw,
            _ => Algorithm::Direct,
        }
    }
}
