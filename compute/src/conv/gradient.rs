//! The gradients of a convolution by its weight and its bias, by definition.
//!
//! The gradient by the input is a convolution of the other kind with the same weight: transposed for a forward one, and
//! forward for a transposed one.

use super::geometry::Geometry;
use crate::number::{Cast, Compute, Number};
use crate::spatial::Images;

/// Computes the gradient of the weight from the input and the gradient of the output, which is stored where the
/// geometry has the output: by element, the sum over all places that the tap takes. `to` says where it goes; its batch
/// is the first dimension of the weight.
pub fn of_weight<T: Number>(geometry: &Geometry, to: &Images, input: &[T], grad: &[T], out: &mut [T]) {
    let Geometry { groups, transposed, .. } = geometry;
    // The window slides over one of the two images; the first dimension of the weight is that of the other's channels.
    let (still, slid) = if *transposed { (&geometry.input, &geometry.out) } else { (&geometry.out, &geometry.input) };
    let (by_place, by_tap) = if *transposed { (input, grad) } else { (grad, input) };
    let group = to.batch.0 / groups;
    let taps = to.area();
    for channel in 0..to.batch.0 {
        for inner in 0..to.channels.0 {
            let reached = channel / group.max(1) * to.channels.0 + inner;
            for flat in 0..taps {
                let tap = [flat / (to.sizes[1] * to.sizes[2]), flat / to.sizes[2] % to.sizes[1], flat % to.sizes[2]];
                let mut sum = T::Compute::ZERO;
                for n in 0..still.batch.0 {
                    let from = n * still.batch.1 + channel * still.channels.1;
                    let at = n * slid.batch.1 + reached * slid.channels.1;
                    meetings(geometry, still, tap, |place, element| {
                        let offset = |images: &Images, index: [usize; 3]| -> usize {
                            index.iter().zip(&images.strides).map(|(index, stride)| index * stride).sum()
                        };
                        let x = by_place[from + offset(still, place)].to_compute();
                        sum = sum.plus(x.times(by_tap[at + offset(slid, element)].to_compute()));
                    });
                }
                let offset = tap[0] * to.strides[0] + tap[1] * to.strides[1] + tap[2] * to.strides[2];
                out[channel * to.batch.1 + inner * to.channels.1 + offset] = sum.cast();
            }
        }
    }
}

/// Calls `f` with every place of the window where a tap falls into the image it slides over, and the element there.
fn meetings(geometry: &Geometry, still: &Images, tap: [usize; 3], mut f: impl FnMut([usize; 3], [usize; 3])) {
    let along = |dim: usize| {
        let slide = geometry.slides[dim];
        (0..still.sizes[dim]).filter_map(move |place| Some((place, slide.element(place, tap[dim])?)))
    };
    for (z, from_z) in along(0) {
        for (y, from_y) in along(1) {
            for (x, from_x) in along(2) {
                f([z, y, x], [from_z, from_y, from_x]);
            }
        }
    }
}

/// Computes the gradient of the bias: by channel, the sum of that of the output.
pub fn of_bias<T: Number>(images: &Images, grad: &[T], out: &mut [T]) {
    for (channel, out) in out.iter_mut().enumerate() {
        let mut sum = T::Compute::ZERO;
        for n in 0..images.batch.0 {
            let start = n * images.batch.1 + channel * images.channels.1;
            for z in 0..images.sizes[0] {
                for y in 0..images.sizes[1] {
                    let row = start + z * images.strides[0] + y * images.strides[1];
                    for x in 0..images.sizes[2] {
                        sum = sum.plus(grad[row + x * images.strides[2]].to_compute());
                    }
                }
            }
        }
        *out = sum.cast();
    }
}
