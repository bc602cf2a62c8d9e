//! Convolution of `f32` images with up to two spatial dimensions, as products of matrices.
//!
//! Channels-first outputs are `weight * patches`, the patches gathered while they are packed; channels-last outputs are
//! `patches * weight`, the patches gathered into scratch memory some rows at a time. A kernel of one tap needs no
//! patches. What does not fit goes to [`direct`](super::direct).

use edgepack_executor::kernel::{KernelContext, KernelError, Retained, Run, room};
use edgepack_executor::tensor::TensorShape;
use rten_gemm::{ColOffsets, Im2Col, RowOffsets};
use rten_tensor::NdTensorView;

use super::{Geometry, OUT, direct, geometry, lone, scatter};
use crate::steps::Steps;
use edgepack_compute::gemm::{Bias, Fast, Gemm, Mat, Operand, Terms, most_packed};
use edgepack_compute::threads::{WriteAll, for_each_piece, pays, try_for_each};

/// Below this many multiplications the definition is faster than any preparation.
const SMALL: usize = 1 << 12;
/// Elements of patches gathered at a time, and the fewest rows of them.
const PATCHES: usize = 1 << 16;
const LEAST_ROWS: usize = 16;

/// What scratch memory the patches of a channels-last image need, or the products of a transposed convolution.
pub fn scratch_bytes(input: &TensorShape<'_>, weight: &TensorShape<'_>, transposed: bool) -> usize {
    let rank = weight.rank().saturating_sub(2);
    let elements = if transposed {
        let pixels: usize = input.sizes.iter().rev().take(rank).product();
        scatter::scratch(pixels, weight.sizes.iter().rev().take(rank).product())
    } else {
        let taps: usize = weight.sizes.iter().skip(1).product();
        if taps == 0 { 0 } else { rows_at_once(taps).saturating_mul(taps) }
    };
    elements.saturating_mul(size_of::<f32>())
}

fn rows_at_once(taps: usize) -> usize {
    (PATCHES / taps).max(LEAST_ROWS)
}

/// One instruction: what it keeps from call to call.
pub struct Convolution {
    /// What is done to the results.
    then: Option<Steps>,
    /// Whether the weight never changes and may be kept in other layouts.
    keep: bool,
    /// The call before.
    last: Option<Geometry>,
    /// The weight of every group as a left operand.
    lhs: Vec<<Fast as Gemm<f32>>::PackedLhs>,
    /// The weight as a right operand.
    rhs: Option<<Fast as Gemm<f32>>::PackedRhs>,
    /// The weight with the output channels innermost.
    turned: Vec<f32>,
    /// Where the patches of a channels-first image are.
    offsets: Option<(RowOffsets, ColOffsets)>,
}

impl Convolution {
    /// Nothing is kept yet.
    pub fn new(keep: bool, then: Option<Steps>) -> Self {
        Convolution { then, keep, last: None, lhs: Vec::new(), rhs: None, turned: Vec::new(), offsets: None }
    }
}

impl Run for Convolution {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let (geometry, retained) = (geometry(cx)?, cx.retained());
        let views = cx.views();
        let (input, weight) = (views.tensor(0)?.as_slice::<f32>()?, views.tensor(1)?.as_slice::<f32>()?);
        let bias = views.tensor_opt(2)?.map(|bias| bias.as_slice::<f32>()).transpose()?;
        let out = views.out(OUT)?.into_slice::<f32>()?;
        let call = Call { geometry: &geometry, input, weight, bias };
        self.convolve(&call, retained, floats(views.scratch()?)?, out)
    }

    fn retained_bytes(&self) -> usize {
        let packed = self.lhs.iter().map(|packed| packed.bytes()).sum::<usize>();
        packed + self.rhs.as_ref().map_or(0, |packed| packed.bytes()) + self.turned.capacity() * size_of::<f32>()
    }
}

/// Scratch memory as floats.
pub(super) fn floats(scratch: &mut [u8]) -> Result<&mut [f32], KernelError> {
    bytemuck::try_cast_slice_mut(scratch).map_err(|_| KernelError::unsupported("the scratch memory is not aligned"))
}

impl Convolution {
    /// Computes one call; the scratch memory is what [`scratch_bytes`] says.
    pub(super) fn convolve(
        &mut self,
        call: &Call<'_>,
        retained: Retained<'_>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        let Call { geometry, input, weight, bias } = *call;
        if self.last != Some(*geometry) {
            (self.last, self.offsets) = (Some(*geometry), None);
        }
        match Way::of(geometry) {
            Way::Direct => {
                direct::convolve(geometry, input, weight, bias, out);
                if let Some(then) = &self.then {
                    then.in_place(out);
                }
            }
            Way::LoneRows => lone::rows(geometry, input, weight, bias, self.then.as_ref(), out),
            Way::LonePixels => {
                self.turn(geometry, weight, retained)?;
                lone::pixels(geometry, input, &self.turned, bias, self.then.as_ref(), out);
            }
            Way::Scatter => {
                scatter::convolve(call, scratch, out)?;
                if let Some(then) = &self.then {
                    then.in_place(out);
                }
            }
            Way::WeightFirst => self.weight_first(call, retained, out)?,
            Way::WeightLast => self.weight_last(call, retained, scratch, out)?,
        }
        Ok(())
    }
}

/// How a call is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Direct,
    /// Every channel by itself, row by row.
    LoneRows,
    /// Every channel by itself, channels side by side.
    LonePixels,
    WeightFirst,
    WeightLast,
    /// Transposed, as products that are added up.
    Scatter,
}

impl Way {
    fn of(geometry: &Geometry) -> Way {
        let Geometry { input, out, weight, groups, transposed, .. } = *geometry;
        let too_long = input.channels.0 * input.area() >= i32::MAX as usize / 4;
        // One layer is an image, unless layers of padding lie around it.
        let layers = geometry.slides[0].kernel > 1 || geometry.slides[0].padding > 0 || input.sizes[0] > 1;
        let dense = |images: &crate::spatial::Images| {
            images.sizes[1] == 1 || images.strides[1] == images.sizes[2] * images.strides[2]
        };
        if transposed {
            let weight_dense =
                weight.strides[2] == 1 && scatter::is_linear(&weight) && weight.channels.1 == weight.area();
            let fits = weight_dense && scatter::is_linear(&input) && geometry.work() >= SMALL;
            return if fits { Way::Scatter } else { Way::Direct };
        }
        if layers || geometry.work() < SMALL || too_long {
            return Way::Direct;
        }
        let weight_dense = weight.strides[2] == 1 && dense(&weight) && weight.channels.1 == weight.area();
        let lone = weight.channels.0 == 1 && groups > 1;
        if out.is_channels_last() {
            let by_pixel = input.channels.1 == 1;
            return match (lone, groups) {
                (true, _) if by_pixel && out.channels.0 == groups => Way::LonePixels,
                (_, 1) if by_pixel || !geometry.is_pointwise() => Way::WeightLast,
                _ => Way::Direct,
            };
        }
        let rows = (out.strides[2] == 1 || out.sizes[2] == 1) && dense(&out) && out.channels.1 == out.area();
        match (rows, lone) {
            (true, true) if input.strides[2] == 1 => Way::LoneRows,
            (true, false) if dense(&input) && (weight_dense || weight.area() == 1) => Way::WeightFirst,
            _ => Way::Direct,
        }
    }
}

/// The data of one call.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub geometry: &'a Geometry,
    pub input: &'a [f32],
    pub weight: &'a [f32],
    pub bias: Option<&'a [f32]>,
}

impl Geometry {
    /// Whether every output pixel reads the one input pixel at its own place.
    fn is_pointwise(&self) -> bool {
        self.slides.iter().all(|slide| (slide.kernel, slide.stride, slide.padding) == (1, 1, 0))
    }
}

impl Convolution {
    fn weight_first(&mut self, call: &Call<'_>, retained: Retained<'_>, out: &mut [f32]) -> Result<(), KernelError> {
        let Geometry { input: images, weight: kernel, out: to, groups, .. } = *call.geometry;
        let [channels, out_channels] = call.geometry.group_channels();
        let (taps, area) = (channels * kernel.area(), to.area());
        let weight = |group: usize| {
            let data = &call.weight[group * out_channels * kernel.batch.1..];
            let step = if kernel.area() == 1 { kernel.channels.1 } else { 1 };
            Mat::new(data, [out_channels, taps], [kernel.batch.1, step])
        };
        if self.keep && self.lhs.is_empty() {
            for group in 0..groups {
                retained.reserve(most_packed(&weight(group)?))?;
                self.lhs.extend(Fast::pack_lhs(weight(group)?)?);
            }
        }
        let pointwise = call.geometry.is_pointwise();
        for n in 0..to.batch.0 {
            for group in 0..groups {
                let lhs = Operand { mat: weight(group)?, packed: self.lhs.get(group) };
                let bias = match call.bias {
                    Some(bias) => Bias::Column(&bias[group * out_channels..][..out_channels]),
                    None => Bias::None,
                };
                let data = &call.input[n * images.batch.1 + group * channels * images.channels.1..];
                let first = n * to.batch.1 + group * out_channels * to.channels.1;
                let out = &mut out[first..][..out_channels * area];
                if pointwise {
                    let rhs = Mat::new(data, [channels, area], [images.channels.1, images.strides[2]])?;
                    Fast::multiply(out, lhs, rhs.into(), Terms { bias, ..Terms::default() })?;
                } else {
                    Self::multiply_patches(&mut self.offsets, call.geometry, out, lhs, data, bias)?;
                }
                if let Some(then) = &self.then {
                    then.in_place(out);
                }
            }
        }
        Ok(())
    }

    /// A product with the patches of one group's channels.
    fn multiply_patches(
        offsets: &mut Option<(RowOffsets, ColOffsets)>,
        geometry: &Geometry,
        out: &mut [f32],
        lhs: Operand<'_, f32, <Fast as Gemm<f32>>::PackedLhs>,
        data: &[f32],
        bias: Bias<'_, f32>,
    ) -> Result<(), KernelError> {
        let Geometry { input: images, slides, .. } = geometry;
        let (n_rows, n_cols) = (lhs.mat.cols, geometry.out.area());
        let [channels, _] = geometry.group_channels();
        let shape = [channels, images.sizes[1], images.sizes[2]];
        let image = NdTensorView::from_slice_with_strides(
            shape,
            data,
            [images.channels.1, images.strides[1], images.strides[2]],
        )
        .map_err(|error| KernelError::unsupported(format!("the image has no strides to gather by: {error:?}")))?;
        let (row_offsets, col_offsets) = match offsets.take() {
            Some(known) => known,
            None => patch_offsets(geometry, channels)?,
        };
        let most = |dim: usize| ((slides[dim].input - 1) * images.strides[dim]) as i32;
        let patches =
            Im2Col { image, row_offsets, col_offsets, n_cols, n_rows, max_y_offset: most(1), max_x_offset: most(2) };
        let result = Fast::multiply_patches(out, lhs, &patches, bias);
        *offsets = Some((patches.row_offsets, patches.col_offsets));
        Ok(result?)
    }

    fn weight_last(
        &mut self,
        call: &Call<'_>,
        retained: Retained<'_>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        let Geometry { input: images, weight: kernel, out: to, .. } = *call.geometry;
        let (taps, area, channels) = (images.channels.0 * kernel.area(), to.area(), to.channels.0);
        let pointwise = call.geometry.is_pointwise();
        if !pointwise {
            self.turn(call.geometry, call.weight, retained)?;
        }
        let weight = match pointwise {
            true => Mat::new(call.weight, [taps, channels], [kernel.channels.1, kernel.batch.1])?,
            false => Mat::new(&self.turned, [taps, channels], [channels, 1])?,
        };
        if self.keep && self.rhs.is_none() {
            retained.reserve(most_packed(&weight))?;
            self.rhs = Fast::pack_rhs(weight)?;
        }
        let bias = call.bias.map_or(Bias::None, Bias::Row);
        // Few enough rows that what was computed is still in the cache for the steps.
        let rows = if pointwise { (PATCHES / channels.max(taps)).max(LEAST_ROWS) } else { rows_at_once(taps) };
        for n in 0..to.batch.0 {
            let data = &call.input[n * images.batch.1..];
            let out = &mut out[n * to.batch.1..][..area * channels];
            let finish = |out: &mut [f32], lhs: Mat<'_, f32>| {
                let rhs = Operand { mat: weight, packed: self.rhs.as_ref() };
                Fast::multiply(out, lhs.into(), rhs, Terms { bias, ..Terms::default() })?;
                if let Some(then) = &self.then {
                    then.in_place(out);
                }
                Ok::<_, KernelError>(())
            };
            if pointwise {
                let share = pays(size_of_val(out));
                try_for_each(share, WriteAll(out, rows * channels), |block, out| {
                    finish(out, Mat::new(&data[block * rows * taps..], [out.len() / channels, taps], [taps, 1])?)
                })?;
                continue;
            }
            for (block, out) in out.chunks_mut(rows * channels).enumerate() {
                let count = out.len() / channels;
                let patches = scratch
                    .get_mut(..count * taps)
                    .ok_or_else(|| KernelError::unsupported("patches are larger than at load"))?;
                for_each_piece(patches, taps, |start, patches| {
                    gather(call.geometry, data, block * rows + start / taps, patches);
                });
                finish(out, Mat::new(patches, [count, taps], [taps, 1])?)?;
            }
        }
        Ok(())
    }

    /// Lays the weight out by tap, input channel, output channel.
    fn turn(&mut self, geometry: &Geometry, weight: &[f32], retained: Retained<'_>) -> Result<(), KernelError> {
        let kernel = &geometry.weight;
        let (outs, channels) = (kernel.batch.0, kernel.channels.0);
        if self.keep && !self.turned.is_empty() {
            return Ok(());
        }
        let count = kernel.area() * channels * outs;
        if self.turned.is_empty() {
            retained.reserve(count * size_of::<f32>())?;
        }
        if self.turned.capacity() < count {
            self.turned = room(count)?;
        }
        self.turned.resize(count, 0.0);
        let mut places = self.turned.iter_mut();
        for y in 0..kernel.sizes[1] {
            for x in 0..kernel.sizes[2] {
                for channel in 0..channels {
                    let start = y * kernel.strides[1] + x * kernel.strides[2] + channel * kernel.channels.1;
                    for (out, place) in (0..outs).zip(&mut places) {
                        *place = weight[start + out * kernel.batch.1];
                    }
                }
            }
        }
        Ok(())
    }
}

/// Where the elements of patches are: by tap, and by output pixel. Sizes are padded to what the packing wants; the
/// padding of rows lies outside of the image, that of columns is never stored.
fn patch_offsets(geometry: &Geometry, channels: usize) -> Result<(RowOffsets, ColOffsets), KernelError> {
    let Geometry { input: images, out: to, slides, .. } = geometry;
    let [col_step, row_step] = Fast::patch_steps();
    let taps = (channels * slides[1].kernel * slides[2].kernel).next_multiple_of(row_step.max(1));
    let mut rows = RowOffsets { chan: room(taps)?, y: room(taps)?, x: room(taps)? };
    for channel in 0..channels {
        for ky in 0..slides[1].kernel {
            for kx in 0..slides[2].kernel {
                rows.chan.push((channel * images.channels.1) as i32);
                rows.y.push((ky * slides[1].dilation * images.strides[1]) as i32);
                rows.x.push((kx * slides[2].dilation * images.strides[2]) as i32);
            }
        }
    }
    let padded = rows.chan.len().next_multiple_of(row_step.max(1));
    rows.chan.resize(padded, 0);
    rows.y.resize(padded, i32::MIN / 2);
    rows.x.resize(padded, i32::MIN / 2);
    let pixels = to.area().next_multiple_of(col_step.max(1));
    let mut cols = ColOffsets { y: room(pixels)?, x: room(pixels)? };
    let start = |dim: usize, place: usize| {
        let at = (place * slides[dim].stride) as i64 - slides[dim].padding as i64;
        (at * images.strides[dim] as i64) as i32
    };
    for y in 0..to.sizes[1] {
        for x in 0..to.sizes[2] {
            cols.y.push(start(1, y));
            cols.x.push(start(2, x));
        }
    }
    let padded = cols.y.len().next_multiple_of(col_step.max(1));
    cols.y.resize(padded, 0);
    cols.x.resize(padded, 0);
    Ok((rows, cols))
}

/// Gathers the patches of output pixels from number `first` on, one row each: taps, and their channels innermost.
fn gather(geometry: &Geometry, data: &[f32], first: usize, patches: &mut [f32]) {
    let Geometry { input: images, out: to, slides, .. } = geometry;
    let channels = images.channels.0;
    let (tall, wide) = (slides[1].kernel, slides[2].kernel);
    for (pixel, patch) in patches.chunks_exact_mut(tall * wide * channels).enumerate() {
        let (y, x) = ((first + pixel) / to.sizes[2], (first + pixel) % to.sizes[2]);
        for (ky, line) in patch.chunks_exact_mut(wide * channels).enumerate() {
            let Some(row) = inside(&slides[1], y, ky) else {
                line.fill(0.0);
                continue;
            };
            for (kx, place) in line.chunks_exact_mut(channels).enumerate() {
                match inside(&slides[2], x, kx) {
                    Some(column) => {
                        let from = row * images.strides[1] + column * images.strides[2];
                        if images.channels.1 == 1 {
                            place.copy_from_slice(&data[from..from + channels]);
                        } else {
                            let values = data[from..].iter().step_by(images.channels.1);
                            place.iter_mut().zip(values).for_each(|(place, &x)| *place = x);
                        }
                    }
                    None => place.fill(0.0),
                }
            }
        }
    }
}

/// The input element a tap meets, if it is not in the padding.
#[inline]
fn inside(slide: &crate::spatial::Slide, place: usize, tap: usize) -> Option<usize> {
    (place * slide.stride + tap * slide.dilation).checked_sub(slide.padding).filter(|&at| at < slide.input)
}
