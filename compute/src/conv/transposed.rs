//! Transposed convolution as a product of matrices: every input pixel times the whole weight of an output channel, and the
//! results added where their taps fall.

use super::geometry::{Geometry, Operands};
use crate::error::{Error, ErrorKind};
use crate::gemm::{Fast, Gemm, Mat, Terms};
use crate::simd::wide;

/// Elements of products made at a time, if one channel does not need more.
const PRODUCTS: usize = 1 << 16;

/// Elements of scratch memory for images of so many pixels and a weight of so many taps.
pub(super) fn scratch(pixels: usize, taps: usize) -> usize {
    pixels.saturating_mul(taps).max(PRODUCTS)
}

/// Computes the whole output. Taps of the weight follow each other, channel after channel, and so do the input's pixels.
pub(super) fn convolve(
    geometry: &Geometry,
    operands: &Operands<'_, f32>,
    scratch: &mut [f32],
    out: &mut [f32],
) -> Result<(), Error> {
    let Geometry { input: images, weight: kernel, out: to, groups, .. } = *geometry;
    let [channels, out_channels] = geometry.group_channels();
    let (taps, area) = (kernel.area(), images.area());
    let at_once = scratch.len().min(PRODUCTS.max(taps * area)).checked_div(taps * area).unwrap_or(0);
    if at_once == 0 {
        return Err(Error::new(ErrorKind::Unsupported, "the image is larger than at load"));
    }
    for (n, group) in (0..to.batch.0).flat_map(|n| (0..groups).map(move |group| (n, group))) {
        let data = &operands.input[n * images.batch.1 + group * channels * images.channels.1..];
        let pixels = Mat::new(data, [channels, area], [images.channels.1, images.strides[2]])?;
        let weight = &operands.weight[group * channels * kernel.batch.1..];
        for first in (0..out_channels).step_by(at_once) {
            let count = at_once.min(out_channels - first);
            let (step, from) = (kernel.strides[2], &weight[first * kernel.channels.1..]);
            let weight = Mat::new(from, [channels, count * taps], [kernel.batch.1, step])?;
            let products = &mut scratch[..count * taps * area];
            Fast::multiply(products, weight.transposed(), pixels.into(), Terms::default())?;
            for (index, products) in products.chunks_exact(taps * area).enumerate() {
                let channel = group * out_channels + first + index;
                let out = &mut out[n * to.batch.1 + channel * to.channels.1..];
                wide(|| add(geometry, products, operands.bias.map_or(0.0, |bias| bias[channel]), out));
            }
        }
    }
    Ok(())
}

/// Adds the products of one output channel, by tap and input pixel, to its plane, which starts at the bias.
#[inline(always)]
fn add(geometry: &Geometry, products: &[f32], bias: f32, plane: &mut [f32]) {
    let Geometry { input: images, out: to, slides, .. } = geometry;
    let [depth, height, width] = images.sizes;
    for z in 0..to.sizes[0] {
        for y in 0..to.sizes[1] {
            let row = &mut plane[z * to.strides[0] + y * to.strides[1]..];
            row.iter_mut().step_by(to.strides[2].max(1)).take(to.sizes[2]).for_each(|x| *x = bias);
        }
    }
    // The window slides over the output: an input pixel is a place of it.
    for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
        let (deep, down) = (slides[0].taps(z), slides[1].taps(y));
        for (kz, ky) in (0..deep.count).flat_map(|kz| (0..down.count).map(move |ky| (kz, ky))) {
            let line = (deep.first + kz * slides[0].dilation) * to.strides[0]
                + (down.first + ky * slides[1].dilation) * to.strides[1];
            let tap = ((deep.skipped + kz) * slides[1].kernel + down.skipped + ky) * slides[2].kernel;
            for kx in 0..slides[2].kernel {
                let row = &products[(tap + kx) * images.area() + (z * height + y) * width..][..width];
                let (offset, slide) = (kx * slides[2].dilation, &slides[2]);
                let first = slide.padding.saturating_sub(offset).div_ceil(slide.stride);
                let end = match (slide.input + slide.padding).checked_sub(offset + 1) {
                    Some(last) => (last / slide.stride + 1).min(width),
                    None => 0,
                };
                if first >= end {
                    continue;
                }
                let start = first * slide.stride + offset - slide.padding;
                let out = &mut plane[line + start * to.strides[2]..];
                let row = &row[first..end];
                match slide.stride * to.strides[2] {
                    1 => out.iter_mut().zip(row).for_each(|(out, x)| *out += x),
                    stride => out.iter_mut().step_by(stride.max(1)).zip(row).for_each(|(out, x)| *out += x),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::conv::algorithm::Algorithm;
    use crate::conv::geometry::Geometry;
    use crate::conv::tests::agrees;
    use crate::random::Random;
    use crate::spatial::{Images, Slide};

    /// Weights that have the taps of an input next to each other, or the inputs of a tap; a few channels, in either order.
    #[test]
    fn few_channels_agree_with_the_definition() {
        let mut random = Random::new(73);
        for (round, (kernel, stride, padding)) in
            [(2, 2, 0), (4, 2, 1), (3, 1, 2), (2, 3, 0), (9, 2, 4)].into_iter().enumerate()
        {
            let outputs = [1, 3][round % 2];
            let slide = |input| {
                let slide = Slide { input, kernel, stride, padding, dilation: 1 };
                Slide { input: slide.transposed_size(0).unwrap(), ..slide }
            };
            let slides = [Slide::POINT, slide(9), slide(30)];
            let (inputs, last) = (16, Images::channels_last(1, 16, [1, kernel, kernel]));
            let first = Images::channels_first(inputs, outputs, [1, kernel, kernel]);
            let geometry = Geometry {
                input: Images::channels_last(2, inputs, [1, 9, 30]),
                weight: if outputs == 1 {
                    Images { batch: last.channels, channels: last.batch, ..last }
                } else {
                    first
                },
                out: Images::channels_last(2, outputs, slides.map(|slide| slide.input)),
                slides,
                groups: 1,
                transposed: true,
            };
            assert_eq!(Algorithm::of(&geometry), Algorithm::ScatterTransposed);
            agrees(&mut random, geometry);
        }
    }
}
