//! Convolution of `f32`: which algorithm computes it, and the layouts of a weight that it retains.

use std::sync::Arc;

use super::algorithm::Algorithm;
use super::geometry::{Geometry, Operands};
use super::im2col::Patches;
use super::weight::{Order, PackedWeight};
use super::{depthwise, direct, few_outputs, pixels, transposed, turned, winograd};
use crate::epilogue::Epilogue;
use crate::error::{Error, ErrorKind};
use crate::gemm::{Bias, Fast, Gemm, Mat, Terms, multiply_blocks};
use crate::simd::wide;
use crate::spatial::Images;
use crate::threads::for_each_piece;
use crate::walk::{Axis, Walk};

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
/// Convolution::new(false, None).run(&geometry, &operands, None, &mut [], &mut out).unwrap();
/// assert_eq!(out, [2.5, 4.5, 6.5, 3.5]);
/// ```
pub struct Convolution {
    /// Done to the results.
    epilogue: Option<Arc<Epilogue>>,
    weight_is_constant: bool,
    /// The weight in the order of the geometry of an earlier run.
    packed: Option<PackedWeight>,
}

impl Convolution {
    /// Retains nothing yet. A constant weight is the same in every run and may be retained in other layouts. The operations
    /// take FLOAT and give it.
    pub fn new(weight_is_constant: bool, epilogue: Option<Arc<Epilogue>>) -> Self {
        Convolution { epilogue, weight_is_constant, packed: None }
    }

    /// Returns how many bytes are retained now.
    pub fn retained_bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, PackedWeight::byte_len)
    }

    /// Returns how many bytes the next run of this geometry retains besides those it has, at most. A caller that has limits
    /// asks before.
    pub fn bytes_to_retain(&self, geometry: &Geometry) -> usize {
        let geometry = geometry.computed();
        match &self.packed {
            Some(packed) if packed.fits(Algorithm::of(&geometry), &geometry) => 0,
            _ => PackedWeight::retained_len(&geometry).unwrap_or(0),
        }
    }

    /// Computes the whole output. The scratch memory has as many elements as [`Bounds::scratch`](super::Bounds::scratch) says
    /// for this geometry or a larger one, and as many more as [`PackedWeight::scratch`] says for a packed weight. A weight that
    /// is packed for this geometry is read in place of the one of the operands, which is still needed where results are not
    /// finite. Refuses an image that needs more, and reports memory that is not there.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than the geometry says.
    pub fn run(
        &mut self,
        geometry: &Geometry,
        operands: &Operands<'_, f32>,
        packed: Option<&PackedWeight>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), Error> {
        self.run_adding(geometry, operands, None, packed, scratch, out)
    }

    /// Computes what [`Convolution::run`] does, and adds numbers to the results before the operations behind them: one to each,
    /// in the order of the output.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than the geometry says, or there are not as many addends as elements of the output.
    pub fn run_adding(
        &mut self,
        geometry: &Geometry,
        operands: &Operands<'_, f32>,
        addend: Option<&[f32]>,
        packed: Option<&PackedWeight>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), Error> {
        assert!(addend.is_none_or(|addend| addend.len() == out.len()), "as many addends as results");
        let here = addend.map_or(Addend::None, Addend::Here);
        let geometry = &geometry.in_rows();
        let Some(turned) = &geometry.turned() else {
            return self.run_computed(geometry, operands, here, packed, scratch, out);
        };
        let (_, input, scratch) = reordered(geometry, operands.input, scratch)?;
        let operands = &Operands { input, ..*operands };
        if turned.out == geometry.out {
            return self.run_computed(turned, operands, here, packed, scratch, out);
        }
        let (results, scratch) = take(scratch, turned.out.batch.0 * turned.out.batch.1)?;
        let later = addend.map_or(Addend::None, |_| Addend::Later);
        self.run_computed(turned, operands, later, packed, scratch, results)?;
        turned::write(results, &geometry.out, out);
        if let Some(addend) = addend {
            self.add(addend, out);
        }
        Ok(())
    }

    /// [`Convolution::run_adding`] of a geometry as [`Geometry::computed`] gives it.
    fn run_computed(
        &mut self,
        geometry: &Geometry,
        operands: &Operands<'_, f32>,
        addend: Addend<'_>,
        packed: Option<&PackedWeight>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), Error> {
        let (addend, is_last) = match addend {
            Addend::None => (None, true),
            Addend::Here(addend) => (Some(addend), true),
            Addend::Later => (None, false),
        };
        let algorithm = Algorithm::of(geometry);
        let mut packed = packed.filter(|packed| packed.fits(algorithm, geometry));
        if packed.is_none() && algorithm.packs() {
            let known = self.packed.take().filter(|packed| packed.fits(algorithm, geometry));
            self.packed = match known {
                Some(known) if self.weight_is_constant => Some(known),
                old => PackedWeight::in_order(old, geometry, operands.weight, None)?,
            };
            packed = self.packed.as_ref();
        }
        // What loops do not add to results in registers is added to them in memory.
        let behind = addend
            .filter(|_| !matches!(packed.map(|packed| &packed.0), Some(Order::Blocks(_) | Order::Transformed(_))));
        let epilogue = self.epilogue.clone().filter(|_| behind.is_none() && is_last);
        let finish = |out: &mut [f32]| epilogue.iter().for_each(|epilogue| epilogue.in_place(out));
        match (algorithm, packed.map(|packed| &packed.0)) {
            (Algorithm::Direct, _) => {
                direct::convolve(geometry, operands, out);
                finish(out);
            }
            (Algorithm::DepthwiseNchw, _) => depthwise::nchw(geometry, operands, epilogue.as_deref(), out),
            (Algorithm::ScatterTransposed, _) => {
                transposed::convolve(geometry, operands, scratch, out)?;
                finish(out);
            }
            (Algorithm::Im2colNchw, _) => im2col_nchw(geometry, operands, out, finish)?,
            (_, Some(Order::Taps(taps))) => {
                let operands = Operands { weight: taps.all(), ..*operands };
                match algorithm {
                    Algorithm::FewOutputs => few_outputs::convolve(geometry, &operands, epilogue.as_deref(), out),
                    Algorithm::DepthwiseRows => depthwise::rows(geometry, &operands, epilogue.as_deref(), out),
                    _ => depthwise::nhwc(geometry, &operands, epilogue.as_deref(), out),
                }
            }
            (_, Some(Order::Blocks(blocks))) => {
                let (geometry, input, _) = reordered(geometry, operands.input, scratch)?;
                let operands = Operands { input, ..*operands };
                pixels::convolve(&geometry, &operands, addend, blocks, epilogue.as_deref(), out);
            }
            (_, Some(Order::Transformed(taps))) => {
                let (geometry, input, scratch) = reordered(geometry, operands.input, scratch)?;
                let operands = Operands { input, ..*operands };
                winograd::convolve(&geometry, &operands, addend, taps, epilogue.as_deref(), scratch, out)?;
            }
            (_, None) => return Err(Error::new(ErrorKind::Geometry, "the weight is packed for another geometry")),
        }
        if let Some(addend) = behind {
            self.add(addend, out);
        }
        Ok(())
    }

    /// Adds numbers to results that are in memory, and does the operations behind them.
    fn add(&self, addend: &[f32], out: &mut [f32]) {
        for_each_piece(out, 1, |start, out| {
            wide(|| out.iter_mut().zip(&addend[start..]).for_each(|(sum, addend)| *sum += addend));
            self.epilogue.iter().for_each(|epilogue| epilogue.in_place(out));
        });
    }
}

/// Numbers that are added to results, before the operations behind them.
#[derive(Clone, Copy)]
enum Addend<'a> {
    None,
    /// In the order of the results.
    Here(&'a [f32]),
    /// Added by the caller, who does the operations, too.
    Later,
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
            multiply_blocks(out, lhs, &Patches::new(geometry, data), terms);
        }
        finish(out);
    }
    Ok(())
}

/// The images with the channels of a pixel next to each other: those that there are, or a copy in scratch memory; and the
/// rest of that.
fn reordered<'a>(
    geometry: &Geometry,
    input: &'a [f32],
    scratch: &'a mut [f32],
) -> Result<(Geometry, &'a [f32], &'a mut [f32]), Error> {
    let images = &geometry.input;
    let last = Images::channels_last(images.batch.0, images.channels.0, images.sizes);
    let dense = images.sizes[1] == 1 || images.strides[1] == last.strides[1];
    let geometry = Geometry { input: last, ..*geometry };
    // Pixels next to each other, or a single one.
    let linear = images.strides[2] == images.channels.0 && dense || images.area() == 1;
    if (images.channels.1 == 1 || images.channels.0 == 1) && linear {
        // One image may be stored anywhere.
        let batch = if images.batch.0 == 1 { last.batch } else { images.batch };
        return Ok((Geometry { input: Images { batch, ..last }, ..geometry }, input, scratch));
    }
    let (area, channels, width) = (last.area(), last.channels.0, last.sizes[2]);
    let (copy, scratch) = take(scratch, last.batch.0 * area * channels)?;
    let along = |size, stride: usize| Axis { size, stride: stride as isize };
    let line_len = (channels * width).max(1);
    for_each_piece(copy, line_len, |start, pixels| {
        for (line, pixels) in pixels.chunks_exact_mut(line_len).enumerate() {
            let line = start / line_len + line;
            let (n, y) = (line / last.sizes[1], line % last.sizes[1]);
            let from = n * images.batch.1 + y * images.strides[1];
            let walk = Walk::new([along(width, images.strides[2]), along(channels, images.channels.1)], from);
            walk.gather(size_of::<f32>(), bytemuck::cast_slice(input), bytemuck::cast_slice_mut(pixels));
        }
    });
    Ok((geometry, copy, scratch))
}

/// So many elements of scratch memory, and the rest of it.
pub(super) fn take(scratch: &mut [f32], count: usize) -> Result<(&mut [f32], &mut [f32]), Error> {
    let too_large = || Error::new(ErrorKind::Unsupported, "a tensor is larger than at load");
    scratch.split_at_mut_checked(count).ok_or_else(too_large)
}
