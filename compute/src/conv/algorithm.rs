//! Choice of the loops that compute a convolution of `f32`, by its layouts and sizes.

use super::geometry::Geometry;
use super::{depthwise, few_outputs};
use crate::spatial::Images;

/// Below this many multiplications the definition is faster than any preparation.
const SMALL: usize = 1 << 9;

/// The algorithm that computes a convolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Algorithm {
    /// By definition.
    Direct,
    /// Every channel by itself, row by row.
    DepthwiseNchw,
    /// Every channel by itself, the channels of a pixel next to each other.
    DepthwiseNhwc,
    /// Every channel by itself, of few channels next to each other: row by row.
    DepthwiseRows,
    /// Groups of a few channels, the channels of a pixel next to each other.
    GroupedNhwc,
    /// To a few channels, the channels of a pixel next to each other.
    FewOutputs,
    /// `weight * patches`, the patches gathered while they are packed.
    Im2colNchw,
    /// Pixels that taps meet, read where they are stored, times blocks of the weight.
    Pixels,
    /// Transposed, as products that are added up.
    ScatterTransposed,
}

impl Algorithm {
    /// Returns whether it reads a weight in an order of its own.
    pub(super) fn packs(self) -> bool {
        use Algorithm::{DepthwiseNhwc, DepthwiseRows, FewOutputs, GroupedNhwc, Pixels};
        matches!(self, DepthwiseNhwc | DepthwiseRows | GroupedNhwc | FewOutputs | Pixels)
    }

    pub(super) fn of(geometry: &Geometry) -> Algorithm {
        let Geometry { input, out, weight, groups, transposed, .. } = *geometry;
        let too_long = input.channels.0 * input.area() >= i32::MAX as usize / 4;
        // One layer is an image, unless there are layers of padding around it or added to the output.
        let deep = input.sizes[0] > 1 || out.sizes[0] > 1;
        let layers = geometry.slides[0].kernel > 1 || geometry.slides[0].padding > 0 || deep;
        let dense = |images: &Images| images.sizes[1] == 1 || images.strides[1] == images.sizes[2] * images.strides[2];
        let linear = input.strides[2] == input.channels.0 && dense(&input) || input.area() == 1;
        let in_place = input.channels.1 == 1 && linear;
        let last = Images::channels_last(out.batch.0, out.channels.0, out.sizes);
        let by_pixel = out.is_channels_last() && out.is_placed_as(&last);
        // The strides of a single pixel fit both layouts: nobody has set memory aside to reorder the image for it.
        let pixels = by_pixel && (in_place || groups == 1 && out.area() > 1);
        let plane = weight.area() * weight.strides[2];
        let taps_in_order = weight.is_linear() && (weight.channels.0 == 1 || weight.channels.1 == plane);
        let fits = taps_in_order && input.is_linear();
        // Vectors of channels would be empty for the most part.
        let scatters = fits && out.channels.0 <= few_outputs::MOST && weight.area() > 1;
        if transposed && (!pixels || scatters || layers || too_long || geometry.work() < SMALL) {
            return match fits && geometry.work() >= SMALL {
                true => Algorithm::ScatterTransposed,
                false => Algorithm::Direct,
            };
        }
        if geometry.work() < SMALL || too_long {
            return Algorithm::Direct;
        }
        if layers {
            let linear = [input, weight, out].iter().all(Images::is_linear);
            let rows = out.strides[2] == 1 && out.channels.1 == out.area();
            let taps = weight.strides[2] == 1 && weight.channels.1 == weight.area();
            return if linear && rows && taps { Algorithm::Im2colNchw } else { Algorithm::Direct };
        }
        let weight_dense = weight.strides[2] == 1 && dense(&weight) && weight.channels.1 == weight.area();
        let depthwise = weight.channels.0 == 1 && groups > 1;
        if in_place && out.is_placed_as(&last) && few_outputs::pays(geometry) {
            return Algorithm::FewOutputs;
        }
        if by_pixel && (pixels || out.area() > 1) {
            return match depthwise && !transposed {
                true if input.channels.1 == 1 && out.channels.0 == groups => match depthwise::fits_rows(geometry) {
                    true => Algorithm::DepthwiseRows,
                    false => Algorithm::DepthwiseNhwc,
                },
                false if input.channels.1 == 1 && depthwise::fits_groups(geometry) => Algorithm::GroupedNhwc,
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
