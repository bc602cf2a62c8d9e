//! Convolution of `f32`: which algorithm computes it, and the layouts of a weight that it retains.

use std::sync::Arc;

use super::geometry::{Geometry, Operands};
use super::im2col::{Offsets, multiply_patches, multiply_rows, rows_at_once};
use super::{depthwise, direct, transposed};
use crate::epilogue::Epilogue;
use crate::error::{Error, room};
use crate::gemm::{Bias, Fast, Gemm, Mat, Operand, Terms, most_packed_of};
use crate::spatial::Images;

/// Below this many multiplications the definition is faster than any preparation.
const SMALL: usize = 1 << 12;

/// Returns how many elements of scratch memory [`Convolution::run`] needs for images of up to so many pixels and a weight of
/// so many taps for each of the input channels of a group: patches of channels-last images, or the products of a transposed
/// convolution.
pub fn scratch(pixels: usize, taps: usize, group_channels: usize, transposed: bool) -> usize {
    if transposed {
        return transposed::scratch(pixels, taps);
    }
    let taps = taps.saturating_mul(group_channels);
    if taps == 0 { 0 } else { rows_at_once(taps).saturating_mul(taps) }
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
    /// The geometry of the run before.
    last: Option<Geometry>,
    /// Where the patches of a channels-first image are, for that geometry.
    offsets: Option<Offsets>,
    /// The weight of every group as a left operand.
    packed_lhs: Option<Vec<<Fast as Gemm<f32>>::PackedLhs>>,
    /// The weight as a right operand, if packing helps.
    packed_rhs: Option<Option<<Fast as Gemm<f32>>::PackedRhs>>,
    /// The weight by tap, input channel, output channel.
    weight_hwio: Vec<f32>,
}

impl Convolution {
    /// Retains nothing yet. A constant weight is the same in every run and may be retained in other layouts. The operations
    /// take FLOAT and give it.
    pub fn new(weight_is_constant: bool, epilogue: Option<Arc<Epilogue>>) -> Self {
        Convolution {
            epilogue,
            weight_is_constant,
            last: None,
            offsets: None,
            packed_lhs: None,
            packed_rhs: None,
            weight_hwio: Vec::new(),
        }
    }

    /// Returns how many bytes are retained now.
    pub fn retained_bytes(&self) -> usize {
        let lhs: usize = self.packed_lhs.iter().flatten().map(|packed| packed.bytes()).sum();
        let rhs = self.packed_rhs.iter().flatten().map(|packed| packed.bytes()).sum::<usize>();
        lhs + rhs + self.weight_hwio.capacity() * size_of::<f32>()
    }

    /// Returns how many bytes the next run of this geometry retains beside those it has, at most. They are allocated by code
    /// that cannot say that there is no memory, so whoever has limits asks before.
    pub fn bytes_to_retain(&self, geometry: &Geometry) -> usize {
        let Geometry { weight: kernel, groups, .. } = geometry;
        let [channels, out_channels] = geometry.group_channels();
        let taps = kernel.area() * channels;
        let repacked = || match self.weight_hwio.is_empty() {
            true => (kernel.area() * kernel.channels.0 * kernel.batch.0).saturating_mul(size_of::<f32>()),
            false => 0,
        };
        match Algorithm::of(geometry) {
            Algorithm::DepthwiseNhwc => repacked(),
            Algorithm::Im2colNchw if self.weight_is_constant && self.packed_lhs.is_none() => {
                most_packed_of(out_channels, taps).saturating_mul(*groups)
            }
            Algorithm::Im2colNhwc => {
                let packs = self.weight_is_constant && self.packed_rhs.is_none();
                let packed = if packs { most_packed_of(taps, out_channels) } else { 0 };
                packed.saturating_add(if geometry.is_pointwise() { 0 } else { repacked() })
            }
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
        if self.last != Some(*geometry) {
            (self.last, self.offsets) = (Some(*geometry), None);
        }
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
                let operands = Operands { weight: &self.weight_hwio, ..*operands };
                depthwise::nhwc(geometry, &operands, epilogue.as_deref(), out);
            }
            Algorithm::ScatterTransposed => {
                transposed::convolve(geometry, operands, scratch, out)?;
                finish(out);
            }
            Algorithm::Im2colNchw => self.im2col_nchw(geometry, operands, out, finish)?,
            Algorithm::Im2colNhwc => self.im2col_nhwc(geometry, operands, scratch, out, finish)?,
        }
        Ok(())
    }

    fn im2col_nchw(
        &mut self,
        geometry: &Geometry,
        operands: &Operands<'_, f32>,
        out: &mut [f32],
        finish: impl Fn(&mut [f32]),
    ) -> Result<(), Error> {
        let Geometry { input: images, weight: kernel, out: to, groups, .. } = *geometry;
        let [channels, out_channels] = geometry.group_channels();
        let (taps, area) = (channels * kernel.area(), to.area());
        let weight = |group: usize| {
            let data = &operands.weight[group * out_channels * kernel.batch.1..];
            let stride = if kernel.area() == 1 { kernel.channels.1 } else { 1 };
            Mat::new(data, [out_channels, taps], [kernel.batch.1, stride])
        };
        if self.weight_is_constant && self.packed_lhs.is_none() {
            let mut packed = room(groups)?;
            for group in 0..groups {
                packed.extend(Fast::pack_lhs(weight(group)?)?);
            }
            self.packed_lhs = Some(packed);
        }
        for (n, group) in (0..to.batch.0).flat_map(|n| (0..groups).map(move |group| (n, group))) {
            let packed = self.packed_lhs.as_ref().and_then(|packed| packed.get(group));
            let lhs = Operand { mat: weight(group)?, packed };
            let bias = match operands.bias {
                Some(bias) => Bias::Column(&bias[group * out_channels..][..out_channels]),
                None => Bias::None,
            };
            let data = &operands.input[n * images.batch.1 + group * channels * images.channels.1..];
            let first = n * to.batch.1 + group * out_channels * to.channels.1;
            let out = &mut out[first..][..out_channels * area];
            if geometry.is_pointwise() {
                let rhs = Mat::new(data, [channels, area], [images.channels.1, images.strides[2]])?;
                Fast::multiply(out, lhs, rhs.into(), Terms { bias, ..Terms::default() })?;
            } else {
                multiply_patches(&mut self.offsets, geometry, out, lhs, data, bias)?;
            }
            finish(out);
        }
        Ok(())
    }

    fn im2col_nhwc(
        &mut self,
        geometry: &Geometry,
        operands: &Operands<'_, f32>,
        scratch: &mut [f32],
        out: &mut [f32],
        finish: impl Fn(&mut [f32]) + Send + Sync,
    ) -> Result<(), Error> {
        let Geometry { input: images, weight: kernel, out: to, .. } = *geometry;
        let (taps, channels) = (images.channels.0 * kernel.area(), to.channels.0);
        let pointwise = geometry.is_pointwise();
        if !pointwise {
            self.repack(geometry, operands.weight)?;
        }
        let weight = match pointwise {
            true => Mat::new(operands.weight, [taps, channels], [kernel.channels.1, kernel.batch.1])?,
            false => Mat::new(&self.weight_hwio, [taps, channels], [channels, 1])?,
        };
        if self.weight_is_constant && self.packed_rhs.is_none() {
            self.packed_rhs = Some(Fast::pack_rhs(weight)?);
        }
        let packed = self.packed_rhs.as_ref().and_then(Option::as_ref);
        let bias = operands.bias.map_or(Bias::None, Bias::Row);
        let multiply = |out: &mut [f32], lhs: Mat<'_, f32>| {
            Fast::multiply(out, lhs.into(), Operand { mat: weight, packed }, Terms { bias, ..Terms::default() })?;
            finish(out);
            Ok(())
        };
        multiply_rows(geometry, operands.input, scratch, out, multiply)
    }

    /// Lays the weight out by tap, input channel, output channel.
    fn repack(&mut self, geometry: &Geometry, weight: &[f32]) -> Result<(), Error> {
        let kernel = &geometry.weight;
        let (outs, channels) = (kernel.batch.0, kernel.channels.0);
        if self.weight_is_constant && !self.weight_hwio.is_empty() {
            return Ok(());
        }
        let count = kernel.area() * channels * outs;
        if self.weight_hwio.capacity() < count {
            self.weight_hwio = room(count)?;
        }
        self.weight_hwio.resize(count, 0.0);
        let mut places = self.weight_hwio.iter_mut();
        for (y, x) in (0..kernel.sizes[1]).flat_map(|y| (0..kernel.sizes[2]).map(move |x| (y, x))) {
            for channel in 0..channels {
                let start = y * kernel.strides[1] + x * kernel.strides[2] + channel * kernel.channels.1;
                for (out, place) in (0..outs).zip(&mut places) {
                    *place = weight[start + out * kernel.batch.1];
                }
            }
        }
        Ok(())
    }
}

/// The way a convolution is computed.
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
    /// `patches * weight`, the patches gathered into scratch memory.
    Im2colNhwc,
    /// Transposed, as products that are added up.
    ScatterTransposed,
}

impl Algorithm {
    pub(super) fn of(geometry: &Geometry) -> Algorithm {
        let Geometry { input, out, weight, groups, transposed, .. } = *geometry;
        let too_long = input.channels.0 * input.area() >= i32::MAX as usize / 4;
        // One layer is an image, unless layers of padding lie around it.
        let layers = geometry.slides[0].kernel > 1 || geometry.slides[0].padding > 0 || input.sizes[0] > 1;
        let dense = |images: &Images| images.sizes[1] == 1 || images.strides[1] == images.sizes[2] * images.strides[2];
        if transposed {
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
            return match (depthwise, groups) {
                (true, _) if by_pixel && out.channels.0 == groups => Algorithm::DepthwiseNhwc,
                (_, 1) if by_pixel || !geometry.is_pointwise() => Algorithm::Im2colNhwc,
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
